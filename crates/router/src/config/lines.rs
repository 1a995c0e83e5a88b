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
        let mut found = None;
        let mut table = self.document.as_ref().ok().map(Spanned::get_ref);
        let mut array: Option<&DeArray<'_>> = None;
        for step in key.split(['.', '[', ']']).filter(|s| !s.is_empty()) {
            let next: Option<&Spanned<DeValue<'_>>> = match (table, array) {
                (Some(t), _) => t.get(step),
                (_, Some(a)) => step.parse().ok().and_then(|i: usize| a.get(i)),
                _ => None,
            };
            let Some(value) = next else { break };
            found = Some(self.line_at(&value.span()));
            table = value.get_ref().as_table();
            array = value.get_ref().as_array();
        }
        found
    }
}
