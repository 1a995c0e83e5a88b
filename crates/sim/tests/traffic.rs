//! Traffic is what its models say.

use tachonym_sim::rate::{RateModel, SET_2};
use tachonym_sim::traffic::{FlowModel, Trace, Traffic, mean_packet_bytes};

#[test]
fn rates_and_sizes_come_out_as_asked() {
    let model = FlowModel::campus(1);
    let services = [(RateModel::constant(3e6), 1), (RateModel::constant(1e6), 2)]
        .map(|(rate, seed)| (rate, Trace::drawn(&model, seed)));
    let mut traffic = Traffic::new(services.to_vec(), 1.0, 9);
    let (mut counts, mut bytes, mut end_ns) = ([0_u32; 2], 0_u64, 0);
    for _ in 0..800_000 {
        let packet = traffic.next_packet().expect("traffic goes on");
        assert!(packet.at_ns >= end_ns);
        end_ns = packet.at_ns;
        counts[packet.service.idx()] += 1;
        bytes += u64::from(packet.bytes);
        assert_eq!(packet.flow >= model.n_flows, packet.service.idx() == 1);
    }
    let seconds = end_ns as f64 / 1e9;
    assert!((f64::from(counts[0]) / seconds / 3e6 - 1.0).abs() < 0.01);
    assert!((f64::from(counts[1]) / seconds / 1e6 - 1.0).abs() < 0.01);
    let mean = bytes as f64 / 8e5;
    assert!((mean / mean_packet_bytes() - 1.0).abs() < 0.01, "{mean}");
    assert!((600.0..700.0).contains(&mean));
}

#[test]
fn the_largest_flow_has_its_share() {
    let model = FlowModel::campus(3);
    let mut trace = Trace::drawn(&model, 4);
    let weight = |rank: f64| (rank + 1.0 + model.offset).powf(-model.alpha);
    let total: f64 = (0..model.n_flows).map(|rank| weight(f64::from(rank))).sum();
    let n_first = (0..1_000_000).filter(|_| trace.next_flow().0 == 0).count();
    let share = n_first as f64 / 1e6;
    assert!(
        (share / (weight(0.0) / total) - 1.0).abs() < 0.03,
        "{share}"
    );
}

#[test]
fn recorded_packets_come_again() {
    let packets = vec![(0, 64), (7, 100), (3, 1_500)];
    let mut trace = Trace::recorded(packets.clone()).expect("packets");
    assert_eq!(trace.n_flows(), 8);
    for n in 0..10 {
        assert_eq!(trace.next_flow(), packets[n % 3]);
    }
    assert!(Trace::recorded(Vec::new()).is_none());
}

#[test]
fn a_minute_passes_sooner_if_asked() {
    let one = |speedup| {
        let trace = Trace::drawn(&FlowModel::campus(1), 1);
        let still = RateModel {
            sigma: 0.0,
            ..SET_2[0]
        };
        let mut traffic = Traffic::new(vec![(still, trace)], speedup, 1);
        while traffic.next_packet().expect("traffic goes on").at_ns < 250_000_000 {}
        traffic.rates_pps()[0]
    };
    // A quarter of a season of 100 s, at its peak, against its first second.
    assert!((one(100.0) - 1.55e6).abs() < 2e4, "{}", one(100.0));
    assert!((one(1.0) - 1.2e6).abs() < 2e4);
}

#[test]
fn traffic_without_packets_ends() {
    let trace = Trace::drawn(&FlowModel::names(10), 1);
    let mut traffic = Traffic::new(vec![(RateModel::constant(0.0), trace)], 1.0, 1);
    assert_eq!(traffic.next_packet(), None);
}

#[test]
fn a_large_flow_has_its_share() {
    let mut trace = Trace::drawn(&FlowModel::large_flow(0.12), 1);
    let n = 200_000;
    let n_large = (0..n).filter(|_| trace.next_flow().0 == 0).count();
    let share = n_large as f64 / f64::from(n);
    assert!((share - 0.12).abs() < 0.005, "{share}");
}
