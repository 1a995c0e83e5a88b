//! Data that was not asked for, Nacks and reads of the second level: what peers may not do to
//! the answers that others get.

use super::*;

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
        let workers = "workers.threads = 2\nworkers.dispatch = \"name\"\n";
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
            // It goes to no other host, and nobody else is asked.
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
