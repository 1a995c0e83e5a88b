//! Finding versions, from a producer that does what a script says.

mod scripted;

use std::time::Duration;

use tachonym_client::{
    DiscoverError, Discovered, Discovery, ExpressError, Object, check_digest, discover,
};
use tachonym_packet::types::content_type;
use tachonym_packet::{Component, Data, Interest, NackReason, Name};
use tachonym_protocol::rdr::{Metadata, object_of_metadata};
use tachonym_security::Reject;

use scripted::{Reply, endpoint, nack, segment};

/// Long enough that no test waits for it.
const LIFETIME: Duration = Duration::from_secs(60);

fn name(uri: &str) -> Name {
    uri.parse().expect("a literal name")
}

/// What `/object` is found to be behind a producer that answers the question
/// for metadata as `metadata` says, and others with segment 0 of version 2.
fn found(
    how: Discovery,
    mut metadata: impl FnMut(&Interest) -> Vec<u8> + Send + 'static,
) -> Result<Discovered, DiscoverError> {
    let mut endpoint = endpoint(move |interest| {
        let frame = match object_of_metadata(interest.name.view()) {
            Some(_) => metadata(interest),
            None => segment(&name("/object/v=2"), 0, 0).encode_with_digest(),
        };
        Reply::Frames(vec![frame])
    });
    discover(
        &mut endpoint,
        &name("/object"),
        how,
        LIFETIME,
        0,
        check_digest,
    )
}

/// Metadata of `/object` with this content.
fn metadata(content: Vec<u8>) -> Data {
    Data {
        freshness_period_ms: Some(1000),
        content,
        ..Data::new(name("/object/32=metadata/v=9").with(&Component::segment(0)))
    }
}

fn version_3() -> Data {
    let content = Metadata {
        name: name("/object/v=3"),
    };
    metadata(content.encode())
}

fn prefix_of(found: Result<Discovered, DiscoverError>) -> String {
    match found {
        Ok(Discovered {
            object: Object::Segmented(prefix),
            is_stale: false,
        }) => prefix.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn metadata_tell_the_version() {
    for how in [Discovery::Auto, Discovery::Metadata] {
        let object = found(how, |_| version_3().encode_with_digest());
        assert_eq!(prefix_of(object), "/object/v=3");
    }
}

#[test]
fn metadata_with_a_wrong_digest_are_not_believed() {
    for how in [Discovery::Auto, Discovery::Metadata] {
        let object = found(how, |_| {
            let mut wire = version_3().encode_with_digest();
            *wire.last_mut().expect("a signature") ^= 1;
            wire
        });
        match object {
            Err(DiscoverError::Untrusted { name, reason }) => {
                assert_eq!(name.to_string(), "/object/32=metadata/v=9/seg=0");
                assert_eq!(reason, Reject::BadSignature);
            }
            other => panic!("{how:?}: {other:?}"),
        }
    }
}

#[test]
fn metadata_that_cannot_be_read_are_an_error_that_says_so() {
    for how in [Discovery::Auto, Discovery::Metadata] {
        let object = found(how, |_| metadata(b"no name".to_vec()).encode_with_digest());
        let error = object.expect_err("it is no name");
        assert!(matches!(error, DiscoverError::BadMetadata { .. }));
        let text = error.to_string();
        assert!(text.contains("holds no metadata"), "{text}");
    }
}

#[test]
fn where_there_are_no_metadata_the_prefix_is_asked_for() {
    let back = |interest: &Interest| nack(interest, NackReason::NoRoute);
    let denied = |_: &Interest| {
        let data = Data {
            content_type: content_type::NACK,
            ..metadata(Vec::new())
        };
        data.encode_with_digest()
    };
    assert_eq!(prefix_of(found(Discovery::Auto, back)), "/object/v=2");
    assert_eq!(prefix_of(found(Discovery::Auto, denied)), "/object/v=2");
    assert!(matches!(
        found(Discovery::Metadata, back),
        Err(DiscoverError::Express(ExpressError::Nack(_)))
    ));
    assert!(matches!(
        found(Discovery::Metadata, denied),
        Err(DiscoverError::Nothing(_))
    ));
}

/// What `/object` is found to be if only stale Data is there: metadata if `has_metadata`,
/// and segment 0 of version 2 if `has_segment`.
fn found_stale(has_metadata: bool, has_segment: bool) -> Result<Discovered, DiscoverError> {
    let mut endpoint = endpoint(move |interest| {
        let is_about_metadata = object_of_metadata(interest.name.view()).is_some();
        let is_there = match is_about_metadata {
            true => has_metadata,
            false => has_segment,
        };
        let frame = match (interest.must_be_fresh || !is_there, is_about_metadata) {
            (true, _) => nack(interest, NackReason::NoRoute),
            (false, true) => version_3().encode_with_digest(),
            (false, false) => segment(&name("/object/v=2"), 0, 0).encode_with_digest(),
        };
        Reply::Frames(vec![frame])
    });
    discover(
        &mut endpoint,
        &name("/object"),
        Discovery::Auto,
        LIFETIME,
        0,
        check_digest,
    )
}

#[test]
fn stale_data_is_found_where_no_producer_answers() {
    for (has_metadata, version) in [(true, "/object/v=3"), (false, "/object/v=2")] {
        let found = found_stale(has_metadata, true).expect("a cache has it");
        assert!(found.is_stale);
        match found.object {
            Object::Segmented(prefix) => assert_eq!(prefix.to_string(), version),
            other @ Object::Single(_) => panic!("{other:?}"),
        }
    }
    assert!(matches!(
        found_stale(false, false),
        Err(DiscoverError::Express(ExpressError::Nack(
            NackReason::NoRoute
        )))
    ));
}
