//! Finding the latest version of an object.
//!
//! Owns the two questions that producers understand: for metadata (RDR), and
//! for anything fresh under the name. Source: "Realtime Data Retrieval (RDR)"
//! protocol page.

use std::time::Duration;

use tachonym_packet::types::component;
use tachonym_packet::{DataView, Interest, Name};
use tachonym_protocol::rdr::{Metadata, metadata_prefix};

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

/// Finds out what is behind `name`. Each question waits up to `lifetime` and is
/// repeated `n_retries` times.
///
/// # Errors
/// If nobody answers.
pub fn discover(
    endpoint: &mut Endpoint,
    name: &Name,
    how: Discovery,
    lifetime: Duration,
    n_retries: u32,
) -> Result<Object, ExpressError> {
    let is_versioned = name
        .last()
        .is_some_and(|last| last.typ() == component::VERSION);
    match how {
        Discovery::Exact => Ok(Object::Segmented(name.clone())),
        Discovery::Auto if is_versioned => Ok(Object::Segmented(name.clone())),
        Discovery::Metadata => by_metadata(endpoint, name, lifetime, n_retries),
        Discovery::Prefix => by_prefix(endpoint, name, lifetime, n_retries),
        // Who has no metadata may say nothing at all: do not wait long.
        Discovery::Auto => match by_metadata(endpoint, name, lifetime.min(METADATA_PATIENCE), 0) {
            Err(ExpressError::TimedOut | ExpressError::Nack(_)) => {
                by_prefix(endpoint, name, lifetime, n_retries)
            }
            other => other,
        },
    }
}

fn question(name: Name, lifetime: Duration) -> Interest {
    Interest {
        can_be_prefix: true,
        must_be_fresh: true,
        lifetime_ms: Some(u64::try_from(lifetime.as_millis()).unwrap_or(u64::MAX)),
        ..Interest::new(name)
    }
}

fn by_metadata(
    endpoint: &mut Endpoint,
    name: &Name,
    lifetime: Duration,
    n_retries: u32,
) -> Result<Object, ExpressError> {
    let interest = question(metadata_prefix(name.view()), lifetime);
    Ok(object_of(name, endpoint.express(&interest, n_retries)?))
}

fn by_prefix(
    endpoint: &mut Endpoint,
    name: &Name,
    lifetime: Duration,
    n_retries: u32,
) -> Result<Object, ExpressError> {
    let interest = question(name.clone(), lifetime);
    Ok(object_of(name, endpoint.express(&interest, n_retries)?))
}

fn object_of(name: &Name, answer: Answer) -> Object {
    match segments_prefix(name, &answer.data()) {
        Some(prefix) => Object::Segmented(prefix),
        None => Object::Single(answer),
    }
}

/// The name of the segments that `data` tells of, an answer to either question
/// about `name`. Metadata that come too late for the one answer the other.
fn segments_prefix(name: &Name, data: &DataView<'_>) -> Option<Name> {
    if data.name().starts_with(metadata_prefix(name.view()).view()) {
        // Else it is of a producer that answers everything under its prefix.
        if let Ok(metadata) = Metadata::decode(data.content()) {
            return Some(metadata.name);
        }
    }
    let (own, last) = (data.name(), data.name().last()?);
    (last.typ() == component::SEGMENT).then(|| own.prefix(own.len() - 1).to_name())
}

#[cfg(test)]
mod tests {
    use tachonym_packet::{Component, Data};
    use tachonym_protocol::rdr::metadata_name;

    use super::*;

    fn prefix_of(answer: &Data) -> Option<Name> {
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
        assert_eq!(prefix_of(&late), Some(versioned));
    }

    #[test]
    fn any_other_data_tell_by_their_own_name() {
        let versioned = object().with(&Component::version(3));
        let segment = Data::new(versioned.clone().with(&Component::segment(7)));
        assert_eq!(prefix_of(&segment), Some(versioned.clone()));
        assert_eq!(prefix_of(&Data::new(versioned)), None);
        // Content that is no metadata, under the name of metadata.
        let odd = Data::new(metadata_name(object().view(), 9));
        let own = odd.name.view();
        assert_eq!(prefix_of(&odd), Some(own.prefix(own.len() - 1).to_name()));
    }
}
