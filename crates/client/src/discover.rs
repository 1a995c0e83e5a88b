//! Finding the latest version of an object.
//!
//! Owns the two questions that producers understand: for metadata (RDR), and
//! for anything fresh under the name. Believes no answer that its caller does
//! not: who can forge one can lead to an old version. Source: "Realtime Data Retrieval (RDR)"
//! protocol page.

use std::time::Duration;

use tachonym_packet::types::{component, content_type};
use tachonym_packet::{DataView, DecodeError, Interest, Name};
use tachonym_protocol::rdr::{Metadata, metadata_prefix};
use tachonym_security::Reject;

use crate::endpoint::{Answer, Endpoint, ExpressError};

/// How long [`Discovery::Auto`] waits for metadata before it asks otherwise.
const METADATA_PATIENCE: Duration = Duration::from_secs(1);

/// How to learn an object's version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Discovery {
    /// Not at all if the name ends in a version, else by metadata, and by
    /// prefix where nobody answers that.
    #[default]
    Auto,
    /// By an Interest for metadata.
    Metadata,
    /// By an Interest for anything fresh under the name.
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

/// Why it is not known what is behind a name.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiscoverError {
    /// There was no answer.
    #[error(transparent)]
    Express(#[from] ExpressError),
    /// The signature of the answer is wrong, or not one that counts.
    #[error("{name}: {reason}")]
    Untrusted {
        /// Name of the answer.
        name: Name,
        /// What is wrong with it.
        reason: Reject,
    },
    /// The answer to the question for metadata is none that can be read.
    #[error("{name} holds no metadata: {reason}")]
    BadMetadata {
        /// Name of the answer.
        name: Name,
        /// What is wrong with it.
        reason: DecodeError,
    },
    /// The producer answers that there is nothing.
    #[error("the producer has nothing: {0}")]
    Nothing(Name),
}

/// Finds out what is behind `name`. Each question waits up to `lifetime` and is
/// repeated `n_retries` times. `verify` is asked about each answer
/// ([`crate::check_digest`] is the least).
///
/// # Errors
/// If nobody answers, or not sensibly, or not to be trusted.
pub fn discover(
    endpoint: &mut Endpoint,
    name: &Name,
    how: Discovery,
    lifetime: Duration,
    n_retries: u32,
    verify: impl FnMut(&DataView<'_>) -> Result<(), Reject>,
) -> Result<Object, DiscoverError> {
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
    match how {
        Discovery::Exact => Ok(Object::Segmented(name.clone())),
        Discovery::Auto if is_versioned => Ok(Object::Segmented(name.clone())),
        Discovery::Metadata => search.by_metadata(),
        Discovery::Prefix => search.by_prefix(),
        // Who has no metadata may say nothing at all: do not wait long.
        Discovery::Auto => match search.hasty().by_metadata() {
            Err(
                DiscoverError::Express(ExpressError::TimedOut | ExpressError::Nack(_))
                | DiscoverError::Nothing(_),
            ) => search.by_prefix(),
            other => other,
        },
    }
}

struct Search<'a, V> {
    endpoint: &'a mut Endpoint,
    name: &'a Name,
    lifetime: Duration,
    n_retries: u32,
    verify: V,
}

impl<V: FnMut(&DataView<'_>) -> Result<(), Reject>> Search<'_, V> {
    /// The same search, whose question is asked once and not for long.
    fn hasty(&mut self) -> Search<'_, &mut V> {
        Search {
            endpoint: self.endpoint,
            name: self.name,
            lifetime: self.lifetime.min(METADATA_PATIENCE),
            n_retries: 0,
            verify: &mut self.verify,
        }
    }

    fn by_metadata(&mut self) -> Result<Object, DiscoverError> {
        self.ask(metadata_prefix(self.name.view()))
    }

    fn by_prefix(&mut self) -> Result<Object, DiscoverError> {
        self.ask(self.name.clone())
    }

    /// What something fresh under `question` tells, if it is to be believed.
    fn ask(&mut self, question: Name) -> Result<Object, DiscoverError> {
        let lifetime_ms = u64::try_from(self.lifetime.as_millis()).unwrap_or(u64::MAX);
        let interest = Interest {
            can_be_prefix: true,
            must_be_fresh: true,
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

/// The name of the segments that `data` tells of, an answer to either question
/// about `name`. Metadata that come too late for the one answer the other.
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
