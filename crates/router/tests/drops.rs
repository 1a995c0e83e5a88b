//! What an operator sees of drops while the router runs.

mod bed;

use std::net::{TcpListener, UdpSocket};

use bed::Bed;
use serde_json::{Value, json};

/// A socket to which the router has a face, connected to the router.
fn udp_peer(bed: &Bed) -> (UdpSocket, String) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let router = bed.listening("udp4");
    let router = router.strip_prefix("udp4://").expect("its scheme");
    socket.connect(router).expect("loopback");
    let local = socket.local_addr().expect("it is bound");
    let remote = format!("udp4://{local}");
    bed.text(&["face", "create", &remote]);
    (socket, remote)
}

/// What `arguments` tell once `is_enough`; a test that fails never ends.
fn until(bed: &Bed, arguments: &[&str], is_enough: impl Fn(&Value) -> bool) -> Value {
    loop {
        let told = bed.json(arguments);
        if is_enough(&told) {
            return told;
        }
    }
}

#[test]
fn hostile_datagrams_are_seen_while_the_router_runs() {
    let bed = Bed::new();
    let (socket, remote) = udp_peer(&bed);
    let (_quiet, other) = udp_peer(&bed);
    let show = |remote: &str| bed.json(&["face", "show", remote]);
    assert_eq!(show(&remote)["drops"], json!({}));
    assert_eq!(bed.json(&["status"])["drops"], json!({}));
    let told = bed.text(&["status"]);
    assert!(told.contains("dropped        nothing"), "{told}");

    // Half an element, and a whole one that is no packet.
    for _ in 0..3 {
        socket.send(&[0x05, 0x20, 0x07]).expect("loopback");
    }
    socket.send(&[0xf0, 0x01, 0x00]).expect("loopback");
    let n_drops = |value: &Value| {
        let drops = value["drops"].as_object().expect("an object");
        let counts = drops.values().map(|n| n.as_u64().expect("a number"));
        counts.sum::<u64>()
    };
    let status = until(&bed, &["status"], |status| n_drops(status) == 4);
    assert_eq!(status["drops"]["bad-datagram"], 3, "{status}");
    let face = show(&remote);
    assert_eq!(face["drops"], status["drops"]);
    assert_eq!(face["state"], "up");
    assert_eq!(show(&other)["drops"], json!({}));
    for arguments in [&["status"][..], &["face", "show", &remote]] {
        let told = bed.text(arguments);
        assert!(told.contains("3 bad-datagram\n"), "{told}");
    }

    // They are not forgotten with the face.
    bed.text(&["face", "destroy", &remote]);
    assert_eq!(bed.json(&["status"])["drops"], status["drops"]);
}

#[test]
fn drops_of_the_engine_and_the_manager_are_told_by_reason() {
    let bed = Bed::new();
    let (code, _) = bed.failure(&["peek", "/nobody/has/this"]);
    assert_eq!(code, 4);
    // A segment of a dataset that never was is not answered.
    let gone = "/localhost/nfd/rib/list/v=1/seg=0";
    let (code, _) = bed.failure(&["peek", gone, "--lifetime-ms", "100"]);
    assert_eq!(code, 3);
    let drops = bed.json(&["status"])["drops"].clone();
    // After a Nack `peek` asks once more, to learn which router refused.
    assert_eq!(drops["no-route"], 2, "{drops}");
    assert!(drops["unknown-segment"].as_u64() >= Some(1), "{drops}");
}

#[test]
fn a_face_that_has_lost_its_peer_is_shown_as_down() {
    let bed = Bed::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("it is bound");
    let remote = format!("tcp4://{address}");
    let made = bed.json(&["face", "create", &remote, "--persistency", "permanent"]);
    assert_eq!(made["state"], "up");
    drop(listener.accept().expect("the router connects"));
    drop(listener);
    let show = ["face", "show", &remote];
    until(&bed, &show, |face| face["state"] == "down");
    let told = bed.text(&show);
    assert!(told.contains("state            down\n"), "{told}");
}
