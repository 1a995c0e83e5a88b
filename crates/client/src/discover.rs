//! Finding the latest version of an object.
//!
//! Owns the two Interests that producers understand: for metadata (RDR), and for any fresh
//! Data under the name; and the fallback to stale Data of caches if neither is answered.
//! The caller verifies each answer, since a forged one may lead to an old version. Source:
//! "Realtime Data Retrieval (RDR)" protocol page.

use std::time::Duration;

use tachonym_packet::types::{component, content_type};
use tachonym_packet::{DataView, DecodeError, Interest, Name};
use tachonym_protocol::rdr::{Metadata, metadata_prefix};
use tachonym_security::Reject;

use crate::endpoint::{Answer, Endpoint, ExpressError};

/// Longest wait of [`Discovery::Auto`] for metadata, and for what caches hold.
const METADATA_PATIENCE: Duration = Duration::from_secs(1);

/// How to learn an object's version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Discovery {
    /// Takes a name that ends in a version as it is. Else by metadata; without an answer
    /// by prefix; and without an answer to that either, by stale metadata or stale Data
    /// that caches hold.
    #[default]
    Auto,
    /// By an Interest for fresh metadata.
    Metadata,
    /// By an Interest for any fresh Data under the name.
    Prefix,
    /// The name is the whole prefix of the segments.
    Exact,
}

/// What is behind a name.
#[derive(Clone, Debug)]
pub enum Object {
    /// Segments under this name.
    Segmented(Name),
    /// One Data without a segment number.
    Single(Answer),
}

/// An object, and how current its version is.
#[derive(Clone, Debug)]
pub struct Discovered {
    /// The object.
    pub object: Object,
    /// Only stale Data led to it: no producer answered, and a newer version may exist.
    pub is_stale: bool,
}

/// Why discovery found no object.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiscoverError {
    /// There was no answer.
    #[error(transparent)]
    Express(#[from] ExpressError),
    /// The signature of the answer is wrong or not trusted.
    #[error("{name}: {reason}")]
    Untrusted {
        /// Name of the answer.
        name: Name,
        /// What is wrong with it.
        reason: Reject,
    },
    /// The answer to the Interest for metadata cannot be decoded.
    #[error("{name} holds no metadata: {reason}")]
    BadMetadata {
        /// Name of the answer.
        name: Name,
        /// What is wrong with it.
        reason: DecodeError,
    },
    /// The producer answers that it has no such Data.
    #[error("the producer has no Data under this name; its answer: {0}")]
    Nothing(Name),
}

/// Finds the object behind `name`. Each Interest has this `lifetime` and is retransmitted
/// `n_retries` times. `verify` checks each answer ([`crate::check_digest`] at least).
///
/// # Errors
/// If there is no answer, or it is malformed or not trusted.
pub fn discover(
    endpoint: &mut Endpoint,
    name: &Name,
    how: Discovery,
    lifetime: Duration,
    n_retries: u32,
    verify: impl FnMut(&DataView<'_>) -> Result<(), Reject>,
) -> Result<Discovered, DiscoverError> {
    let mut search = Search {
        endpoint,
        name,
        lifetime,
        n_retries,
        verify,
    };
    let is_versioned = name
        .last()
        .is_some_and(|last| last.typ() == component::VERSION);
    let fresh = |object| Discovered {
        object,
        is_stale: false,
    };
    match how {
        Discovery::Exact => Ok(fresh(Object::Segmented(name.clone()))),
        Discovery::Auto if is_versioned => Ok(fresh(Object::Segmented(name.clone()))),
        Discovery::Metadata => search.by_metadata(Freshness::Fresh).map(fresh),
        Discovery::Prefix => search.by_prefix(Freshness::Fresh).map(fresh),
        Discovery::Auto => search.by_any(),
    }
}

/// Whether an answer may come from a cache that does not know whether it is current.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Freshness {
    Fresh,
    Any,
}

/// Whether `error` is that no answer came.
const fn is_silence(error: &DiscoverError) -> bool {
    matches!(
        error,
        DiscoverError::Express(ExpressError::TimedOut | ExpressError::Nack(_))
    )
}

struct Search<'a, V> {
    endpoint: &'a mut Endpoint,
    name: &'a Name,
    lifetime: Duration,
    n_retries: u32,
    verify: V,
}

impl<V: FnMut(&DataView<'_>) -> Result<(), Reject>> Search<'_, V> {
    /// The same search with one short Interest for each question.
    fn hasty(&mut self) -> Search<'_, &mut V> {
        Search {
            endpoint: self.endpoint,
            name: self.name,
            lifetime: self.lifetime.min(METADATA_PATIENCE),
            n_retries: 0,
            verify: &mut self.verify,
        }
    }

    /// By metadata, by prefix, and last by what caches hold.
    fn by_any(&mut self) -> Result<Discovered, DiscoverError> {
        let is_stale = false;
        // A producer without metadata may not answer at all, so the wait is short.
        match self.hasty().by_metadata(Freshness::Fresh) {
            Err(error) if is_silence(&error) || matches!(error, DiscoverError::Nothing(_)) => {}
            other => return other.map(|object| Discovered { object, is_stale }),
        }
        let n_retries = std::mem::take(&mut self.n_retries);
        let mut silence = match self.by_prefix(Freshness::Fresh) {
            Err(error) if is_silence(&error) => error,
            other => return other.map(|object| Discovered { object, is_stale }),
        };
        let mut stale = self.hasty().by_metadata(Freshness::Any);
        if stale.as_ref().is_err_and(is_silence) {
            stale = self.hasty().by_prefix(Freshness::Any);
        }
        match stale {
            Ok(object) => {
                return Ok(Discovered {
                    object,
                    is_stale: true,
                });
            }
            Err(error) if is_silence(&error) => {}
            Err(error) => return Err(error),
        }
        // Caches hold nothing, so the producer gets the other chances.
        if let Some(n_retries) = n_retries.checked_sub(1) {
            self.n_retries = n_retries;
            silence = match self.by_prefix(Freshness::Fresh) {
                Err(error) if is_silence(&error) => error,
                other => return other.map(|object| Discovered { object, is_stale }),
            };
        }
        Err(silence)
    }

    fn by_metadata(&mut self, freshness: Freshness) -> Result<Object, DiscoverError> {
        self.ask(metadata_prefix(self.name.view()), freshness)
    }

    fn by_prefix(&mut self, freshness: Freshness) -> Result<Object, DiscoverError> {
        self.ask(self.name.clone(), freshness)
    }

    /// The object that an answer to `question` leads to, if the answer is verified.
    fn ask(&mut self, question: Name, freshness: Freshness) -> Result<Object, DiscoverError> {
        let lifetime_ms = u64::try_from(self.lifetime.as_millis()).unwrap_or(u64::MAX);
        let interest = Interest {
            can_be_prefix: true,
            must_be_fresh: freshness == Freshness::Fresh,
            lifetime_ms: Some(lifetime_ms),
            ..Interest::new(question)
        };
        let answer = self.endpoint.express(&interest, self.n_retries)?;
        let data = answer.data();
        (self.verify)(&data).map_err(|reason| DiscoverError::Untrusted {
            name: data.name().to_name(),
            reason,
        })?;
        Ok(match segments_prefix(self.name, &data)? {
            Some(prefix) => Object::Segmented(prefix),
            None => Object::Single(answer),
        })
    }
}

/// The prefix of the segments that `data`, an answer to either Interest about `name`, leads
/// to; `None`: `data` is the whole object. Metadata that is late for the first Interest
/// answers the second one.
fn segments_prefix(name: &Name, data: &DataView<'_>) -> Result<Option<Name>, DiscoverError> {
    let own = data.name();
    if data.content_type() == content_type::NACK {
        return Err(DiscoverError::Nothing(own.to_name()));
    }
    if own.starts_with(metadata_prefix(name.view()).view()) {
        return match Metadata::decode(data.content()) {
            Ok(metadata) => Ok(Some(metadata.name)),
            Err(reason) => Err(DiscoverError::BadMetadata {
                name: own.to_name(),
                reason,
            }),
        };
    }
    let is_segment = own
        .last()
        .is_some_and(|last| last.typ() == component::SEGMENT);
    Ok(is_segment.then(|| own.prefix(own.len() - 1).to_name()))
}

#[cfg(test)]
mod tests {
    use tachonym_packet::{Component, Data};
    use tachonym_protocol::rdr::metadata_name;

    use super::*;

    fn prefix_of(answer: &Data) -> Result<Option<Name>, DiscoverError> {
        let wire = answer.encode();
        let data = DataView::parse(&wire).expect("it was just encoded");
        segments_prefix(&object(), &data)
    }

    fn object() -> Name {
        Name::new().with(&Component::generic(b"object"))
    }

    #[test]
    fn metadata_tell_the_version_whatever_was_asked() {
        let versioned = object().with(&Component::version(3));
        let mut late = Data::new(metadata_name(object().view(), 9));
        late.content = Metadata {
            name: versioned.clone(),
        }
        .encode();
        assert_eq!(prefix_of(&late).expect("metadata"), Some(versioned));
    }

    #[test]
    fn any_other_data_tell_by_their_own_name() {
        let versioned = object().with(&Component::version(3));
        let segment = Data::new(versioned.clone().with(&Component::segment(7)));
        let prefix = prefix_of(&segment).expect("a segment");
        assert_eq!(prefix, Some(versioned.clone()));
        let prefix = prefix_of(&Data::new(versioned)).expect("a single Data");
        assert_eq!(prefix, None);
    }
}
