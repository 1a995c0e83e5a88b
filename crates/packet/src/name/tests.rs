//! Names: prefixes, order, what is refused, and what a scan finds.

use super::*;

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

#[test]
fn prefixes_and_suffixes_cut_between_components() {
    let abc = name("/a/bb/300=ccc");
    assert_eq!(abc.len(), 3);
    assert_eq!(abc.prefix(0), NameView::EMPTY);
    assert_eq!(abc.prefix(2), name("/a/bb"));
    assert_eq!(abc.prefix(2).len(), 2);
    assert_eq!(abc.prefix(9), abc);
    assert_eq!(abc.view().suffix(1), name("/bb/300=ccc"));
    assert_eq!(abc.view().suffix(1).len(), 2);
    assert!(abc.view().suffix(3).is_empty());
    assert_eq!(abc.get(2).unwrap().typ(), 300);
    assert_eq!(abc.get(3), None);
    assert_eq!(abc.last(), abc.get(2));
    assert_eq!(abc.components().len(), 3);
}

#[test]
fn a_digest_inside_a_longer_component_is_none() {
    let mut bytes = b"x".to_vec();
    bytes.extend_from_slice(&[1, 32]);
    bytes.extend_from_slice(&[7; 32]);
    let inside = Name::new().with(&Component::generic(&bytes));
    assert_eq!(inside.view().last_implicit_digest(), None);
    let parameters = Name::new().with(&Component::parameters_digest(&[7; 32]));
    assert_eq!(parameters.view().last_implicit_digest(), None);
    let same_size = Name::new().with(&Component::generic([1; 32]));
    assert_eq!(same_size.view().last_implicit_digest(), None);
    let full = same_size.with(&Component::implicit_digest(&[7; 32]));
    assert_eq!(full.view().last_implicit_digest(), Some(&[7; 32]));
    assert_eq!(full.prefix(1).last_implicit_digest(), None);
    assert_eq!(NameView::EMPTY.last_implicit_digest(), None);
}

#[test]
fn scope_goes_by_a_first_component_of_the_generic_type() {
    for (uri, scope) in [
        ("/localhost", NameScope::Localhost),
        ("/localhost/a", NameScope::Localhost),
        ("/localhop/a", NameScope::Localhop),
        ("/localhosts", NameScope::Global),
        ("/local/localhost", NameScope::Global),
        ("/9=localhost", NameScope::Global),
        ("/", NameScope::Global),
    ] {
        assert_eq!(name(uri).view().scope(), scope, "{uri}");
    }
}

/// However a name is made, its last component is that of a scan of its bytes.
#[test]
fn the_last_component_is_known_of_prefixes_suffixes_and_built_names() {
    let abc = name("/a/bb/300=ccc");
    let same = |made: NameView<'_>| {
        let scanned = NameView::parse_value(made.value_bytes()).unwrap();
        assert_eq!((made.len(), made.last()), (scanned.len(), scanned.last()));
        assert_eq!(made.last(), made.components().last());
    };
    for n in 0..=4 {
        same(abc.prefix(n));
        same(abc.view().suffix(n));
        same(abc.join(abc.prefix(n)).view());
        let mut cut = abc.clone();
        cut.truncate(n);
        same(cut.view());
        cut.append(abc.view().suffix(n));
        same(cut.view());
        cut.pop();
        same(cut.view());
    }
}

#[test]
fn prefix_test_respects_component_borders() {
    assert!(name("/a/b").starts_with(&name("/a")));
    assert!(name("/a/b").starts_with(&name("/")));
    assert!(name("/a/b").starts_with(&name("/a/b")));
    assert!(!name("/ab").starts_with(&name("/a")));
    assert!(!name("/a").starts_with(&name("/a/b")));
}

#[test]
fn components_are_added_and_taken_away() {
    let mut built = Name::new().with("a").with(&Component::segment(7));
    assert_eq!(built, name("/a/seg=7"));
    assert_eq!(built.join(&name("/x/y")), name("/a/seg=7/x/y"));
    assert_eq!(built.pop(), Some(Component::segment(7)));
    assert_eq!(built, name("/a"));
    built.truncate(0);
    assert_eq!(built.pop(), None);
    assert!(built.is_empty());
    assert_eq!(["a", "b"].into_iter().collect::<Name>(), name("/a/b"));
}

#[test]
fn names_cut_short_are_rejected() {
    let wire = name("/a/bb/300=ccc").encode();
    for len in 0..wire.len() {
        assert!(NameView::parse_element(&wire[..len]).is_err(), "{len}");
    }
    assert!(NameView::parse_element(&wire).is_ok());
    let trailing = [&wire[..], &[0]].concat();
    assert_eq!(
        NameView::parse_element(&trailing).err(),
        Some(DecodeError::TrailingBytes { extra_bytes: 1 })
    );
}

#[test]
fn component_types_and_digest_lengths_are_checked() {
    let parse = |bytes: &[u8]| NameView::parse_value(bytes).map(|n| n.len()).err();
    assert_eq!(parse(&[0, 0]), Some(DecodeError::InvalidType));
    assert_eq!(
        parse(&[254, 0, 1, 0, 0, 0]),
        Some(DecodeError::BadComponentType)
    );
    assert_eq!(parse(&[1, 1, 0]), Some(DecodeError::BadDigestLength));
    assert_eq!(
        parse(&[8, 253, 0, 1, 0]),
        Some(DecodeError::NonMinimalNumber)
    );
    assert_eq!(parse(&[253, 0, 8, 0]), Some(DecodeError::NonMinimalNumber));
    assert_eq!(parse(&[253, 255, 255, 0]), None);
}

#[test]
fn canonical_order_compares_components_one_by_one() {
    let ascending = [
        "/", "/a", "/a/a", "/a/b", "/b", "/aa", "/aa/a", "/253=a", "/65535=a",
    ];
    let names: Vec<Name> = ascending.map(name).into();
    assert!(names.is_sorted());
    for pair in names.windows(2) {
        let by_components = pair[0].components().cmp(pair[1].components());
        assert_eq!(by_components, Ordering::Less);
    }
}
