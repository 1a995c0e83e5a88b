//! The TOML reader's complaints in an operator's words: it speaks of Rust's
//! types, and knows no remedy.

use toml::de::DeValue;

use super::lines::Lines;
use super::load::Complaint;
use super::reference::{self, Kind};

/// Most known keys that are listed where none is like the unknown one.
const MAX_LISTED: usize = 16;

/// Tables written as lists and lists written as tables. The reader would take
/// some of them for something else.
pub(super) fn bracket_complaints(lines: &Lines<'_>) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for (path, kind) in reference::tables() {
        let Some((line, value)) = lines.value_at(&path) else {
            continue;
        };
        let (message, remedy) = match (kind, value) {
            (Kind::Table, DeValue::Array(_)) => ("a list is no table", format!("write [{path}]")),
            (Kind::Array, DeValue::Table(_)) => {
                ("there may be many of it", format!("write [[{path}]]"))
            }
            _ => continue,
        };
        complaints.push(Complaint {
            line,
            key: path,
            message: message.into(),
            remedy,
        });
    }
    complaints.sort_by_key(|c| c.line);
    complaints
}

/// What the TOML reader complains of.
pub(super) fn syntax_complaint(
    text: &str,
    lines: &Lines<'_>,
    error: &toml::de::Error,
) -> Complaint {
    let span = error.span().unwrap_or(0..0);
    let at = text.get(span.clone()).unwrap_or_default().trim();
    let (message, remedy) = reworded(&error.message().replace('\n', " "), at);
    Complaint {
        line: lines.line_at(&span),
        key: lines.key_at(&span).unwrap_or_default(),
        message,
        remedy,
    }
}

/// Message and remedy for what the reader says of the text `at`.
fn reworded(message: &str, at: &str) -> (String, String) {
    let quoted: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    if message.starts_with("unknown field")
        && let Some((unknown, known)) = quoted.split_first()
    {
        return (
            format!("there is no key `{unknown}` here"),
            known_keys(unknown, known),
        );
    }
    if message.starts_with("unknown variant")
        && let Some((unknown, known)) = quoted.split_first()
    {
        let known: Vec<_> = known.iter().map(|word| format!("\"{word}\"")).collect();
        let remedy = format!("write {}", known.join(" or "));
        return (format!("`{unknown}` is unknown here"), remedy);
    }
    if message.starts_with("missing field")
        && let [field] = quoted[..]
    {
        return (
            format!("`{field}` is missing"),
            format!("add `{field} = …` here"),
        );
    }
    let of_type = message.strip_prefix("invalid type: ");
    let of_kind = of_type.or_else(|| message.strip_prefix("invalid value: "));
    if let Some((_, expected)) = of_kind.and_then(|kinds| kinds.rsplit_once(", expected ")) {
        let due = due(expected);
        let unquoted = at.trim_matches('"');
        let remedy = match due {
            LIST if at.starts_with(['"', '\'']) => format!("write [{at}]"),
            NUMBER if unquoted != at && unquoted.parse::<u64>().is_ok() => {
                format!("write {unquoted}")
            }
            STRING if !at.is_empty() && at.bytes().all(|b| b.is_ascii_alphanumeric()) => {
                format!("write \"{at}\"")
            }
            FLAG if unquoted == "true" || unquoted == "false" => format!("write {unquoted}"),
            _ => format!("write {due}"),
        };
        return (format!("this is not {due}"), remedy);
    }
    let remedy = match message.contains("duplicate key") {
        true => "keep one of them",
        false => "correct the TOML here",
    };
    (message.to_owned(), remedy.into())
}

const NUMBER: &str = "a number from 0";
const LIST: &str = "a list, like [\"…\"]";
const STRING: &str = "a string, like \"…\"";
const FLAG: &str = "true or false";

/// What the reader expects, in words of TOML.
fn due(expected: &str) -> &'static str {
    match expected {
        "u8" => "a number from 0 to 255",
        "u16" | "u32" | "u64" | "usize" => NUMBER,
        "a boolean" => FLAG,
        _ if expected.contains("sequence") => LIST,
        _ if expected.contains("struct") || expected.contains("map") => "a table",
        _ => STRING,
    }
}

/// The key that was meant, or all that there are.
fn known_keys(unknown: &str, known: &[&str]) -> String {
    let distance = |key: &&&str| strsim::damerau_levenshtein(key, unknown);
    let nearest = known.iter().min_by_key(distance);
    // A third of the letters may be wrong, or all from some point on missing.
    let is_near = |key: &&&str| distance(key) <= key.len().min(unknown.len()).div_ceil(3);
    let begun = known
        .iter()
        .find(|key| unknown.len() >= 3 && key.starts_with(unknown));
    match nearest.filter(is_near).or(begun) {
        Some(key) => format!("did you mean `{key}`?"),
        None if known.len() <= MAX_LISTED => {
            format!("remove it; the keys here are {}", known.join(", "))
        }
        None => "remove it, or look the key up in the configuration reference".into(),
    }
}
