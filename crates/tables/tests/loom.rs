//! Models of the FIB: one writer changes a few prefixes while readers search, in every
//! order of their steps with a few preemptions, and with every value that the memory
//! model lets a load return. `cargo xtask test` runs them with `--cfg loom`.
//!
//! Each change of a script has a cost of its own, so an answer tells after which changes
//! it is true. What a reader finds must be true after some of them, and what it finds next
//! after the same or later ones.
#![cfg(loom)]

use loom::thread;
use tachonym_memory::PagePreference;
use tachonym_packet::{FaceId, Name, NameHash, NameView};
use tachonym_tables::{
    Fib, FibConfig, FibEngine, FibMatching, FibReader, NextHop, NextHops, PrefixHasher,
};

/// A hash of the letters of a name, without collisions among the names here.
#[derive(Clone, Copy, Debug)]
struct Letters;

impl PrefixHasher for Letters {
    fn hash_prefixes(&self, name: NameView<'_>, hashes: &mut Vec<NameHash>) {
        hashes.clear();
        let mut hash = 0_u64;
        hashes.push(NameHash(hash));
        for component in name.components() {
            let letter = u64::from(component.value()[0]);
            hash = (hash + letter).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            hashes.push(NameHash(hash));
        }
    }
}

/// Any two names alike: only the comparison of names tells them apart.
#[derive(Clone, Copy, Debug)]
struct Alike;

impl PrefixHasher for Alike {
    fn hash_prefixes(&self, name: NameView<'_>, hashes: &mut Vec<NameHash>) {
        hashes.clear();
        hashes.resize(name.len() + 1, NameHash(7));
    }
}

#[derive(Clone, Copy, Debug)]
enum Change {
    /// A prefix and its cost, which is also the number of its face.
    Insert(&'static str, u64),
    Remove(&'static str),
    RemoveFace(u64),
    PullLevels,
}

use Change::{Insert, PullLevels, Remove, RemoveFace};

fn name(uri: &str) -> Name {
    uri.parse().expect("a model's own URI")
}

fn apply(fib: &mut Fib, change: Change) {
    match change {
        Insert(prefix, cost) => {
            let hops = NextHops::new(vec![NextHop::new(FaceId(cost), cost)]).expect("one");
            fib.insert(name(prefix).view(), &hops).expect("room");
        }
        Remove(prefix) => assert!(fib.remove(name(prefix).view())),
        RemoveFace(face) => {
            assert_eq!(fib.remove_face(FaceId(face)), 1);
            fib.sweep(16);
        }
        PullLevels => {
            fib.pull_levels();
        }
    }
}

/// The cost of what a name finds.
fn find(reader: &mut FibReader, hasher: &impl PrefixHasher, name: &Name) -> Option<u64> {
    let mut hashes = Vec::new();
    hasher.hash_prefixes(name.view(), &mut hashes);
    let view = reader.pin();
    let found = view.find_longest(name.view(), &hashes)?;
    let best = found.next_hops().iter().next().expect("never empty");
    assert_eq!(best.face(), FaceId(best.cost()), "a torn next hop");
    Some(best.cost())
}

#[derive(Clone, Copy)]
struct Model {
    engine: FibEngine,
    matching: FibMatching,
    level_pulling: u32,
    /// What is there before any reader.
    before: &'static [Change],
    changes: &'static [Change],
    /// The name that is searched for.
    name: &'static str,
    /// What it finds at first, and after each change.
    answers: &'static [Option<u64>],
    n_readers: usize,
    n_searches: usize,
    n_preemptions: usize,
}

const MODEL: Model = Model {
    engine: FibEngine::LongestFirst,
    matching: FibMatching::AtEnd,
    level_pulling: 0,
    before: &[],
    changes: &[],
    name: "/",
    answers: &[],
    n_readers: 1,
    n_searches: 1,
    n_preemptions: 3,
};

impl Model {
    fn check(self) {
        self.check_with(Letters);
    }

    fn check_with(self, hasher: impl PrefixHasher + Copy + Sync + 'static) {
        assert_eq!(self.answers.len(), self.changes.len() + 1);
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(self.n_preemptions);
        model.max_branches = 20_000;
        model.check(move || {
            let config = FibConfig {
                pages: PagePreference::Base,
                engine: self.engine,
                matching: self.matching,
                level_pulling: self.level_pulling,
                ..FibConfig::with_max_entries(8)
            };
            let mut fib = Fib::new(config, hasher).expect("a small FIB");
            self.before
                .iter()
                .for_each(|&change| apply(&mut fib, change));
            let reading: Vec<_> = (0..self.n_readers)
                .map(|_| {
                    let mut reader = fib.reader();
                    thread::spawn(move || self.read(&mut reader, &hasher))
                })
                .collect();
            self.changes
                .iter()
                .for_each(|&change| apply(&mut fib, change));
            for thread in reading {
                thread.join().expect("no reader fails");
            }
            let mut reader = fib.reader();
            let last = find(&mut reader, &hasher, &name(self.name));
            assert_eq!(Some(&last), self.answers.last());
        });
    }

    fn read(&self, reader: &mut FibReader, hasher: &impl PrefixHasher) {
        let name = name(self.name);
        // It may have seen no more changes than these, by what it found before.
        let mut n_seen = 0;
        for _ in 0..self.n_searches {
            let found = find(reader, hasher, &name);
            let later = self.answers[n_seen..]
                .iter()
                .position(|answer| *answer == found);
            n_seen += later.unwrap_or_else(|| panic!("{found:?} after {n_seen} changes"));
        }
    }
}

/// A prefix comes, is changed, and goes, below another.
const LIFE: Model = Model {
    before: &[Insert("/a", 1)],
    changes: &[Insert("/a/b", 2), Insert("/a/b", 3), Remove("/a/b")],
    name: "/a/b/c",
    answers: &[Some(1), Some(2), Some(3), Some(1)],
    ..MODEL
};

#[test]
fn a_prefix_that_comes_and_goes_is_found_wholly_or_not_at_all() {
    LIFE.check();
}

#[test]
fn so_it_is_for_two_readers_that_search_twice() {
    Model {
        changes: &[Insert("/a/b", 2), Remove("/a/b")],
        answers: &[Some(1), Some(2), Some(1)],
        n_readers: 2,
        n_searches: 2,
        n_preemptions: 1,
        ..LIFE
    }
    .check();
}

#[test]
fn a_later_change_above_is_not_seen_without_the_earlier_one_below() {
    Model {
        before: &[Insert("/a", 1)],
        changes: &[Insert("/a/b/c", 2), Insert("/a", 3)],
        name: "/a/b/c/d",
        answers: &[Some(1), Some(2), Some(2)],
        ..MODEL
    }
    .check();
}

#[test]
fn a_node_is_not_used_again_while_a_search_may_know_of_it() {
    Model {
        before: &[Insert("/a", 1), Insert("/a/b", 2)],
        changes: &[Remove("/a/b"), Insert("/c/d", 3), Insert("/e/f", 4)],
        name: "/a/b/c",
        answers: &[Some(2), Some(1), Some(1), Some(1)],
        ..MODEL
    }
    .check();
}

#[test]
fn names_are_compared_where_all_hashes_collide() {
    Model {
        before: &[Insert("/a", 1)],
        changes: &[Insert("/c/d", 2), Insert("/a/b", 3), Remove("/c/d")],
        name: "/a/b/c",
        answers: &[Some(1), Some(1), Some(3), Some(3)],
        n_preemptions: 2,
        ..MODEL
    }
    .check_with(Alike);
}

/// A bucket holds eight, and is full enough with six.
#[test]
fn a_search_goes_on_while_the_table_grows() {
    Model {
        before: &[
            Insert("/a", 1),
            Insert("/p", 91),
            Insert("/q", 92),
            Insert("/r", 93),
            Insert("/s", 94),
        ],
        changes: &[Insert("/a/b", 2), Insert("/t", 95), Remove("/a")],
        name: "/a/b/c",
        answers: &[Some(1), Some(2), Some(2), Some(2)],
        n_searches: 2,
        n_preemptions: 2,
        ..MODEL
    }
    .check();
}

#[test]
fn a_face_that_goes_takes_its_prefix_along_at_once() {
    Model {
        before: &[Insert("/a", 1), Insert("/a/b", 2)],
        changes: &[RemoveFace(2), RemoveFace(1)],
        name: "/a/b/c",
        answers: &[Some(2), Some(1), None],
        ..MODEL
    }
    .check();
}

/// `/a/m` is a marker of the longer prefix.
const INHERITED: Model = Model {
    engine: FibEngine::BinarySearch,
    before: &[Insert("/a/m/x", 9)],
    changes: &[Insert("/a", 1), Remove("/a")],
    name: "/a/m/y",
    answers: &[None, Some(1), None],
    ..MODEL
};

#[test]
fn what_a_marker_inherits_changes_with_the_prefix_above_it() {
    INHERITED.check();
}

#[test]
fn a_marker_that_goes_leaves_its_searches_an_answer() {
    Model {
        before: &[Insert("/a", 1), Insert("/a/m/x", 9)],
        changes: &[Remove("/a/m/x"), Insert("/a/m", 2)],
        answers: &[Some(1), Some(1), Some(2)],
        ..INHERITED
    }
    .check();
}

#[test]
fn a_binary_search_that_compares_every_name_sees_whole_changes() {
    Model {
        matching: FibMatching::Always,
        ..INHERITED
    }
    .check();
}

#[test]
fn two_stages_see_whole_changes() {
    Model {
        engine: FibEngine::TwoStage { first: 1 },
        n_preemptions: 2,
        ..LIFE
    }
    .check();
}

#[test]
fn the_shortest_first_sees_whole_changes() {
    Model {
        engine: FibEngine::ShortestFirst,
        before: &[Insert("/a", 1)],
        changes: &[Insert("/a/b/c", 2), Remove("/a"), Remove("/a/b/c")],
        name: "/a/b/c/d",
        answers: &[Some(1), Some(2), Some(2), None],
        ..MODEL
    }
    .check();
}

/// `/h` is pulled, when two components follow it, and no more when one does. A search
/// that begins below it needs the marker `/h/1`.
#[test]
fn searches_that_begin_below_a_pulled_prefix_see_whole_changes() {
    Model {
        level_pulling: 1,
        before: &[Insert("/h", 1), Insert("/h/1/x", 2), Insert("/h/2", 9)],
        changes: &[
            PullLevels,
            Insert("/h/1/x/y", 3),
            Remove("/h/2"),
            PullLevels,
        ],
        name: "/h/1/x/y/z",
        answers: &[Some(2), Some(2), Some(3), Some(3), Some(3)],
        n_preemptions: 2,
        ..MODEL
    }
    .check();
}
