//! Names as bytes and as URIs: NDN Packet Format 0.3, section "Name", and the
//! unit tests of ndn-cxx (`tests/unit`, the file is named at each table).

mod support;

use support::{bytes, name};
use tachonym_packet::{Component, ComponentView, DecodeError, Name, NameView};

#[test]
fn components_have_the_uris_of_the_specification() {
    // ndn-cxx `name-component.t.cpp`; the first text is the one that is printed.
    let table: [(&str, &[&str]); 21] = [
        ("0807 6E646E2D637878", &["ndn-cxx", "8=ndn-cxx"]),
        ("0800", &["...", "8=...", ".%2E.", "%2e%2E%2e"]),
        ("0801 2E", &["....", "%2E..%2E"]),
        ("0803 2E2E2E", &["......", "8=......"]),
        ("0803 2E412E", &[".A.", "%2EA%2E"]),
        ("0807 666F6F25626172", &["foo%25bar", "8=foo%25bar"]),
        ("0804 2D2E5F7E", &["-._~"]),
        ("0803 393D41", &["9%3DA", "9%3dA"]),
        ("0807 3A2F3F235B5D40", &["%3A%2F%3F%23%5B%5D%40"]),
        ("0801 00", &["%00"]),
        ("2007 6E646E2D637878", &["32=ndn-cxx"]),
        ("2000", &["32=..."]),
        ("0907 6E646E2D637878", &["9=ndn-cxx"]),
        ("FDFFFF 00", &["65535=..."]),
        ("FD5765 01 2E", &["22373=...."]),
        // Types of the name component assignments.
        ("3201 2A", &["seg=42", "50=%2A", "50=*"]),
        ("3401 2A", &["off=42", "52=%2A"]),
        ("3601 2A", &["v=42", "54=%2A"]),
        ("3801 2A", &["t=42", "56=%2A"]),
        ("3A01 2A", &["seq=42", "58=%2A"]),
        // What is no number of NDN stays what it is.
        ("3603 010203", &["54=%01%02%03"]),
    ];
    for (wire, uris) in table {
        let wire = bytes(wire);
        let component = ComponentView::parse_element(&wire).expect("a component");
        assert_eq!(component.to_string(), uris[0]);
        for uri in uris {
            let parsed: Component = uri.parse().expect("a literal component");
            assert_eq!(parsed, component.to_component(), "{uri}");
            let mut out = Vec::new();
            parsed.view().encode_into(&mut out);
            assert_eq!(out, wire, "{uri}");
        }
    }
}

#[test]
fn digests_have_the_uris_of_the_specification() {
    let lower = "28bad4b5275bd392dbb670c75cf0b66f13f7942b21e80f55c0e86b374753a548";
    let escaped = "%28%BA%D4%B5%27%5B%D3%92%DB%B6p%C7%5C%F0%B6o\
                   %13%F7%94%2B%21%E8%0FU%C0%E8k7GS%A5H";
    for (typ, prefix) in [(1, "sha256digest"), (2, "params-sha256")] {
        let wire = bytes(&format!("{typ:02x}20 {lower}"));
        let component = ComponentView::parse_element(&wire).expect("a component");
        let printed = format!("{prefix}={lower}");
        assert_eq!(component.to_string(), printed);
        for uri in [
            printed,
            format!("{prefix}={}", lower.to_uppercase()),
            format!("{typ}={escaped}"),
        ] {
            assert_eq!(uri.parse(), Ok(component.to_component()), "{uri}");
        }
        for bad in [
            format!("{prefix}="),
            format!("{prefix}=a791806951f25c4d"),
            format!("{prefix}={}zz", &lower[2..]),
            format!("{prefix}={lower}00"),
            format!("{}={lower}", prefix.to_uppercase()),
            format!("{typ}=a"),
        ] {
            assert!(bad.parse::<Component>().is_err(), "{bad}");
        }
        let short = bytes(&format!("{typ:02x}08 A791806951F25C4D"));
        let refused = ComponentView::parse_element(&short).err();
        assert_eq!(refused, Some(DecodeError::BadDigestLength));
    }
}

#[test]
fn what_is_no_component_is_refused() {
    // ndn-cxx `name-component.t.cpp`.
    for uri in [
        "",
        ".",
        "..",
        "%2E",
        "8=",
        "8=.",
        "32=",
        "32=.",
        "3=..",
        "0=A",
        "65536=A",
        "4294967296=A",
        "-1=A",
        "+=A",
        "=A",
        "0x1=A",
        "Z=A",
        "09=A",
        "+9=A",
        " 9=A",
        "9 =A",
        "9.0=A",
        "9E0=A",
        "seg=",
        "seg=foo",
        "seg=00",
        "v=-1",
        "t=9.3",
        "off= 84",
        "seq=0xAF",
        "v=18446744073709551616",
        "SEG=42",
        "%",
        "%4",
        "%G1",
    ] {
        assert!(uri.parse::<Component>().is_err(), "{uri:?}");
    }
    for wire in ["FE00010000 01 80", "0000", "", "08", "0801"] {
        let wire = bytes(wire);
        assert!(ComponentView::parse_element(&wire).is_err(), "{wire:?}");
    }
}

#[test]
fn names_are_what_ndn_cxx_makes_of_them() {
    // ndn-cxx `name.t.cpp`.
    let digest = "0415E3624A151850AC686C84F155F29808C0DD73819AA4A4C20BE73A4D8A874C";
    let uri = format!(
        "/Emid/25042=P3/.../..../%1C%9F/sha256digest={}",
        digest.to_lowercase()
    );
    let wire = bytes(&format!(
        "0737 0804456D6964 FD61D2025033 0800 08012E 08021C9F 0120{digest}"
    ));
    let parsed = name(&uri);
    assert_eq!(parsed.encode(), wire);
    assert_eq!(NameView::parse_element(&wire), Ok(parsed.view()));
    assert_eq!(parsed.to_string(), uri);
    for (text, printed) in [
        ("/8=hello/8=world", "/hello/world"),
        ("ndn:/hello/world", "/hello/world"),
        ("ndn:/", "/"),
        ("ndn:", "/"),
        ("//authority/hello/world", "/hello/world"),
        ("ndn://authority/hello/world", "/hello/world"),
        ("//authority", "/"),
        ("ndn://", "/"),
        ("/ hello\t/\tworld \r\n", "/%20hello%09/%09world%20%0D%0A"),
        ("/:?#[]@", "/%3A%3F%23%5B%5D%40"),
        ("", "/"),
        ("hello/world", "/hello/world"),
        ("/hello/world/", "/hello/world"),
        ("/hello/5=NDN", "/hello/5=NDN"),
    ] {
        assert_eq!(name(text).to_string(), printed, "{text:?}");
    }
    for bad in ["/hello//world", "/hello/./world", "/hello/../world"] {
        assert!(bad.parse::<Name>().is_err(), "{bad}");
    }
}
