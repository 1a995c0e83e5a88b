//! The line of a key in the file.

use std::ops::Range;

use toml::de::{DeArray, DeTable, DeValue};
use toml::{Spanned, de::Error};

/// The file as TOML, and where its lines begin.
pub(super) struct Lines<'t> {
    document: Spanned<DeTable<'t>>,
    /// Why the file is no TOML. `document` has the parts that are.
    errors: Vec<Error>,
    /// Offsets of the line feeds, ascending.
    feeds: Vec<usize>,
}

impl<'t> Lines<'t> {
    /// Parses `text` once, for all questions about it.
    pub(super) fn new(text: &'t str) -> Self {
        let feeds = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
        let (document, errors) = DeTable::parse_recoverable(text);
        Self {
            document,
            errors,
            feeds: feeds.map(|(at, _)| at).collect(),
        }
    }

    /// The file as TOML.
    ///
    /// # Errors
    /// Each place at which it is none.
    pub(super) fn document(&self) -> Result<&Spanned<DeTable<'t>>, &[Error]> {
        match self.errors.is_empty() {
            true => Ok(&self.document),
            false => Err(&self.errors),
        }
    }

    /// Line at which `span` begins, counted from 1.
    pub(super) fn line_at(&self, span: &Range<usize>) -> usize {
        self.feeds.partition_point(|&feed| feed < span.start) + 1
    }

    /// Line of the value at `key`, a dotted path such as `faces.udp.listen[1]`,
    /// or of the nearest table around it that the file has; `None` if it has
    /// none.
    pub(super) fn line_of(&self, key: &str) -> Option<usize> {
        let mut found = None;
        let mut table = Some(self.document.get_ref());
        let mut array: Option<&DeArray<'t>> = None;
        for step in key.split(['.', '[', ']']).filter(|s| !s.is_empty()) {
            let next: Option<&Spanned<DeValue<'t>>> = match (table, array) {
                (Some(t), _) => t.get(step),
                (_, Some(a)) => step.parse().ok().and_then(|i: usize| a.get(i)),
                _ => None,
            };
            let Some(value) = next else { break };
            found = Some(value);
            table = value.get_ref().as_table();
            array = value.get_ref().as_array();
        }
        found.map(|value| self.line_at(&value.span()))
    }

    /// The key whose value, or whose name, is at `span`.
    pub(super) fn key_at(&self, span: &Range<usize>) -> Option<String> {
        key_in(self.document.get_ref(), "", span)
    }
}

fn key_in(table: &DeTable<'_>, path: &str, span: &Range<usize>) -> Option<String> {
    let separator = if path.is_empty() { "" } else { "." };
    table.iter().find_map(|(name, value)| {
        let here = format!("{path}{separator}{}", name.get_ref());
        match name.span() == *span {
            true => Some(here),
            false => key_of(value, here, span),
        }
    })
}

/// The innermost key at `span`: a list with one table has the same span as that
/// table.
fn key_of(value: &Spanned<DeValue<'_>>, path: String, span: &Range<usize>) -> Option<String> {
    let inner = match value.get_ref() {
        DeValue::Table(table) => key_in(table, &path, span),
        DeValue::Array(array) => array
            .iter()
            .enumerate()
            .find_map(|(i, value)| key_of(value, format!("{path}[{i}]"), span)),
        _ => None,
    };
    inner.or_else(|| (value.span() == *span).then_some(path))
}
