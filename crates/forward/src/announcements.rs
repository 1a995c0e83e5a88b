//! Prefix announcements that were found good, for downstreams that look for the
//! way to a prefix (NDNLPv2, "Self-Learning").
//!
//! Owns copies of them, bounded in number and bytes. Who may announce what, and
//! for how long, is decided elsewhere.

use std::fmt;

use tachonym_packet::{NameHash, NameView};
use tachonym_tables::PrefixMap;

/// Most prefixes with an announcement.
const MAX_PREFIXES: usize = 65_536;

/// Most bytes of all announcements together.
const MAX_BYTES: usize = 16 << 20;

/// There is no room for another prefix announcement, or its prefix is too deep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnnouncementRefused;

impl fmt::Display for AnnouncementRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the table of prefix announcements is full, or the prefix has too many components",
        )
    }
}

impl std::error::Error for AnnouncementRefused {}

#[derive(Debug)]
struct Announcement {
    version: u64,
    wire: Box<[u8]>,
}

/// Announcements by the prefix they announce.
#[derive(Debug)]
pub(crate) struct Announcements {
    by_prefix: PrefixMap<Announcement>,
    n_bytes: usize,
}

impl Default for Announcements {
    fn default() -> Self {
        Self {
            by_prefix: PrefixMap::new(MAX_PREFIXES),
            n_bytes: 0,
        }
    }
}

impl Announcements {
    pub(crate) fn is_empty(&self) -> bool {
        self.by_prefix.is_empty()
    }

    /// Keeps `wire` for names under `prefix`, unless there is a later version.
    pub(crate) fn insert(
        &mut self,
        prefix: NameView<'_>,
        hash: NameHash,
        version: u64,
        wire: &[u8],
    ) -> Result<(), AnnouncementRefused> {
        let old = self.by_prefix.get(prefix, hash).map(|entry| &entry.value);
        if old.is_some_and(|old| old.version > version) {
            return Ok(());
        }
        let n_bytes = self.n_bytes + wire.len() - old.map_or(0, |old| old.wire.len());
        if n_bytes > MAX_BYTES {
            return Err(AnnouncementRefused);
        }
        let announcement = Announcement {
            version,
            wire: wire.into(),
        };
        self.by_prefix
            .insert(prefix, hash, announcement)
            .map_err(|_| AnnouncementRefused)?;
        self.n_bytes = n_bytes;
        Ok(())
    }

    pub(crate) fn remove(&mut self, prefix: NameView<'_>, hash: NameHash) {
        if let Some(old) = self.by_prefix.remove(prefix, hash) {
            self.n_bytes -= old.wire.len();
        }
    }

    /// The announcement of the longest prefix of `name` that has one.
    pub(crate) fn find(&self, name: NameView<'_>, hashes: &[NameHash]) -> Option<&[u8]> {
        self.by_prefix
            .find_longest(name, hashes)
            .map(|entry| &*entry.value.wire)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.by_prefix.memory_bytes() + self.n_bytes
    }
}

#[cfg(test)]
mod tests {
    use tachonym_packet::{HashKey, Name, NameHashes};

    use super::*;

    struct Kept(Announcements);

    impl Kept {
        fn key() -> HashKey {
            HashKey::from_u64s(1, 2)
        }

        fn insert(
            &mut self,
            uri: &str,
            version: u64,
            wire: &[u8],
        ) -> Result<(), AnnouncementRefused> {
            let name: Name = uri.parse().unwrap();
            let hash = Self::key().hash_name(name.view());
            self.0.insert(name.view(), hash, version, wire)
        }

        fn remove(&mut self, uri: &str) {
            let name: Name = uri.parse().unwrap();
            self.0
                .remove(name.view(), Self::key().hash_name(name.view()));
        }

        fn find(&self, uri: &str) -> Option<&[u8]> {
            let name: Name = uri.parse().unwrap();
            let mut hashes = NameHashes::new();
            let span = hashes.push_name(&Self::key(), name.view());
            self.0.find(name.view(), hashes.slice(span))
        }
    }

    #[test]
    fn longest_prefix_and_latest_version_count() {
        let mut kept = Kept(Announcements::default());
        kept.insert("/a", 1, b"short").unwrap();
        kept.insert("/a/b", 2, b"old").unwrap();
        kept.insert("/a/b", 3, b"long").unwrap();
        kept.insert("/a/b", 2, b"replayed").unwrap();
        assert_eq!(kept.find("/a/b/c"), Some(&b"long"[..]));
        assert_eq!(kept.find("/a/c"), Some(&b"short"[..]));
        assert_eq!(kept.find("/b"), None);
        assert_eq!(kept.0.n_bytes, 9);
        kept.remove("/a/b");
        kept.remove("/a/b");
        assert_eq!(kept.find("/a/b/c"), Some(&b"short"[..]));
        kept.remove("/a");
        assert!(kept.0.is_empty());
        assert_eq!(kept.0.n_bytes, 0);
    }

    #[test]
    fn bytes_are_bounded_and_what_is_forgotten_makes_room() {
        let mut kept = Kept(Announcements::default());
        let wire = vec![0; MAX_BYTES / 2];
        kept.insert("/1", 1, &wire).unwrap();
        kept.insert("/2", 1, &wire).unwrap();
        assert_eq!(kept.insert("/3", 1, b"x"), Err(AnnouncementRefused));
        // In its own place there is room.
        kept.insert("/2", 1, &wire).unwrap();
        kept.remove("/1");
        kept.insert("/3", 1, b"x").unwrap();
        assert_eq!(kept.0.n_bytes, MAX_BYTES / 2 + 1);
    }

    #[test]
    fn prefixes_are_bounded() {
        let mut kept = Kept(Announcements::default());
        for n in 0..MAX_PREFIXES {
            kept.insert(&format!("/{n}"), 1, b"x").unwrap();
        }
        assert_eq!(kept.insert("/more", 1, b"x"), Err(AnnouncementRefused));
        kept.insert("/0", 2, b"y").unwrap();
        assert_eq!(kept.0.n_bytes, MAX_PREFIXES);
    }
}
