//! A FIB that is searched while it changes: every answer must be one that the FIB would
//! have given at some moment of the search.
//!
//! The changes are drawn beforehand, and a plain map says what each name finds after each
//! of them. Then one thread applies them, telling how many it has begun and finished, and
//! others search, and look whether their answer is that after one of the changes between.

mod support;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use support::{Hashing, Layout};
use tachonym_memory::PagePreference;
use tachonym_packet::{Component, FaceId, Name, NameHash};
use tachonym_tables::{Fib, FibConfig, FibReader, NextHop, NextHops};

const N_CHANGES: usize = if cfg!(miri) { 100 } else { 2500 };
const N_READERS: usize = 2;
const N_FACES: u64 = 3;

#[derive(Clone, Debug)]
enum Change {
    Insert(Name, u64),
    Remove(Name),
    RemoveFace(u64),
    PullLevels,
}

/// What a name finds: components of the prefix and cost, or nothing.
type Found = Option<(u8, u64)>;

/// SplitMix64 (Steele, Lea and Flood 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % n
    }
}

fn some_name(random: &mut Random, max_components: u64) -> Name {
    let n_components = random.below(max_components + 1);
    (0..n_components).fold(Name::new(), |name, _| {
        let letter = [b'a' + random.below(2) as u8];
        name.with(&Component::generic(letter))
    })
}

/// A change, whose cost tells it from all others.
fn some_change(random: &mut Random, number: usize) -> Change {
    match random.below(100) {
        0 => Change::RemoveFace(random.below(N_FACES)),
        1..4 => Change::PullLevels,
        4..50 => Change::Remove(some_name(random, 4)),
        _ => Change::Insert(some_name(random, 4), number as u64),
    }
}

/// The face that a cost goes with.
const fn face_of(cost: u64) -> u64 {
    cost % N_FACES
}

fn apply_to_model(model: &mut BTreeMap<Name, u64>, change: &Change) {
    match change {
        Change::Insert(name, cost) => {
            model.insert(name.clone(), *cost);
        }
        Change::Remove(name) => {
            model.remove(name);
        }
        Change::RemoveFace(face) => model.retain(|_, cost| face_of(*cost) != *face),
        Change::PullLevels => {}
    }
}

fn apply(fib: &mut Fib, change: &Change) {
    match change {
        Change::Insert(name, cost) => {
            let hop = NextHop::new(FaceId(face_of(*cost)), *cost);
            let hops = NextHops::new(vec![hop]).expect("one");
            fib.insert(name.view(), &hops).expect("room");
        }
        Change::Remove(name) => {
            fib.remove(name.view());
        }
        Change::RemoveFace(face) => {
            // All sets at once: the model has no moment between two of them.
            fib.remove_face(FaceId(*face));
            fib.sweep(64);
        }
        Change::PullLevels => {
            fib.pull_levels();
        }
    }
}

struct Script {
    changes: Vec<Change>,
    names: Vec<(Name, Vec<NameHash>)>,
    /// What each name finds after so many changes.
    answers: Vec<Vec<Found>>,
}

impl Script {
    fn new(seed: u64, hashing: Hashing) -> Self {
        let mut random = Random(seed);
        let names: Vec<_> = (0..24)
            .map(|_| {
                let name = some_name(&mut random, 6);
                let hashes = hashing.hashes(name.view());
                (name, hashes)
            })
            .collect();
        let changes: Vec<_> = (0..N_CHANGES)
            .map(|number| some_change(&mut random, number))
            .collect();
        let mut model = BTreeMap::new();
        let mut answers = Vec::with_capacity(N_CHANGES + 1);
        for n_applied in 0..=N_CHANGES {
            if n_applied > 0 {
                apply_to_model(&mut model, &changes[n_applied - 1]);
            }
            let find = |(name, _): &(Name, _)| {
                (0..=name.len()).rev().find_map(|n| {
                    let cost = model.get(&name.prefix(n).to_name());
                    cost.map(|&cost| (n as u8, cost))
                })
            };
            answers.push(names.iter().map(find).collect());
        }
        Self {
            changes,
            names,
            answers,
        }
    }

    /// Removing a face takes it out of one set of next hops after the other, and each
    /// cost here is a set of its own: while that goes on, an answer may be that after
    /// any part of it, which no single prefix can tell from its being gone or not.
    fn is_true_between(&self, name_idx: usize, found: Found, first: usize, last: usize) -> bool {
        (first..=last).any(|n_applied| self.answers[n_applied][name_idx] == found)
            || (first..last).any(|n_applied| match self.changes[n_applied] {
                Change::RemoveFace(face) => {
                    self.is_part_of_removal(name_idx, found, n_applied, face)
                }
                _ => false,
            })
    }

    /// Whether `found` is what is left of the ways of a name when those over `face` that
    /// are longer have gone already.
    fn is_part_of_removal(&self, name_idx: usize, found: Found, before: usize, face: u64) -> bool {
        let mut model = BTreeMap::new();
        for change in &self.changes[..before] {
            apply_to_model(&mut model, change);
        }
        let (name, _) = &self.names[name_idx];
        let mut ways = (0..=name.len()).rev().filter_map(|n| {
            let cost = model.get(&name.prefix(n).to_name());
            cost.map(|&cost| (n as u8, cost))
        });
        loop {
            match ways.next() {
                way if way == found => return true,
                Some((_, cost)) if face_of(cost) == face => {}
                _ => return false,
            }
        }
    }
}

fn search(reader: &mut FibReader, name: &Name, hashes: &[NameHash]) -> Found {
    let view = reader.pin();
    let found = view.find_longest(name.view(), hashes)?;
    let best = found.next_hops().iter().next().expect("never empty");
    assert_eq!(best.face().0, face_of(best.cost()), "a torn next hop");
    Some((found.n_components() as u8, best.cost()))
}

fn run(seed: u64, hashing: Hashing, layout: Layout) {
    let script = Script::new(seed, hashing);
    let config = FibConfig {
        pages: PagePreference::Base,
        engine: layout.engine,
        matching: layout.matching,
        level_pulling: layout.level_pulling,
        ..FibConfig::with_max_entries(1000)
    };
    let mut fib = Fib::new(config, hashing).expect("a small FIB");
    let readers: Vec<_> = (0..N_READERS).map(|_| fib.reader()).collect();
    let (n_begun, n_finished) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for (idx, mut reader) in readers.into_iter().enumerate() {
            let (script, n_begun, n_finished, is_over) = (&script, &n_begun, &n_finished, &is_over);
            scope.spawn(move || {
                let mut random = Random(seed + 1 + idx as u64);
                while !is_over.load(Ordering::Acquire) {
                    let name_idx = random.below(script.names.len() as u64) as usize;
                    let (name, hashes) = &script.names[name_idx];
                    let first = n_finished.load(Ordering::Acquire);
                    let found = search(&mut reader, name, hashes);
                    let last = n_begun.load(Ordering::Acquire);
                    assert!(
                        script.is_true_between(name_idx, found, first, last),
                        "{name} found {found:?} between changes {first} and {last}, seed {seed}, {layout:?}"
                    );
                }
            });
        }
        for (number, change) in script.changes.iter().enumerate() {
            n_begun.store(number + 1, Ordering::Release);
            apply(&mut fib, change);
            n_finished.store(number + 1, Ordering::Release);
        }
        is_over.store(true, Ordering::Release);
    });
    assert_eq!(fib.len(), fib.iter().count());
}

#[test]
fn searches_see_each_change_wholly_or_not_at_all() {
    for layout in Layout::all() {
        run(1, Hashing::Keyed, layout);
    }
}

#[test]
fn searches_see_whole_changes_though_all_hashes_collide() {
    for layout in Layout::all() {
        run(2, Hashing::TwoBits, layout);
    }
}
