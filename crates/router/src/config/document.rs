//! The parsed file against the keys that exist: every unknown key, missing key and
//! value of the wrong type, and the file without them.
//!
//! The TOML reader's own deserialiser stops at the first of them. What remains
//! without them is still checked for ranges, so that one run reports everything.

use std::collections::{HashMap, HashSet};

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::complaint::Complaint;
use super::lines::Lines;
use super::shape::{Key, Shape, Table, join};
use super::wording::{self, Text};

/// The comparison of a file with the keys that exist.
pub(super) struct Review<'r, 't> {
    root: &'r Table,
    lines: &'r Lines<'t>,
    /// What is wrong, in no order.
    pub(super) complaints: Vec<Complaint>,
    /// Paths that cannot be deserialised.
    faulty: HashSet<String>,
}

/// A file without what cannot be deserialised.
pub(super) struct Pruned<'t> {
    pub(super) document: Spanned<DeTable<'t>>,
    /// By the path of a list: the index in the file of each entry that is left.
    indices: HashMap<String, Vec<usize>>,
}

impl<'r, 't> Review<'r, 't> {
    /// Compares all of `document` with `root`.
    pub(super) fn new(
        document: &Spanned<DeTable<'t>>,
        root: &'r Table,
        lines: &'r Lines<'t>,
    ) -> Self {
        let mut review = Self {
            root,
            lines,
            complaints: Vec::new(),
            faulty: HashSet::new(),
        };
        review.table("", document.get_ref(), root);
        review
    }

    /// `document` without what is wrong in it.
    pub(super) fn prune(&self, document: &Spanned<DeTable<'t>>) -> Pruned<'t> {
        let mut pruned = Pruned {
            document: document.clone(),
            indices: HashMap::new(),
        };
        let span = document.span();
        let table = pruned.table("", document.get_ref(), &self.faulty);
        pruned.document = Spanned::new(span, table);
        pruned
    }

    fn table(&mut self, path: &str, found: &DeTable<'t>, table: &Table) {
        for (name, value) in found {
            let here = join(path, name.get_ref());
            match table.get(name.get_ref()) {
                Some(key) => self.value(here, value, key),
                None => {
                    let line = self.lines.line_at(&name.span());
                    let (name, value) = (name.get_ref(), value.get_ref());
                    let text = wording::unknown(self.root, path, name, value, table);
                    self.push(line, here, text);
                }
            }
        }
    }

    fn value(&mut self, path: String, found: &Spanned<DeValue<'t>>, key: &Key) {
        match (&key.shape, found.get_ref()) {
            (Shape::Table(table), DeValue::Table(inner)) => self.table(&path, inner, table),
            (Shape::Tables(table), DeValue::Array(entries)) => {
                for (i, entry) in entries.iter().enumerate() {
                    self.entry(format!("{path}[{i}]"), entry, key, table);
                }
            }
            (Shape::Table(_) | Shape::Tables(_), value) => {
                let text = wording::not_this_table(self.root, &path, key, value);
                self.push(self.lines.line_at(&found.span()), path, text);
            }
            (Shape::List, DeValue::Array(entries)) => {
                self.list(&path, entries, key, &Shape::Text);
            }
            (Shape::ListOf(one), DeValue::Array(entries)) => self.list(&path, entries, key, one),
            (shape, value) => {
                if let Some(text) = wording::not_this_value(key, shape, value) {
                    self.push(self.lines.line_at(&found.span()), path, text);
                }
            }
        }
    }

    /// An entry of a list of tables: left out as a whole unless it has, with the right
    /// types, all the keys that it must have.
    fn entry(&mut self, path: String, found: &Spanned<DeValue<'t>>, key: &Key, table: &Table) {
        let line = self.lines.line_at(&found.span());
        let DeValue::Table(inner) = found.get_ref() else {
            let text = wording::not_this_table(self.root, &path, key, found.get_ref());
            return self.push(line, path, text);
        };
        self.table(&path, inner, table);
        for key in table.keys().filter(|key| key.is_required) {
            let here = join(&path, &key.name);
            if inner.get(key.name.as_str()).is_none() {
                self.push(line, path.clone(), wording::missing(key));
            } else if self.faulty.contains(&here) {
                self.faulty.insert(path.clone());
            }
        }
    }

    fn list(&mut self, path: &str, entries: &DeArray<'t>, key: &Key, shape: &Shape) {
        for (i, entry) in entries.iter().enumerate() {
            if let Some(text) = wording::not_this_value(key, shape, entry.get_ref()) {
                let line = self.lines.line_at(&entry.span());
                self.push(line, format!("{path}[{i}]"), text);
            }
        }
    }

    fn push(&mut self, line: usize, path: String, text: Text) {
        self.faulty.insert(path.clone());
        self.complaints.push(Complaint {
            line,
            key: path,
            message: text.message,
            remedy: text.remedy,
        });
    }
}

impl<'t> Pruned<'t> {
    fn table(&mut self, path: &str, table: &DeTable<'t>, faulty: &HashSet<String>) -> DeTable<'t> {
        let mut kept = DeTable::new();
        for (name, value) in table {
            let here = join(path, name.get_ref());
            if faulty.contains(&here) {
                continue;
            }
            let span = value.span();
            let value = match value.get_ref() {
                DeValue::Table(inner) => DeValue::Table(self.table(&here, inner, faulty)),
                DeValue::Array(entries) => DeValue::Array(self.array(&here, entries, faulty)),
                other => other.clone(),
            };
            kept.insert(name.clone(), Spanned::new(span, value));
        }
        kept
    }

    fn array(&mut self, path: &str, array: &DeArray<'t>, faulty: &HashSet<String>) -> DeArray<'t> {
        let mut kept = DeArray::new();
        let mut indices = Vec::new();
        for (i, entry) in array.iter().enumerate() {
            let here = format!("{path}[{i}]");
            if faulty.contains(&here) {
                continue;
            }
            let value = match entry.get_ref() {
                DeValue::Table(inner) => DeValue::Table(self.table(&here, inner, faulty)),
                other => other.clone(),
            };
            kept.push(Spanned::new(entry.span(), value));
            indices.push(i);
        }
        self.indices.insert(path.into(), indices);
        kept
    }

    /// The path in the file of what is at `key` in this document.
    pub(super) fn path_in_file(&self, key: &str) -> String {
        let mut path = String::new();
        // Such as `management.authorize[2]`, `.anchors[1]`.
        for part in key.split_inclusive(']') {
            let (name, index) = match part.strip_suffix(']').and_then(|it| it.split_once('[')) {
                Some((name, index)) => (name, index.parse::<usize>().ok()),
                None => (part, None),
            };
            path += name;
            if let Some(index) = index {
                let indices = self.indices.get(&path);
                let index = indices.and_then(|it| it.get(index)).unwrap_or(&index);
                path += &format!("[{index}]");
            }
        }
        path
    }
}
