//! What may stand where in the file: the JSON Schema of [`Config`] as types.
//!
//! The schema is made from the structures, so no key is listed twice. What a
//! value means, and its range, is checked in `check`.

use serde_json::{Map, Value, json};

use super::{Config, reference};

/// The keys of a table, sorted by name.
pub(super) struct Table(Vec<Key>);

/// A key and its value.
pub(super) struct Key {
    pub(super) name: String,
    pub(super) shape: Shape,
    /// A value that may be written: the default, or an example. `Null` for tables.
    pub(super) example: Value,
    /// Whether the table that the key belongs to is wrong without it.
    pub(super) is_required: bool,
}

/// What a value is.
pub(super) enum Shape {
    /// `[path]`.
    Table(Table),
    /// `[[path]]`, any number of times.
    Tables(Table),
    /// A list of strings.
    List,
    /// A list of strings or numbers that each have a shape.
    ListOf(Box<Shape>),
    /// One of these strings.
    Word(Vec<String>),
    /// A whole number from 0 to `max`.
    Integer { max: u64 },
    /// A number, with or without a fraction.
    Number,
    /// `true` or `false`.
    Flag,
    /// A string.
    Text,
}

impl Table {
    /// The whole file.
    pub(super) fn root() -> Self {
        let schema = reference::schema();
        let root = schema.as_object().expect("a struct's schema is an object");
        let definitions = root["$defs"]
            .as_object()
            .expect("the configuration has sub-tables");
        let defaults = serde_json::to_value(Config::default()).expect("plain data serialises");
        Self::new(root, definitions, &defaults)
    }

    fn new(
        schema: &Map<String, Value>,
        definitions: &Map<String, Value>,
        defaults: &Value,
    ) -> Self {
        let properties = schema["properties"].as_object().into_iter().flatten();
        let required = schema.get("required").and_then(Value::as_array);
        let keys = properties.map(|(name, property)| {
            let default = match property.get("examples").and_then(|all| all.get(0)) {
                Some(example) => example,
                None => defaults
                    .get(name)
                    .or_else(|| property.get("default"))
                    .unwrap_or(&Value::Null),
            };
            let shape = Shape::new(property, definitions, default);
            Key {
                name: name.clone(),
                example: shape.example(default),
                shape,
                is_required: required.is_some_and(|all| all.contains(&json!(name))),
            }
        });
        Self(keys.collect())
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.0.iter()
    }

    pub(super) fn get(&self, name: &str) -> Option<&Key> {
        self.keys().find(|key| key.name == name)
    }

    /// Calls `visit` with the path of each key that has one: what lies in a list of
    /// tables has none.
    pub(super) fn for_each_path<'a>(&'a self, path: &str, visit: &mut dyn FnMut(String, &'a Key)) {
        for key in self.keys() {
            let here = join(path, &key.name);
            visit(here.clone(), key);
            if let Shape::Table(table) = &key.shape {
                table.for_each_path(&here, visit);
            }
        }
    }
}

/// The path of `name` in the table at `path`.
pub(super) fn join(path: &str, name: &str) -> String {
    match path.is_empty() {
        true => name.into(),
        false => format!("{path}.{name}"),
    }
}

impl Key {
    /// The table that this key, or each entry of it, is.
    pub(super) fn table(&self) -> Option<&Table> {
        match &self.shape {
            Shape::Table(table) | Shape::Tables(table) => Some(table),
            _ => None,
        }
    }

    /// How the file begins what is at `path`, where this key is.
    pub(super) fn written(&self, path: &str) -> String {
        match self.shape {
            Shape::Table(_) => format!("[{path}]"),
            Shape::Tables(_) => format!("[[{path}]]"),
            _ => format!("`{path}`"),
        }
    }
}

impl Shape {
    fn new(property: &Value, definitions: &Map<String, Value>, default: &Value) -> Self {
        // An optional value is a choice between it and null.
        let choice = property.get("anyOf").and_then(|any| any.get(0));
        let property = choice.unwrap_or(property);
        if let Some(definition) = resolve(property, definitions) {
            return match definition.contains_key("properties") {
                true => Self::Table(Table::new(definition, definitions, default)),
                false => Self::Word(words(definition)),
            };
        }
        let type_name = match &property["type"] {
            Value::Array(types) => types.iter().find(|name| **name != "null"),
            one => Some(one),
        };
        match type_name.and_then(Value::as_str) {
            Some("array") => match Self::new(&property["items"], definitions, &Value::Null) {
                Self::Table(table) => Self::Tables(table),
                Self::Text => Self::List,
                other => Self::ListOf(other.into()),
            },
            Some("integer") => Self::Integer {
                max: match property["format"].as_str() {
                    Some("uint8") => u8::MAX.into(),
                    Some("uint16") => u16::MAX.into(),
                    Some("uint32") => u32::MAX.into(),
                    // TOML has no greater number.
                    _ => i64::MAX as u64,
                },
            },
            Some("number") => Self::Number,
            Some("boolean") => Self::Flag,
            _ => Self::Text,
        }
    }

    /// A value of this shape, `default` if it is one.
    fn example(&self, default: &Value) -> Value {
        let is_empty = default.is_null() || *default == json!("") || *default == json!([]);
        match self {
            Self::Table(_) | Self::Tables(_) => Value::Null,
            _ if !is_empty => default.clone(),
            Self::List => json!(["…"]),
            Self::ListOf(one) => json!([one.example(&Value::Null)]),
            Self::Word(words) => json!(words.first()),
            Self::Integer { .. } | Self::Number => json!(1),
            Self::Flag => json!(true),
            Self::Text => json!("…"),
        }
    }
}

fn resolve<'d>(
    property: &Value,
    definitions: &'d Map<String, Value>,
) -> Option<&'d Map<String, Value>> {
    let name = property.get("$ref")?.as_str()?.rsplit('/').next()?;
    definitions.get(name)?.as_object()
}

/// The alternatives of an enumeration.
fn words(definition: &Map<String, Value>) -> Vec<String> {
    let alternatives = definition.get("oneOf").and_then(Value::as_array);
    let words = alternatives.into_iter().flatten();
    let words = words.filter_map(|one| one.get("const").and_then(Value::as_str));
    words.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_a_shape_and_an_example() {
        let root = Table::root();
        let mut n_keys = 0;
        root.for_each_path("", &mut |path, key| {
            n_keys += 1;
            let is_table = key.table().is_some();
            assert_eq!(is_table, key.example.is_null(), "{path}");
            if let Shape::Word(words) = &key.shape {
                assert!(words.len() > 1, "{path}");
            }
            let entry = match &key.shape {
                Shape::Tables(entry) => entry,
                _ => return,
            };
            for key in entry.keys().filter(|key| key.is_required) {
                assert!(
                    !key.example.to_string().contains('…'),
                    "{path}.{}",
                    key.name
                );
            }
        });
        assert!(n_keys > 100, "{n_keys}");
    }
}
