//! Prefix announcements, as neighbours bring them with Data and programs with the
//! command `rib/announce`: each makes one route, or is counted as dropped.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tachonym_manage::{Brought, DropReason, ManagementTrust, Manager, ManagerConfig};
use tachonym_packet::{DataView, Interest, InterestView, MonoNs, Name, SignatureInfo};
use tachonym_security::TrustPolicy;

#[path = "../../crates/manage/tests/support/router.rs"]
#[allow(dead_code)]
mod router;

const WALL_MS: u64 = 1_700_000_000_000;

/// A name under what `bytes` announces, if anything.
fn data_name(bytes: &[u8]) -> Name {
    let announced = DataView::parse(bytes)
        .ok()
        .filter(|data| data.name().len() >= 3)
        .map(|data| data.name().prefix(data.name().len() - 3).to_name());
    announced.unwrap_or_default().with("file")
}

fuzz_target!(|bytes: &[u8]| {
    let mut memory = router::MemoryRouter::new();
    let neighbour = memory.accept("udp4://192.0.2.1:6363");
    let client = memory.accept("fd://20");
    let trust = ManagementTrust {
        announcements: TrustPolicy::any(),
        learns_routes: true,
        ..ManagementTrust::default()
    };
    let config = ManagerConfig {
        trust,
        ..ManagerConfig::default()
    };
    let mut manager = Manager::new(config, memory);
    let name = data_name(bytes);
    let brought = Brought {
        face: neighbour,
        name: name.view(),
        wire: bytes,
    };
    manager.handle_announcement(MonoNs(1), WALL_MS, brought, &mut |_| {
        panic!("nobody has asked")
    });
    let n_learnt = manager.counters().n_learnt_routes;
    let n_refused = manager
        .counters()
        .n_dropped(DropReason::AnnouncementRefused);
    assert_eq!(n_learnt + n_refused, 1);
    assert_eq!(manager.control_mut().announcements.len() as u64, n_learnt);
    manager.handle_unreachable(neighbour, name.view(), &mut |_| panic!("nobody has asked"));
    assert_eq!(manager.counters().n_unlearnt_routes, n_learnt);
    assert!(manager.control_mut().announcements.is_empty());

    let name = "/localhost/nfd/rib/announce".parse();
    let mut command = Interest::new(name.expect("a literal name"));
    command.application_parameters = Some(bytes.to_vec());
    let wire = command.encode_with_digest(&SignatureInfo::digest());
    let Ok(interest) = InterestView::parse(&wire) else {
        return;
    };
    let mut n_replies = 0;
    manager.handle_interest(MonoNs(2), WALL_MS, client, &interest, &mut |wire| {
        DataView::parse(&wire).expect("it answers with Data");
        n_replies += 1;
    });
    assert!(n_replies <= 1);
});
