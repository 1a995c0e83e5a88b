//! Datasets and notifications, as clients fetch them.

mod support;

use support::router::event;
use support::*;
use tachonym_manage::{ControlError, DropReason, ManagerConfig};
use tachonym_packet::{Component, Data, DataView, Interest, Name, SignatureInfo, types};
use tachonym_protocol::*;

fn site() -> Site {
    Site::new(ManagerConfig::default())
}

fn discovery(prefix: Name) -> Interest {
    Interest {
        can_be_prefix: true,
        must_be_fresh: true,
        ..Interest::new(prefix)
    }
}

#[test]
fn every_dataset_tells_the_state_of_the_router() {
    let mut site = site();
    let client = site.client.0;
    site.register("/b", client, 1);
    site.register("/a", client, 3);

    let faces = FaceStatus::decode_list(&site.dataset("faces", "list")).unwrap();
    assert_eq!(
        faces,
        site.router().faces.values().cloned().collect::<Vec<_>>()
    );
    let programs = FaceProgram::decode_list(&site.dataset("faces", "programs")).unwrap();
    let programs: Vec<_> = programs.iter().map(|it| (it.face_id, it.pid)).collect();
    assert_eq!(programs, [(client, 10_000 + client)]);
    let channels = ChannelStatus::decode_list(&site.dataset("faces", "channels")).unwrap();
    assert_eq!(channels[0].local_uri, "unix:///run/nfd.sock");
    let fib = FibEntry::decode_list(&site.dataset("fib", "list")).unwrap();
    assert_eq!(fib.len(), 2);
    assert_eq!(fib[1].name, name("/b"));
    let rib: Vec<Name> = site.routes().into_iter().map(|entry| entry.name).collect();
    assert_eq!(rib, [name("/a"), name("/b")]);
    let info = CsInfo::decode(&site.dataset("cs", "info")).unwrap();
    assert_eq!(info.capacity, 65536);
    let choices = StrategyChoice::decode_list(&site.dataset("strategy-choice", "list")).unwrap();
    assert_eq!(choices[0].name, Name::new());
    let status = ForwarderStatus::decode_value(&site.dataset("status", "general")).unwrap();
    assert_eq!(status.n_fib_entries, 2);
    let memory = TableMemory::decode(&site.dataset("status", "memory")).unwrap();
    assert_eq!(memory.asked_for, "2m");
    assert_eq!(memory.n_huge_2m_bytes, 3 << 21);
    let workers = WorkersStatus::decode(&site.dataset("workers", "list")).unwrap();
    assert_eq!(workers, site.router().workers);
}

#[test]
fn the_fib_is_read_in_slices_and_told_whole() {
    let mut site = site();
    let hops = std::collections::BTreeMap::from([(site.client.0, 7)]);
    for i in 0..10_050 {
        site.router()
            .fib
            .insert(name(&format!("/r/{i}")), hops.clone());
    }
    let entries = FibEntry::decode_list(&site.dataset("fib", "list")).unwrap();
    let told: Vec<_> = entries.iter().map(|entry| &entry.name).collect();
    assert_eq!(told, site.router().fib.keys().collect::<Vec<_>>());
    assert_eq!(site.router().n_fib_slices, 101);
}

#[test]
fn drops_of_the_manager_and_of_the_router_are_told_together() {
    let mut site = site();
    let client = site.client;
    let of_router = |face_id, n_dropped| DropCount {
        face_id,
        reason: "bad-datagram".into(),
        n_dropped,
    };
    site.router().drops = vec![of_router(None, 7), of_router(Some(300), 3)];
    let gone = Interest::new(name("/localhost/nfd/rib/list/v=1/seg=0")).encode();
    for _ in 0..2 {
        assert!(site.send_from(client, &gone).is_empty());
    }
    let drops = DropCount::decode_list(&site.dataset("status", "drops")).unwrap();
    let of_manager = DropCount {
        face_id: None,
        reason: DropReason::UnknownSegment.label().into(),
        n_dropped: 2,
    };
    let expected = [of_manager, of_router(None, 7), of_router(Some(300), 3)];
    assert_eq!(drops, expected);
}

#[test]
fn a_query_lists_the_faces_that_match() {
    let mut site = site();
    let udp = site.router().accept("udp4://192.0.2.1:6363");
    let query = |filter: &FaceQueryFilter| {
        CommandName::local("faces", "query")
            .name()
            .with(&*filter.encode())
    };
    let filter = FaceQueryFilter {
        uri_scheme: Some("udp4".into()),
        ..FaceQueryFilter::default()
    };
    let faces = FaceStatus::decode_list(&site.fetch(&query(&filter))).unwrap();
    assert_eq!(
        faces.iter().map(|face| face.face_id).collect::<Vec<_>>(),
        [udp.0]
    );
    let nothing = FaceQueryFilter {
        face_id: Some(9999),
        ..FaceQueryFilter::default()
    };
    assert_eq!(site.fetch(&query(&nothing)), []);
}

#[test]
fn a_name_is_explained_with_the_origins_of_its_routes() {
    let mut site = site();
    let client = site.client;
    // With CHILD_INHERIT; /a/b has a route of its own besides the one that it inherits.
    site.register("/a", client.0, 1);
    let other = site.router().accept("udp4://192.0.2.1:6363");
    let by_operator = ControlParameters {
        face_id: Some(other.0),
        origin: Some(route_origin::STATIC),
        cost: Some(7),
        ..named("/a/b")
    };
    assert_eq!(site.outcome("rib", "register", &by_operator).0, 200);
    let query = |face_id| ExplainQuery {
        name: name("/a/b/c"),
        can_be_prefix: false,
        must_be_fresh: true,
        face_id,
    };
    let dataset = |query: &ExplainQuery| {
        CommandName::local("status", "explain")
            .name()
            .with(&*query.encode())
    };
    let explanation = site.fetch(&dataset(&query(Some(other.0))));
    let explanation = NameExplanation::decode(&explanation).unwrap();
    assert_eq!(explanation.route_prefix, Some(name("/a/b")));
    let hops = explanation.next_hops.iter();
    let mut hops: Vec<_> = hops
        .map(|hop| (hop.face_id, hop.cost, hop.origin))
        .collect();
    hops.sort_unstable();
    let expected = [
        (client.0, 0, Some(route_origin::APP)),
        (other.0, 7, Some(route_origin::STATIC)),
    ];
    assert_eq!(hops, expected);
    let code_of = |site: &mut Site, name| {
        let reply = site.send_from(client, &discovery(name).encode()).remove(0);
        assert_eq!(reply.content_type, types::content_type::NACK);
        ControlResponse::decode(&reply.content).unwrap().code
    };
    assert_eq!(code_of(&mut site, dataset(&query(Some(9)))), 404);
    let malformed = name("/localhost/nfd/status/explain/a");
    assert_eq!(code_of(&mut site, malformed), 400);
}

#[test]
fn datasets_that_cannot_be_served_are_answered_with_a_nack_data() {
    let mut site = site();
    let client = site.client;
    let code_of = |data: &Data| {
        assert_eq!(data.content_type, types::content_type::NACK);
        ControlResponse::decode(&data.content).unwrap().code
    };
    let malformed = name("/localhost/nfd/faces/query/garbage");
    let replies = site.send_from(client, &discovery(malformed.clone()).encode());
    assert_eq!(replies[0].name, malformed);
    assert_eq!(code_of(&replies[0]), 400);
    site.router().failure = Some(ControlError::Unavailable);
    let list = discovery(name("/localhost/nfd/fib/list"));
    let replies = site.send_from(client, &list.encode());
    assert_eq!(code_of(&replies[0]), 503);
}

#[test]
fn large_datasets_come_in_segments_of_one_version() {
    let mut site = site();
    let client = site.client;
    for i in 0..2000 {
        site.register(&format!("/net/site{i}"), client.0, 1);
    }
    let list = name("/localhost/nfd/rib/list");
    let first = site.send_from(client, &discovery(list).encode()).remove(0);
    let last = first.final_block_id.clone().unwrap();
    assert!(last.as_number().unwrap() > 5);
    let mut version = first.name.clone();
    version.pop();
    // A change meanwhile does not show in the version that is being fetched.
    site.register("/zzz", client.0, 1);
    let final_segment = version.clone().with(&last);
    let wire = Interest::new(final_segment.clone()).encode();
    let segment = site.send_from(client, &wire).remove(0);
    assert_eq!(segment.name, final_segment);
    assert_eq!(segment.final_block_id.as_ref(), Some(&last));
    // By the version alone, with CanBePrefix: its first segment.
    let by_version = site.send_from(client, &discovery(version.clone()).encode());
    assert_eq!(by_version, [first]);
    // Beyond its end, and of a version that never was: nothing, and counted.
    let beyond = version.with(&Component::segment(last.as_number().unwrap() + 1));
    for gone in [beyond, name("/localhost/nfd/rib/list/v=1/seg=0")] {
        assert!(
            site.send_from(client, &Interest::new(gone).encode())
                .is_empty()
        );
    }
    assert_eq!(
        site.manager
            .counters()
            .n_dropped(DropReason::UnknownSegment),
        2
    );
    assert_eq!(site.routes().len(), 2001);
}

#[test]
fn signed_dataset_interests_are_answered_below_their_whole_name() {
    let mut site = site();
    let client = site.client;
    let list = discovery(name("/localhost/nfd/faces/list"));
    let wire = list.encode_with_digest(&SignatureInfo::digest());
    let asked = tachonym_packet::InterestView::parse(&wire).unwrap();
    let data = site.send_from(client, &wire).remove(0);
    assert_eq!(data.name.prefix(5), asked.name());
    assert_eq!(data.name.len(), 7);
    assert_eq!(FaceStatus::decode_list(&data.content).unwrap().len(), 1);
}

#[test]
fn a_dataset_without_can_be_prefix_cannot_be_answered() {
    let mut site = site();
    let client = site.client;
    let wire = Interest::new(name("/localhost/nfd/faces/list")).encode();
    assert!(site.send_from(client, &wire).is_empty());
    let reason = DropReason::DatasetWithoutCanBePrefix;
    assert_eq!(site.manager.counters().n_dropped(reason), 1);
}

#[test]
fn two_versions_in_one_millisecond_differ() {
    let mut site = site();
    let client = site.client;
    let wire = discovery(name("/localhost/nfd/faces/list")).encode();
    let first = site.send_from(client, &wire).remove(0).name;
    let second = site.send_from(client, &wire).remove(0).name;
    assert_ne!(first, second);
}

#[test]
fn face_events_go_out_numbered_and_are_kept() {
    let mut site = site();
    let client = site.client;
    let stream = name("/localhost/nfd/faces/events");
    // Nothing has happened: the Interest waits in the PIT.
    let latest = discovery(stream.clone()).encode();
    assert!(site.send_from(client, &latest).is_empty());
    assert_eq!(site.manager.counters().n_waiting, 1);

    let face = site.router().accept("udp4://192.0.2.1:6363");
    let status = site.router().faces[&face.0].clone();
    let created = event(FaceEventKind::Created, &status);
    let mut sent = Vec::new();
    let now = site.now;
    site.manager
        .handle_face_event(now, created.clone(), &mut |wire| sent.push(wire));
    let data = DataView::parse(&sent[0]).unwrap();
    assert_eq!(data.name(), stream.clone().with(&Component::sequence(0)));
    assert_eq!(FaceEventNotification::decode(data.content()), Ok(created));

    let gone = site.lose(face);
    assert_eq!(gone[0].name, stream.clone().with(&Component::sequence(1)));
    // A subscriber that asks for the latest, for one that it missed, for the next.
    assert_eq!(site.send_from(client, &latest), gone);
    let first = Interest::new(stream.clone().with(&Component::sequence(0)));
    let missed = site.send_from(client, &first.encode()).remove(0);
    assert_eq!(missed.content, data.content());
    let next = Interest::new(stream.with(&Component::sequence(2)));
    assert!(site.send_from(client, &next.encode()).is_empty());
    // After a second the latest is no news any more.
    site.pass_ms(1000);
    assert!(site.send_from(client, &latest).is_empty());
}

#[test]
fn prefixes_of_management_are_answered_by_a_dataset() {
    let mut site = Site::new(ManagerConfig::default());
    let client = site.client;
    for (uri, dataset) in [
        ("/localhost", "/localhost/nfd/status/general"),
        ("/localhost/nfd", "/localhost/nfd/status/general"),
        ("/localhost/nfd/rib", "/localhost/nfd/rib/list"),
    ] {
        let mut interest = Interest::new(name(uri));
        assert!(
            site.send_from(client, &interest.encode()).is_empty(),
            "{uri}"
        );
        interest.can_be_prefix = true;
        let replies = site.send_from(client, &interest.encode());
        assert_eq!(replies.len(), 1, "{uri}");
        let dataset = name(dataset);
        assert!(replies[0].name.starts_with(&dataset), "{}", replies[0].name);
        assert_eq!(
            replies[0].name.len(),
            dataset.len() + 2,
            "version and segment"
        );
    }
    let unknown = Interest {
        can_be_prefix: true,
        ..Interest::new(name("/localhost/nfd/disco"))
    };
    assert!(site.send_from(client, &unknown.encode()).is_empty());
    assert_eq!(
        site.manager.counters().n_dropped(DropReason::NotManagement),
        4
    );
}
