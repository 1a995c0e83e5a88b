//! Serving a segmented object, with the metadata that states its version.
//!
//! Owns the answer to each Interest. Knows no endpoint: the caller passes Interests in and
//! sends the Data that comes back. A segment is signed at its first request, and the latest
//! segments are kept for further ones.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use tachonym_packet::types::component;
use tachonym_packet::{Component, Data, InterestView, Name, NameView};
use tachonym_protocol::rdr::{METADATA_FRESHNESS_MS, Metadata, metadata_name, object_of_metadata};
use tachonym_protocol::segments::SEGMENT_BYTES;
use tachonym_security::{KeyError, Signer};

/// Signed packets that are kept for further requests.
const KEPT_PKTS: usize = 1024;

/// Content to serve in segments.
pub trait Content {
    /// Its length, in bytes.
    fn len_bytes(&self) -> u64;

    /// Fills `out` with the bytes from `offset_bytes` on.
    ///
    /// # Errors
    /// If they cannot be read.
    fn read_at(&self, offset_bytes: u64, out: &mut [u8]) -> io::Result<()>;
}

impl Content for Vec<u8> {
    fn len_bytes(&self) -> u64 {
        self.len() as u64
    }

    fn read_at(&self, offset_bytes: u64, out: &mut [u8]) -> io::Result<()> {
        let start = usize::try_from(offset_bytes).unwrap_or(usize::MAX);
        let bytes = self
            .get(start..)
            .and_then(|rest| rest.get(..out.len()))
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(bytes);
        Ok(())
    }
}

/// A file, with the length it had when it was opened.
impl Content for (File, u64) {
    fn len_bytes(&self) -> u64 {
        self.1
    }

    fn read_at(&self, offset_bytes: u64, out: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(out, offset_bytes)
    }
}

/// Properties of a publication's packets.
#[derive(Clone, Debug)]
pub struct PublishOptions {
    /// Version of the object, usually microseconds since the Unix epoch.
    pub version: u64,
    /// Content bytes of one segment, 1 to 8,000 or what names and signatures
    /// leave of a packet.
    pub segment_bytes: usize,
    /// Freshness period of segments, in milliseconds.
    pub freshness_ms: u64,
}

impl PublishOptions {
    /// This version, in segments of 8,000 bytes that are fresh for 10 s.
    #[must_use]
    pub const fn new(version: u64) -> Self {
        Self {
            version,
            segment_bytes: SEGMENT_BYTES,
            freshness_ms: 10_000,
        }
    }
}

/// Why an Interest could not be answered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PublishError {
    /// The content could not be read.
    #[error("cannot read the content")]
    Read(#[from] io::Error),
    /// The packet could not be signed.
    #[error("cannot sign")]
    Sign(#[from] KeyError),
    /// Name, content and signature exceed the largest packet.
    #[error("packets of {n_bytes} bytes are larger than the {max} that NDN allows; use smaller \
        segments", max = tachonym_packet::types::MAX_PACKET_BYTES)]
    PacketTooLarge {
        /// Bytes of the packet.
        n_bytes: usize,
    },
}

/// One version of an object, ready to serve.
pub struct Publication<C> {
    name: Name,
    versioned: Name,
    content: C,
    options: PublishOptions,
    signer: Signer,
    last_segment: u64,
    /// The packet of segment `i` stands at `i % KEPT_PKTS`.
    kept: Vec<Option<(u64, Vec<u8>)>>,
    metadata: Option<Answered>,
    n_segments_sent: u64,
}

struct Answered {
    wire: Vec<u8>,
    made_ms: u64,
}

impl<C: Content> Publication<C> {
    /// Publishes `content` as `name`.
    ///
    /// # Errors
    /// If its first segment or its metadata cannot be made.
    ///
    /// # Panics
    /// If the segment size is 0.
    pub fn new(
        name: Name,
        content: C,
        options: PublishOptions,
        signer: Signer,
    ) -> Result<Self, PublishError> {
        let segment_bytes = options.segment_bytes as u64;
        assert!(segment_bytes > 0, "segments have content");
        let last_segment = content.len_bytes().saturating_sub(1) / segment_bytes;
        let versioned = name.clone().with(&Component::version(options.version));
        let mut publication = Self {
            name,
            versioned,
            content,
            options,
            signer,
            last_segment,
            kept: std::iter::repeat_with(|| None).take(KEPT_PKTS).collect(),
            metadata: None,
            n_segments_sent: 0,
        };
        publication.segment(last_segment)?;
        publication.segment(0)?;
        publication.n_segments_sent = 0;
        Ok(publication)
    }

    /// The name with its version: the prefix of the segments.
    #[must_use]
    pub const fn versioned_name(&self) -> &Name {
        &self.versioned
    }

    /// Number of segments.
    #[must_use]
    pub const fn n_segments(&self) -> u64 {
        self.last_segment + 1
    }

    /// Number of segments sent, retransmissions included.
    #[must_use]
    pub const fn n_segments_sent(&self) -> u64 {
        self.n_segments_sent
    }

    /// The Data that answers `interest`; `None` if it asks for something else.
    /// `wall_ms` is now, in milliseconds since the Unix epoch.
    ///
    /// # Errors
    /// If it has an answer that cannot be made.
    pub fn answer(
        &mut self,
        interest: &InterestView<'_>,
        wall_ms: u64,
    ) -> Result<Option<&[u8]>, PublishError> {
        let name = interest.name();
        if object_of_metadata(name).is_some_and(|object| object == self.name.view())
            && interest.can_be_prefix()
        {
            return self.metadata(wall_ms).map(Some);
        }
        match self.segment_asked_for(name, interest.can_be_prefix()) {
            Some(segment) => self.segment(segment).map(Some),
            None => Ok(None),
        }
    }

    fn segment_asked_for(&self, name: NameView<'_>, can_be_prefix: bool) -> Option<u64> {
        if name.len() == self.versioned.len() + 1 && name.starts_with(self.versioned.view()) {
            let last = name.last()?;
            return (last.typ() == component::SEGMENT)
                .then(|| last.as_number())
                .flatten()
                .filter(|&segment| segment <= self.last_segment);
        }
        // An Interest without a version gets the first segment.
        (can_be_prefix && self.versioned.starts_with(name)).then_some(0)
    }

    fn segment(&mut self, segment: u64) -> Result<&[u8], PublishError> {
        self.n_segments_sent += 1;
        let slot = usize::try_from(segment % KEPT_PKTS as u64).unwrap_or(0);
        if !matches!(&self.kept[slot], Some((kept, _)) if *kept == segment) {
            let wire = self.make_segment(segment)?;
            self.kept[slot] = Some((segment, wire));
        }
        Ok(self.kept[slot].as_ref().map_or(&[], |(_, wire)| wire))
    }

    fn make_segment(&self, segment: u64) -> Result<Vec<u8>, PublishError> {
        let offset = segment * self.options.segment_bytes as u64;
        let left = self.content.len_bytes().saturating_sub(offset);
        let n_bytes = usize::try_from(left)
            .unwrap_or(usize::MAX)
            .min(self.options.segment_bytes);
        let mut content = vec![0; n_bytes];
        self.content.read_at(offset, &mut content)?;
        let data = Data {
            freshness_period_ms: Some(self.options.freshness_ms),
            final_block_id: Some(Component::segment(self.last_segment)),
            content,
            ..Data::new(self.versioned.clone().with(&Component::segment(segment)))
        };
        self.signed(&data)
    }

    fn metadata(&mut self, wall_ms: u64) -> Result<&[u8], PublishError> {
        let is_fresh = |kept: &Answered| wall_ms.abs_diff(kept.made_ms) < METADATA_FRESHNESS_MS / 2;
        if !self.metadata.as_ref().is_some_and(is_fresh) {
            let metadata = Metadata {
                name: self.versioned.clone(),
            };
            let data = Data {
                freshness_period_ms: Some(METADATA_FRESHNESS_MS),
                final_block_id: Some(Component::segment(0)),
                content: metadata.encode(),
                ..Data::new(metadata_name(
                    self.name.view(),
                    wall_ms.saturating_mul(1000),
                ))
            };
            let wire = self.signed(&data)?;
            self.metadata = Some(Answered {
                wire,
                made_ms: wall_ms,
            });
        }
        Ok(self.metadata.as_ref().map_or(&[], |kept| &kept.wire))
    }

    fn signed(&self, data: &Data) -> Result<Vec<u8>, PublishError> {
        let wire = self.signer.sign_data(data)?;
        if wire.len() > tachonym_packet::types::MAX_PACKET_BYTES {
            return Err(PublishError::PacketTooLarge {
                n_bytes: wire.len(),
            });
        }
        Ok(wire)
    }
}

#[cfg(test)]
mod tests {
    use tachonym_packet::{DataView, Interest};

    use super::*;

    fn published(n_bytes: usize) -> Publication<Vec<u8>> {
        let content = (0..n_bytes).map(|i| i as u8).collect();
        let options = PublishOptions {
            segment_bytes: 100,
            ..PublishOptions::new(7)
        };
        let name = "/file".parse().expect("a name");
        Publication::new(name, content, options, Signer::digest()).expect("small enough")
    }

    fn ask(publication: &mut Publication<Vec<u8>>, name: &str, prefix: bool) -> Option<Data> {
        let interest = Interest {
            can_be_prefix: prefix,
            ..Interest::new(name.parse().expect("a name"))
        };
        let wire = interest.encode();
        let interest = InterestView::parse(&wire).expect("own encoding");
        let answer = publication.answer(&interest, 1_000_000).expect("readable");
        answer.map(|wire| DataView::parse(wire).expect("own encoding").to_data())
    }

    #[test]
    fn segments_cover_the_content_and_name_the_last_one() {
        let mut file = published(250);
        assert_eq!(file.n_segments(), 3);
        let whole: Vec<u8> = (0..3)
            .flat_map(|i| {
                let data = ask(&mut file, &format!("/file/v=7/seg={i}"), false).expect("there");
                assert_eq!(data.final_block_id, Some(Component::segment(2)));
                data.content
            })
            .collect();
        assert_eq!(whole.len(), 250);
        assert!(whole.iter().enumerate().all(|(i, &byte)| byte == i as u8));
        assert!(ask(&mut file, "/file/v=7/seg=3", false).is_none());
        assert!(ask(&mut file, "/file/v=8/seg=0", false).is_none());
    }

    #[test]
    fn an_empty_object_has_one_empty_segment() {
        let mut file = published(0);
        assert_eq!(file.n_segments(), 1);
        let data = ask(&mut file, "/file/v=7/seg=0", false).expect("there");
        assert!(data.content.is_empty());
    }

    #[test]
    fn metadata_states_the_version() {
        let mut file = published(250);
        let metadata = ask(&mut file, "/file/32=metadata", true).expect("metadata");
        let metadata = Metadata::decode(&metadata.content).expect("own encoding");
        assert_eq!(metadata.name, *file.versioned_name());
        let first = ask(&mut file, "/file", true).expect("by prefix");
        assert_eq!(first.name.to_string(), "/file/v=7/seg=0");
        assert!(ask(&mut file, "/file", false).is_none());
        assert!(ask(&mut file, "/other", true).is_none());
    }

    #[test]
    fn segments_that_do_not_fit_a_packet_are_refused_at_once() {
        let options = PublishOptions {
            segment_bytes: 8_800,
            ..PublishOptions::new(7)
        };
        let name = "/file".parse().expect("a name");
        let refused = Publication::new(name, vec![0; 9_000], options, Signer::digest());
        assert!(matches!(refused, Err(PublishError::PacketTooLarge { .. })));
    }
}
