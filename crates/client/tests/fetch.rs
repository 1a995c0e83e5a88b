//! Fetching over a real socket, from a router that does what a script says.

mod scripted;

use std::thread;
use std::time::Duration;

use tachonym_client::{FetchOptions, check_digest, fetch};
use tachonym_packet::Name;

use scripted::{Reply, endpoint, segment, segment_of};

fn object() -> Name {
    "/object/v=1".parse().expect("a name")
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
    let report = fetch(
        &mut endpoint,
        &object(),
        &FetchOptions::default(),
        check_digest,
        |_| Ok(()),
        |_| {},
    )
    .expect("it arrives");
    assert_eq!(report.n_segments, 1);
    let rtt = report.rtt.expect("it was asked for once");
    assert!(rtt >= DELAY, "{rtt:?}");
}
