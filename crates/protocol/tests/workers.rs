//! What is told of the workers comes back as it went, within its bounds.

use proptest::prelude::*;
use tachonym_packet::{DecodeError, Name, tlv};
use tachonym_protocol::*;

fn moved_name() -> impl Strategy<Value = MovedName> {
    let name = prop::collection::vec(prop::collection::vec(any::<u8>(), 0..6), 0..5);
    let name = name.prop_map(|components| {
        components
            .iter()
            .fold(Name::new(), |name, component| name.with(&component[..]))
    });
    (any::<(u64, u64, bool)>(), prop::option::of(name)).prop_map(
        |((key, worker, is_pinned), name)| MovedName {
            key,
            worker,
            is_pinned,
            name,
        },
    )
}

fn waiting_status() -> impl Strategy<Value = Option<WaitingStatus>> {
    any::<Option<([u64; 5], Option<String>)>>().prop_map(|fields| {
        fields.map(|(n, monitor)| WaitingStatus {
            spin_ns: n[0],
            gather_ns: n[1],
            wake_cost_ns: n[2],
            n_wakeups: n[3],
            n_gathers: n[4],
            monitor,
        })
    })
}

fn worker_status() -> impl Strategy<Value = WorkerStatus> {
    (
        prop::sample::select(WorkerState::ALL),
        any::<(String, Option<u64>, Option<u64>)>(),
        any::<[u64; 8]>(),
        waiting_status(),
    )
        .prop_map(
            |(state, (service, cpu, busy_permille), n, waiting)| WorkerStatus {
                worker: n[0],
                state,
                service,
                cpu,
                busy_permille,
                n_queued_pkts: n[1],
                share_permille: n[2],
                n_in_pkts: n[3],
                n_crossed_pkts: n[4],
                n_dropped_pkts: n[5],
                n_pit_entries: n[6],
                n_cs_entries: n[7],
                waiting,
            },
        )
}

fn receiver_status() -> impl Strategy<Value = ReceiverStatus> {
    let numbers = any::<([u64; 2], [Option<u64>; 2])>();
    (numbers, waiting_status()).prop_map(|((n, [cpu, busy_permille]), waiting)| ReceiverStatus {
        thread: n[0],
        cpu,
        busy_permille,
        n_received_pkts: n[1],
        waiting,
    })
}

fn workers_status() -> impl Strategy<Value = WorkersStatus> {
    (
        any::<(String, String, bool, [u64; 4])>(),
        prop::collection::vec(moved_name(), 0..4),
        prop::collection::vec(worker_status(), 0..4),
        prop::collection::vec(receiver_status(), 0..4),
    )
        .prop_map(
            |((feed, dispatch, is_frozen, n), moved_names, workers, receivers)| WorkersStatus {
                feed,
                dispatch,
                is_frozen,
                map_version: n[0],
                n_buckets: n[1],
                n_moved: n[2],
                n_away: n[3],
                moved_names,
                workers,
                receivers,
            },
        )
}

proptest! {
    #[test]
    fn workers_status_round_trips(value in workers_status()) {
        prop_assert_eq!(WorkersStatus::decode(&value.encode()), Ok(value));
    }

    #[test]
    fn a_cut_or_damaged_status_is_no_panic(
        value in workers_status(),
        at: prop::sample::Index,
        bit in 0..8,
        noise in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        let wire = value.encode();
        let at = at.index(wire.len());
        prop_assert!(WorkersStatus::decode(&wire[..at]).is_err());
        let mut damaged = wire.clone();
        damaged[at] ^= 1_u8 << bit;
        for wire in [&damaged, &noise] {
            if let Ok(value) = WorkersStatus::decode(wire) {
                prop_assert!(value.workers.len() <= WorkerStatus::MAX);
                prop_assert_eq!(WorkersStatus::decode(&value.encode()), Ok(value));
            }
            let _ = WorkersStatus::decode_value(wire);
        }
    }
}

fn status() -> WorkersStatus {
    let worker = WorkerStatus {
        worker: 1,
        state: WorkerState::Running,
        service: "f".into(),
        cpu: Some(3),
        busy_permille: None,
        n_queued_pkts: 0,
        share_permille: 500,
        n_in_pkts: 7,
        n_crossed_pkts: 6,
        n_dropped_pkts: 5,
        n_pit_entries: 4,
        n_cs_entries: 3,
        waiting: None,
    };
    WorkersStatus {
        feed: "io".into(),
        dispatch: "name".into(),
        is_frozen: true,
        map_version: 2,
        n_buckets: 256,
        n_moved: 9,
        n_away: 1,
        moved_names: vec![MovedName {
            key: 8,
            worker: 1,
            is_pinned: false,
            name: Some("/a".parse().unwrap()),
        }],
        workers: vec![worker],
        receivers: vec![ReceiverStatus {
            thread: 0,
            cpu: None,
            busy_permille: Some(999),
            n_received_pkts: 70,
            waiting: None,
        }],
    }
}

/// Written by hand from the table of type numbers.
#[test]
fn golden_workers_status() {
    let wire = [
        0xfd, 0x90, 0x2a, 140, // WorkersStatus
        0xfd, 0x90, 0x2d, 2, b'i', b'o', // Feed
        0xfd, 0x90, 0x2f, 4, b'n', b'a', b'm', b'e', // Dispatch
        0xfd, 0x90, 0x31, 1, 1, // IsFrozen
        0xfd, 0x90, 0x33, 1, 2, // MapVersion
        0xfd, 0x90, 0x35, 2, 1, 0, // NBuckets
        0xfd, 0x90, 0x37, 1, 9, // NMoved
        0xfd, 0x90, 0x39, 1, 1, // NAway
        0xfd, 0x90, 0x3a, 20, // MovedName
        0xfd, 0x90, 0x3b, 1, 8, // Key
        0xfd, 0x90, 0x2c, 1, 1, // Worker
        0xfd, 0x90, 0x3d, 1, 0, // IsPinned
        7, 3, 8, 1, b'a', // Name
        0xfd, 0x90, 0x42, 52, // WorkerStatus
        0xfd, 0x90, 0x2c, 1, 1, // Worker
        0xfd, 0x90, 0x43, 1, 1, // WorkerState: running
        0xfd, 0x90, 0x45, 1, b'f', // Service
        0xfd, 0x90, 0x46, 1, 3, // Cpu
        0xfd, 0x90, 0x4b, 1, 0, // NQueuedPkts
        0xfd, 0x90, 0x4d, 2, 1, 0xf4, // SharePermille
        0xfd, 0x90, 0x4f, 1, 7, // NInPkts
        0xfd, 0x90, 0x51, 1, 6, // NCrossedPkts
        0xfd, 0x90, 0x03, 1, 5, // NDropped
        0x85, 1, 4, // NPitEntries
        0x87, 1, 3, // NCsEntries
        0xfd, 0x90, 0x52, 16, // ReceiverStatus
        0xfd, 0x90, 0x53, 1, 0, // Thread
        0xfd, 0x90, 0x48, 2, 3, 0xe7, // BusyPermille
        0xfd, 0x90, 0x55, 1, 70, // NReceivedPkts
    ];
    assert_eq!(status().encode(), wire);
    assert_eq!(WorkersStatus::decode(&wire), Ok(status()));
}

#[test]
fn more_workers_threads_or_names_than_there_may_be_are_refused() {
    let full = {
        let status = status();
        WorkersStatus {
            moved_names: vec![status.moved_names[0].clone(); MovedName::MAX],
            workers: vec![status.workers[0].clone(); WorkerStatus::MAX],
            receivers: vec![status.receivers[0].clone(); ReceiverStatus::MAX],
            ..status
        }
    };
    assert_eq!(WorkersStatus::decode(&full.encode()), Ok(full.clone()));
    let mut one_more = [full.clone(), full.clone(), full];
    one_more[0].moved_names.push(status().moved_names.remove(0));
    one_more[1].workers.push(status().workers.remove(0));
    one_more[2].receivers.push(status().receivers.remove(0));
    let types = [36922, 36930, 36946];
    for (status, typ) in one_more.iter().zip(types) {
        let refused = WorkersStatus::decode(&status.encode());
        assert_eq!(refused, Err(DecodeError::BadValue { typ }));
    }
}

#[test]
fn a_switch_is_0_or_1() {
    for number in 0..4 {
        let mut fields = Vec::new();
        for (typ, number) in [(36923, 8), (36908, 1), (36925, number)] {
            tlv::write_nni(&mut fields, typ, number);
        }
        let expected = match number {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(DecodeError::BadValue { typ: 36925 }),
        };
        let read = MovedName::decode_value(&fields);
        assert_eq!(read.map(|moved| moved.is_pinned), expected);
    }
}
