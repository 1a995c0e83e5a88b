//! The manager, asked by any Interest under a management prefix: it answers
//! with whole packets, or not at all. The input is what follows the prefix:
//! components, then an empty one, then the rest of the Interest.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tachonym_manage::{Manager, ManagerConfig};
use tachonym_packet::{DataView, Interest, InterestView, MonoNs, Name, NameView};

#[path = "../../crates/manage/tests/support/router.rs"]
#[allow(dead_code)]
mod router;

fuzz_target!(|bytes: &[u8]| {
    let mut memory = router::MemoryRouter::new();
    let client = memory.accept("fd://20");
    let mut manager = Manager::new(ManagerConfig::default(), memory);
    let mut ask = |wire: &[u8]| {
        let Ok(interest) = InterestView::parse(wire) else {
            return;
        };
        let wall_ms = 1_700_000_000_000;
        manager.handle_interest(MonoNs(1), wall_ms, client, &interest, &mut |wire| {
            let data = DataView::parse(&wire).expect("it answers with Data");
            assert!(data.name().starts_with(interest.name()));
        });
    };
    ask(bytes);
    let Ok(suffix) = NameView::parse_value(bytes) else {
        return;
    };
    for prefix in [
        "/localhost/nfd",
        "/localhop/nfd",
        "/localhost/nfd/rib/register",
    ] {
        let prefix: Name = prefix.parse().expect("a literal name");
        let mut interest = Interest::new(prefix.join(suffix));
        interest.can_be_prefix = true;
        ask(&interest.encode());
        let info = tachonym_packet::SignatureInfo::digest();
        ask(&interest.encode_with_digest(&info));
    }
});
