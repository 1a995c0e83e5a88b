//! Reads of the second level are shared among faces, and those who wait for one are bounded; who
//! gets no read is served by an upstream.

mod bed;
mod two_levels_bed;

use bed::*;
use tachonym_forward::DropReason;
use tachonym_forward::sharing::Requester;
use tachonym_packet::{InterestView, NackReason};
use tachonym_store::MAX_WAITERS_PER_READ;
use tachonym_store::device::Fault;
use two_levels_bed::*;

/// Data of objects of their own, each of which takes a read.
fn objects(n: u64) -> Vec<Data> {
    let object = |object| segment(&format!("/{object}"), 0);
    (0..n).map(object).collect()
}

#[test]
fn more_than_can_be_read_is_asked_for_upstream() {
    let stored = objects(8);
    let mut it = TwoLevels::holding(&stored);
    let mut n_upstream = 0;
    for data in &stored {
        let sent = it.node.interest(C, &interest_for(data));
        n_upstream += match summary(&sent)[..] {
            [] => 0,
            [(B, Kind::Interest)] => 1,
            ref other => panic!("{other:?}"),
        };
    }
    // Three of four reads are its share while no other face reads.
    assert_eq!(n_upstream, 5);
    assert_eq!(it.store().counters().n_busy, 5);
    let counters = it.node.engine.counters();
    assert!(counters.drops().all(|(_, n_dropped)| n_dropped == 0));
    assert_eq!(it.pump().len(), 3);
    // What comes from upstream is not written a second time.
    let n_written = it.store().counters().n_written;
    for data in &stored[3..] {
        assert_eq!(summary(&it.node.data(B, data)), [(C, Kind::Data)]);
    }
    it.flush();
    assert_eq!(it.store().counters().n_written, n_written);
    assert_eq!(it.store().counters().n_known, 5);
}

#[test]
fn an_interest_without_a_read_and_without_a_route_is_nacked_for_that() {
    let stored = objects(4);
    let mut it = TwoLevels::holding(&stored);
    it.node
        .engine
        .routes()
        .lock()
        .remove_next_hop(name("/").view(), B);
    for data in &stored[..3] {
        assert_eq!(it.node.interest(C, &interest_for(data)), []);
    }
    let sent = it.node.interest(C, &interest_for(&stored[3]));
    assert_eq!(summary(&sent), [(C, Kind::Nack(NackReason::NoRoute))]);
    assert_eq!(it.node.n_dropped(DropReason::NoRoute), 1);
}

#[test]
fn a_face_that_reads_much_leaves_reads_to_others() {
    let stored = objects(8);
    let mut it = TwoLevels::holding(&stored);
    it.fail_reads(Fault::Stall);
    for data in &stored[..6] {
        it.node.interest(C, &interest_for(data));
    }
    assert_eq!(it.store().counters().n_reads, 3);
    // Another one reads though the first would have taken all.
    let asked = interest_for(&stored[6]);
    assert_eq!(it.node.interest(D, &asked), []);
    assert_eq!(it.store().counters().n_reads, 4);
    let sent = it.node.interest(D, &interest_for(&stored[7]));
    assert_eq!(summary(&sent), [(B, Kind::Interest)]);
}

#[test]
fn interests_of_other_engines_count_to_the_faces_that_they_came_by() {
    let stored = objects(5);
    let mut it = TwoLevels::holding(&stored);
    let seek = |it: &mut TwoLevels, face, ticket, data: &Data| {
        let wire = interest_for(data).wire();
        let asked = InterestView::parse(&wire).expect("well-formed");
        let requester = Requester { engine: 1, ticket };
        let (now, engine) = (it.node.now, &mut it.node.engine);
        engine.shared().read_for(now, requester, face, &asked);
        it.node.engine.shared().poll_remote_read().is_none()
    };
    let reads: Vec<_> = (1..)
        .zip(&stored[..4])
        .map(|(ticket, data)| seek(&mut it, C, ticket, data))
        .collect();
    assert_eq!(reads, [true, true, true, false]);
    assert!(seek(&mut it, D, 9, &stored[4]));
}

#[test]
fn those_who_wait_for_a_read_that_stalls_are_bounded() {
    let stored = segments("/a", 4);
    let mut it = TwoLevels::holding(&stored);
    it.fail_reads(Fault::Stall);
    let mut n_upstream = 0;
    for number in 0..MAX_WAITERS_PER_READ as u32 + 10 {
        let data = &stored[number as usize % 4];
        let asked = interest_for(data).nonce(100 + number).lifetime_ms(1);
        let sent = it.node.interest(C, &asked);
        n_upstream += match summary(&sent)[..] {
            [] => 0,
            [(B, Kind::Interest)] => 1,
            ref other => panic!("{other:?}"),
        };
        // The entry is gone, and the next Interest makes another one.
        it.node.advance(ms(3));
    }
    assert_eq!(n_upstream, 10);
    assert_eq!(it.store().counters().n_reads, 1);
    assert_eq!(it.store().counters().n_busy, 10);
}
