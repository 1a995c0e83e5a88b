//! A fetch whose answers come as they like: it ends or asks on, and never counts
//! wrongly. Each step is three bytes: what happens, a segment, the time.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use tachonym_client::fetcher::{FetchLimits, Fetcher};
use tachonym_packet::MonoNs;
use tachonym_protocol::segments::Reassembly;

fuzz_target!(|bytes: &[u8]| {
    let limits = FetchLimits {
        max_window: 16,
        max_retries: 3,
    };
    let mut fetcher = Fetcher::new(limits);
    let mut parts = Reassembly::new(64);
    let mut now = MonoNs(1);
    for step in bytes.chunks_exact(3) {
        let (what, segment, ms) = (step[0], u64::from(step[1]), u64::from(step[2]));
        now = now + Duration::from_millis(ms);
        match what % 6 {
            0 => {
                let mut n_asked = 0;
                while fetcher.poll_transmit(now).is_some() {
                    n_asked += 1;
                    assert!(n_asked <= 1024, "the window bounds what is asked");
                }
            }
            1 => {
                fetcher.handle_data(now, segment, None, what & 64 != 0);
            }
            2 => {
                fetcher.handle_data(now, segment, Some(segment), what & 64 != 0);
            }
            3 => fetcher.handle_nack(segment, what & 64 != 0),
            4 => fetcher.handle_timeout(now),
            _ => {
                let last = (what & 64 != 0).then_some(segment);
                let _ = parts.insert(segment, last, &step[..usize::from(what >> 7)]);
            }
        }
        let _ = fetcher.poll_timeout();
    }
    let counters = fetcher.counters();
    assert!(counters.n_segments <= counters.n_interests);
    let _ = parts.into_content();
});
