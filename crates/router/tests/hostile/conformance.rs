//! Packets at the edge of the specifications, and what becomes of them.

use std::io::{Read, Write};

use tachonym_packet::lp::Headers;
use tachonym_packet::{
    Component, DataView, FaceId, Interest, InterestView, NackReason, PitToken, SignatureInfo, lp,
    tlv, types,
};
use tachonym_protocol::{
    CommandName, ControlParameters, ControlResponse, FacePersistency, FaceQueryFilter, FaceScope,
    FaceStatus,
};

use crate::bed::*;

/// A packet between these headers, which may be local fields.
fn with_headers(headers: &Headers, packet: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    lp::write_packet(&mut out, headers, None, &[], Some(packet));
    out
}

/// Has `consumer` ask for `uri` and `producer` get it; the token to answer with.
fn ask<S: Read + Write, P: Read + Write>(
    consumer: &mut Stream<S>,
    producer: &mut Stream<P>,
    uri: &str,
) -> Option<PitToken> {
    consumer.send(&interest(uri));
    let (headers, asked) = producer.packet();
    let asked = InterestView::parse(&asked).expect("an Interest");
    assert_eq!(asked.name(), name(uri));
    headers.pit_token
}

/// What the router answers to an Interest for a dataset: its first segment.
fn dataset<S: Read + Write>(stream: &mut Stream<S>, prefix: tachonym_packet::Name) -> Vec<u8> {
    let asked = Interest {
        can_be_prefix: true,
        must_be_fresh: true,
        ..Interest::new(prefix)
    };
    stream.send(&asked.encode());
    let (_, reply) = stream.packet();
    let data = DataView::parse(&reply).expect("a Data");
    data.content().to_vec()
}

/// The code of the response to a command, by a digest.
fn command<S: Read + Write>(
    stream: &mut Stream<S>,
    (module, verb): (&str, &str),
    parameters: &ControlParameters,
) -> u64 {
    let name = CommandName::local(module, verb).with_parameters(parameters);
    stream.send(&Interest::new(name).encode_with_digest(&SignatureInfo::digest()));
    let (_, reply) = stream.packet();
    let data = DataView::parse(&reply).expect("a Data");
    let response = ControlResponse::decode(data.content()).expect("a response");
    response.code
}

#[test]
fn local_fields_on_data_do_not_lose_it_and_on_interests_they_do() {
    let bed = Bed::new("");
    let mut producer = bed.unix();
    producer.register("/p");
    let mut consumer = bed.unix();
    let mut n_cached = 0;
    for (uri, no_cache, incoming_face_id) in [
        ("/p/no-cache", true, None),
        ("/p/incoming", false, Some(FaceId(7))),
        ("/p/both", true, Some(FaceId(7))),
    ] {
        let pit_token = ask(&mut consumer, &mut producer, uri);
        let headers = Headers {
            pit_token,
            no_cache,
            incoming_face_id,
            ..Headers::default()
        };
        let sent = data(name(uri));
        producer.send(&with_headers(&headers, &sent));
        let (headers, got) = consumer.packet();
        assert_eq!(got, sent, "{uri}");
        assert_eq!(headers.incoming_face_id, None, "{uri}");
        // What is asked for is done: the producer does not want it kept.
        n_cached += usize::from(!no_cache);
        let snapshot = bed.router.snapshot().expect("it runs");
        assert_eq!(snapshot.n_cs_entries, n_cached, "{uri}");
    }
    assert_eq!(bed.n_drops(), 0);
    for (n_dropped, headers) in [
        Headers {
            next_hop_face_id: Some(FaceId(256)),
            ..Headers::default()
        },
        Headers {
            incoming_face_id: Some(FaceId(256)),
            ..Headers::default()
        },
    ]
    .iter()
    .enumerate()
    {
        consumer.send(&with_headers(headers, &interest("/p/no-cache")));
        bed.drops_become(n_dropped as u64 + 1, "an Interest with a local field");
    }
    let snapshot = bed.router.snapshot().expect("it runs");
    assert_eq!(snapshot.n_dropped("local-fields-disabled"), 2);
    bed.router.stop().expect("it ends");
}

#[test]
fn a_data_with_elements_of_an_application_in_its_meta_info_is_delivered_and_cached() {
    let bed = Bed::new("");
    let mut producer = bed.unix();
    producer.register("/p");
    let mut consumer = bed.unix();
    for typ in [128, 129, 251, 252] {
        let uri = format!("/p/{typ}");
        let mut meta = Vec::new();
        tlv::write_nni(&mut meta, types::FRESHNESS_PERIOD, 60_000);
        tlv::write_tlv(&mut meta, typ, b"own");
        // As `data` writes one, with this MetaInfo.
        let plain = data(name(&uri));
        let plain = tlv::read_single(&plain, types::DATA).expect("just made");
        let own_name = name(&uri).encode();
        let rest = &plain[own_name.len()..];
        let meta = element(types::META_INFO, &meta);
        let sent = element(types::DATA, &[&own_name, &meta, rest].concat());
        let token = ask(&mut consumer, &mut producer, &uri);
        producer.send(&framed(token, &sent));
        assert_eq!(consumer.packet().1, sent, "{typ}");
        consumer.send(&interest(&uri));
        assert_eq!(consumer.packet().1, sent, "{typ}, from the content store");
    }
    assert_eq!(bed.n_drops(), 0);
    bed.router.stop().expect("it ends");
}

#[test]
fn a_hint_with_delegations_of_the_older_form_leads_to_its_first_known_name() {
    let bed = Bed::new("");
    let mut producer = bed.unix();
    producer.register("/isp");
    let mut consumer = bed.unix();
    let delegation = |uri: &str| {
        let inner = [&[30, 1, 9][..], &name(uri).encode()].concat();
        element(types::DELEGATION, &inner)
    };
    let hint = [delegation("/nowhere"), delegation("/isp")].concat();
    let nonce = element(types::NONCE, &[1, 2, 3, 4]);
    let hint = element(types::FORWARDING_HINT, &hint);
    let asked = [name("/far/away").encode(), hint, nonce].concat();
    let asked = element(types::INTEREST, &asked);
    consumer.send(&asked);
    let (_, got) = producer.packet();
    assert_eq!(got, asked, "bit for bit");
    bed.router.stop().expect("it ends");
}

#[test]
fn what_goes_to_the_null_face_is_neither_answered_nor_nacked() {
    let bed = Bed::new("");
    let mut program = bed.unix();
    let list = dataset(&mut program, CommandName::local("faces", "list").name());
    let faces = FaceStatus::decode_list(&list).expect("faces");
    let null: Vec<_> = faces.iter().filter(|face| face.uri == "null://").collect();
    assert_eq!(null.len(), 1);
    assert_eq!(null[0].face_id, 255);
    assert_eq!(null[0].local_uri, "null://");
    assert_eq!(null[0].face_scope, FaceScope::Local);
    assert_eq!(null[0].face_persistency, FacePersistency::Permanent);
    // As `nfdc route add /x null://` looks for it.
    let filter = FaceQueryFilter {
        uri: Some("null://".into()),
        ..FaceQueryFilter::default()
    };
    let query = CommandName::local("faces", "query").name();
    let query = query.with(&Component::generic(filter.encode()));
    let found = FaceStatus::decode_list(&dataset(&mut program, query)).expect("faces");
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].face_id, 255);

    for prefix in ["/x", "/localhost/x"] {
        let route = ControlParameters {
            name: Some(name(prefix)),
            face_id: Some(255),
            ..ControlParameters::default()
        };
        assert_eq!(command(&mut program, ("rib", "register"), &route), 200);
    }
    let mut tcp = bed.tcp();
    for n in 0..40 {
        let to_null = Interest {
            lifetime_ms: Some(100),
            ..Interest::new(name(["/x", "/localhost/x"][n % 2]).with(&Component::segment(n as u64)))
        };
        tcp.send(&to_null.encode());
        // Names go to all workers; of each, the next one is nacked.
        let uri = format!("/nobody/{n}");
        tcp.send(&interest(&uri));
        let (headers, nacked) = tcp.packet();
        assert_eq!(headers.nack, Some(NackReason::NoRoute));
        let nacked = InterestView::parse(&nacked).expect("an Interest");
        assert_eq!(nacked.name(), name(&uri));
    }
    // They expire, and nothing else became of them.
    let deadline = std::time::Instant::now() + PATIENCE;
    let n_pending = || bed.router.snapshot().expect("it runs").n_pit_entries;
    while n_pending() > 0 && std::time::Instant::now() < deadline {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert_eq!(n_pending(), 0);
    let snapshot = bed.router.snapshot().expect("it runs");
    assert_eq!(snapshot.n_drops(), snapshot.n_dropped("no-route"));
    assert_eq!(snapshot.n_dropped("no-route"), 40);
    assert!(tcp.probe_is_next("/nobody/again"));

    // It stays, and there is no second one.
    let null = ControlParameters {
        face_id: Some(255),
        ..ControlParameters::default()
    };
    assert_eq!(command(&mut program, ("faces", "destroy"), &null), 409);
    let another = ControlParameters {
        uri: Some("null://".into()),
        ..ControlParameters::default()
    };
    assert_eq!(command(&mut program, ("faces", "create"), &another), 409);
    bed.router.stop().expect("it ends");
}

#[test]
fn management_answers_an_interest_for_a_prefix_of_its_names() {
    let bed = Bed::new("");
    for uri in ["/localhost", "/localhost/nfd", "/localhost/nfd/status"] {
        for of_tcp in [false, true] {
            let asked = Interest {
                can_be_prefix: true,
                ..Interest::new(name(uri))
            };
            let wire = asked.encode();
            let reply = match of_tcp {
                true => {
                    let mut stream = bed.tcp();
                    stream.send(&wire);
                    stream.packet().1
                }
                false => {
                    let mut stream = bed.unix();
                    stream.send(&wire);
                    stream.packet().1
                }
            };
            let data = DataView::parse(&reply).expect("a Data");
            let status = name("/localhost/nfd/status/general");
            assert!(data.name().starts_with(status.view()), "{}", data.name());
        }
    }
    let mut program = bed.unix();
    for uri in ["/localhost", "/localhost/non-existent", "/localhos"] {
        assert!(program.probe_is_next(uri), "{uri}");
    }
    let long = Interest {
        can_be_prefix: true,
        ..Interest::new(name("/localhost/non-existent"))
    };
    program.send(&long.encode());
    assert_eq!(program.packet().0.nack, Some(NackReason::NoRoute));
    // A program with a route for all names gets none of it; one with this name does.
    let mut greedy = bed.unix();
    greedy.register("/");
    let asked = Interest {
        can_be_prefix: true,
        ..Interest::new(name("/localhost"))
    };
    program.send(&asked.encode());
    let (_, reply) = program.packet();
    assert!(DataView::parse(&reply).is_ok());
    greedy.register("/localhost");
    program.send(&asked.encode());
    let (_, got) = greedy.packet();
    assert_eq!(
        InterestView::parse(&got).expect("an Interest").name(),
        name("/localhost")
    );
    bed.router.stop().expect("it ends");
}
