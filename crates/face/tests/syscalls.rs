//! What a burst costs in system calls: counted, never timed.

mod support;

use std::time::Duration;

use support::{Node, connect, data, every_channel};
use tachonym_packet::lp::Headers;

/// Packets of a burst.
const N_PACKETS: usize = 64;
/// Bounds below one call for each packet with room for a kernel that takes or
/// gives a burst in several portions.
const MAX_TX_CALLS: u64 = 4;
const MAX_RX_CALLS: u64 = 16;

#[test]
fn a_burst_costs_a_few_calls_and_not_one_for_each_packet() {
    let dir = tempfile::tempdir().unwrap();
    for (kind, options) in every_channel(dir.path()) {
        let (mut a, mut b) = (Node::default(), Node::default());
        let (to_b, to_a) = connect(&mut a, &mut b, &options);
        // What connecting took does not count.
        a.step(Duration::ZERO);
        b.step(Duration::ZERO);
        let (a_before, b_before) = (a.faces.counters(), b.faces.counters());
        let n_received = b.packets.len();

        for number in 0..N_PACKETS as u64 {
            let packet = data(number, 500);
            a.faces.send(to_b, &Headers::default(), &packet).unwrap();
        }
        a.faces.flush();
        let backlog_bytes = a.info(to_b).backlog_bytes;
        assert_eq!(backlog_bytes, 0, "{kind}: the kernel has room for it");
        b.until(kind, |b| b.packets.len() - n_received >= N_PACKETS);

        let n_tx = a.faces.counters().n_tx_syscalls - a_before.n_tx_syscalls;
        let n_rx = b.faces.counters().n_rx_syscalls - b_before.n_rx_syscalls;
        println!("{kind}: {n_tx} calls to send and {n_rx} to receive {N_PACKETS} packets");
        assert!((1..=MAX_TX_CALLS).contains(&n_tx), "{kind}: {n_tx}");
        assert!((1..=MAX_RX_CALLS).contains(&n_rx), "{kind}: {n_rx}");
        assert_eq!(b.info(to_a).counters.n_in_data, N_PACKETS as u64, "{kind}");
    }
}
