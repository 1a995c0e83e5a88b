//! The texts for a file that does not fit the keys that exist: what is wrong in
//! an operator's words, and what to write instead.

use serde_json::Value;
use toml::de::DeValue;

use super::complaint::Complaint;
use super::lines::Lines;
use super::shape::{Key, Shape, Table, join};

/// Most known keys that are listed where none is like the unknown one.
const MAX_LISTED: usize = 16;
/// Most places of a key that are suggested.
const MAX_PLACES: usize = 3;

/// What is wrong, and what to do about it.
pub(super) struct Text {
    pub(super) message: String,
    pub(super) remedy: String,
}

impl Text {
    fn new(message: impl Into<String>, remedy: impl Into<String>) -> Self {
        let (message, remedy) = (message.into(), remedy.into());
        Self { message, remedy }
    }
}

/// A key that `table`, which is at `path`, does not have.
pub(super) fn unknown(
    root: &Table,
    path: &str,
    name: &str,
    value: &DeValue<'_>,
    table: &Table,
) -> Text {
    let message = format!("unknown key `{name}`");
    if let Some(place) = table_with_keys_of(root, name, value) {
        return Text::new(message, format!("did you mean {place}?"));
    }
    if let Some(key) = nearest(name, table.keys()) {
        return Text::new(message, format!("did you mean {}?", key.written(&key.name)));
    }
    let mut places = Vec::new();
    root.for_each_path("", &mut |path, key| {
        if key.name == name {
            places.push((path.clone(), key.written(&path)));
        }
    });
    // A name that many tables have is suggested only where it is near.
    if places.len() > 1 {
        let here = join(path, "");
        places.retain(|(place, _)| !path.is_empty() && place.starts_with(&here));
    }
    if (1..=MAX_PLACES).contains(&places.len()) {
        let places: Vec<_> = places.into_iter().map(|(_, written)| written).collect();
        return Text::new(message, format!("did you mean {}?", places.join(" or ")));
    }
    let known: Vec<_> = table.keys().map(|key| key.name.as_str()).collect();
    let remedy = match known.len() <= MAX_LISTED {
        true => format!("remove it; the keys here are {}", known.join(", ")),
        false => "remove it; `tachonym check-config --reference` lists the keys".into(),
    };
    Text::new(message, remedy)
}

/// A value at `path` that is not the table, or list of tables, that `key` is.
pub(super) fn not_this_table(root: &Table, path: &str, key: &Key, value: &DeValue<'_>) -> Text {
    let path = path.split('[').next().unwrap_or(path);
    let header = key.written(path);
    if let Some(place) = table_with_keys_of(root, &key.name, value).filter(|it| *it != header) {
        let message = format!("{header} has no such keys");
        return Text::new(message, format!("did you mean {place}?"));
    }
    let message = match (&key.shape, value) {
        (Shape::Tables(_), DeValue::Table(_)) => {
            format!("`{path}` may occur several times and needs double brackets")
        }
        (_, DeValue::Array(_)) => format!("`{path}` occurs once and needs single brackets"),
        _ => format!("`{path}` is a table with keys of its own"),
    };
    Text::new(message, format!("write {header}"))
}

/// The table with a name like `name` that has the keys of `value`, as the file begins
/// it: `[faces.udp]` for `face` with a table `udp`.
fn table_with_keys_of(root: &Table, name: &str, value: &DeValue<'_>) -> Option<String> {
    let found = match value {
        DeValue::Table(table) => table,
        DeValue::Array(entries) => entries.first()?.get_ref().as_table()?,
        _ => return None,
    };
    let names: Vec<&str> = found.keys().map(|name| name.get_ref().as_ref()).collect();
    let mut place = None;
    let mut most = 0;
    root.for_each_path("", &mut |path, key| {
        let Some(table) = key.table().filter(|_| is_like(&key.name, name)) else {
            return;
        };
        let known: Vec<_> = names.iter().filter_map(|name| table.get(name)).collect();
        if known.len() <= most {
            return;
        }
        most = known.len();
        place = Some(match known[..] {
            [inner] if inner.table().is_some() => inner.written(&join(&path, &inner.name)),
            _ => key.written(&path),
        });
    });
    place
}

/// A value that is not what `shape` says, if it is not. `key` is the key that it, or the
/// list that it is in, belongs to.
pub(super) fn not_this_value(key: &Key, shape: &Shape, value: &DeValue<'_>) -> Option<Text> {
    let name = &key.name;
    let as_in = || format!("as in {name} = {}", literal(&key.example));
    let wrong = |due: &str, remedy: String| {
        let message = format!("{} is not {due}", shown(value));
        Some(Text::new(message, remedy))
    };
    match (shape, value) {
        (Shape::Flag, DeValue::Boolean(_))
        | (Shape::Text, DeValue::String(_))
        | (Shape::Number, DeValue::Float(_) | DeValue::Integer(_)) => None,
        (Shape::Integer { max }, DeValue::Integer(number)) => {
            let digits = number.as_str().replace('_', "");
            match u64::from_str_radix(&digits, number.radix()) {
                Ok(number) if number <= *max => None,
                _ if *max < u32::MAX.into() => {
                    let remedy = format!("write a number from 0 to {max}, {}", as_in());
                    wrong("in range", remedy)
                }
                _ => wrong(
                    "a whole number from 0",
                    format!("write {}, {}", unit(name), as_in()),
                ),
            }
        }
        (Shape::Integer { .. } | Shape::Number, DeValue::String(text)) => {
            let is_number = text.parse::<f64>().is_ok_and(|number| number >= 0.0);
            let remedy = match is_number {
                true => format!("write it without quotes: {name} = {text}"),
                false => format!("write {}, {}", unit(name), as_in()),
            };
            wrong("a number", remedy)
        }
        (Shape::Integer { .. }, _) => wrong(
            "a whole number from 0",
            format!("write {}, {}", unit(name), as_in()),
        ),
        (Shape::Number, _) => wrong("a number", format!("write a number, {}", as_in())),
        (Shape::Flag, DeValue::String(text)) if ["true", "false"].contains(&text.as_ref()) => {
            wrong(
                "true or false",
                format!("write it without quotes: {name} = {text}"),
            )
        }
        (Shape::Flag, _) => wrong(
            "true or false",
            format!("write {name} = true or {name} = false"),
        ),
        (Shape::Word(words), DeValue::String(text)) => {
            let is_known = words.iter().any(|word| word.as_str() == text.as_ref());
            (!is_known).then(|| unknown_word(name, text, words))
        }
        (Shape::Word(words), _) => wrong("a string", format!("write {}", alternatives(words))),
        (Shape::Text, DeValue::Integer(_) | DeValue::Float(_) | DeValue::Boolean(_)) => wrong(
            "a string",
            format!("put it in quotes: \"{}\"", plain(value)),
        ),
        (Shape::Text, _) => wrong("a string", format!("write a string, {}", as_in())),
        (Shape::List | Shape::ListOf(_), DeValue::String(text)) => wrong(
            "a list",
            format!("put it in brackets: {name} = [\"{text}\"]"),
        ),
        _ => wrong("a list", format!("write a list, {}", as_in())),
    }
}

fn unknown_word(name: &str, word: &str, words: &[String]) -> Text {
    let near = words.iter().find(|known| is_like(known, word));
    let all = alternatives(words);
    let remedy = match near {
        Some(near) => format!("did you mean \"{near}\"? {name} is {all}"),
        None => format!("write {all}"),
    };
    Text::new(format!("\"{word}\" is not a value of {name}"), remedy)
}

fn alternatives(words: &[String]) -> String {
    let words: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
    words.join(" or ")
}

/// A key that an entry must have and lacks.
pub(super) fn missing(key: &Key) -> Text {
    let (name, example) = (&key.name, literal(&key.example));
    Text::new(
        format!("`{name}` is missing"),
        format!("add a line such as {name} = {example}"),
    )
}

/// What a number counts, by the unit in its key's name.
fn unit(name: &str) -> &'static str {
    match name.rsplit('_').next() {
        Some("bytes") => "a number of bytes",
        Some("s") => "a number of seconds",
        Some("ms") => "a number of milliseconds",
        _ => "a number",
    }
}

/// `value` as TOML, which writes these like JSON.
fn literal(value: &Value) -> String {
    value.to_string().replace("\",\"", "\", \"")
}

/// `value` as the file has it, or its kind.
fn shown(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("\"{text}\""),
        DeValue::Array(_) => "a list".into(),
        DeValue::Table(_) => "a table".into(),
        _ => plain(value),
    }
}

fn plain(value: &DeValue<'_>) -> String {
    match value {
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Datetime(time) => time.to_string(),
        _ => String::new(),
    }
}

/// The key of which `name` is probably a misspelling.
fn nearest<'k>(name: &str, keys: impl Iterator<Item = &'k Key>) -> Option<&'k Key> {
    let alike = keys.filter(|key| is_like(&key.name, name));
    alike.min_by_key(|key| strsim::damerau_levenshtein(&key.name, name))
}

/// Whether `written` is probably meant to be `known`: a third of the letters may be
/// wrong, or all from some point on missing.
fn is_like(known: &str, written: &str) -> bool {
    let is_begun = written.len() >= 3 && known.starts_with(written);
    let max = known.len().min(written.len()).div_ceil(3);
    is_begun || strsim::damerau_levenshtein(known, written) <= max
}

/// An error of the TOML reader: its own message, with a remedy for common slips.
pub(super) fn syntax_complaint(
    text: &str,
    lines: &Lines<'_>,
    error: &toml::de::Error,
) -> Complaint {
    let span = error.span().unwrap_or(0..0);
    let line = lines.line_at(&span);
    let written = text.lines().nth(line - 1).unwrap_or_default();
    let message = error.message().replace('\n', " ");
    let remedy = match written
        .split_once('=')
        .map(|(key, value)| (key.trim(), value.trim()))
    {
        _ if message.contains("duplicate key") => "keep one of them".into(),
        _ if message.contains("unclosed table") => "close the bracket, as in [faces]".into(),
        _ if message.contains("invalid basic string") => "close the quotes, as in \"info\"".into(),
        Some((key, "")) => format!("write a value after {key} ="),
        Some((key, value)) if is_bare_word(value) => {
            format!("put it in quotes: {key} = \"{value}\"")
        }
        None if !written.trim_start().starts_with('[') => "write key = value".into(),
        _ => "correct the TOML in this line".into(),
    };
    Complaint {
        line,
        key: lines.key_at(&span).unwrap_or_default(),
        message: format!("not valid TOML: {message}"),
        remedy,
    }
}

/// Whether `value` is a string without its quotes.
fn is_bare_word(value: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:".contains(c);
    value.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/') && value.chars().all(is_plain)
}
