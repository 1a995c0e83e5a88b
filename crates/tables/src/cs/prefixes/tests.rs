//! The tree against a list of names, and how much of it a step touches.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tachonym_packet::{Component, DataView, HashKey, Name, NameHashes, tlv, types};

use super::*;

/// As the router does it, or so badly that only bytes tell prefixes apart.
#[derive(Clone, Copy, Debug)]
enum Hashing {
    Keyed,
    Weak(u64),
}

impl PrefixHasher for Hashing {
    fn hash_prefixes(&self, name: NameView<'_>, hashes: &mut Vec<NameHash>) {
        let mut buffer = NameHashes::new();
        let key = HashKey::from_u64s(7, 8);
        let span = buffer.push_name(&key, name);
        let weaken = |hash: &NameHash| match self {
            Self::Keyed => *hash,
            Self::Weak(mask) => NameHash(hash.0 & mask),
        };
        *hashes = buffer.slice(span).iter().map(weaken).collect();
    }
}

/// A tree with the Data that it is of.
struct Bed {
    tree: PrefixTree,
    data: Slab<CsEntry>,
    hashing: Hashing,
    /// Slot and end of freshness by name.
    names: BTreeMap<Name, (u32, MonoNs)>,
}

impl Bed {
    fn new(hashing: Hashing, max_data: usize) -> Self {
        Self {
            tree: PrefixTree::new(
                IndexKind::Single,
                max_data,
                PagePreference::Base,
                Box::new(hashing),
            )
            .expect("a small index"),
            data: Slab::new(max_data, PagePreference::Base).unwrap(),
            hashing,
            names: BTreeMap::new(),
        }
    }

    fn hashes(&self, name: &Name) -> Vec<NameHash> {
        let mut hashes = Vec::new();
        self.hashing.hash_prefixes(name.view(), &mut hashes);
        hashes
    }

    fn put(&mut self, name: &Name, fresh_until: MonoNs) {
        if let Some((slot, until)) = self.names.get_mut(name) {
            *until = fresh_until;
            let vertex = self.data[*slot].vertex.expect("all are entered");
            self.tree.set_fresh_until(vertex, fresh_until);
            return;
        }
        let mut wire = Vec::new();
        tlv::write_nested(&mut wire, types::DATA, |out| {
            name.encode_into(out);
            tlv::write_nested(out, types::SIGNATURE_INFO, |out| {
                tlv::write_nni(out, types::SIGNATURE_TYPE, 0);
            });
            tlv::write_tlv(out, types::SIGNATURE_VALUE, &[]);
        });
        let hashes = self.hashes(name);
        let slot = self.data.alloc();
        let view = DataView::parse(&wire).unwrap();
        self.data[slot].buffer = wire.as_slice().into();
        self.data[slot].occupy(&view, hashes[name.len()], MonoNs(0));
        let newcomer = Newcomer {
            slot,
            name: name.view(),
            // The one or the other must not make a difference.
            hashes: &hashes,
            fresh_until,
        };
        let vertex = self.tree.insert(newcomer, &self.data, |asked, hash| {
            assert_eq!(hash, hashes[asked.len()]);
            let (slot, _) = self.names.get(&asked.to_name())?;
            self.data[*slot].vertex
        });
        self.data[slot].vertex = Some(vertex);
        self.names.insert(name.clone(), (slot, fresh_until));
    }

    fn take(&mut self, name: &Name) {
        if let Some((slot, _)) = self.names.remove(name) {
            self.tree
                .remove(self.data[slot].vertex.expect("all are entered"));
            self.data.free(slot);
        }
    }

    /// Touches of vertices by a step.
    fn n_touched(&mut self, step: impl FnOnce(&mut Self)) -> usize {
        self.tree.n_touched.set(0);
        step(self);
        self.tree.n_touched.get()
    }

    /// Compares with the list, for every prefix of `name`.
    fn check(&self, name: &Name) {
        for n_components in 0..=name.len() {
            let prefix = name.prefix(n_components).to_name();
            let found = self
                .tree
                .freshest_below(prefix.view(), &self.hashes(&prefix), &self.data);
            let below = || {
                self.names
                    .iter()
                    .filter(|(name, _)| name.starts_with(&prefix))
            };
            let fresh_until = |slot| {
                below()
                    .find(|(_, (at, _))| *at == slot)
                    .map(|pair| pair.1.1)
            };
            match found {
                Some(slot) => assert_eq!(
                    Some(fresh_until(slot).expect("a Data of such a name")),
                    below().map(|(_, (_, until))| *until).max()
                ),
                // The content store looks for the name itself elsewhere.
                None => assert!(below().all(|(name, _)| *name == prefix)),
            }
        }
    }

    fn check_vertices(&self) {
        let mut n_data = 0;
        let mut n_seen = 0;
        let mut parents = vec![ROOT];
        while let Some(parent) = parents.pop() {
            let above = self.tree.vertices[parent];
            let mut siblings = vec![(NIL, above.below)];
            let mut n_children = 0;
            while let Some((up, id)) = siblings.pop() {
                if id == NIL {
                    continue;
                }
                let vertex = self.tree.vertices[id];
                n_children += 1;
                assert_eq!((vertex.parent, vertex.up), (parent, up));
                assert_eq!(vertex.start, above.end + 1);
                assert!(vertex.is_data || vertex.end >= vertex.start);
                assert_eq!(vertex.rank, 1 + self.tree.rank(vertex.right));
                assert!(self.tree.rank(vertex.left) >= self.tree.rank(vertex.right));
                if up != NIL {
                    assert!(vertex.fresh_until <= self.tree.vertices[up].fresh_until);
                }
                if vertex.is_data {
                    n_data += 1;
                    assert_eq!(self.data[vertex.below].vertex, Some(id));
                } else {
                    let first = self.tree.vertices[vertex.below];
                    assert_eq!(vertex.fresh_until, first.fresh_until);
                    parents.push(id);
                }
                siblings.extend([(id, vertex.left), (id, vertex.right)]);
            }
            assert!(parent == ROOT || n_children >= 2);
            n_seen += n_children;
        }
        assert_eq!(n_data, self.names.len());
        assert_eq!(n_seen, self.tree.n_vertices());
        assert!(n_seen <= (2 * n_data).saturating_sub(1));
    }
}

fn any_name() -> impl Strategy<Value = Name> {
    let component = prop_oneof![Just("a"), Just("b"), Just("aa"), Just("c")];
    proptest::collection::vec(component, 1..8).prop_map(|components| {
        let components = components.iter().map(Component::generic);
        components.fold(Name::new(), |name, component| name.with(&component))
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 2 } else { 200 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn prefixes_are_found_as_in_a_list_however_bad_the_hashes(
        steps in proptest::collection::vec((any_name(), 0_u64..9, 0_u8..3), 1..100)
    ) {
        for hashing in [Hashing::Keyed, Hashing::Weak(3), Hashing::Weak(0)] {
            let mut bed = Bed::new(hashing, 200);
            for (name, fresh_until, step) in &steps {
                match step {
                    0 => bed.take(name),
                    _ => bed.put(name, MonoNs(*fresh_until)),
                }
                bed.check(name);
                bed.check_vertices();
            }
        }
    }
}

/// Names with many below one prefix, in pairs and alone, of some depth.
fn names(n_names: u32) -> Vec<Name> {
    (0..n_names)
        .map(|n| match n % 3 {
            0 => format!("/a/b/{n}"),
            1 => format!("/a/b/c/{}/d/{}/e", n / 6, n % 6),
            _ => format!("/x{n}/a/b/c/d/e/f"),
        })
        .map(|uri| uri.parse().unwrap())
        .collect()
}

/// Greatest number of touches of any step of a tree with so many names, which
/// come, come again and go, fresh as `fresh_until` says.
fn most_touched(n_names: u32, fresh_until: impl Fn(u64) -> u64) -> usize {
    let mut bed = Bed::new(Hashing::Keyed, n_names as usize);
    let names = names(n_names);
    let mut most = 0;
    for round in 0..3 {
        for (n, name) in (0_u64..).zip(&names) {
            let until = MonoNs(fresh_until(round * names.len() as u64 + n));
            most = most.max(bed.n_touched(|bed| bed.put(name, until)));
            let prefix = name.prefix(name.len() - 1).to_name();
            let hashes = bed.hashes(&prefix);
            most = most.max(bed.n_touched(|bed| {
                let found = bed.tree.freshest_below(prefix.view(), &hashes, &bed.data);
                assert!(found.is_some());
            }));
        }
    }
    bed.check_vertices();
    for name in &names {
        most = most.max(bed.n_touched(|bed| bed.take(name)));
    }
    assert_eq!(bed.tree.n_vertices(), 0);
    most
}

#[test]
fn a_step_touches_few_vertices_whatever_the_order_of_freshness() {
    const N_NAMES: u32 = if cfg!(miri) { 200 } else { 30_000 };
    // A multiplicative generator: no order at all.
    let scattered = |n: u64| (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
    // Three vertices on the way of a name. At each, a child is taken out of the heap
    // and put in again: three merges of two right spines.
    let bound = 4 * 3 * 2 * 6 * N_NAMES.ilog2() as usize;
    for most in [
        most_touched(N_NAMES, scattered),
        most_touched(N_NAMES, |n| u64::MAX - n),
    ] {
        assert!(most <= bound, "{most} > {bound}");
    }
    // As it usually is: what comes later is fresh longer, or nothing ever is.
    for most in [most_touched(N_NAMES, |n| n), most_touched(N_NAMES, |_| 0)] {
        assert!(most <= 150, "{most}");
    }
}
