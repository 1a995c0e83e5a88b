//! Finding the latest version of an object.
//!
//! Owns the two questions that producers understand: for metadata (RDR), and
//! for anything fresh under the name. Source: "Realtime Data Retrieval (RDR)"
//! protocol page.

use std::time::Duration;

use tachonym_packet::types::component;
use tachonym_packet::{Interest, Name, NameView};
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
    let answer = endpoint.express(&interest, n_retries)?;
    match Metadata::decode(answer.data().content()) {
        Ok(metadata) => Ok(Object::Segmented(metadata.name)),
        // A producer that answers everything under its prefix with one Data.
        Err(_) => Ok(whole_or_segmented(answer)),
    }
}

fn by_prefix(
    endpoint: &mut Endpoint,
    name: &Name,
    lifetime: Duration,
    n_retries: u32,
) -> Result<Object, ExpressError> {
    let answer = endpoint.express(&question(name.clone(), lifetime), n_retries)?;
    Ok(whole_or_segmented(answer))
}

fn whole_or_segmented(answer: Answer) -> Object {
    match segments_prefix(answer.data().name()) {
        Some(prefix) => Object::Segmented(prefix),
        None => Object::Single(answer),
    }
}

/// The name without its segment number, if it ends in one.
fn segments_prefix(name: NameView<'_>) -> Option<Name> {
    let last = name.last()?;
    (last.typ() == component::SEGMENT).then(|| name.prefix(name.len() - 1).to_name())
}
