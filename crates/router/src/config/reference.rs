//! The configuration reference: an introduction, and Markdown generated from the doc
//! comments, types and defaults of the structures, so that it cannot differ from the
//! code.

use std::fmt::Write as _;

use schemars::Schema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use super::Config;
use super::summary::size;

/// The page `docs/configuration.md`.
#[must_use]
pub fn markdown() -> String {
    let schema = schema();
    let root = schema.as_object().expect("a struct's schema is an object");
    let definitions = root["$defs"]
        .as_object()
        .expect("the configuration has sub-tables");
    let defaults = serde_json::to_value(Config::default()).expect("plain data serialises");

    let mut out = String::from(include_str!("introduction.md"));
    table(&mut out, "", root, definitions, Some(&defaults));
    out
}

/// The JSON Schema of the file, for editors.
#[must_use]
pub fn schema() -> Schema {
    SchemaSettings::draft2020_12()
        .into_generator()
        .into_root_schema_for::<Config>()
}

/// Writes the keys of one table, then its sub-tables.
fn table(
    out: &mut String,
    path: &str,
    schema: &Map<String, Value>,
    definitions: &Map<String, Value>,
    defaults: Option<&Value>,
) {
    let properties = schema["properties"].as_object().expect("a table has keys");
    let mut nested = Vec::new();
    let mut rows = String::new();
    for (key, property) in properties {
        let property = property.as_object().expect("a property is a schema object");
        let default = defaults.and_then(|d| d.get(key));
        match sub_table(property, definitions) {
            Some((definition, kind)) => nested.push((key, property, definition, kind, default)),
            None => {
                let default = default.map_or_else(|| "required".into(), |it| toml_literal(key, it));
                let text = description(property).replace('\n', " ");
                let values = values_of(property, definitions);
                let _ = writeln!(rows, "| `{key}` | {values} | {default} | {text} |");
            }
        }
    }
    if !rows.is_empty() {
        out.push_str("\n| key | value | default | meaning |\n|---|---|---|---|\n");
        out.push_str(&rows);
    }
    for (key, property, definition, kind, default) in nested {
        let path = if path.is_empty() {
            key.clone()
        } else {
            format!("{path}.{key}")
        };
        let heading = match kind {
            Kind::Table => format!("[{path}]"),
            Kind::Array => format!("[[{path}]]"),
        };
        let _ = writeln!(out, "\n## `{heading}`\n\n{}", description(property));
        let own_default = match kind {
            Kind::Table => default.cloned(),
            // Only the optional keys of a list's entry have defaults.
            Kind::Array => element_default(definition),
        };
        table(out, &path, definition, definitions, own_default.as_ref());
    }
}

/// How a structure is written.
#[derive(Clone, Copy)]
enum Kind {
    /// Once, as `[path]`.
    Table,
    /// Any number of times, as `[[path]]`.
    Array,
}

/// The structure behind a key that is a table or a list of tables.
fn sub_table<'a>(
    property: &Map<String, Value>,
    definitions: &'a Map<String, Value>,
) -> Option<(&'a Map<String, Value>, Kind)> {
    let resolve = |schema: &Map<String, Value>| {
        let name = schema.get("$ref")?.as_str()?.rsplit('/').next()?;
        definitions
            .get(name)?
            .as_object()
            .filter(|d| d.contains_key("properties"))
    };
    if let Some(definition) = resolve(property) {
        return Some((definition, Kind::Table));
    }
    let items = property.get("items")?.as_object()?;
    Some((resolve(items)?, Kind::Array))
}

/// Defaults of the optional keys of a list's entries.
fn element_default(definition: &Map<String, Value>) -> Option<Value> {
    let optional = definition["properties"]
        .as_object()?
        .iter()
        .filter_map(|(k, p)| Some((k.clone(), p.get("default")?.clone())));
    Some(Value::Object(optional.collect()))
}

fn description(property: &Map<String, Value>) -> String {
    property
        .get("description")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_string()
}

/// The values of a key: a type, or the alternatives of an enumeration.
fn values_of(property: &Map<String, Value>, definitions: &Map<String, Value>) -> String {
    // An optional one is a choice between it and null.
    let choice = property.get("anyOf").and_then(|any| any.get(0));
    let reference = choice.map_or_else(|| property.get("$ref"), |first| first.get("$ref"));
    if let Some(name) = reference.and_then(Value::as_str)
        && let Some(definition) = name.rsplit('/').next().and_then(|n| definitions.get(n))
    {
        let alternatives = definition["oneOf"].as_array().into_iter().flatten();
        let words: Vec<String> = alternatives
            .filter_map(|a| a.get("const").and_then(Value::as_str))
            .map(|w| format!("`\"{w}\"`"))
            .collect();
        return words.join(", ");
    }
    let type_name = match property.get("type") {
        Some(Value::Array(types)) => types
            .iter()
            .filter_map(Value::as_str)
            .find(|t| *t != "null"),
        Some(Value::String(one)) => Some(one.as_str()),
        _ => None,
    };
    match type_name {
        Some("array") if items_are_integers(property) => "list of integers".into(),
        Some("array") => "list of strings".into(),
        Some(other) => other.into(),
        None => "value".into(),
    }
}

fn items_are_integers(property: &Map<String, Value>) -> bool {
    let items = property.get("items").and_then(|items| items.get("type"));
    items.and_then(Value::as_str) == Some("integer")
}

/// `value` of `key` as the file has it; large sizes with their unit.
fn toml_literal(key: &str, value: &Value) -> String {
    let text = match value {
        Value::Null => return "none".into(),
        other => other.to_string().replace("\",\"", "\", \""),
    };
    match value.as_u64() {
        Some(bytes @ 1024..) if key.ends_with("_bytes") && bytes % 1024 == 0 => {
            format!("`{text}` ({})", size(bytes))
        }
        _ => format!("`{text}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_in_docs_is_what_the_code_says() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
        if std::env::var_os("TACHONYM_WRITE_DOCS").is_some() {
            std::fs::write(path, markdown()).expect("docs/ can be written");
        }
        let on_disk = std::fs::read_to_string(path).expect("docs/configuration.md exists");
        assert!(
            on_disk == markdown(),
            "docs/configuration.md is stale: `tachonym check-config --reference` prints the new one"
        );
    }

    #[test]
    fn every_key_is_described() {
        let markdown = markdown();
        for line in markdown.lines().filter(|l| l.starts_with("| `")) {
            assert!(!line.ends_with("|  |"), "no description: {line}");
        }
    }

    #[test]
    fn every_sample_in_the_page_is_a_correct_configuration() {
        let markdown = markdown();
        let samples: Vec<_> = markdown.split("```toml\n").skip(1).collect();
        assert!(samples.len() >= 4, "{}", samples.len());
        for sample in samples {
            let (sample, _) = sample.split_once("```").expect("the block ends");
            if let Err(errors) = Config::parse(sample) {
                panic!("{errors:?} in:\n{sample}");
            }
        }
        // The first one is ten lines long.
        let first = markdown.split("```").nth(1).expect("a block");
        assert_eq!(first.lines().count(), 1 + 10, "{first}");
    }
}
