//! NDNLPv2: what parses can be written again and reads the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tachonym_packet::lp::{LpView, PacketKind, write_packet};

fuzz_target!(|bytes: &[u8]| {
    let Ok(view) = LpView::parse(bytes) else {
        return;
    };
    for kind in [PacketKind::Interest, PacketKind::Data] {
        let _ = view.check_for(kind);
    }
    // A bare frame is a whole packet; what is none has to stay in its LpPacket.
    if let Some(fragment) = view.fragment()
        && !LpView::parse(fragment).is_ok_and(|inner| inner.is_bare())
    {
        return;
    }
    let acks: Vec<u64> = view.acks().collect();
    let mut out = Vec::new();
    write_packet(
        &mut out,
        view.headers(),
        view.prefix_announcement(),
        &acks,
        view.fragment(),
    );
    let again = LpView::parse(&out).expect("own encoding");
    assert_eq!(again.headers(), view.headers());
    assert_eq!(
        again.fragment().unwrap_or_default(),
        view.fragment().unwrap_or_default()
    );
    assert_eq!(again.prefix_announcement(), view.prefix_announcement());
    assert!(again.acks().eq(acks));
});
