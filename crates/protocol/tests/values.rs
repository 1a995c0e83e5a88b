//! Management values: they come back as they went, and hostile bytes get an
//! error and never a panic.

use proptest::prelude::*;
use tachonym_packet::{DecodeError, Name};
use tachonym_protocol::*;

fn name() -> impl Strategy<Value = Name> {
    prop::collection::vec(prop::collection::vec(any::<u8>(), 0..6), 0..5).prop_map(|components| {
        components
            .iter()
            .fold(Name::new(), |name, component| name.with(&component[..]))
    })
}

fn maybe_name() -> impl Strategy<Value = Option<Name>> {
    prop::option::of(name())
}

fn persistency() -> impl Strategy<Value = FacePersistency> {
    prop::sample::select(FacePersistency::ALL)
}

fn scope() -> impl Strategy<Value = FaceScope> {
    prop::sample::select(FaceScope::ALL)
}

fn link_type() -> impl Strategy<Value = LinkType> {
    prop::sample::select(LinkType::ALL)
}

type MaybeNumbers = [Option<u64>; 14];

fn parameters() -> impl Strategy<Value = ControlParameters> {
    (
        maybe_name(),
        maybe_name(),
        any::<[Option<String>; 3]>(),
        any::<MaybeNumbers>(),
        prop::option::of(persistency()),
    )
        .prop_map(
            |(name, strategy, [uri, local_uri, cs_policy], n, face_persistency)| {
                ControlParameters {
                    name,
                    face_id: n[0],
                    uri,
                    local_uri,
                    origin: n[1],
                    cost: n[2],
                    capacity: n[3],
                    count: n[4],
                    flags: n[5],
                    mask: n[6],
                    strategy,
                    expiration_period_ms: n[7],
                    face_persistency,
                    base_congestion_marking_interval_ns: n[8],
                    default_congestion_threshold_bytes: n[9],
                    mtu_bytes: n[10],
                    cs_policy,
                    worker: n[11],
                    trace_id: n[12],
                    sample: n[13],
                }
            },
        )
}

fn face_status() -> impl Strategy<Value = FaceStatus> {
    (
        any::<(String, String)>(),
        any::<[Option<u64>; 4]>(),
        (scope(), persistency(), link_type()),
        any::<[u64; 10]>(),
        prop::option::of(prop::sample::select(FaceState::ALL)),
    )
        .prop_map(
            |((uri, local_uri), o, (face_scope, face_persistency, link_type), n, state)| {
                FaceStatus {
                    face_id: n[0],
                    uri,
                    local_uri,
                    expiration_period_ms: o[0],
                    face_scope,
                    face_persistency,
                    link_type,
                    base_congestion_marking_interval_ns: o[1],
                    default_congestion_threshold_bytes: o[2],
                    mtu_bytes: o[3],
                    n_in_interests: n[1],
                    n_in_data: n[2],
                    n_in_nacks: n[3],
                    n_out_interests: n[4],
                    n_out_data: n[5],
                    n_out_nacks: n[6],
                    n_in_bytes: n[7],
                    n_out_bytes: n[8],
                    flags: n[9],
                    state,
                }
            },
        )
}

fn forwarder_status() -> impl Strategy<Value = ForwarderStatus> {
    any::<(String, [u64; 15])>().prop_map(|(nfd_version, n)| ForwarderStatus {
        nfd_version,
        start_timestamp_ms: n[0],
        current_timestamp_ms: n[1],
        n_name_tree_entries: n[2],
        n_fib_entries: n[3],
        n_pit_entries: n[4],
        n_measurements_entries: n[5],
        n_cs_entries: n[6],
        n_in_interests: n[7],
        n_in_data: n[8],
        n_in_nacks: n[9],
        n_out_interests: n[10],
        n_out_data: n[11],
        n_out_nacks: n[12],
        n_satisfied_interests: n[13],
        n_unsatisfied_interests: n[14],
    })
}

fn rib_entry() -> impl Strategy<Value = RibEntry> {
    let route = any::<([u64; 4], Option<u64>)>().prop_map(
        |([face_id, origin, cost, flags], expiration_period_ms)| Route {
            face_id,
            origin,
            cost,
            flags,
            expiration_period_ms,
        },
    );
    (name(), prop::collection::vec(route, 0..4))
        .prop_map(|(name, routes)| RibEntry { name, routes })
}

proptest! {
    #[test]
    fn control_parameters_round_trip(value in parameters()) {
        prop_assert_eq!(ControlParameters::decode(&value.encode()), Ok(value));
    }

    #[test]
    fn control_responses_round_trip(code: u64, text: String, body in prop::option::of(parameters())) {
        let mut response = ControlResponse::new(code, text);
        if let Some(body) = &body {
            response = response.with_parameters(body);
        }
        let decoded = ControlResponse::decode(&response.encode()).unwrap();
        prop_assert_eq!(&decoded, &response);
        prop_assert_eq!(decoded.parameters(), Ok(body));
    }

    #[test]
    fn face_status_lists_round_trip(faces in prop::collection::vec(face_status(), 0..4)) {
        let content = FaceStatus::encode_list(&faces);
        prop_assert_eq!(FaceStatus::decode_list(&content), Ok(faces));
    }

    #[test]
    fn forwarder_status_round_trips(value in forwarder_status()) {
        let mut content = Vec::new();
        value.encode_value_into(&mut content);
        prop_assert_eq!(ForwarderStatus::decode_value(&content), Ok(value));
    }

    #[test]
    fn rib_lists_round_trip(entries in prop::collection::vec(rib_entry(), 0..4)) {
        let content = RibEntry::encode_list(&entries);
        prop_assert_eq!(RibEntry::decode_list(&content), Ok(entries));
    }

    #[test]
    fn fib_and_strategy_lists_round_trip(
        names in prop::collection::vec((name(), name()), 0..4),
        hops in prop::collection::vec(any::<(u64, u64)>(), 0..4),
    ) {
        let fib: Vec<FibEntry> = names
            .iter()
            .map(|(name, _)| FibEntry {
                name: name.clone(),
                next_hops: hops
                    .iter()
                    .map(|&(face_id, cost)| NextHopRecord { face_id, cost })
                    .collect(),
            })
            .collect();
        prop_assert_eq!(FibEntry::decode_list(&FibEntry::encode_list(&fib)), Ok(fib));
        let choices: Vec<StrategyChoice> = names
            .into_iter()
            .map(|(name, strategy)| StrategyChoice { name, strategy })
            .collect();
        let content = StrategyChoice::encode_list(&choices);
        prop_assert_eq!(StrategyChoice::decode_list(&content), Ok(choices));
    }

    #[test]
    fn notifications_and_infos_round_trip(
        uris: (String, String),
        n: [u64; 5],
        kind in prop::sample::select(FaceEventKind::ALL),
        (face_scope, face_persistency, link_type) in (scope(), persistency(), link_type()),
    ) {
        let event = FaceEventNotification {
            kind,
            face_id: n[0],
            uri: uris.0.clone(),
            local_uri: uris.1.clone(),
            face_scope,
            face_persistency,
            link_type,
            flags: n[1],
        };
        prop_assert_eq!(FaceEventNotification::decode(&event.encode()), Ok(event));
        let program = |name: Option<String>| FaceProgram { face_id: n[0], pid: n[1], name };
        let programs = vec![program(Some(uris.0.clone())), program(None)];
        let content = FaceProgram::encode_list(&programs);
        prop_assert_eq!(FaceProgram::decode_list(&content), Ok(programs));
        let info = CsInfo {
            capacity: n[0],
            flags: n[1],
            n_cs_entries: n[2],
            n_hits: n[3],
            n_misses: n[4],
        };
        prop_assert_eq!(CsInfo::decode(&info.encode()), Ok(info));
        let stats = CsStats {
            policy: uris.0.clone(),
            n_cs_entries: n[0],
            capacity: n[1],
            n_hits: n[2],
            n_misses: n[3],
            n_inserts: n[4],
            n_not_admitted: n[4],
            n_evictions: n[3],
            n_bytes: n[2],
            capacity_bytes: n[1],
            n_policy_bytes: n[0],
            second_level: (n[1] % 2 == 0).then(|| SecondLevelStats {
                n_hits: n[0],
                n_misses: n[1],
                n_reads: n[2],
                n_reads_ahead: n[3],
                n_read_bytes: n[4],
                n_inserts: n[0] / 3,
                n_not_admitted: n[1] / 3,
                n_lost: n[2] / 3,
                n_data_bytes: n[3] / 3,
                n_written_bytes: n[4] / 3,
                n_written_bytes_per_day: n[0] / 5,
                n_indexed: n[1] / 5,
                max_indexed: n[2] / 5,
                n_device_errors: n[3] / 5,
                n_damaged: n[4] / 5,
                n_lost_volumes: n[0] / 7,
                n_recovered: n[1] / 7,
                is_recovering: n[2] % 2 == 0,
                n_erasures_merged: (n[3] % 2 == 0).then_some(n[4] / 7),
                balance: (n[4] % 2 == 0).then(|| SecondLevelBalance {
                    n_offered: n[0] / 11,
                    n_known: n[1] / 11,
                    n_unsuited: n[2] / 11,
                    n_no_room: n[3] / 11,
                    n_replaced: n[4] / 11,
                    n_erased: n[0] / 13,
                    n_waiting: n[1] / 13,
                    n_not_indexed: n[2] / 13,
                    n_crowded_out: n[3] / 13,
                    n_emptied_early: n[4] / 13,
                    n_prefixes_not_indexed: n[0] / 19,
                }),
                n_sought_refused: (n[0] % 2 == 0).then_some(n[1] / 17),
                n_reads_refused: (n[0] % 3 == 0).then_some(n[2] / 19),
            }),
        };
        prop_assert_eq!(CsStats::decode(&stats.encode()), Ok(stats));
        let popularity = CsPopularity {
            n_requests: n[0],
            n_counted_names: n[1],
            n_requests_since_change: n[2],
            n_hits: n[3],
            n_inserts: n[4],
            n_meter_bytes: n[0],
            classes: n
                .map(|n| PopularityClass {
                    n_names: n,
                    n_requests: n / 2,
                })
                .to_vec(),
        };
        prop_assert_eq!(CsPopularity::decode(&popularity.encode()), Ok(popularity));
        let memory = TableMemory {
            asked_for: uris.1.clone(),
            n_base_bytes: n[0],
            n_transparent_bytes: n[1],
            n_huge_2m_bytes: n[2],
            n_huge_1g_bytes: n[3],
        };
        prop_assert_eq!(TableMemory::decode(&memory.encode()), Ok(memory));
        let channel = ChannelStatus { local_uri: uris.0.clone() };
        prop_assert_eq!(ChannelStatus::decode(&channel.encode()), Ok(channel));
        let filter = FaceQueryFilter {
            face_id: Some(n[0]),
            uri_scheme: Some(uris.0),
            uri: None,
            local_uri: Some(uris.1),
            face_scope: Some(face_scope),
            face_persistency: None,
            link_type: Some(link_type),
        };
        prop_assert_eq!(FaceQueryFilter::decode(&filter.encode()), Ok(filter));
    }

    #[test]
    fn hostile_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..64), value in parameters(), at: prop::sample::Index) {
        // Noise alone seldom passes the head: damage a real value as well.
        let mut damaged = value.encode();
        let at = at.index(damaged.len());
        damaged[at] ^= 1 << (bytes.len() % 8);
        for wire in [&bytes[..], &damaged, &damaged[..at]] {
            let _ = ControlParameters::decode(wire);
            let _ = ControlParameters::decode_value(wire);
            let _ = ControlResponse::decode(wire);
            let _ = FaceStatus::decode_list(wire);
            let _ = FaceStatus::decode_value(wire);
            let _ = RibEntry::decode_value(wire);
            let _ = ForwarderStatus::decode_value(wire);
            let _ = FaceQueryFilter::decode_value(wire);
            let _ = FaceEventNotification::decode_value(wire);
            let _ = TraceBatch::decode_value(wire);
            let _ = TraceQuery::decode_value(wire);
            let _ = RecentDrop::decode_list(wire);
        }
    }

    #[test]
    fn a_cut_value_is_refused(value in parameters(), at: prop::sample::Index) {
        let wire = value.encode();
        let at = at.index(wire.len());
        prop_assert!(ControlParameters::decode(&wire[..at]).is_err());
    }
}

/// Written by hand from the grammar and the type numbers of the NFD Management
/// protocol.
#[test]
fn golden_register_parameters() {
    let wire = [
        0x68, 0x15, // ControlParameters
        0x07, 0x07, 0x08, 0x05, b'h', b'e', b'l', b'l', b'o', // Name /hello
        0x69, 0x01, 0x00, // FaceId 0
        0x6a, 0x01, 0x0a, // Cost 10
        0x6d, 0x04, 0x00, 0x01, 0x00, 0x00, // ExpirationPeriod 65536
    ];
    let value = ControlParameters {
        name: Some("/hello".parse().unwrap()),
        face_id: Some(0),
        cost: Some(10),
        expiration_period_ms: Some(65536),
        ..ControlParameters::default()
    };
    assert_eq!(ControlParameters::decode(&wire), Ok(value.clone()));
    assert_eq!(value.encode(), wire);
}

#[test]
fn golden_strategy_choice() {
    let wire = [
        0x80, 0x0a, // StrategyChoice
        0x07, 0x00, // Name /
        0x6b, 0x06, 0x07, 0x04, 0x08, 0x02, b'b', b'r', // Strategy /br
    ];
    let value = StrategyChoice {
        name: Name::new(),
        strategy: "/br".parse().unwrap(),
    };
    assert_eq!(StrategyChoice::decode(&wire), Ok(value.clone()));
    assert_eq!(value.encode(), wire);
}

#[test]
fn fields_are_read_in_any_order_and_only_once() {
    let value = ControlParameters::decode(&[0x68, 6, 0x6a, 1, 7, 0x69, 1, 9]).unwrap();
    assert_eq!((value.face_id, value.cost), (Some(9), Some(7)));
    assert_eq!(
        ControlParameters::decode(&[0x68, 6, 0x69, 1, 7, 0x69, 1, 9]),
        Err(DecodeError::OutOfOrder { typ: 0x69 })
    );
}

#[test]
fn unrecognised_critical_fields_are_refused_and_others_skipped() {
    assert_eq!(
        ControlParameters::decode(&[0x68, 5, 0xf1, 0, 0x69, 1, 9]),
        Err(DecodeError::UnrecognisedCritical { typ: 0xf1 })
    );
    let value = ControlParameters::decode(&[0x68, 5, 0xf0, 0, 0x69, 1, 9]).unwrap();
    assert_eq!(value.face_id, Some(9));
}

#[test]
fn values_outside_their_field_are_refused() {
    // A number of three bytes, text that is not UTF-8, a persistency of 3.
    for (wire, typ) in [
        (&[0x68, 5, 0x69, 3, 0, 0, 1][..], None),
        (&[0x68, 3, 0x72, 1, 0xff], Some(0x72)),
        (&[0x68, 3, 0x85, 1, 3], Some(0x85)),
    ] {
        let error = ControlParameters::decode(wire).unwrap_err();
        match typ {
            Some(typ) => assert_eq!(error, DecodeError::BadValue { typ }),
            None => assert_eq!(error, DecodeError::BadLength { typ: 0x69 }),
        }
    }
}

#[test]
fn missing_required_fields_are_refused() {
    assert_eq!(
        NextHopRecord::decode(&[0x81, 3, 0x69, 1, 1]),
        Err(DecodeError::Missing { typ: 0x6a })
    );
    assert_eq!(
        ControlResponse::decode(&[0x65, 3, 0x66, 1, 200]),
        Err(DecodeError::Missing { typ: 0x67 })
    );
}

#[test]
fn flags_speak_only_of_bits_in_the_mask() {
    let mut parameters = ControlParameters::default();
    assert_eq!(parameters.flag(face_flags::LP_RELIABILITY), None);
    parameters.set_flag(face_flags::LP_RELIABILITY, true);
    parameters.set_flag(face_flags::LOCAL_FIELDS, false);
    assert_eq!(parameters.flag(face_flags::LP_RELIABILITY), Some(true));
    assert_eq!(parameters.flag(face_flags::LOCAL_FIELDS), Some(false));
    assert_eq!(parameters.flag(face_flags::CONGESTION_MARKING), None);
    assert_eq!((parameters.flags, parameters.mask), (Some(2), Some(3)));
}

#[test]
fn command_names_split_into_command_and_rest() {
    let name: Name = "/localhop/nfd/rib/register/x/y".parse().unwrap();
    let (command, rest) = CommandName::parse(name.view()).unwrap();
    assert_eq!(
        command,
        CommandName {
            scope: Scope::Localhop,
            module: "rib",
            verb: "register"
        }
    );
    assert_eq!(rest, "/x/y".parse::<Name>().unwrap());
    for other in [
        "/",
        "/localhost/nfd/rib",
        "/local/nfd/rib/register",
        "/localhost/ndn/rib/list",
        "/localhost/nfd/32=rib/list",
    ] {
        let other: Name = other.parse().unwrap();
        assert!(CommandName::parse(other.view()).is_none(), "{other}");
    }
    let parameters = ControlParameters {
        face_id: Some(1),
        ..ControlParameters::default()
    };
    let name = CommandName::local("faces", "destroy").with_parameters(&parameters);
    assert_eq!(
        name,
        "/localhost/nfd/faces/destroy/h%03i%01%01"
            .parse::<Name>()
            .unwrap()
    );
}

#[test]
fn query_filters_match_on_every_present_field() {
    let face = FaceStatus {
        face_id: 300,
        uri: "udp4://192.0.2.1:6363".into(),
        local_uri: "udp4://192.0.2.2:6363".into(),
        expiration_period_ms: None,
        face_scope: FaceScope::NonLocal,
        face_persistency: FacePersistency::Persistent,
        link_type: LinkType::PointToPoint,
        base_congestion_marking_interval_ns: None,
        default_congestion_threshold_bytes: None,
        mtu_bytes: None,
        n_in_interests: 0,
        n_in_data: 0,
        n_in_nacks: 0,
        n_out_interests: 0,
        n_out_data: 0,
        n_out_nacks: 0,
        n_in_bytes: 0,
        n_out_bytes: 0,
        flags: 0,
        state: None,
    };
    let any = FaceQueryFilter::default();
    assert!(any.matches(&face));
    let by_scheme = |scheme: &str| FaceQueryFilter {
        uri_scheme: Some(scheme.into()),
        ..FaceQueryFilter::default()
    };
    assert!(by_scheme("udp4").matches(&face));
    assert!(!by_scheme("udp").matches(&face));
    assert!(!by_scheme("tcp4").matches(&face));
    let other_id = FaceQueryFilter {
        face_id: Some(301),
        ..by_scheme("udp4")
    };
    assert!(!other_id.matches(&face));
    let filter = FaceQueryFilter::default;
    for (right, wrong) in [
        (
            FaceQueryFilter {
                face_id: Some(300),
                ..filter()
            },
            FaceQueryFilter {
                face_id: Some(0),
                ..filter()
            },
        ),
        (
            FaceQueryFilter {
                uri: Some(face.uri.clone()),
                ..filter()
            },
            FaceQueryFilter {
                uri: Some(face.local_uri.clone()),
                ..filter()
            },
        ),
        (
            FaceQueryFilter {
                local_uri: Some(face.local_uri.clone()),
                ..filter()
            },
            FaceQueryFilter {
                local_uri: Some(face.uri.clone()),
                ..filter()
            },
        ),
        (
            FaceQueryFilter {
                face_scope: Some(FaceScope::NonLocal),
                ..filter()
            },
            FaceQueryFilter {
                face_scope: Some(FaceScope::Local),
                ..filter()
            },
        ),
        (
            FaceQueryFilter {
                face_persistency: Some(FacePersistency::Persistent),
                ..filter()
            },
            FaceQueryFilter {
                face_persistency: Some(FacePersistency::Permanent),
                ..filter()
            },
        ),
        (
            FaceQueryFilter {
                link_type: Some(LinkType::PointToPoint),
                ..filter()
            },
            FaceQueryFilter {
                link_type: Some(LinkType::AdHoc),
                ..filter()
            },
        ),
    ] {
        assert!(right.matches(&face), "{right:?}");
        assert!(!wrong.matches(&face), "{wrong:?}");
    }
}
