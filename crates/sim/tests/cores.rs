//! The simulator counts as a plain one does, that goes from event to event.

use std::collections::HashMap;

use tachonym_dispatch::baselines::{Fcfs, FlowShift, Grain, Scheduler, StaticHash};
use tachonym_dispatch::power::on_off::OnOffFcfs;
use tachonym_dispatch::restoration::TagScope;
use tachonym_dispatch::{DetectorConfig, Laps, LapsConfig, MapKind, MoveRule, OrderConfig};
use tachonym_sim::cores::{Cores, CoresConfig, Counts};
use tachonym_sim::rate::RateModel;
use tachonym_sim::service::{PATHS, Penalties};
use tachonym_sim::traffic::{FlowModel, Packet, Trace, Traffic, key_of, mean_packet_bytes};

const N_CORES: usize = 4;

/// A core that starts the next packet when it is done with one.
#[derive(Default)]
struct Core {
    waiting: Vec<(Packet, bool, u32)>,
    in_work: Option<(Packet, u32, u64)>,
    last_service: Option<u8>,
}

/// Steps from event to event, of which departures come first.
fn plain(packets: &[Packet], config: &CoresConfig, scheduler: &mut dyn Scheduler) -> Counts {
    let mut cores: Vec<Core> = (0..config.n_cores).map(|_| Core::default()).collect();
    let mut counts = Counts::default();
    let mut last_core = HashMap::new();
    let mut accepted = HashMap::<u32, u32>::new();
    let mut departed = HashMap::<u32, u32>::new();
    let mut arrivals = packets.iter().peekable();
    scheduler.handle_in_effect(u64::MAX);
    loop {
        let done = (cores.iter().enumerate())
            .filter_map(|(n, core)| core.in_work.map(|(_, _, done_ns)| (done_ns, n)))
            .min();
        let arrival = arrivals.peek().map(|packet| packet.at_ns);
        if let Some((done_ns, n)) = done
            && arrival.is_none_or(|at_ns| done_ns <= at_ns)
        {
            let (packet, nth, _) = cores[n].in_work.take().expect("it is done");
            counts.n_departed += 1;
            let last = departed.entry(packet.flow).or_default();
            counts.n_out_of_order += u64::from(nth < *last);
            *last = nth.max(*last);
            start(&mut cores[n], done_ns, config, &mut counts);
            continue;
        }
        let Some(packet) = arrivals.next() else {
            return counts;
        };
        counts.n_arrived += 1;
        let lens: Vec<u32> = (cores.iter())
            .map(|core| (core.waiting.len() + usize::from(core.in_work.is_some())) as u32)
            .collect();
        let n = scheduler
            .dispatch(packet.service, key_of(packet.flow), &lens)
            .idx();
        if lens[n] as usize == config.queue_pkts {
            counts.n_dropped += 1;
            continue;
        }
        let was = last_core.insert(packet.flow, n);
        let moved = was.is_some_and(|was| was != n);
        counts.n_moved += u64::from(moved);
        let nth = accepted.entry(packet.flow).or_default();
        *nth += 1;
        cores[n].waiting.push((*packet, moved, *nth));
        if cores[n].in_work.is_none() {
            start(&mut cores[n], packet.at_ns, config, &mut counts);
        }
    }
}

fn start(core: &mut Core, now_ns: u64, config: &CoresConfig, counts: &mut Counts) {
    if core.waiting.is_empty() {
        return;
    }
    let (packet, moved, nth) = core.waiting.remove(0);
    let is_cold = core
        .last_service
        .is_some_and(|last| last != packet.service.0);
    core.last_service = Some(packet.service.0);
    counts.n_cold += u64::from(is_cold);
    let mut takes_ns = config.services[packet.service.idx()].processing_ns(packet.bytes);
    takes_ns += u64::from(moved) * u64::from(config.penalties.flow_moved_ns);
    takes_ns += u64::from(is_cold) * u64::from(config.penalties.cold_code_ns);
    counts.busy_ns += takes_ns;
    core.in_work = Some((packet, nth, now_ns + takes_ns));
}

fn packets(n: usize, n_services: usize, total_pps: f64, seed: u64) -> (Vec<Packet>, usize) {
    let model = FlowModel {
        n_flows: 300,
        ..FlowModel::campus(1)
    };
    let services = (0..n_services as u64)
        .map(|n| {
            let rate = RateModel::constant(total_pps / n_services as f64);
            (rate, Trace::drawn(&model, seed ^ n))
        })
        .collect();
    let mut traffic = Traffic::new(services, 1.0, seed);
    let n_flows = traffic.n_flows();
    let packets = (0..n).map(|_| traffic.next_packet().expect("traffic goes on"));
    (packets.collect(), n_flows)
}

fn schedulers(n_services: usize) -> Vec<Box<dyn Scheduler>> {
    let laps = LapsConfig {
        worker_rates_pps: vec![3e5; n_services],
        high_threshold: 8,
        detector: DetectorConfig {
            n_annex: 64,
            ..DetectorConfig::default()
        },
        ..LapsConfig::new(N_CORES)
    };
    let published = LapsConfig {
        rule: MoveRule::Published,
        ..laps.clone()
    };
    vec![
        Box::new(Fcfs::new(N_CORES).unwrap()),
        Box::new(StaticHash::new(N_CORES, 6).unwrap()),
        Box::new(FlowShift::new(N_CORES, 6, Grain::Name, 8).unwrap()),
        Box::new(FlowShift::new(N_CORES, 6, Grain::Bundle, 8).unwrap()),
        Box::new(Laps::new(&published).unwrap()),
        Box::new(Laps::new(&laps).unwrap()),
    ]
}

#[test]
fn it_counts_as_a_plain_simulator() {
    let mut sum = Counts::default();
    for (n_services, total_pps) in [(1, 1e6), (1, 9e6), (3, 4e5), (3, 2e6)] {
        let mut config = CoresConfig {
            queue_pkts: 12,
            // The plain one hears of no loads.
            interval_ns: u64::MAX,
            ..CoresConfig::new(N_CORES, PATHS[1..1 + n_services].to_vec())
        };
        for penalties in [Penalties::PUBLISHED, Penalties::NONE] {
            config.penalties = penalties;
            let (packets, n_flows) = packets(30_000, n_services, total_pps, 7);
            let pairs = schedulers(n_services)
                .into_iter()
                .zip(schedulers(n_services));
            for (scheduler, mut same) in pairs {
                let mut cores = Cores::new(config.clone(), scheduler, n_flows);
                packets
                    .iter()
                    .for_each(|&packet| cores.handle_packet(packet));
                cores.depart_until(u64::MAX - 1);
                let counts = *cores.counts();
                assert_eq!(counts, plain(&packets, &config, &mut same));
                assert_eq!(counts.n_arrived, counts.n_departed + counts.n_dropped);
                sum.n_out_of_order += counts.n_out_of_order;
                sum.n_dropped += counts.n_dropped;
                sum.n_cold += counts.n_cold;
            }
        }
    }
    assert!(sum.n_out_of_order > 1_000 && sum.n_dropped > 1_000 && sum.n_cold > 1_000);
}

#[test]
fn cores_that_are_not_needed_sleep_and_wake_late() {
    // A core does two million packets a second; half of a core is needed, then two and a half.
    let (few, n_flows) = packets(10_000, 1, 1e6, 5);
    let (many, _) = packets(60_000, 1, 5e6, 5);
    let config = CoresConfig {
        penalties: Penalties::NONE,
        ..CoresConfig::new(N_CORES, PATHS[1..2].to_vec())
    };
    let fcfs = OnOffFcfs::new(N_CORES, vec![2e6], 80).unwrap();
    let mut cores = Cores::new(config, fcfs, n_flows);
    for &packet in &few {
        cores.handle_packet(packet);
    }
    let at_ns = few[few.len() - 1].at_ns;
    assert_eq!(cores.scheduler().sleeping().len(), N_CORES - 1);
    assert_eq!(cores.counts().n_dropped, 0);
    let time = cores.core_time(at_ns);
    assert_eq!((time.total_ns, time.n_wakes), (at_ns * N_CORES as u64, 0));
    // One fell asleep after each interval, from the second on.
    let intervals_ns = (2..=N_CORES as u64).map(|nth| at_ns - nth * 1_000_000);
    let slept_ns: u64 = intervals_ns.sum();
    assert!(time.slept_ns <= slept_ns && time.slept_ns + 10_000 > slept_ns);
    for &packet in &many {
        let at_ns = at_ns + packet.at_ns;
        cores.handle_packet(Packet { at_ns, ..packet });
    }
    assert_eq!(cores.scheduler().sleeping().len(), N_CORES - 3);
    assert!(cores.core_time(at_ns + 9_000_000).n_wakes >= 2);
    // What came in the first interval of many, and while cores woke.
    assert!(cores.counts().n_dropped > 1_000);
}

#[test]
fn a_static_hash_keeps_order_and_moves_nothing() {
    let (packets, n_flows) = packets(50_000, 1, 9e6, 3);
    let config = CoresConfig::new(N_CORES, PATHS[1..2].to_vec());
    let hash = StaticHash::new(N_CORES, 8).unwrap();
    let mut cores = Cores::new(config, hash, n_flows);
    packets
        .iter()
        .for_each(|&packet| cores.handle_packet(packet));
    let counts = cores.counts();
    assert_eq!(
        (counts.n_out_of_order, counts.n_moved, counts.n_cold),
        (0, 0, 0)
    );
    assert!(counts.n_dropped > 0);
    let n_queued: u32 = cores.queue_lens().iter().sum();
    assert_eq!(
        counts.n_arrived,
        counts.n_departed + counts.n_dropped + u64::from(n_queued)
    );
}

#[test]
fn ideal_cores_do_what_their_service_takes() {
    // 0.5 µs each on 4 cores: 8 million packets per second.
    let (packets, n_flows) = packets(400_000, 1, 16e6, 3);
    let mut config = CoresConfig::new(N_CORES, PATHS[1..2].to_vec());
    config.penalties = Penalties::NONE;
    let mut cores = Cores::new(config, Fcfs::new(N_CORES).unwrap(), n_flows);
    packets
        .iter()
        .for_each(|&packet| cores.handle_packet(packet));
    let end_s = packets.last().expect("packets").at_ns as f64 / 1e9;
    let rate = cores.counts().n_departed as f64 / end_s;
    assert!((rate / 8e6 - 1.0).abs() < 0.005, "{rate}");
}

#[test]
fn workers_follow_the_traffic() {
    let rates = vec![1e9 / 3_530.0, 1e9 / 500.0];
    let laps = LapsConfig {
        worker_rates_pps: rates.clone(),
        ..LapsConfig::new(8)
    };
    let services = [PATHS[2].clone(), PATHS[1].clone()].to_vec();
    let model = FlowModel::campus(1);
    // What six cores do, and what one and a half do.
    let traffic = [6.0 * rates[0], 1.4 * rates[1]].map(|rate| {
        let trace = Trace::drawn(&model, rate as u64);
        (RateModel::constant(rate), trace)
    });
    let mut traffic = Traffic::new(traffic.to_vec(), 1.0, 5);
    let config = CoresConfig {
        // Long enough that rates are known well.
        interval_ns: 2_000_000,
        ..CoresConfig::new(8, services)
    };
    let n_flows = traffic.n_flows();
    let mut cores = Cores::new(config, Laps::new(&laps).unwrap(), n_flows);
    for _ in 0..400_000 {
        cores.handle_packet(traffic.next_packet().expect("traffic goes on"));
    }
    let n_workers: Vec<_> = cores
        .scheduler()
        .needs()
        .iter()
        .map(|it| it.n_workers)
        .collect();
    assert_eq!(n_workers, [6, 2]);
}

#[test]
fn what_moves_keeps_its_order_and_nothing_is_lost() {
    let mut n_held = 0;
    for (n_services, total_pps) in [(1, 9e6), (3, 2e6)] {
        for map in [MapKind::Linear, MapKind::Buckets { n_buckets_log2: 8 }] {
            let (packets, n_flows) = packets(200_000, n_services, total_pps, 11);
            let run = |rule, order| {
                let config = CoresConfig {
                    order,
                    ..CoresConfig::new(N_CORES, PATHS[1..1 + n_services].to_vec())
                };
                let rates = (config.services.iter())
                    .map(|it| it.rate_pps(mean_packet_bytes()))
                    .collect();
                let laps = LapsConfig {
                    worker_rates_pps: rates,
                    rule,
                    map,
                    ..LapsConfig::new(N_CORES)
                };
                let mut cores = Cores::new(config, Laps::new(&laps).unwrap(), n_flows);
                (packets.iter()).for_each(|&packet| cores.handle_packet(packet));
                cores.depart_until(u64::MAX - 1);
                assert!(cores.queue_lens().iter().all(|&len| len == 0));
                *cores.counts()
            };
            let published = run(MoveRule::Published, None);
            assert!(published.n_out_of_order > 100, "{published:?}");
            let kept = run(MoveRule::EVENS, Some(OrderConfig::default()));
            assert_eq!(kept.n_out_of_order, 0, "{kept:?}");
            assert_eq!(kept.n_arrived, kept.n_departed + kept.n_dropped);
            assert!(kept.n_moved > 0 && kept.held_ns > 0);
            n_held += kept.n_held;
            // With no room to hold anything, order costs drops.
            let none = OrderConfig {
                n_packets: 0,
                ..OrderConfig::default()
            };
            let dropping = run(MoveRule::EVENS, Some(none));
            assert_eq!((dropping.n_out_of_order, dropping.n_held), (0, 0));
            assert!(dropping.n_dropped_unheld > 0);
        }
    }
    assert!(n_held > 100);
}

#[test]
fn order_is_restored_and_every_packet_leaves() {
    let services = PATHS.to_vec();
    let (packets, n_flows) = packets(60_000, services.len(), 4e5, 5);
    let run = |restoration| {
        let config = CoresConfig {
            restoration,
            ..CoresConfig::new(N_CORES, services.clone())
        };
        let mut cores = Cores::new(config, Fcfs::new(N_CORES).expect("cores"), n_flows);
        packets
            .iter()
            .for_each(|&packet| cores.handle_packet(packet));
        cores.depart_until(u64::MAX - 1);
        let counts = *cores.counts();
        assert_eq!(counts.n_departed + counts.n_dropped, counts.n_arrived);
        assert!(cores.queue_lens().iter().all(|&len| len == 0));
        (counts, cores.n_names_tagged())
    };
    let (unordered, _) = run(None);
    let (by_name, n_names) = run(Some(TagScope::PerName));
    let (global, n_lists) = run(Some(TagScope::Global));
    assert!(unordered.n_out_of_order > 0 && unordered.n_restored == 0);
    assert_eq!((by_name.n_out_of_order, global.n_out_of_order), (0, 0));
    assert!(0 < by_name.n_restored && by_name.n_restored < global.n_restored);
    assert!(by_name.restored_ns < global.restored_ns);
    // Only names with packets inside are tagged: no more than queues have places.
    assert!(n_names.is_some_and(|n| 1 < n && n <= N_CORES * 100));
    assert_eq!(n_lists, Some(1));
}

#[test]
fn the_same_seed_comes_to_the_same_end() {
    let run = |seed| {
        let (packets, n_flows) = packets(20_000, 3, 1e6, seed);
        let config = CoresConfig::new(N_CORES, PATHS[..3].to_vec());
        let laps = schedulers(3).pop().expect("LAPS");
        let mut cores = Cores::new(config, laps, n_flows);
        packets
            .iter()
            .for_each(|&packet| cores.handle_packet(packet));
        *cores.counts()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}
