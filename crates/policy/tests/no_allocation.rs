//! A request allocates nothing, whatever it makes a policy do.

#[path = "../../memory/tests/support/allocations.rs"]
mod allocations;

use allocations::n_allocations;
use tachonym_policy::{AdmissionKind, EvictionKind, Policy, PolicyConfig, senseless};

const CAPACITY: usize = 200;
const N_NAMES: usize = 1_000;

fn hash(name: usize) -> u64 {
    let mut z = (name as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z ^ (z >> 27)
}

#[test]
fn no_pair_of_policies_allocates_for_a_request() {
    for admission in AdmissionKind::ALL {
        for eviction in EvictionKind::ALL {
            if senseless(admission, eviction).is_some() {
                continue;
            }
            let config = PolicyConfig::new(admission, eviction, CAPACITY);
            let mut policy = Policy::new(&config).expect("a sound configuration");
            let mut slot_of = vec![None; N_NAMES];
            let mut name_in = vec![0; CAPACITY];
            let mut free: Vec<u32> = (0..CAPACITY as u32).collect();
            let before = n_allocations();
            let mut n_evicted = 0;
            for n in 0..20_000 {
                // Small names are asked for more often.
                let draw = hash(n) as usize;
                let name = draw % N_NAMES % (1 + (draw >> 32) % N_NAMES);
                policy.handle_request(hash(name));
                let hash_of = |slot: u32| hash(name_in[slot as usize]);
                if let Some(slot) = slot_of[name] {
                    policy.handle_hit(slot);
                    if n % 50 == 0 {
                        policy.handle_remove(slot);
                        slot_of[name] = None;
                        free.push(slot);
                    }
                } else if policy.admits(hash(name), free.is_empty(), hash_of) {
                    let slot = free.pop().unwrap_or_else(|| {
                        let victim = policy.evict(hash(name), hash_of).expect("a full store");
                        slot_of[name_in[victim as usize]] = None;
                        n_evicted += 1;
                        victim
                    });
                    name_in[slot as usize] = name;
                    slot_of[name] = Some(slot);
                    let name_in = &name_in;
                    policy.handle_insert(slot, hash(name), |slot| hash(name_in[slot as usize]));
                }
            }
            let n_allocations = n_allocations() - before;
            assert_eq!(n_allocations, 0, "{admission} {eviction}");
            assert!(
                n_evicted > 100,
                "{admission} {eviction}: {n_evicted} evicted"
            );
        }
    }
}
