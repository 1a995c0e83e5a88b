//! Prefix announcements that were found good, for downstreams that look for the
//! way to a prefix (NDNLPv2, "Self-Learning").
//!
//! Owns copies of them, bounded in number and bytes. Who may announce what is
//! decided elsewhere, before they come here.

use std::fmt;

use tachonym_packet::{MonoNs, NameHash, NameView};
use tachonym_tables::PrefixMap;

/// Most prefixes with an announcement.
const MAX_PREFIXES: usize = 65_536;

/// Most bytes of all announcements together.
const MAX_BYTES: usize = 16 << 20;

/// There is no room for another prefix announcement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnnouncementsFull;

impl fmt::Display for AnnouncementsFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no room for another prefix announcement")
    }
}

impl std::error::Error for AnnouncementsFull {}

#[derive(Debug)]
struct Announcement {
    wire: Box<[u8]>,
    /// It says nothing from then on.
    until: MonoNs,
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

    /// Keeps `wire` for names under `prefix`, instead of what was there.
    pub(crate) fn insert(
        &mut self,
        prefix: NameView<'_>,
        hash: NameHash,
        wire: &[u8],
        until: MonoNs,
        now: MonoNs,
    ) -> Result<(), AnnouncementsFull> {
        let old = self.by_prefix.get(prefix, hash);
        let old_bytes = old.map_or(0, |entry| entry.value.wire.len());
        let needs_prefix = usize::from(old.is_none());
        if self.n_bytes - old_bytes + wire.len() > MAX_BYTES
            || self.by_prefix.len() + needs_prefix > MAX_PREFIXES
        {
            self.forget_expired(now);
        }
        let old = self.by_prefix.get(prefix, hash);
        let old_bytes = old.map_or(0, |entry| entry.value.wire.len());
        let n_bytes = self.n_bytes - old_bytes + wire.len();
        if n_bytes > MAX_BYTES {
            return Err(AnnouncementsFull);
        }
        let announcement = Announcement {
            wire: wire.into(),
            until,
        };
        self.by_prefix
            .insert(prefix, hash, announcement)
            .map_err(|_| AnnouncementsFull)?;
        self.n_bytes = n_bytes;
        Ok(())
    }

    /// The announcement of the longest prefix of `name` that has one now.
    pub(crate) fn find(
        &self,
        name: NameView<'_>,
        hashes: &[NameHash],
        now: MonoNs,
    ) -> Option<&[u8]> {
        self.by_prefix
            .find_longest_where(name, hashes, |announcement| announcement.until > now)
            .map(|entry| &*entry.value.wire)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.by_prefix.memory_bytes() + self.n_bytes
    }

    fn forget_expired(&mut self, now: MonoNs) {
        let n_bytes = &mut self.n_bytes;
        self.by_prefix.retain(|entry| {
            let lives = entry.value.until > now;
            if !lives {
                *n_bytes -= entry.value.wire.len();
            }
            lives
        });
    }
}

#[cfg(test)]
mod tests {
    use tachonym_packet::{HashKey, Name, NameHashes};

    use super::*;

    const NOW: MonoNs = MonoNs(1_000);
    const LATER: MonoNs = MonoNs(2_000);

    fn key() -> HashKey {
        HashKey::from_u64s(1, 2)
    }

    fn insert(
        kept: &mut Announcements,
        uri: &str,
        wire: &[u8],
        now: MonoNs,
    ) -> Result<(), AnnouncementsFull> {
        let name: Name = uri.parse().unwrap();
        let hash = key().hash_name(name.view());
        kept.insert(name.view(), hash, wire, LATER, now)
    }

    fn find<'a>(kept: &'a Announcements, uri: &str, now: MonoNs) -> Option<&'a [u8]> {
        let name: Name = uri.parse().unwrap();
        let mut hashes = NameHashes::new();
        let span = hashes.push_name(&key(), name.view());
        kept.find(name.view(), hashes.slice(span), now)
    }

    #[test]
    fn longest_prefix_counts_until_its_time_is_over() {
        let mut kept = Announcements::default();
        insert(&mut kept, "/a", b"short", NOW).unwrap();
        insert(&mut kept, "/a/b", b"old", NOW).unwrap();
        insert(&mut kept, "/a/b", b"long", NOW).unwrap();
        assert_eq!(find(&kept, "/a/b/c", NOW), Some(&b"long"[..]));
        assert_eq!(find(&kept, "/a/c", NOW), Some(&b"short"[..]));
        assert_eq!(find(&kept, "/b", NOW), None);
        assert_eq!(find(&kept, "/a/b/c", LATER), None);
        assert_eq!(kept.n_bytes, 9);
    }

    #[test]
    fn bytes_are_bounded_and_what_has_expired_makes_room() {
        let mut kept = Announcements::default();
        let wire = vec![0; MAX_BYTES / 2];
        insert(&mut kept, "/1", &wire, NOW).unwrap();
        insert(&mut kept, "/2", &wire, NOW).unwrap();
        assert_eq!(insert(&mut kept, "/3", b"x", NOW), Err(AnnouncementsFull));
        // In its own place there is room.
        insert(&mut kept, "/2", &wire, NOW).unwrap();
        assert_eq!(kept.by_prefix.len(), 2);
        insert(&mut kept, "/3", b"x", LATER).unwrap();
        assert_eq!((kept.by_prefix.len(), kept.n_bytes), (1, 1));
    }

    #[test]
    fn prefixes_are_bounded() {
        let mut kept = Announcements::default();
        for n in 0..MAX_PREFIXES {
            insert(&mut kept, &format!("/{n}"), b"x", NOW).unwrap();
        }
        assert_eq!(
            insert(&mut kept, "/more", b"x", NOW),
            Err(AnnouncementsFull)
        );
        assert_eq!(kept.n_bytes, MAX_PREFIXES);
        insert(&mut kept, "/more", b"x", LATER).unwrap();
        assert_eq!(kept.n_bytes, 1);
    }
}
