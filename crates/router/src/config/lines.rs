//! Where in the file a key stands.

use std::ops::Range;

use toml::de::{DeArray, DeTable, DeValue};
use toml::{Spanned, de::Error};

/// The file as TOML, and where its lines begin.
pub(super) struct Lines<'t> {
    document: Result<Spanned<DeTable<'t>>, Error>,
    /// Offsets of the line feeds, ascending.
    feeds: Vec<usize>,
}

impl<'t> Lines<'t> {
    /// Reads `text` once, so that each question costs little.
    pub(super) fn new(text: &'t str) -> Self {
        let feeds = text.bytes().enumerate().filter(|&(_, byte)| byte == b'\n');
        Self {
            document: DeTable::parse(text),
            feeds: feeds.map(|(at, _)| at).collect(),
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
        let (value, _) = self.nearest(key)?;
        Some(self.line_at(&value.span()))
    }

    /// Line and value of `key`, if the file has it.
    pub(super) fn value_at(&self, key: &str) -> Option<(usize, &DeValue<'t>)> {
        let (value, is_all) = self.nearest(key)?;
        is_all.then(|| (self.line_at(&value.span()), value.get_ref()))
    }

    /// The value at `key` or around it, and whether it is that of all of `key`.
    fn nearest(&self, key: &str) -> Option<(&Spanned<DeValue<'t>>, bool)> {
        let mut found = None;
        let mut table = self.document.as_ref().ok().map(Spanned::get_ref);
        let mut array: Option<&DeArray<'t>> = None;
        for step in key.split(['.', '[', ']']).filter(|s| !s.is_empty()) {
            let next: Option<&Spanned<DeValue<'t>>> = match (table, array) {
                (Some(t), _) => t.get(step),
                (_, Some(a)) => step.parse().ok().and_then(|i: usize| a.get(i)),
                _ => None,
            };
            let Some(value) = next else {
                return found.map(|value| (value, false));
            };
            found = Some(value);
            table = value.get_ref().as_table();
            array = value.get_ref().as_array();
        }
        found.map(|value| (value, true))
    }

    /// The key whose value, or whose name, is at `span`.
    pub(super) fn key_at(&self, span: &Range<usize>) -> Option<String> {
        key_in(self.document.as_ref().ok()?.get_ref(), "", span)
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

/// The innermost key at `span`: the only table of a list lies where the list
/// does.
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
