//! Rules for Interests that wait at one engine for what the second level of another one has.

mod bed;
mod two_levels_bed;

use bed::*;
use tachonym_forward::sharing::{MAX_REMOTE_READS, RemoteRead, Requester};
use tachonym_packet::{FaceId, InterestView};
use tachonym_store::device::Fault;
use two_levels_bed::*;

impl TwoLevels {
    /// What the second level has for an Interest that waits at another engine.
    fn seek(&mut self, ticket: u64, asked: &Interest) -> Option<RemoteRead> {
        self.seek_from(D, ticket, asked)
    }

    /// The same for an Interest that came by a certain face.
    fn seek_from(&mut self, face: FaceId, ticket: u64, asked: &Interest) -> Option<RemoteRead> {
        let wire = asked.wire();
        let view = InterestView::parse(&wire).expect("an Interest");
        let requester = Requester { engine: 3, ticket };
        self.node
            .engine
            .shared()
            .read_for(self.node.now, requester, face, &view);
        self.node.engine.shared().poll_remote_read()
    }

    /// The numbers of those that have been told by now, with the Data if there is one.
    fn read(&mut self) -> Vec<(u64, Option<Vec<u8>>)> {
        let told = std::iter::from_fn(|| self.node.engine.shared().poll_remote_read());
        let told = told.map(|it| (it.requester.ticket, it.data.map(|(_, wire)| wire)));
        told.collect()
    }
}

/// An Interest for whatever is below a name.
fn interest_below(uri: &str) -> Interest {
    Interest {
        can_be_prefix: true,
        ..interest(uri)
    }
}

#[test]
fn interests_of_other_engines_get_what_is_read_and_leave_nothing_pending() {
    let stored = segments("/a", 4);
    let mut it = TwoLevels::holding(&stored);
    assert_eq!(it.seek(1, &interest_below("/a")), None, "it is read");
    assert_eq!(it.seek(2, &interest_for(&stored[2])), None, "by the same");
    assert_eq!(it.node.engine.sizes().n_pit_entries, 0);
    assert_eq!(it.pump(), [], "no Interest here has asked");
    assert_eq!(it.store().counters().n_reads, 1);
    let told = it.read();
    let expected = [(1, Some(stored[0].wire())), (2, Some(stored[2].wire()))];
    assert_eq!(told, expected);
    let absent = it.seek(3, &interest_below("/b")).expect("at once");
    assert_eq!((absent.requester.ticket, absent.data), (3, None));
    // An Interest that comes here joins the read, and is answered as ever.
    assert_eq!(it.seek(4, &interest_below("/a")), None);
    let (at_once, later) = it.ask(&interest_for(&stored[1]));
    assert_eq!(summary(&at_once), []);
    assert_eq!(summary(&later), [(C, Kind::Data)]);
    assert_eq!(it.read(), [(4, Some(stored[0].wire()))]);
}

#[test]
fn interests_of_other_engines_are_told_when_nothing_comes_of_a_read() {
    let stored = segments("/a", 4);
    let mut it = TwoLevels::holding(&stored);
    let fresh = Interest {
        must_be_fresh: true,
        ..interest_below("/a")
    };
    assert_eq!(it.seek(1, &fresh), None);
    it.pump();
    assert_eq!(it.read(), [(1, None)], "none is fresh");
    let again = it.seek(2, &fresh).expect("at once: that is known");
    assert_eq!(again.data, None);
    it.fail_reads(Fault::Error(5));
    assert_eq!(it.seek(3, &interest_below("/a")), None);
    it.pump();
    assert_eq!(it.read(), [(3, None)], "it cannot be read");
}

#[test]
fn interests_of_other_engines_that_may_not_wait_are_told_and_counted() {
    let n_objects = config().max_reads + 1;
    let objects = (0..n_objects).map(|object| format!("/object/{object}"));
    let stored: Vec<_> = objects.map(|object| segment(&object, 0)).collect();
    let mut it = TwoLevels::holding(&stored);
    let n_refused = |it: &TwoLevels| it.node.engine.counters().n_sought_refused;
    for ticket in 0..MAX_REMOTE_READS as u64 {
        assert_eq!(it.seek(ticket, &interest_for(&stored[0])), None);
    }
    assert_eq!(n_refused(&it), 0);
    let beyond = it.seek(9_999, &interest_for(&stored[0])).expect("at once");
    assert_eq!((beyond.data, n_refused(&it)), (None, 1));
    let absent = it.seek(9_999, &interest_below("/b")).expect("at once");
    assert_eq!((absent.data, n_refused(&it)), (None, 1), "there is none");
    it.pump();
    assert_eq!(it.read().len(), MAX_REMOTE_READS);
    // There is room again, but no read is free for each.
    let (last, others) = stored.split_last().expect("some");
    for (face, stored) in (300..).map(FaceId).zip(others) {
        assert_eq!(it.seek_from(face, 0, &interest_for(stored)), None);
    }
    let beyond = it.seek_from(FaceId(299), 0, &interest_for(last));
    let beyond = beyond.expect("at once");
    assert_eq!((beyond.data, n_refused(&it)), (None, 2));
}
