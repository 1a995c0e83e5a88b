//! The dataset `status/power` round-trips, and its bounds hold.

use proptest::prelude::*;
use tachonym_protocol::{
    EnergyCounter, PowerLever, PowerStatus, PowerWork, TapStatus, WorkerPower,
};

fn lever() -> impl Strategy<Value = PowerLever> {
    any::<(String, bool, String)>().prop_map(|(name, is_used, detail)| PowerLever {
        name,
        is_used,
        detail,
    })
}

fn worker() -> impl Strategy<Value = WorkerPower> {
    any::<([u64; 3], Option<u64>)>().prop_map(|([worker, sleep, p_state], khz)| WorkerPower {
        worker,
        sleep,
        p_state,
        khz,
    })
}

fn tap() -> impl Strategy<Value = TapStatus> {
    any::<([u64; 6], Option<u64>)>().prop_map(|(n, packet_ns)| TapStatus {
        forecast_millipkts: n[0],
        interval_ns: n[1],
        traffic_factor_permille: n[2],
        packet_ns,
        queue_millipkts: n[3],
        low_millipkts: n[4],
        high_millipkts: n[5],
    })
}

fn work() -> impl Strategy<Value = PowerWork> {
    any::<([u64; 9], Option<u64>)>().prop_map(|(n, max_khz)| PowerWork {
        at_ns: n[0],
        busy_ns: n[1],
        cycles_ns: n[2],
        max_khz,
        n_in_pkts: n[3],
        n_out_pkts: n[4],
        n_interests: n[5],
        n_hits: n[6],
        n_data: n[7],
        n_inserts: n[8],
    })
}

fn status() -> impl Strategy<Value = PowerStatus> {
    let counter = any::<(String, u64)>();
    let counter = counter.prop_map(|(name, used_uj)| EnergyCounter { name, used_uj });
    (
        any::<(String, u64, String)>(),
        prop::collection::vec(lever(), 0..4),
        prop::collection::vec(worker(), 0..4),
        prop::option::of(tap()),
        prop::collection::vec(counter, 0..4),
        work(),
    )
        .prop_map(
            |((governor, n_active, model), levers, workers, tap, energy, work)| PowerStatus {
                governor,
                n_active,
                levers,
                workers,
                tap,
                energy,
                model,
                work,
            },
        )
}

proptest! {
    #[test]
    fn power_status_round_trips(value in status()) {
        prop_assert_eq!(PowerStatus::decode(&value.encode()), Ok(value));
    }

    #[test]
    fn a_cut_or_damaged_status_is_no_panic(
        value in status(),
        at: prop::sample::Index,
        bit in 0..8,
    ) {
        let wire = value.encode();
        let at = at.index(wire.len());
        prop_assert!(PowerStatus::decode(&wire[..at]).is_err());
        let mut damaged = wire;
        damaged[at] ^= 1_u8 << bit;
        if let Ok(value) = PowerStatus::decode(&damaged) {
            prop_assert_eq!(PowerStatus::decode(&value.encode()), Ok(value));
        }
    }
}

#[test]
fn more_levers_workers_or_counters_than_there_may_be_are_refused() {
    let lever = PowerLever {
        name: "workers".to_owned(),
        is_used: true,
        detail: String::new(),
    };
    let worker = WorkerPower {
        worker: 0,
        sleep: 0,
        p_state: 0,
        khz: None,
    };
    let counter = EnergyCounter {
        name: "package-0".to_owned(),
        used_uj: 1,
    };
    let full = PowerStatus {
        levers: vec![lever; PowerLever::MAX],
        workers: vec![worker; WorkerPower::MAX],
        energy: vec![counter; EnergyCounter::MAX],
        ..PowerStatus::default()
    };
    assert_eq!(PowerStatus::decode(&full.encode()), Ok(full.clone()));
    let mut levers = full.clone();
    levers.levers.push(full.levers[0].clone());
    let mut workers = full.clone();
    workers.workers.push(full.workers[0].clone());
    let mut energy = full.clone();
    energy.energy.push(full.energy[0].clone());
    for refused in [levers, workers, energy] {
        assert!(PowerStatus::decode(&refused.encode()).is_err());
    }
}
