//! What the tools' exit codes tell a shell, as `docs/tools.md` says it.

mod bed;

use std::io::Read as _;
use std::net::UdpSocket;
use std::ops::ControlFlow;
use std::os::unix::net::UnixListener;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use tachonym_client::{Controller, Endpoint, Received};
use tachonym_packet::Data;
use tachonym_security::Signer;

use bed::Bed;

/// Runs each command line, and compares the exit code.
fn expect(bed: &Bed, code: i32, lines: &[&str]) {
    for line in lines {
        let arguments: Vec<&str> = line.split_whitespace().collect();
        let output = bed.run(&arguments);
        assert_eq!(output.status.code(), Some(code), "{line}: {output:?}");
        // Whoever fails says why.
        assert_eq!(output.stderr.is_empty(), code == 0, "{line}: {output:?}");
    }
}

#[test]
fn success_is_0() {
    let bed = Bed::new();
    let _pingserver = bed.serve(&["pingserver", "/p", "--json"], b"");
    let _put = bed.serve(&["put", "/f", "-", "--json"], b"content");
    expect(
        &bed,
        0,
        &[
            "status",
            "face create udp4://127.0.0.1:9",
            "face show udp4://127.0.0.1:9",
            "face list --remote udp4://localhost:9",
            "route add /a udp4://127.0.0.1:9",
            "route remove /a udp4://127.0.0.1:9",
            "strategy set /m multicast",
            "strategy set /m /localhost/nfd/strategy/multicast",
            "cs info",
            "ping /p -c 1",
            "peek /f --prefix",
            "get /f --quiet",
            "keys generate /me",
            "keys list",
            "completions bash",
        ],
    );
}

#[test]
fn failure_is_1() {
    let bed = Bed::new();
    expect(
        &bed,
        1,
        &[
            "check-config /nowhere/config",
            "face show 987654",
            "face show udp4://127.0.0.1:9",
            "face destroy 987654",
            "face create udp4://host.invalid:9",
            "route show /nowhere",
            "route remove /a 1",
            "put /x /nowhere/file",
            "get /x -o /dev/null/file",
            "poke /x --identity /nobody",
            "keys certificate /nobody",
            "dissect /nowhere/file",
        ],
    );
}

#[test]
fn wrong_usage_is_2() {
    let bed = Bed::new();
    let lines = [
        "status --no-such-option",
        "face show",
        "face show nonsense",
        "face show udp4://127.0.0.1:0",
        "face create nonsense",
        "face create udp4://127.0.0.1:9 --local nonsense",
        "face create wss://127.0.0.1:9",
        "face update nonsense",
        "face destroy nonsense",
        "face list --remote nonsense",
        "route add /a nonsense",
        "route add /%zz 1",
        "route add /a 1 --origin nonsense",
        "route remove /a nonsense",
        "route show /%zz",
        "strategy set /%zz multicast",
        "strategy set /a /%zz",
        "strategy set /a %zz",
        "strategy show /%zz",
        "cs erase /%zz",
        "ping /%zz",
        "pingserver /%zz",
        "peek /%zz",
        "poke /%zz",
        "poke /a --final-block-id 0=x",
        "put /%zz -",
        "get /%zz",
        "keys generate /%zz",
        "completions nonsense",
        "status --transport nonsense",
        "get /a --transport udp4://127.0.0.1:nonsense",
    ];
    expect(&bed, 2, &lines);
    // Even where there is no router, and by whatever way the address comes.
    let output = bed
        .command(&["peek", "/a"])
        .env("NDN_CLIENT_TRANSPORT", "nonsense")
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn no_answer_in_time_is_3() {
    let bed = Bed::new();
    let silent = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let silent = silent.local_addr().expect("it is bound");
    bed.text(&["route", "add", "/silent", &format!("udp4://{silent}")]);
    expect(
        &bed,
        3,
        &[
            "ping /silent -c 2 -i 1 -t 50",
            "peek /silent -l 50",
            "get /silent -r 0 -l 50",
            "get /silent --discover exact -r 0 -l 50",
            "poke /unwanted -t 50",
        ],
    );
    let asked_at = Instant::now();
    let (code, error) = bed.failure(&["status", "--transport", &format!("udp4://{silent}")]);
    assert_eq!(code, 3, "{error}");
    assert!(error.contains("check the address and port"), "{error}");
    assert!(asked_at.elapsed() < Duration::from_secs(4));
}

#[test]
fn a_nack_is_4() {
    let bed = Bed::new();
    expect(
        &bed,
        4,
        &[
            "ping /nowhere -c 2 -i 1",
            "peek /nowhere",
            "get /nowhere",
            "get /nowhere --discover exact -r 0",
        ],
    );
}

/// That each command line fails and its error has these parts.
fn expect_parts(bed: &Bed, lines: &[(&str, &[&str])]) {
    for (line, parts) in lines {
        let arguments: Vec<&str> = line.split_whitespace().collect();
        let (_, error) = bed.failure(&arguments);
        for part in *parts {
            assert!(error.contains(part), "{line}: {part} is not in {error}");
        }
    }
}

#[test]
fn a_failure_names_the_interest_and_who_refused_it() {
    let bed = Bed::new();
    let upstream = Bed::new();
    let far = upstream.listening("udp4");
    bed.text(&["route", "add", "/far", &far]);
    let silent = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let silent = silent.local_addr().expect("it is bound");
    bed.text(&["route", "add", "/silent", &format!("udp4://{silent}")]);
    let add = "`tachonym route add /nowhere FACEURI`";
    let there = format!("{far}, refused");
    expect_parts(
        &bed,
        &[
            (
                "peek /nowhere",
                &["this router refused /nowhere: no-route", add],
            ),
            (
                "get /nowhere",
                &["this router refused /nowhere: no-route", add],
            ),
            (
                "get /nowhere --discover exact -r 0",
                &["this router refused /nowhere/seg=0: no-route", add],
            ),
            (
                "ping /nowhere -c 1 -n 7",
                &[
                    "this router refused /nowhere/ping/7: no-route",
                    "add /nowhere/ping",
                ],
            ),
            (
                "peek /far/x",
                &["the router behind face", &there, "/far/x: no-route"],
            ),
            (
                "get /far/x",
                &["the router behind face", &there, "/far/x: no-route"],
            ),
            ("ping /far -c 1 -n 7", &[&there, "/far/ping/7: no-route"]),
            (
                "peek /silent -l 50",
                &[
                    "no answer to /silent within 50 ms",
                    "`tachonym explain /silent`",
                ],
            ),
            (
                "ping /silent -c 1 -n 7 -t 50",
                &[
                    "no answer to /silent/ping/7 within 50 ms",
                    "tachonym explain",
                ],
            ),
            (
                "get /silent --discover exact -r 0 -l 50",
                &["no answer to /silent/seg=0", "tachonym explain"],
            ),
        ],
    );
    // Only a local application learns who refused.
    let over_udp = format!("peek /nowhere --transport {}", bed.listening("udp4"));
    let unknown = "/nowhere was refused, by this router or by one behind it: no-route";
    expect_parts(&bed, &[(&over_udp, &[unknown])]);
}

#[test]
fn a_refused_command_is_5() {
    let bed = Bed::with(|folder| {
        let certificate = folder.join("operator.ndncert");
        std::fs::write(&certificate, bed::certificate("/operator")).expect("a file");
        format!(
            "[[management.authorize]]\nmodules = [\"faces\", \"rib\"]\nanchors = [\"{}\"]\n",
            certificate.display()
        )
    });
    expect(
        &bed,
        5,
        &[
            "face create udp4://127.0.0.1:9",
            "route add /a 1",
            "strategy set /a multicast",
            "cs config --capacity 1",
            "cs erase /a",
            "pingserver /a",
            "poke /a",
            "put /a -",
        ],
    );
}

#[test]
fn no_router_is_6() {
    let bed = Bed::new();
    let lines = [
        "status",
        "face list",
        "route add /a udp4://127.0.0.1:9",
        "strategy list",
        "cs info",
        "ping /a -c 1",
        "pingserver /a",
        "peek /a",
        "poke /a",
        "put /a -",
        "get /a",
    ];
    for transport in [
        "unix:///nowhere/s",
        "tcp4://127.0.0.1:1",
        "udp4://127.0.0.1:1",
        "tcp4://host.invalid:6363",
    ] {
        let lines = lines.map(|line| format!("{line} --transport {transport}"));
        expect(&bed, 6, &lines.each_ref().map(String::as_str));
    }
}

#[test]
fn an_address_without_a_router_names_the_cause_and_what_to_check() {
    let bed = Bed::new();
    for (transport, cause) in [
        ("unix:///nowhere/s", "No such file"),
        ("tcp4://127.0.0.1:1", "connection refused"),
        ("udp4://127.0.0.1:1", "no program listens on this UDP port"),
    ] {
        let (_, error) = bed.failure(&["status", "--transport", transport]);
        let says = format!("cannot connect to {transport}: {cause}");
        assert!(error.contains(&says), "{error}");
        assert!(error.contains("check"), "{error}");
    }
    // The router itself knows why, too, and what it can do instead.
    for (remote, says) in [
        ("tcp4://127.0.0.1:1", "connection refused"),
        (
            "ether://[08:00:27:01:01:01]",
            "udp4, udp6, tcp4, tcp6 and ws",
        ),
    ] {
        let (code, error) = bed.failure(&["face", "create", remote]);
        assert_eq!(code, 5, "{error}");
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn a_route_to_the_router_itself_is_warned_of() {
    let bed = Bed::new();
    for scheme in ["udp4", "tcp4"] {
        let output = bed.run(&["route", "add", "/a", &bed.listening(scheme)]);
        assert!(output.status.success(), "{output:?}");
        let warning = String::from_utf8(output.stderr).expect("text");
        assert!(warning.contains("leads back to this router"), "{warning}");
    }
}

#[test]
fn a_router_that_goes_away_is_6() {
    let bed = Bed::new();
    let socket = bed.path("other");
    let listener = UnixListener::bind(&socket).expect("it binds");
    thread::spawn(move || {
        for stream in listener.incoming() {
            // Hangs up on whoever has asked for something.
            let _ = stream.expect("a client").read(&mut [0; 8800]);
        }
    });
    let lines = [
        "status",
        "face list",
        "route add /a 1",
        "ping /a -c 1",
        "pingserver /a",
        "peek /a",
        "poke /a",
        "put /a -",
        "get /a",
        "get /a --discover exact",
    ];
    let lines = lines.map(|line| format!("{line} --transport unix://{}", socket.display()));
    expect(&bed, 6, &lines.each_ref().map(String::as_str));
}

#[test]
fn a_wrong_signature_is_7() {
    let bed = Bed::new();
    let uri = bed.transport.parse().expect("a FaceUri");
    let (ready, is_ready) = mpsc::channel();
    thread::spawn(move || {
        let mut endpoint = Endpoint::connect(&uri).expect("it listens");
        let forged = "/forged".parse().expect("a name");
        let registered = Controller::new(&mut endpoint, Signer::digest()).register(&forged);
        ready.send(registered.is_ok()).expect("somebody waits");
        // Answers whatever is asked for, until the router goes.
        while let Ok(()) = endpoint.poll(None, |link, received| {
            if let Received::Interest(interest, headers) = received {
                let data = Data {
                    content: b"forged".to_vec(),
                    ..Data::new(interest.name().to_name())
                };
                let mut wire = data.encode_with_digest();
                *wire.last_mut().expect("a signature") ^= 1;
                link.send_data(&wire, headers.pit_token);
            }
            ControlFlow::Continue(())
        }) {}
    });
    assert!(is_ready.recv().expect("it runs"), "it is registered");
    expect(
        &bed,
        7,
        &["get /forged --discover exact", "get /forged/v=1 --quiet"],
    );
    let file = |name: &str, certificate: String| {
        let path = bed.path(name);
        std::fs::write(&path, certificate).expect("a file");
        path.display().to_string()
    };
    let (one, other) = (
        file("one", bed::certificate("/a")),
        file("other", bed::certificate("/a")),
    );
    let expired = file("expired", bed::certificate_from("/a", 1_000_000_000_000));
    let verify = |which: &str, issuer: &str| format!("keys verify {which} --issuer {issuer}");
    let wrong = [verify(&one, &other), verify(&expired, &expired)];
    expect(&bed, 7, &wrong.each_ref().map(String::as_str));
    expect(&bed, 0, &[verify(&one, &one).as_str()]);
}
