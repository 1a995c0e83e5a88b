//! Fetching over a real socket, from a router that does what a script says.

mod scripted;

use std::thread;
use std::time::Duration;

use tachonym_client::fetcher::FetchLimits;
use tachonym_client::{Endpoint, FetchError, FetchOptions, FetchReport, check_digest, fetch};
use tachonym_packet::{Component, Interest, NackReason, Name};

use scripted::{Reply, endpoint, nack, segment, segment_of};

fn object() -> Name {
    "/object/v=1".parse().expect("a name")
}

fn fetch_object(
    endpoint: &mut Endpoint,
    options: &FetchOptions,
) -> Result<FetchReport, FetchError> {
    fetch(
        endpoint,
        &object(),
        options,
        check_digest,
        |_| Ok(()),
        |_| {},
    )
}

#[test]
fn a_round_trip_takes_at_least_as_long_as_the_path() {
    const DELAY: Duration = Duration::from_millis(20);
    // The delay is what is measured; however late answers are, the test passes.
    let mut endpoint = endpoint(|interest| {
        thread::sleep(DELAY);
        let data = segment(&object(), segment_of(interest), 0);
        Reply::Frames(vec![data.encode_with_digest()])
    });
    let report = fetch_object(&mut endpoint, &FetchOptions::default()).expect("it arrives");
    assert_eq!(report.n_segments, 1);
    let rtt = report.rtt.expect("it was asked for once");
    assert!(rtt >= DELAY, "{rtt:?}");
}

#[test]
fn a_segment_that_does_not_come_is_told_with_the_nack_of_its_own() {
    let options = FetchOptions {
        limits: FetchLimits {
            max_retries: 3,
            ..FetchLimits::default()
        },
        ..FetchOptions::default()
    };
    // Each time the first segment is refused, so is the next one, for another
    // reason.
    let mut endpoint = endpoint(|interest| match segment_of(interest) {
        0 => {
            let next = Interest::new(object().with(&Component::segment(1)));
            let first = nack(interest, NackReason::Congestion);
            Reply::Frames(vec![first, nack(&next, NackReason::NoRoute)])
        }
        1 => Reply::Frames(Vec::new()),
        other => Reply::Frames(vec![segment(&object(), other, 9).encode_with_digest()]),
    });
    match fetch_object(&mut endpoint, &options) {
        Err(FetchError::GaveUp { segment, nack }) => {
            assert_eq!((segment, nack), (0, Some(NackReason::Congestion)));
        }
        other => panic!("{other:?}"),
    }
}
