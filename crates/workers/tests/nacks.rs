//! A Nack finds the Interest that it answers wherever that was at home when it was sent, and
//! counts once wherever it has been.

#[path = "../../forward/tests/bed/mod.rs"]
mod bed;
mod support;

use bed::*;
use support::Many;
use tachonym_dispatch::{DispatchBy, Key, ServiceId, WorkerId};
use tachonym_forward::{DropReason, RxPacket};
use tachonym_packet::lp::Headers;
use tachonym_packet::{FaceId, HashKey, MonoNs, NackReason, NameHashes};

const N_WORKERS: u16 = 3;
const CONSUMER: FaceId = FaceId(257);
const PRODUCER: FaceId = FaceId(258);
const NOW: MonoNs = MonoNs(1_000_000);
const URI: &str = "/p/q";

fn key() -> Key {
    let mut hashes = NameHashes::new();
    let name = name(URI);
    let span = hashes.push_name(&HashKey::from_u64s(1, 2), name.view());
    DispatchBy::Name.key(name.view(), hashes.slice(span))
}

fn many() -> Many {
    let mut many = Many::new(N_WORKERS.into(), DispatchBy::Name, 1);
    pin(&mut many, 0);
    many
}

/// Has the name at home at a worker from now on.
fn pin(many: &mut Many, worker: u16) {
    let pinned = many.laps.pin(ServiceId(0), key(), WorkerId(worker));
    pinned.expect("room for one name");
    many.publisher.publish(many.laps.homes());
}

fn carry(many: &mut Many, face: FaceId, wire: &[u8], nack: Option<NackReason>) -> Vec<Sent> {
    let headers = Headers {
        nack,
        ..Headers::default()
    };
    let packet = RxPacket::parse(face, &headers, wire).expect("a packet that may come");
    many.handle(NOW, Some(&packet))
}

/// Has the consumer ask; the Interest as it reaches the producer.
fn ask(many: &mut Many, nonce: u32) -> Vec<u8> {
    let wire = interest(URI).nonce(nonce).wire();
    let mut sent = carry(many, CONSUMER, &wire, None);
    assert_eq!(summary(&sent), [(PRODUCER, Kind::Interest)]);
    sent.remove(0).wire
}

fn refuse(many: &mut Many, wire: &[u8]) -> Vec<(FaceId, Kind)> {
    summary(&carry(many, PRODUCER, wire, Some(NackReason::NoRoute)))
}

fn n_drops(many: &Many, reason: DropReason) -> u64 {
    let engines = many.engines().into_iter();
    engines
        .map(|engine| engine.counters().n_dropped(reason))
        .sum()
}

fn n_in_nacks(many: &Many) -> u64 {
    let engines = many.engines().into_iter();
    engines.map(|engine| engine.counters().n_in_nacks).sum()
}

#[test]
fn a_nack_finds_its_interest_where_the_name_was_at_home_before() {
    for n_moves in 0..=2 {
        let mut many = many();
        let asked = ask(&mut many, 1);
        (1..=n_moves).for_each(|worker| pin(&mut many, worker));
        let heard = refuse(&mut many, &asked);
        assert_eq!(heard, [(CONSUMER, Kind::Nack(NackReason::NoRoute))]);
        assert_eq!(n_in_nacks(&many), 1);
        assert_eq!(n_drops(&many, DropReason::NackNotPending), 0);
        let pending = many
            .engines()
            .iter()
            .map(|it| it.sizes().n_pit_entries)
            .sum::<usize>();
        assert_eq!(pending, 0, "the Interest ends");
        // It has been answered: the same once more answers nothing.
        assert_eq!(refuse(&mut many, &asked), []);
        assert_eq!(n_drops(&many, DropReason::NackNotPending), 1);
    }
}

#[test]
fn each_home_hears_the_nack_of_what_it_has_sent() {
    let mut many = many();
    let first = ask(&mut many, 1);
    pin(&mut many, 1);
    let second = ask(&mut many, 2);
    for asked in [first, second] {
        let heard = refuse(&mut many, &asked);
        assert_eq!(heard, [(CONSUMER, Kind::Nack(NackReason::NoRoute))]);
    }
    assert_eq!((n_in_nacks(&many), many.is_idle()), (2, true));
}

#[test]
fn a_nack_that_nobody_knows_is_counted_once() {
    let mut many = many();
    let wire = interest(URI).nonce(1).wire();
    pin(&mut many, 1);
    pin(&mut many, 2);
    assert_eq!(refuse(&mut many, &wire), []);
    assert_eq!(n_drops(&many, DropReason::NackNotPending), 1);
    assert_eq!((n_in_nacks(&many), many.is_idle()), (1, true));
}

#[test]
fn a_nack_with_a_nonce_that_no_home_has_sent_is_counted_as_such() {
    let mut many = many();
    ask(&mut many, 1);
    pin(&mut many, 1);
    pin(&mut many, 2);
    let wire = interest(URI).nonce(9).wire();
    assert_eq!(refuse(&mut many, &wire), []);
    assert_eq!(n_drops(&many, DropReason::NackMismatch), 1);
    assert_eq!(n_drops(&many, DropReason::NackNotPending), 0);
    assert_eq!(n_in_nacks(&many), 1);
}
