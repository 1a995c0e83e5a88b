//! Rules for a content store of two levels, the second on a device in memory: what it has
//! answers as what the first has does, only later, and nothing else changes.

mod bed;
mod two_levels_bed;

use std::collections::BTreeSet;

use bed::*;
use proptest::prelude::*;
use tachonym_forward::DropReason;
use tachonym_forward::sharing::Requester;
use tachonym_packet::lp::Headers;
use tachonym_packet::{Component, DataView, FaceId, InterestView, NackReason, Name};
use tachonym_policy::{AdmissionKind, EvictionKind, Policy, PolicyConfig};
use tachonym_store::device::{Fault, Ram};
use tachonym_store::{Admission, Config, Novelty};
use tachonym_tables::Marks;
use two_levels_bed::*;

/// A face of a program on this machine.
const LOCAL_FACE: FaceId = FaceId(400);

#[test]
fn an_interest_waits_for_the_device_and_is_answered_without_touching_upstream() {
    let stored = segments("/a", 4);
    let mut it = TwoLevels::holding(&stored);
    let (at_once, later) = it.ask(&interest_for(&stored[1]));
    assert_eq!(summary(&at_once), []);
    assert_eq!(summary(&later), [(C, Kind::Data)]);
    assert_eq!(later[0].wire, stored[1].wire());
    let from = later[0].headers.incoming_face_id;
    assert_eq!(from, Some(FaceId::CONTENT_STORE));
    assert_eq!(it.node.engine.sizes().n_pit_entries, 0);
    assert_eq!(it.node.engine.counters().n_second_level_hits, 1);
}

#[test]
fn all_who_ask_meanwhile_are_answered_each_with_his_token_by_one_read() {
    let stored = segments("/a", 4);
    let mut it = TwoLevels::holding(&stored);
    let wire = interest_for(&stored[2]).wire();
    assert_eq!(it.node.receive(C, &wire, token(b"C")), []);
    let again = interest_for(&stored[2]).nonce(2).wire();
    assert_eq!(it.node.receive(D, &again, token(b"D")), []);
    let retransmitted = interest_for(&stored[2]).nonce(3).wire();
    assert_eq!(it.node.receive(C, &retransmitted, token(b"CC")), []);
    assert_eq!(it.node.interest(D, &interest_for(&stored[0]).nonce(4)), []);
    let n_reads = it.store().counters().n_reads;
    let mut sent = it.pump();
    sent.sort_by_key(|sent| (sent.face, sent.wire.clone()));
    let tokens: Vec<_> = sent.iter().map(|it| (it.face, it.token())).collect();
    let expected = [
        (C, Some(b"CC".to_vec())),
        (D, None),
        (D, Some(b"D".to_vec())),
    ];
    assert_eq!(tokens, expected);
    assert_eq!(it.store().counters().n_reads, n_reads);
    assert_eq!(n_reads, 1);
    assert_eq!(it.node.engine.counters().n_aggregated_interests, 2);
}

#[test]
fn neighbours_are_in_the_first_level_afterwards() {
    let mut it = TwoLevels::new(8, config());
    let stored = segments("/a", 4);
    for data in &stored {
        it.fetch(data);
    }
    it.flush();
    for data in segments("/b", 8) {
        it.fetch(&data);
    }
    let (at_once, later) = it.ask(&interest_for(&stored[1]));
    assert_eq!((at_once.len(), summary(&later)), (0, vec![(C, Kind::Data)]));
    for data in &stored {
        let sent = it.node.interest(D, &interest_for(data).nonce(9));
        assert_eq!(summary(&sent), [(D, Kind::Data)]);
    }
}

/// What has answered comes into the first level if the policy wants it, which is when it was asked
/// for twice here; its neighbours in any case.
#[test]
fn what_has_answered_stays_in_memory_if_the_policy_admits_it() {
    let mut it = TwoLevels::new(8, config());
    let (n_slots, capacity) = it.node.engine.cs().policy_size();
    let filter = PolicyConfig {
        history_len: Some(100),
        ..PolicyConfig::new(AdmissionKind::Filter, EvictionKind::Lru, capacity)
    };
    let policy = Policy::with_slots(&filter, n_slots).expect("little memory");
    assert!(it.node.engine.cs_mut().set_policy(policy));
    let stored = segments("/a", 4);
    for data in &stored {
        // No Interest has asked for it.
        let (wire, now) = (data.wire(), it.node.now);
        let data = DataView::parse(&wire).expect("a Data");
        let hash = it.store().request_hash(data.name());
        it.store().offer(now, &data, hash, Novelty::New);
    }
    it.flush();
    for (n_asked, is_at_hand) in [(1, false), (2, false), (3, true)] {
        let (at_once, later) = it.ask(&interest_for(&stored[1]).nonce(n_asked));
        let n_at_once = usize::from(is_at_hand);
        assert_eq!((at_once.len(), later.len()), (n_at_once, 1 - n_at_once));
        let sent = at_once.iter().chain(&later).next().expect("an answer");
        assert_eq!((sent.face, &sent.wire), (C, &stored[1].wire()));
    }
    for data in [&stored[0], &stored[2], &stored[3]] {
        let sent = it.node.interest(D, &interest_for(data).nonce(9));
        assert_eq!(summary(&sent), [(D, Kind::Data)]);
    }
    assert_eq!(it.store().counters().n_reads, 2);
    let n_refused = it.node.engine.cs().counters().n_not_admitted_policy;
    assert_eq!(n_refused, 1);
}

#[test]
fn a_loop_is_a_loop_while_an_interest_waits() {
    let stored = segments("/a", 1);
    let mut it = TwoLevels::holding(&stored);
    assert_eq!(it.node.interest(C, &interest_for(&stored[0]).nonce(5)), []);
    let looped = it.node.interest(D, &interest_for(&stored[0]).nonce(5));
    assert_eq!(summary(&looped), [(D, Kind::Nack(NackReason::Duplicate))]);
    assert_eq!(summary(&it.pump()), [(C, Kind::Data)]);
}

#[test]
fn an_interest_that_expires_meanwhile_is_answered_no_more() {
    let stored = segments("/a", 4);
    let mut it = TwoLevels::holding(&stored);
    it.node
        .interest(C, &interest_for(&stored[0]).lifetime_ms(100));
    it.node.advance(ms(200));
    assert_eq!(it.node.engine.sizes().n_pit_entries, 0);
    assert_eq!(it.pump(), []);
    assert_eq!(it.node.engine.counters().n_unsatisfied_interests, 1);
}

#[test]
fn what_cannot_be_read_is_asked_for_upstream() {
    for fault in [Fault::Error(5), Fault::Short(512), Fault::Flip(2_000)] {
        let stored = segments("/a", 4);
        let mut it = TwoLevels::holding(&stored);
        it.fail_reads(fault);
        let asked = interest_for(&stored[0]).hop_limit(7).nonce(3);
        let (at_once, later) = it.ask(&asked);
        assert_eq!(at_once, []);
        assert_eq!(summary(&later), [(B, Kind::Interest)], "{fault:?}");
        let sent = later[0].interest();
        assert_eq!((sent.hop_limit(), later[0].nonce()), (Some(6), 3));
        let sent = it.node.data(B, &stored[0]);
        assert_eq!(summary(&sent), [(C, Kind::Data)]);
    }
}

#[test]
fn what_cannot_be_read_and_has_no_route_is_nacked() {
    let stored = segments("/a", 4);
    let mut it = TwoLevels::holding(&stored);
    it.node
        .engine
        .routes()
        .lock()
        .remove_next_hop(name("/").view(), B);
    it.fail_reads(Fault::Error(5));
    let (at_once, later) = it.ask(&interest_for(&stored[0]));
    assert_eq!(at_once, []);
    assert_eq!(summary(&later), [(C, Kind::Nack(NackReason::NoRoute))]);
}

#[test]
fn an_interest_goes_on_though_who_sent_it_first_has_gone() {
    let stored = segments("/a", 4);
    let mut it = TwoLevels::holding(&stored);
    it.fail_reads(Fault::Error(5));
    let asked = interest_for(&stored[0]);
    assert_eq!(it.node.interest(C, &asked), []);
    assert_eq!(it.node.interest(D, &asked.nonce(8)), []);
    it.node.engine.remove_face(C);
    assert_eq!(summary(&it.pump()), [(B, Kind::Interest)]);
    assert_eq!(summary(&it.node.data(B, &stored[0])), [(D, Kind::Data)]);
}

/// E sends HopLimit 1 first, and others join while the store is read.
#[test]
fn an_interest_goes_on_with_the_greatest_hop_limit_of_those_who_wait() {
    for (second, third, leaves_with) in [
        (Some(1), Some(9), Some(8)),
        (Some(20), Some(9), Some(19)),
        (Some(2), None, None),
        (None, Some(3), None),
    ] {
        let stored = segments("/a", 4);
        let mut it = TwoLevels::holding(&stored);
        it.fail_reads(Fault::Error(5));
        let asked = |hop_limit: Option<u8>| Interest {
            hop_limit,
            ..interest_for(&stored[0])
        };
        assert_eq!(it.node.interest(A, &asked(Some(1)).nonce(1)), []);
        assert_eq!(it.node.interest(C, &asked(second).nonce(2)), []);
        assert_eq!(it.node.interest(D, &asked(third).nonce(3)), []);
        let sent = it.pump();
        assert_eq!(summary(&sent), [(B, Kind::Interest)]);
        assert_eq!(sent[0].interest().hop_limit(), leaves_with);
        assert_eq!(it.node.data(B, &stored[0]).len(), 3);
    }
    // Of those that wait no more, none counts.
    let stored = segments("/a", 4);
    let mut it = TwoLevels::holding(&stored);
    it.fail_reads(Fault::Error(5));
    let asked = interest_for(&stored[0]);
    let short = asked.clone().hop_limit(9).lifetime_ms(10);
    assert_eq!(it.node.interest(A, &asked.clone().hop_limit(1)), []);
    assert_eq!(it.node.interest(C, &short.nonce(2)), []);
    it.node.advance(ms(20));
    assert_eq!(it.pump(), []);
    assert_eq!(it.node.n_dropped(DropReason::HopLimitExhausted), 1);
}

/// Of two who ask, the first is the one to whom the only route leads.
#[test]
fn an_interest_goes_on_for_whom_a_next_hop_may_serve() {
    let stored = segments("/a", 4);
    let mut it = TwoLevels::holding(&stored);
    it.fail_reads(Fault::Error(5));
    let asked = interest_for(&stored[0]);
    assert_eq!(it.node.interest(B, &asked), []);
    assert_eq!(it.node.interest(C, &asked.nonce(8)), []);
    let sent = it.pump();
    assert_eq!(summary(&sent), [(B, Kind::Interest)]);
    assert_eq!(sent[0].nonce(), 8);
    let answered = it.node.data(B, &stored[0]);
    assert!(
        summary(&answered).contains(&(C, Kind::Data)),
        "{answered:?}"
    );
}

#[test]
fn an_interest_for_a_certain_face_goes_there_and_waits_for_nothing() {
    let stored = segments("/a", 4);
    let mut it = TwoLevels::holding(&stored);
    it.node.face(LOCAL_FACE, LOCAL);
    let told = Headers {
        next_hop_face_id: Some(D),
        ..Headers::default()
    };
    let asked = interest_for(&stored[0]);
    let sent = it.node.receive(LOCAL_FACE, &asked.wire(), told);
    assert_eq!(summary(&sent), [(D, Kind::Interest)]);
    assert_eq!(it.pump(), []);
}

#[test]
fn an_interest_that_waits_is_not_sent_to_a_new_next_hop() {
    let stored = segments("/a", 4);
    let mut it = TwoLevels::holding(&stored);
    it.node.strategy("/", "multicast");
    let asked = interest_for(&stored[0]).lifetime_ms(20_000);
    assert_eq!(it.node.interest(C, &asked), []);
    it.node.route("/a", D, 0);
    assert_eq!(it.node.advance(ms(2_000)), []);
    assert_eq!(summary(&it.pump()), [(C, Kind::Data)]);
}

#[test]
fn a_device_that_stalls_is_left_and_interests_go_on() {
    let stored = segments("/a", 4);
    let mut it = TwoLevels::holding(&stored);
    it.fail_reads(Fault::Stall);
    let asked = interest_for(&stored[0]).lifetime_ms(20_000);
    assert_eq!(it.ask(&asked), (vec![], vec![]));
    assert!(it.node.engine.poll_timeout().is_some());
    let sent: Vec<_> = (0..6).flat_map(|_| it.node.advance(ms(1_000))).collect();
    assert_eq!(summary(&sent), [(B, Kind::Interest)]);
    assert!(!it.store().is_in_use());
    let sent = it.node.interest(D, &interest_for(&stored[2]).nonce(8));
    assert_eq!(summary(&sent), [(B, Kind::Interest)]);
}

#[test]
fn freshness_holds_across_both_levels() {
    let fresh = Data {
        name: name("/a").with(&Component::segment(0)),
        ..data("/").fresh_ms(60_000)
    };
    let stale = segment("/a", 1);
    let mut it = TwoLevels::holding(&[fresh.clone(), stale.clone()]);
    let (at_once, later) = it.ask(&interest_for(&fresh).fresh());
    assert_eq!((at_once.len(), summary(&later)), (0, vec![(C, Kind::Data)]));
    it.fetch(&data("/x"));
    let (at_once, later) = it.ask(&interest_for(&stale).fresh());
    assert_eq!(
        (at_once.len(), summary(&later)),
        (0, vec![(B, Kind::Interest)])
    );
    it.node.advance(ms(5_000));
    it.fetch(&data("/y"));
    it.node.advance(ms(56_000));
    let (at_once, later) = it.ask(&interest_for(&fresh).fresh().nonce(3));
    assert_eq!(
        (at_once.len(), summary(&later)),
        (0, vec![(B, Kind::Interest)])
    );
    // It is remembered for a while that there is nothing fresh.
    it.node.advance(ms(900));
    it.fetch(&data("/z"));
    let n_reads = it.store().counters().n_reads;
    let other = interest_for(&fresh).fresh().prefix().nonce(4);
    let (at_once, _) = it.ask(&other);
    assert_eq!(summary(&at_once), [(B, Kind::Interest)]);
    assert_eq!(it.store().counters().n_reads, n_reads);
}

/// Periods near the greatest number, where sums with them overflow, as often as others.
fn any_period_ms() -> impl Strategy<Value = u64> {
    let near_greatest = (0_u64..1_000).prop_map(|less| u64::MAX - less);
    let near_nanoseconds = (0_u64..1_000).prop_map(|more| u64::MAX / 1_000_000 + more - 500);
    prop_oneof![
        any::<u64>(),
        near_greatest,
        near_nanoseconds,
        1_u64..200_000
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn data_is_fresh_from_the_second_level_for_any_period(
        period_ms in any_period_ms(), waits_ms in 0_u64..100_000,
    ) {
        let fresh = segment("/a", 0).fresh_ms(period_ms);
        let mut it = TwoLevels::holding(std::slice::from_ref(&fresh));
        it.node.advance(ms(waits_ms));
        let (at_once, later) = it.ask(&interest_for(&fresh).fresh().lifetime_ms(u64::MAX));
        let answer = match period_ms > waits_ms {
            true => (C, Kind::Data),
            false => (B, Kind::Interest),
        };
        prop_assert_eq!((at_once.len(), summary(&later)), (0, vec![answer]));
        // What another worker asks this one's second level for is as fresh.
        it.fetch(&data("/something/else"));
        let wire = interest("/a").prefix().fresh().wire();
        let asked = InterestView::parse(&wire).expect("well-formed");
        let requester = Requester { engine: 1, ticket: 7 };
        let (now, engine) = (it.node.now, &mut it.node.engine);
        engine.shared().read_for(now, requester, D, &asked);
        it.pump();
        let read = it.node.engine.shared().poll_remote_read().expect("an answer");
        prop_assert_eq!(read.data.is_some(), period_ms > waits_ms);
    }
}

#[test]
fn prefixes_and_full_names_are_answered_from_both_levels() {
    let stored = segments("/a/b/v=1", 3);
    let mut it = TwoLevels::holding(&stored);
    for prefix in ["/a", "/a/b", "/a/b/v=1"] {
        let asked = interest(prefix).prefix().nonce(prefix.len() as u32);
        let (at_once, later) = it.ask(&asked);
        assert_eq!(
            (at_once.len(), summary(&later)),
            (0, vec![(C, Kind::Data)]),
            "{prefix}"
        );
        it.fetch(&data(&format!("/x{prefix}")));
    }
    let full = Interest {
        name: stored[1].full_name(),
        ..interest("/").nonce(50)
    };
    let (at_once, later) = it.ask(&full);
    assert_eq!((at_once.len(), summary(&later)), (0, vec![(C, Kind::Data)]));
    assert_eq!(later[0].wire, stored[1].wire());
    let other = Data {
        content: b"other".to_vec(),
        ..stored[1].clone()
    };
    it.fetch(&data("/y"));
    let full = Interest {
        name: other.full_name(),
        ..interest("/").nonce(51)
    };
    let (at_once, later) = it.ask(&full);
    assert_eq!(
        (at_once.len(), summary(&later)),
        (0, vec![(B, Kind::Interest)])
    );
}

#[test]
fn nothing_is_fresh_again_when_the_clock_is_set_back() {
    let of_a_minute = Data {
        name: name("/a").with(&Component::segment(0)),
        ..data("/").fresh_ms(60_000)
    };
    let mut it = TwoLevels::new(1, config());
    let (now, noon) = (it.node.now, 1_800_000_000_000);
    it.store().set_wall_clock(now, noon);
    it.fetch(&of_a_minute);
    it.flush();
    it.fetch(&data("/something/else"));
    it.store().set_wall_clock(now, noon - 3_600_000);
    let (_, later) = it.ask(&interest_for(&of_a_minute).fresh());
    assert_eq!(summary(&later), [(B, Kind::Interest)]);
    let (_, later) = it.ask(&interest_for(&of_a_minute).nonce(9));
    assert_eq!(summary(&later), []);
}

#[test]
fn what_is_erased_is_not_given_out_even_if_it_is_being_read() {
    let stored = segments("/a/b", 4);
    let mut it = TwoLevels::holding(&stored);
    assert_eq!(it.node.interest(C, &interest_for(&stored[0])), []);
    let now = it.node.now;
    it.store().erase(now, name("/a").view());
    assert_eq!(summary(&it.pump()), [(B, Kind::Interest)]);
    let (at_once, later) = it.ask(&interest_for(&stored[1]));
    assert_eq!(later.len() + at_once.len(), 1);
    assert_eq!([&at_once[..], &later[..]].concat()[0].face, B);
}

#[test]
fn the_next_batch_is_read_before_it_is_asked_for() {
    let mut it = TwoLevels::new(16, config());
    let stored = segments("/a", 16);
    for data in &stored {
        it.fetch(data);
    }
    it.flush();
    for data in segments("/b", 16) {
        it.fetch(&data);
    }
    let mut n_waited = 0;
    for (i, data) in stored.iter().enumerate() {
        let (at_once, later) = it.ask(&interest_for(data).nonce(i as u32));
        assert_eq!(at_once.len() + later.len(), 1);
        n_waited += later.len();
        it.node.advance(ms(100));
    }
    assert_eq!(n_waited, 1, "for the first only");
    let counters = it.store().counters();
    assert_eq!((counters.n_reads, counters.n_reads_ahead), (1, 3));
}

#[test]
fn the_next_batch_is_looked_for_again_some_time_after_it_was_at_hand() {
    let mut it = TwoLevels::new(6, config());
    let stored = segments("/a", 8);
    for data in &stored {
        it.fetch(data);
    }
    it.flush();
    let mut nonce = 0;
    let mut ask = |it: &mut TwoLevels, number: usize| {
        nonce += 1;
        let (at_once, later) = it.ask(&interest_for(&stored[number]).nonce(nonce));
        assert_eq!(at_once.len() + later.len(), 1);
        later.len()
    };
    assert_eq!(ask(&mut it, 0), 1);
    assert_eq!((ask(&mut it, 2), ask(&mut it, 4)), (0, 0), "read ahead");
    // The second batch goes, and what it follows stays.
    for n in 0..6 {
        it.fetch(&data(&format!("/other/{n}")));
        ask(&mut it, 2);
    }
    let n_ahead = it.store().counters().n_reads_ahead;
    for _ in 0..=Marks::MAX_PAUSE {
        ask(&mut it, 2);
    }
    assert_eq!(it.store().counters().n_reads_ahead, n_ahead + 1);
    assert_eq!(ask(&mut it, 4), 0);
}

#[test]
fn what_is_asked_for_twice_earns_its_write() {
    let config = Config {
        admission: Admission::Filter {
            threshold: 2,
            history_len: 100,
        },
        ..config()
    };
    let mut it = TwoLevels::new(2, config);
    let (once, twice) = (data("/once"), data("/twice"));
    it.fetch(&once);
    it.fetch(&twice);
    assert_eq!(it.store().counters().n_not_admitted, 2);
    let sent = it.node.interest(D, &interest_for(&twice).nonce(5));
    assert_eq!(summary(&sent), [(D, Kind::Data)]);
    let sent = it.node.interest(D, &interest_for(&twice).nonce(6));
    assert_eq!(summary(&sent), [(D, Kind::Data)]);
    let counters = it.store().counters();
    assert_eq!((counters.n_offered, counters.n_not_admitted), (3, 2));
    it.flush();
    it.fetch(&data("/x"));
    it.fetch(&data("/y"));
    let (_, later) = it.ask(&interest_for(&twice).nonce(7));
    assert_eq!(summary(&later), [(C, Kind::Data)]);
    let (at_once, _) = it.ask(&interest_for(&once).nonce(8));
    assert_eq!(summary(&at_once), [(B, Kind::Interest)]);
}

#[test]
fn a_store_that_does_not_serve_or_admit_does_neither_on_both_levels() {
    let stored = segments("/a", 4);
    let mut it = TwoLevels::holding(&stored);
    it.node.engine.cs_mut().set_serves(false);
    let (at_once, _) = it.ask(&interest_for(&stored[0]));
    assert_eq!(summary(&at_once), [(B, Kind::Interest)]);
    it.node.engine.cs_mut().set_serves(true);
    it.node.engine.cs_mut().set_admits(false);
    let n_offered = it.store().counters().n_offered;
    it.fetch(&data("/b"));
    assert_eq!(it.store().counters().n_offered, n_offered);
    let no_cache = Headers {
        no_cache: true,
        ..Headers::default()
    };
    it.node.engine.cs_mut().set_admits(true);
    it.node.interest(A, &interest("/c"));
    it.node.receive(B, &data("/c").wire(), no_cache);
    assert_eq!(it.store().counters().n_offered, n_offered);
}

#[test]
fn a_consumer_with_a_window_gets_all_he_asks_for() {
    for (max_pkts, window, seed) in [(8, 5, 1), (64, 40, 2), (64, 200, 3), (300, 200, 4)] {
        let config = Config {
            max_reads: 250,
            ..config()
        };
        let mut it = TwoLevels::new(max_pkts, config);
        it.device = Ram::new(&[16 << 20]).with_seed(seed).with_capacity(300);
        let stored = segments("/a", 1_000);
        for data in &stored {
            it.fetch(data);
        }
        it.flush();
        let (mut n_asked, mut n_got, mut next) = (0, 0, 0);
        let mut pending = BTreeSet::new();
        while n_got < 3_000 {
            let mut sent = Vec::new();
            // Two of the same name would be answered by one Data.
            while n_asked < 3_000
                && n_asked - n_got < window
                && pending.insert(stored[next].name.clone())
            {
                let asked = interest_for(&stored[next]).nonce(n_asked as u32);
                sent.extend(it.node.interest(C, &asked));
                next = (next + 1) % stored.len();
                n_asked += 1;
            }
            sent.extend(it.turn());
            let other = sent.iter().find(|it| it.kind != Kind::Data);
            let counters = it.store().counters();
            assert!(
                other.is_none(),
                "after {n_got}: {:?}, {counters:?}",
                other.map(|it| it.kind)
            );
            for data in &sent {
                let data = DataView::parse(&data.wire).expect("a Data");
                let name = data.name().to_name();
                assert!(pending.remove(&name), "{name} twice");
            }
            n_got += sent.len();
            it.node.now = it.node.now + std::time::Duration::from_micros(100);
            let waited = it.node.now.0 > 3_500_000_000;
            assert!(
                !waited,
                "{n_got} of {n_asked} came: {:?}",
                it.store().counters()
            );
        }
    }
}

/// What happens to a node.
#[derive(Clone, Debug)]
enum Step {
    Interest {
        object: u8,
        number: u64,
        by_prefix: bool,
        must_be_fresh: bool,
    },
    Data {
        object: u8,
        number: u64,
    },
    Advance {
        ms: u64,
    },
    Flush,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => (0..4_u8, 0..10_u64, prop::bool::weighted(0.1), prop::bool::weighted(0.1)).prop_map(
            |(object, number, by_prefix, must_be_fresh)| Step::Interest {
                object, number, by_prefix, must_be_fresh,
            }
        ),
        12 => (0..4_u8, 0..10_u64).prop_map(|(object, number)| Step::Data { object, number }),
        2 => (1..3_000_u64).prop_map(|ms| Step::Advance { ms }),
        1 => Just(Step::Flush),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// A small first level and a second one do what a large first one does: who is sent what
    /// when the device has had its time, and who is asked.
    #[test]
    fn two_levels_do_what_one_large_one_does(
        steps in prop::collection::vec(step(), 1..120),
        max_pkts in 1..12_usize,
    ) {
        let mut two = TwoLevels::new(max_pkts, Config { max_reads: 16, ..config() });
        let mut one = TwoLevels::new(10_000, config());
        one.node.engine.cs_mut().set_second_level(None);
        let mut nonce = 0;
        for step in steps {
            let object = |object: u8| -> Name { name(&format!("/o/{object}")) };
            match step {
                Step::Interest { object: of, number, by_prefix, must_be_fresh } => {
                    nonce += 1;
                    let asked = Interest {
                        name: match by_prefix {
                            true => object(of),
                            false => object(of).with(&Component::segment(number)),
                        },
                        can_be_prefix: by_prefix,
                        must_be_fresh: must_be_fresh && !by_prefix,
                        ..interest("/").nonce(nonce)
                    };
                    let face = [A, C, D][nonce as usize % 3];
                    let mut sent = two.node.interest(face, &asked);
                    sent.extend(two.pump());
                    let expected = one.node.interest(face, &asked);
                    prop_assert_eq!(summary(&sent), summary(&expected), "{:?}", asked);
                    if !by_prefix && sent.iter().all(|it| it.kind == Kind::Data) {
                        prop_assert_eq!(
                            sent.iter().map(|it| &it.wire).collect::<Vec<_>>(),
                            expected.iter().map(|it| &it.wire).collect::<Vec<_>>()
                        );
                    }
                }
                Step::Data { object: of, number } => {
                    let data = Data {
                        name: object(of).with(&Component::segment(number)),
                        ..data("/").fresh_ms(number * 300)
                    };
                    let mut sent = two.node.data(B, &data);
                    sent.extend(two.pump());
                    let expected = one.node.data(B, &data);
                    prop_assert_eq!(summary(&sent), summary(&expected));
                }
                Step::Advance { ms: by } => {
                    let mut sent = two.node.advance(ms(by));
                    sent.extend(two.pump());
                    let expected = one.node.advance(ms(by));
                    prop_assert_eq!(summary(&sent), summary(&expected));
                }
                Step::Flush => two.flush(),
            }
            prop_assert_eq!(
                two.node.engine.sizes().n_pit_entries,
                one.node.engine.sizes().n_pit_entries
            );
        }
    }
}
