//! What the map does beyond a FIB.

mod support;

use support::{Hashing, name};
use tachonym_packet::NameHash;
use tachonym_tables::{PrefixMap, PrefixMapError};

fn hash(uri: &str) -> NameHash {
    let name = name(uri);
    Hashing::TwoBits.hashes(name.view())[name.len()]
}

fn map_of(entries: &[(&str, u32)]) -> PrefixMap<u32> {
    let mut map = PrefixMap::new(entries.len());
    for &(uri, value) in entries {
        assert_eq!(map.insert(name(uri).view(), hash(uri), value), Ok(None));
    }
    map
}

#[test]
fn a_search_may_pass_over_values() {
    let map = map_of(&[("/", 0), ("/a", 1), ("/a/b", 2), ("/a/b/c", 3)]);
    let asked = name("/a/b/c/d");
    let hashes = Hashing::TwoBits.hashes(asked.view());
    let find = |accepts: fn(&u32) -> bool| {
        map.find_longest_where(asked.view(), &hashes, accepts)
            .map(|entry| entry.value)
    };
    assert_eq!(find(|_| true), Some(3));
    assert_eq!(find(|value| value % 2 == 0), Some(2));
    assert_eq!(find(|value| *value == 0), Some(0));
    assert_eq!(find(|_| false), None);
}

#[test]
fn a_full_map_still_replaces_and_makes_room_again() {
    let mut map = map_of(&[("/a", 1), ("/b", 2)]);
    let insert =
        |map: &mut PrefixMap<u32>, uri: &str, value| map.insert(name(uri).view(), hash(uri), value);
    assert_eq!(insert(&mut map, "/c", 3), Err(PrefixMapError::Full));
    assert_eq!(insert(&mut map, "/b", 4), Ok(Some(2)));
    assert_eq!(map.retain(|entry| entry.value != 1), 1);
    assert_eq!(
        map.get(name("/a").view(), hash("/a"))
            .map(|entry| entry.value),
        None
    );
    assert_eq!(insert(&mut map, "/c", 3), Ok(None));
    map.get_mut(name("/c").view(), hash("/c"))
        .expect("inserted above")
        .value += 10;
    assert_eq!(map.remove(name("/c").view(), hash("/c")), Some(13));
    assert_eq!(map.len(), 1);
}
