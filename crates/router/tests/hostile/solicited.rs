//! Data that was not asked for, Nacks and reads of the second level: what peers may not do to
//! the answers that others get.

use std::net::UdpSocket;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use tachonym_packet::lp::{Headers, LpView};
use tachonym_packet::{Data, DataView, Interest, InterestView, SignatureInfo, lp, types};
use tachonym_protocol::ControlParameters;

use super::bed::*;

/// Configurations in which the content store has a second level, and several workers, unless
/// the environment says how many there are.
fn variants(folder: &std::path::Path) -> Vec<(&'static str, String)> {
    let second = format!(
        "tables.cs_packets = 16\n[[second_level.volume]]\npath = \"{}\"\nbytes = {}\n",
        folder.display(),
        128 << 20
    );
    let mut all = vec![("one level", String::new()), ("two levels", second.clone())];
    if std::env::var_os("TACHONYM_TEST_CONFIG").is_none() {
        // None sleeps: what one has cached answers all the time.
        let workers =
            "workers.threads = 2\nworkers.dispatch = \"name\"\npower.governor = \"none\"\n";
        all.push(("two workers", workers.to_owned()));
        all.push(("two workers, two levels", format!("{workers}{second}")));
    }
    all
}

fn asked(uri: &str, can_be_prefix: bool, hop_limit: Option<u8>, nonce: u32) -> Vec<u8> {
    Interest {
        can_be_prefix,
        hop_limit,
        nonce: Some(tachonym_packet::Nonce(nonce.to_be_bytes())),
        ..Interest::new(name(uri))
    }
    .encode()
}

fn data_with(uri: &str, content: &[u8]) -> Vec<u8> {
    Data {
        content: content.to_vec(),
        freshness_period_ms: Some(3_600_000),
        signature_info: SignatureInfo::new(types::signature_type::NULL),
        ..Data::new(name(uri))
    }
    .encode()
}

/// A producer over UDP, another host as far as the router knows: a face to it, and the route.
fn udp_producer(bed: &Bed, prefix: &str) -> (UdpSocket, u64) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    socket.connect(bed.address("udp")).expect("loopback");
    socket
        .set_read_timeout(Some(Duration::from_millis(50)))
        .expect("a time-out");
    let port = socket.local_addr().expect("it is bound").port();
    let mut operator = bed.unix();
    let created = operator.command(
        ("faces", "create"),
        &ControlParameters {
            uri: Some(format!("udp4://127.0.0.1:{port}")),
            ..ControlParameters::default()
        },
    );
    let face_id = created.face_id.expect("the new face");
    operator.command(
        ("rib", "register"),
        &ControlParameters {
            name: Some(name(prefix)),
            face_id: Some(face_id),
            ..ControlParameters::default()
        },
    );
    (socket, face_id)
}

/// The packet of the next frame that comes in time.
fn datagram(socket: &UdpSocket) -> Option<(Headers, Vec<u8>)> {
    let mut room = [0; 9000];
    let n_read = socket.recv(&mut room).ok()?;
    let frame = LpView::parse(&room[..n_read]).expect("a frame");
    let packet = frame.fragment()?.to_vec();
    Some((*frame.headers(), packet))
}

#[test]
fn a_peer_that_answers_itself_poisons_no_store() {
    let folder = tempfile::tempdir().expect("a folder");
    for (what, extra) in variants(folder.path()) {
        let bed = Bed::new(&extra);
        let mut honest = bed.honest();
        let (producer, _) = udp_producer(&bed, "/bank");
        let hostile = bed.udp();
        let uris = ["/bank/app/v=3/seg=0", "/bank/a", "/bank/b/c/d/e/f"];
        for (n, uri) in (1..).zip(uris) {
            // It goes to no other host.
            let own = asked(uri, false, Some(1), n);
            hostile.send(&own).expect("loopback");
            let prefix = asked("/bank", true, Some(1), 100 + n);
            hostile.send(&prefix).expect("loopback");
            hostile.send(&data_with(uri, b"forged")).expect("loopback");
        }
        let deadline = Instant::now() + PATIENCE;
        let n_unsolicited = || {
            let snapshot = bed.router.snapshot().expect("it runs");
            snapshot.n_dropped("unsolicited-data")
        };
        while n_unsolicited() < uris.len() as u64 {
            assert!(Instant::now() < deadline, "{what}: the forged Data counted");
            honest.exchange();
        }
        for uri in uris {
            assert_eq!(fetch(&bed, &producer, uri, what), b"true", "{what} {uri}");
        }
        honest.exchange();
    }
}

/// Has a new consumer ask for `uri` until the producer is asked for it, which then sends the
/// true Data; the content that the consumer gets.
fn fetch(bed: &Bed, producer: &UdpSocket, uri: &str, what: &str) -> Vec<u8> {
    let mut consumer = bed.tcp();
    let deadline = Instant::now() + PATIENCE;
    let mut nonce = 1_000;
    loop {
        assert!(
            Instant::now() < deadline,
            "{what} {uri}: the producer is not asked"
        );
        nonce += 1;
        consumer.send(&asked(uri, false, None, nonce));
        let answered = datagram(producer).is_some_and(|(headers, wire)| {
            let interest = InterestView::parse(&wire).expect("an Interest");
            let is_it = interest.name() == name(uri);
            if is_it {
                let answer = framed(headers.pit_token, &data_with(uri, b"true"));
                producer.send(&answer).expect("loopback");
            }
            is_it
        });
        if answered {
            break;
        }
    }
    let (_, wire) = consumer.packet();
    let data = DataView::parse(&wire).expect("a Data");
    assert_eq!(data.name(), name(uri));
    data.content().to_vec()
}

#[test]
fn an_upstream_that_comes_back_under_a_new_number_is_heard_when_it_is_asked() {
    let folder = tempfile::tempdir().expect("a folder");
    for (what, extra) in variants(folder.path()) {
        let bed = Bed::new(&extra);
        let mut first = bed.unix();
        first.register("/back");
        let mut consumer = bed.unix();
        consumer.send(&asked("/back/x", false, None, 1));
        first.packet();
        drop(first);
        let mut again = bed.unix();
        again.register("/back");
        // The answer to what the former connection was asked counts for nothing.
        let before = bed.n_drops();
        again.send(&data_with("/back/x", b"unasked"));
        bed.drops_become(before + 1, what);
        let (mut nonce, mut packets) = (1, Vec::new());
        again
            .socket
            .set_read_timeout(Some(Duration::from_millis(50)))
            .expect("a time-out");
        while packets.is_empty() {
            nonce += 1;
            consumer.send(&asked("/back/x", false, None, nonce));
            packets.extend(again.frame_in_time());
        }
        let frame = LpView::parse(&packets[0]).expect("a frame");
        let answer = data_with("/back/x", b"asked");
        again.send(&framed(frame.headers().pit_token, &answer));
        let (_, wire) = consumer.packet();
        assert_eq!(wire, answer, "{what}");
        // It is cached: another consumer is served though the producer is silent.
        let mut other = bed.unix();
        other.send(&asked("/back/x", false, None, 9_999));
        assert_eq!(other.packet().1, answer, "{what}");
    }
}

/// Data of its own object, so large that batches fill buffers and reach the disk soon.
fn large_data(uri: &str) -> Vec<u8> {
    data_with(uri, &[b'x'; 7_000])
}

#[test]
fn a_burst_for_cold_data_is_served_without_congestion() {
    const N_STORED: usize = 600;
    const N_BURST: usize = 64;
    let folder = tempfile::tempdir().expect("a folder");
    for (what, extra) in variants(folder.path()) {
        if !extra.contains("second_level") {
            continue;
        }
        let bed = Bed::new(&format!(
            "second_level.reads = 4\nsecond_level.assembly_ms = 1\n{extra}"
        ));
        let mut producer = bed.unix();
        producer.register("/cold");
        let mut consumer = bed.unix();
        let uri = |number: usize| format!("/cold/{number}");
        let mut fill = |uri: &str| {
            consumer.send(&asked(uri, false, None, 1));
            let (headers, wire) = producer.packet();
            let interest = InterestView::parse(&wire).expect("an Interest");
            assert_eq!(interest.name(), name(uri));
            producer.send(&framed(headers.pit_token, &large_data(uri)));
            consumer.packet();
        };
        for number in 0..N_STORED {
            fill(&uri(number));
        }
        // The first of them are in no memory any more.
        let burst: Vec<u8> = (0..N_BURST)
            .flat_map(|number| asked(&uri(number), false, None, 2))
            .collect();
        consumer.send(&burst);
        let mut n_upstream = 0;
        let mut answered = std::collections::BTreeSet::new();
        for socket in [&consumer.socket, &producer.socket] {
            socket
                .set_read_timeout(Some(Duration::from_millis(5)))
                .expect("a time-out");
        }
        let deadline = Instant::now() + PATIENCE;
        while answered.len() < N_BURST {
            assert!(
                Instant::now() < deadline,
                "{what}: {} answers",
                answered.len()
            );
            if let Some(wire) = producer.frame_in_time() {
                let frame = LpView::parse(&wire).expect("a frame");
                let wire = frame.fragment().expect("a packet");
                let interest = InterestView::parse(wire).expect("an Interest");
                let answer = large_data(&interest.name().to_string());
                producer.send(&framed(frame.headers().pit_token, &answer));
                n_upstream += 1;
            }
            while let Some(wire) = consumer.frame_in_time() {
                let frame = LpView::parse(&wire).expect("a frame");
                assert_eq!(frame.headers().nack, None, "{what}");
                let data = DataView::parse(frame.fragment().expect("a packet"));
                answered.insert(data.expect("a Data").name().to_string());
            }
        }
        assert!(n_upstream > 0, "{what}: there were reads for all");
        assert!(n_upstream < N_BURST, "{what}: nothing was read");
    }
}

#[test]
fn the_greatest_numbers_overflow_nowhere() {
    let folder = tempfile::tempdir().expect("a folder");
    for (what, extra) in variants(folder.path()) {
        let bed = Bed::new(&extra);
        let mut producer = bed.unix();
        producer.register("/p");
        let mut consumer = bed.unix();
        let greatest = ControlParameters {
            name: Some(name("/far")),
            cost: Some(u64::MAX),
            expiration_period_ms: Some(u64::MAX - 1),
            ..ControlParameters::default()
        };
        consumer.command(("rib", "register"), &greatest);
        for period_ms in [
            u64::MAX,
            u64::MAX - 99,
            u64::MAX - 100,
            u64::MAX / 1_000_000,
        ] {
            let uri = format!("/p/{period_ms}/seg=0");
            let ask = |nonce| {
                Interest {
                    must_be_fresh: true,
                    lifetime_ms: Some(u64::MAX),
                    hop_limit: Some(u8::MAX),
                    nonce: Some(tachonym_packet::Nonce([0, 0, 0, nonce])),
                    ..Interest::new(name(&uri))
                }
                .encode()
            };
            let answer = Data {
                freshness_period_ms: Some(period_ms),
                signature_info: SignatureInfo::new(types::signature_type::NULL),
                ..Data::new(name(&uri))
            }
            .encode();
            consumer.send(&ask(1));
            let (headers, _) = producer.packet();
            let marked = Headers {
                pit_token: headers.pit_token,
                congestion_mark: u64::MAX,
                ..Headers::default()
            };
            let mut framed = Vec::new();
            lp::write_packet(&mut framed, &marked, None, &[], Some(&answer));
            producer.send(&framed);
            assert_eq!(consumer.packet().1, answer, "{what}");
            // Others drive it out of memory, where it is not the only level.
            for other in 0..64 {
                let uri = format!("/p/{period_ms}/other/{other}");
                consumer.send(&asked(&uri, false, None, 1));
                producer.answer();
                consumer.packet();
            }
            consumer.send(&ask(2));
            let (_, again) = consumer.packet();
            assert_eq!(again, answer, "{what}: fresh for {period_ms} ms");
        }
        let capacity = ControlParameters {
            capacity: Some(u64::MAX),
            ..ControlParameters::default()
        };
        consumer.send_command(("cs", "config"), &capacity);
        consumer.packet();
        assert!(bed.router.is_running(), "{what}");
        consumer.send(&asked("/p/end", false, None, 1));
        producer.answer();
        consumer.packet();
    }
}

/// Has the producer refuse what it has been asked for.
fn refuse(producer: &mut Stream<UnixStream>, reason_code: u64) {
    let (headers, wire) = producer.packet();
    let nacked = Headers {
        pit_token: headers.pit_token,
        nack: Some(tachonym_packet::NackReason::NoRoute),
        ..Headers::default()
    };
    let mut out = Vec::new();
    lp::write_packet(&mut out, &nacked, None, &[], Some(&wire));
    // In place of NoRoute's, which is 150.
    let reason = element(types::LP_NACK_REASON, &[150]);
    let other = element(types::LP_NACK_REASON, &[reason_code as u8]);
    let at = out
        .windows(reason.len())
        .position(|it| it == reason)
        .expect("a reason");
    out[at..][..other.len()].copy_from_slice(&other);
    producer.send(&out);
}

#[test]
fn each_downstream_gets_back_its_own_interest_and_no_other_ones_parameters() {
    let bed = Bed::new("");
    let mut producer = bed.unix();
    producer.register("/p");
    let (mut one, mut other) = (bed.unix(), bed.tcp());
    let of_one = Interest {
        lifetime_ms: Some(9_000),
        hop_limit: Some(7),
        nonce: Some(tachonym_packet::Nonce([1; 4])),
        application_parameters: Some(b"parameters".to_vec()),
        ..Interest::new(name("/p/x"))
    };
    let of_other = Interest {
        lifetime_ms: None,
        hop_limit: None,
        nonce: Some(tachonym_packet::Nonce([2; 4])),
        ..of_one.clone()
    }
    .encode();
    let of_one = of_one.encode();
    // The same name, and the parameters that it is not the digest of.
    let mut forged = of_other.clone();
    let at = forged
        .windows(10)
        .rposition(|it| it == b"parameters")
        .expect("they are there");
    forged[at..][..10].copy_from_slice(b"settings, ");
    one.send(&of_one);
    let wait_for = |n_drops: u64| bed.drops_become(n_drops, "forged parameters");
    let pending = |bed: &Bed| bed.router.snapshot().expect("it runs").n_pit_entries;
    let deadline = Instant::now() + PATIENCE;
    while pending(&bed) == 0 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
    }
    let before = bed.n_drops();
    other.send(&forged);
    wait_for(before + 1);
    other.send(&of_other);
    // What comes behind it under the same name is answered: a nonce of another face.
    other.send(&of_one);
    assert_eq!(
        other.packet().0.nack,
        Some(tachonym_packet::NackReason::Duplicate)
    );
    refuse(&mut producer, 7);
    let (headers, back) = one.packet();
    // An unknown code below all that are known says no more than None.
    assert_eq!(headers.nack, Some(tachonym_packet::NackReason::None));
    assert_eq!(back, of_one);
    assert_eq!(other.packet().1, of_other);
}

#[test]
fn multicast_returns_no_nacks_and_sends_on_with_the_greatest_hop_limit() {
    let bed = Bed::new("");
    let mut operator = bed.unix();
    operator.command(
        ("strategy-choice", "set"),
        &ControlParameters {
            name: Some(name("/m")),
            strategy: Some(name("/localhost/nfd/strategy/multicast")),
            ..ControlParameters::default()
        },
    );
    let mut consumer = bed.unix();
    let hostile = bed.udp();
    hostile
        .send(&asked("/m/x", false, Some(1), 1))
        .expect("loopback");
    let deadline = Instant::now() + PATIENCE;
    while bed.router.snapshot().expect("it runs").n_pit_entries == 0 {
        assert!(Instant::now() < deadline, "the Interest is pending");
        std::thread::sleep(Duration::from_millis(1));
    }
    consumer.send(&asked("/m/x", false, Some(9), 2));
    // What comes behind it is answered, so it is pending too.
    consumer.send(&interest("/nowhere"));
    assert!(consumer.packet().0.nack.is_some());
    let mut producer = bed.unix();
    let parameters = ControlParameters {
        name: Some(name("/m")),
        ..ControlParameters::default()
    };
    producer.send_command(("rib", "register"), &parameters);
    // The response, and the Interest that has waited for the route: either may be first.
    let came = [producer.packet(), producer.packet()];
    let (headers, wire) = came
        .into_iter()
        .find(|(_, wire)| InterestView::parse(wire).is_ok())
        .expect("it is asked");
    let interest = InterestView::parse(&wire).expect("an Interest");
    assert_eq!(interest.hop_limit(), Some(8));
    let nacked = Headers {
        pit_token: headers.pit_token,
        nack: Some(tachonym_packet::NackReason::NoRoute),
        ..Headers::default()
    };
    let mut out = Vec::new();
    lp::write_packet(&mut out, &nacked, None, &[], Some(&wire));
    producer.send(&out);
    // The next that the consumer gets is not that Nack but the Data.
    producer.send(&data_with("/m/x", b"after all"));
    let (headers, wire) = consumer.packet();
    assert_eq!(headers.nack, None);
    assert_eq!(wire, data_with("/m/x", b"after all"));
}
