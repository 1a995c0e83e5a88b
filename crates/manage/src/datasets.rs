//! Datasets that were asked for and may be asked for again, segment by segment.
//!
//! Owns the contents of published versions until later ones push them out. A
//! version is published when an Interest asks for a dataset without naming one; its
//! later segments are then cut out of the same content. Bounded by number and by
//! bytes; a segment of a version that is no longer here is not answered, and the
//! client starts again.

use std::collections::VecDeque;

use tachonym_packet::{Name, NameView, types};

/// Most versions that are kept.
/// Traces of packets publish up to 20 a second, and a large list takes some seconds to fetch.
const MAX_VERSIONS: usize = 256;

/// One version of a dataset.
#[derive(Debug)]
pub(crate) struct Published {
    /// Its name, up to and including the version.
    pub(crate) name: Name,
    pub(crate) content: Vec<u8>,
}

/// The latest versions of all datasets.
#[derive(Debug)]
pub(crate) struct PublishedDatasets {
    versions: VecDeque<Published>,
    n_bytes: usize,
    max_bytes: usize,
    last_version: u64,
}

impl PublishedDatasets {
    /// Keeps up to `max_bytes` of content, and always the latest version.
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self {
            versions: VecDeque::new(),
            n_bytes: 0,
            max_bytes,
            last_version: 0,
        }
    }

    /// Publishes `content` under `prefix` as a version of its own: the time, or
    /// the next number if the clock stands still or goes back.
    pub(crate) fn publish(
        &mut self,
        prefix: NameView<'_>,
        content: Vec<u8>,
        wall_ms: u64,
    ) -> &Published {
        self.last_version = wall_ms.max(self.last_version.saturating_add(1));
        let version = tachonym_packet::Component::version(self.last_version);
        self.n_bytes += content.len();
        self.versions.push_back(Published {
            name: prefix.to_name().with(&version),
            content,
        });
        while self.versions.len() > 1
            && (self.versions.len() > MAX_VERSIONS || self.n_bytes > self.max_bytes)
        {
            if let Some(oldest) = self.versions.pop_front() {
                self.n_bytes -= oldest.content.len();
            }
        }
        self.versions.back().expect("one was pushed just now")
    }

    /// The published version that `name`, the name of a version or of a segment
    /// of one, asks for, and the segment: 0 if `name` does not say.
    pub(crate) fn find(&self, name: NameView<'_>) -> Option<(&Published, u64)> {
        let last = name.last()?;
        let (version, segment) = match last.typ() {
            types::component::SEGMENT => (name.prefix(name.len() - 1), last.as_number()?),
            _ => (name, 0),
        };
        let published = self.versions.iter().rev().find(|p| p.name == version)?;
        Some((published, segment))
    }
}

/// Whether a name asks for a certain version or segment, rather than for the
/// dataset as it is now.
pub(crate) fn names_version_or_segment(name: NameView<'_>) -> bool {
    name.last().is_some_and(|last| {
        matches!(
            last.typ(),
            types::component::SEGMENT | types::component::VERSION
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(uri: &str) -> Name {
        uri.parse().unwrap()
    }

    #[test]
    fn versions_are_found_by_themselves_and_by_their_segments() {
        let mut datasets = PublishedDatasets::new(1000);
        let list = name("/localhost/nfd/rib/list");
        let first = datasets.publish(list.view(), vec![1], 70).name.clone();
        let second = datasets.publish(list.view(), vec![2], 70).name.clone();
        assert_eq!(first, name("/localhost/nfd/rib/list/v=70"));
        assert_eq!(second, name("/localhost/nfd/rib/list/v=71"));
        let found = |name: Name| datasets.find(name.view()).map(|(p, s)| (p.content[0], s));
        assert_eq!(found(first), Some((1, 0)));
        assert_eq!(
            found(name("/localhost/nfd/rib/list/v=71/seg=3")),
            Some((2, 3))
        );
        assert_eq!(found(name("/localhost/nfd/rib/list/v=72/seg=3")), None);
        assert_eq!(found(list), None);
    }

    #[test]
    fn versions_are_bounded_by_number_and_bytes() {
        let mut datasets = PublishedDatasets::new(4000);
        let a = name("/a");
        for at in 0..600 {
            datasets.publish(a.view(), vec![0; 10], at);
        }
        assert_eq!((datasets.versions.len(), datasets.n_bytes), (256, 2560));
        datasets.publish(a.view(), vec![0; 500], 0);
        assert_eq!((datasets.versions.len(), datasets.n_bytes), (256, 3050));
        // One that is too large by itself is kept alone.
        datasets.publish(a.view(), vec![0; 5000], 0);
        assert_eq!((datasets.versions.len(), datasets.n_bytes), (1, 5000));
    }
}
