//! What waits for other workers waits for a bounded time, in bounded memory, and is counted.

#[path = "../../forward/tests/bed/mod.rs"]
mod bed;
mod support;

use std::num::NonZeroU8;

use bed::*;
use support::Many;
use tachonym_dispatch::DispatchBy;
use tachonym_forward::{DropReason, RxPacket};
use tachonym_packet::lp::Headers;
use tachonym_packet::{FaceId, MonoNs, NackReason};
use tachonym_workers::parked::{MAX_PARKED, MAX_WAIT_MS};

const OTHER: FaceId = FaceId(256);
const CONSUMER: FaceId = FaceId(257);
const PRODUCER: FaceId = FaceId(258);
const BEGIN: MonoNs = MonoNs(1_000_000);
const LATER: MonoNs = MonoNs(1_000_001);

/// Workers among which names are divided by three components.
fn many() -> Many {
    let three = NonZeroU8::new(3).expect("not zero");
    Many::new(
        3,
        DispatchBy::Prefix {
            n_components: three,
        },
        1,
    )
}

/// Has an Interest come, and nothing arrive anywhere; what leaves.
fn ask(many: &mut Many, now: MonoNs, interest: &Interest) -> Vec<Sent> {
    ask_from(many, CONSUMER, now, interest)
}

fn ask_from(many: &mut Many, face: FaceId, now: MonoNs, interest: &Interest) -> Vec<Sent> {
    let (wire, headers) = (interest.wire(), Headers::default());
    let packet = RxPacket::parse(face, &headers, &wire).expect("a packet that may come");
    let mut out = Outbox::default();
    many.take(now, &packet, &mut out);
    out.0
}

fn n_overdue(many: &Many) -> u64 {
    let workers = many.workers().iter();
    workers.map(|worker| worker.counters().n_overdue).sum()
}

#[test]
fn an_interest_goes_on_in_time_if_workers_do_not_answer() {
    let mut many = many();
    assert!(ask(&mut many, BEGIN, &interest("/p/q").prefix()).is_empty());
    let timeouts = many
        .workers()
        .iter()
        .filter_map(|worker| worker.poll_timeout());
    assert!(timeouts.min() <= Some(BEGIN.plus_ms(MAX_WAIT_MS)));
    many.lose_all();
    assert!(many.handle(BEGIN.plus_ms(MAX_WAIT_MS - 1), None).is_empty());
    let sent = many.handle(BEGIN.plus_ms(MAX_WAIT_MS), None);
    assert_eq!(
        (sent.len(), sent[0].face, sent[0].kind),
        (1, PRODUCER, Kind::Interest)
    );
    assert_eq!(n_overdue(&many), 1);
    assert!(many.handle(BEGIN.plus_ms(2 * MAX_WAIT_MS), None).is_empty());
}

#[test]
fn an_answer_that_comes_too_late_changes_nothing() {
    let mut many = many();
    ask(&mut many, BEGIN, &interest("/p/q").prefix());
    let late = BEGIN.plus_ms(MAX_WAIT_MS);
    // The timeout comes first, then what was under way is delivered.
    assert_eq!(many.handle(late, None).len(), 1);
    assert!(many.is_empty());
    assert_eq!(n_overdue(&many), 1);
}

#[test]
fn of_more_interests_than_may_wait_the_rest_asks_the_home_alone() {
    let mut many = many();
    let mut n_sent = 0;
    for number in 0..=MAX_PARKED as u32 {
        n_sent += ask(&mut many, BEGIN, &interest("/p/q").prefix().nonce(number)).len();
    }
    let workers = many.workers().iter();
    let n_not_asked: u64 = workers.map(|worker| worker.counters().n_not_asked).sum();
    assert_eq!((n_sent, n_not_asked), (1, 1));
}

/// What workers have counted together of hits, misses and satisfied Interests, and of Data
/// that left.
fn counted(many: &Many) -> [u64; 4] {
    let count = |label| {
        let counted = many.counted().into_iter();
        let found = counted.filter(|&(it, _)| it == label);
        found.map(|(_, n)| n).sum()
    };
    ["hits", "misses", "satisfied", "Data out"].map(count)
}

/// Has a Data come; what leaves, before anything that is under way was lost.
fn answer(many: &mut Many, headers: &Headers) -> Vec<Sent> {
    let wire = data("/p/q/r/s").fresh_ms(1_000).wire();
    let packet = RxPacket::parse(PRODUCER, headers, &wire).expect("a packet that may come");
    many.handle(LATER, Some(&packet))
}

/// Has another consumer ask the producer for what [`answer`] brings, under its whole name.
fn ask_producer(many: &mut Many) {
    let asked = ask_from(many, OTHER, BEGIN, &interest("/p/q/r/s").nonce(9));
    assert_eq!(summary(&asked), [(PRODUCER, Kind::Interest)]);
}

#[test]
fn an_interest_that_waits_for_stores_makes_no_data_solicited() {
    let mut many = many();
    ask(&mut many, BEGIN, &interest("/p/q").prefix());
    many.lose_all();
    assert_eq!(answer(&mut many, &Headers::default()), []);
    let engines = many.engines().into_iter();
    let n_dropped: u64 = engines
        .map(|engine| engine.counters().n_dropped(DropReason::UnsolicitedData))
        .sum();
    assert_eq!(n_dropped, 1);
    let n_cached: usize = many
        .engines()
        .iter()
        .map(|it| it.sizes().n_cs_entries)
        .sum();
    assert_eq!(n_cached, 0);
    // It goes on to the producer, whose answer counts then.
    let sent = many.handle(BEGIN.plus_ms(MAX_WAIT_MS), None);
    assert_eq!(summary(&sent), [(PRODUCER, Kind::Interest)]);
    let sent = answer(&mut many, &Headers::default());
    assert_eq!(summary(&sent), [(CONSUMER, Kind::Data)]);
}

#[test]
fn data_under_way_among_workers_counts_though_its_face_goes_meanwhile() {
    let mut n_under_way = 0;
    for n in 0..8 {
        let mut many = many();
        let prefix = format!("/p/{n}");
        assert!(ask(&mut many, BEGIN, &interest(&prefix).prefix()).is_empty());
        let sent = many.handle(BEGIN, None);
        assert_eq!(summary(&sent), [(PRODUCER, Kind::Interest)]);
        // Its home takes the Data; the Interest may wait at another one.
        let wire = data(&format!("{prefix}/r/s")).wire();
        let headers = Headers::default();
        let packet = RxPacket::parse(PRODUCER, &headers, &wire).expect("a packet that may come");
        let mut out = Outbox::default();
        many.take(LATER, &packet, &mut out);
        many.remove_face(PRODUCER);
        n_under_way += usize::from(out.0.is_empty());
        out.0.extend(many.handle(LATER.plus_ms(500), None));
        assert_eq!(summary(&out.0), [(CONSUMER, Kind::Data)], "{prefix}");
    }
    assert!(n_under_way > 0, "all were at home where the Interest was");
}

#[test]
fn an_interest_that_is_answered_while_it_waits_is_satisfied_and_no_hit() {
    let mut many = many();
    ask_producer(&mut many);
    ask(&mut many, BEGIN, &interest("/p/q").prefix());
    many.lose_all();
    let headers = Headers {
        congestion_mark: 1,
        ..Headers::default()
    };
    let sent = support::sorted(answer(&mut many, &headers));
    assert_eq!(
        summary(&sent),
        [(OTHER, Kind::Data), (CONSUMER, Kind::Data)]
    );
    for sent in &sent {
        assert_eq!(sent.headers.congestion_mark, 1);
        assert_eq!(sent.headers.incoming_face_id, Some(PRODUCER));
    }
    assert_eq!(counted(&many), [0, 2, 2, 2]);
    // Whoever asks now is answered from a store.
    ask(&mut many, LATER, &interest("/p/q").prefix().nonce(2));
    many.handle(LATER, None);
    assert_eq!(counted(&many), [1, 2, 3, 3]);
}

#[test]
fn an_interest_that_has_the_data_already_is_counted_as_satisfied_too() {
    let mut many = many();
    ask_producer(&mut many);
    for nonce in 1..=2 {
        ask(&mut many, BEGIN, &interest("/p/q").prefix().nonce(nonce));
    }
    many.lose_all();
    let sent = support::sorted(answer(&mut many, &Headers::default()));
    assert_eq!(
        summary(&sent),
        [(OTHER, Kind::Data), (CONSUMER, Kind::Data)]
    );
    assert_eq!(counted(&many), [0, 3, 3, 2]);
}

#[test]
fn nobody_is_asked_about_an_interest_that_is_dropped_in_any_case() {
    let mut many = many();
    let n_asked = |many: &Many| -> u64 {
        let workers = many.workers().iter();
        workers.map(|worker| worker.counters().n_asked).sum()
    };
    let n_dropped = |many: &Many, reason| -> u64 {
        let engines = many.engines().into_iter();
        let counters = engines.map(|engine| engine.counters());
        counters.map(|it| it.n_dropped(reason)).sum()
    };
    let first = interest("/p/q").prefix().nonce(1).lifetime_ms(50);
    // It may not go on.
    assert!(ask(&mut many, BEGIN, &first.clone().hop_limit(0)).is_empty());
    assert_eq!(n_dropped(&many, DropReason::HopLimitZero), 1);
    // Its nonce is pending, in a loop: the producer has got it.
    ask(&mut many, BEGIN, &first);
    assert_eq!(many.handle(BEGIN, None).len(), 1);
    let duplicate = [(PRODUCER, Kind::Nack(NackReason::Duplicate))];
    assert!(ask_from(&mut many, PRODUCER, BEGIN, &first).is_empty());
    let sent = many.handle(BEGIN, None);
    assert_eq!(summary(&sent), duplicate);
    // It comes back when it is dead.
    let late = BEGIN.plus_ms(100);
    many.handle(late, None);
    let sent = ask_from(&mut many, PRODUCER, late, &first);
    assert_eq!(summary(&sent), duplicate);
    assert_eq!(n_dropped(&many, DropReason::InterestLoop), 2);
    // While its nonce was pending, a store might have had Data for it.
    assert_eq!(n_asked(&many), 2);
    assert!(many.is_empty());
}

#[test]
fn who_has_got_a_data_does_not_get_it_again_however_long_others_would_have_waited() {
    let mut many = Many::new(3, DispatchBy::Name, 1);
    let consumer = |many: &mut Many, face: u64, now, interest: &Interest| {
        let sent = ask_from(many, FaceId(face), now, interest);
        assert!(sent.iter().all(|sent| sent.kind == Kind::Interest));
        many.handle(now, None);
    };
    // At homes of any two workers.
    for n in 0..20_u64 {
        let now = BEGIN.plus_ms(100 * n);
        let prefix = interest(&format!("/p/{n}")).prefix();
        let short = prefix.clone().nonce(1).lifetime_ms(1);
        let exact = interest(&format!("/p/{n}/q")).nonce(2);
        consumer(&mut many, 256, now, &short);
        consumer(&mut many, 257, now, &prefix.nonce(3));
        consumer(&mut many, 257, now, &exact);
        let wire = data(&format!("/p/{n}/q")).wire();
        let packet =
            RxPacket::parse(PRODUCER, &Headers::EMPTY, &wire).expect("a packet that may come");
        let sent = many.handle(MonoNs(now.0 + 1), Some(&packet));
        let mut got = summary(&sent);
        got.sort_by_key(|&(face, _)| face);
        assert_eq!(got, [(FaceId(256), Kind::Data), (CONSUMER, Kind::Data)]);
    }
}
