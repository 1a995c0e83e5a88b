//! The second level of the content store in a router that runs, on block devices: such as work,
//! such as fail meanwhile, and such as give something else than was written.

mod bed;
#[path = "../../store/tests/loop_device/mod.rs"]
mod loop_device;
mod second_level_bed;

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use loop_device::Loop;
use rustix::process::Signal;
use second_level_bed::{PATIENCE, Process, VOLUME_BYTES, noise};

type Objects = Vec<(String, Vec<u8>)>;

/// Some of several batches each.
fn objects(n: u64) -> Objects {
    let object = |n| (format!("/object/{n}"), noise(n, 120_000 + n as usize));
    (0..n).map(object).collect()
}

/// What `cargo xtask test` adds: it runs the same tests with several workers.
fn workers() -> String {
    std::env::var("TACHONYM_TEST_CONFIG").unwrap_or_default()
}

/// A router that has these objects on a block device and nowhere else.
fn with_objects_on(disk: &Loop, objects: &Objects) -> Process {
    let mut router = Process::on_block_device(disk.device(), &workers());
    for (name, bytes) in objects {
        router.publish(name, bytes);
    }
    router.end(Signal::TERM);
    router.start();
    router
}

/// A router whose volume is out of service says so, and does without it.
fn goes_on_without(router: &Process, disk: &Loop) {
    let line = format!("{} is out of service", disk.device().display());
    assert!(router.said().contains(&line), "{}", router.said());
    let shown = router.run(&["cs", "stats"]);
    let shown = String::from_utf8(shown.stdout).expect("text");
    assert!(shown.contains("volumes out of service"), "{shown}");
    router.publish("/later/large", &noise(1, 200_000));
    // By now nobody but the content store in memory has it.
    router.publish("/later/small", b"from memory");
    let found = router.get_at_once("/later/small");
    assert_eq!(found.as_deref(), Some(&b"from memory"[..]));
}

#[test]
fn what_is_on_a_block_device_is_served_after_the_routers_end_and_its_sudden_end() {
    let disk = Loop::new(VOLUME_BYTES);
    let objects = objects(3);
    let mut router = with_objects_on(&disk, &objects);
    for signal in [Signal::KILL, Signal::TERM] {
        for (name, bytes) in &objects {
            assert_eq!(router.get(name).as_ref(), Some(bytes), "{name}");
        }
        assert!(router.count("hits") > 0);
        router.end(signal);
        router.start();
    }
    assert_eq!(router.get("/object/0").as_ref(), Some(&objects[0].1));
    router.end(Signal::TERM);
}

#[test]
fn a_block_device_that_is_too_small_is_refused() {
    let disk = Loop::new(VOLUME_BYTES / 2);
    // There is room for the part of the first of two workers.
    for workers in ["", "workers.threads = 2\n"] {
        let folder = tempfile::tempdir().expect("a folder");
        let said = Process::at_rest(folder, disk.device(), workers).refusal();
        let path = disk.device().display();
        let (has, wants) = (VOLUME_BYTES / 2, VOLUME_BYTES);
        let words = [
            format!("{path} has {has} bytes, but bytes = {wants} is configured"),
            format!("set bytes = {has} or less, or name a larger device"),
            "second_level.volume[0].bytes".to_owned(),
        ];
        for word in words {
            assert!(said.contains(&word), "`{word}` is not in: {said}");
        }
        assert!(disk.begins_with_zeros(), "it is as it was");
    }
}

#[test]
fn a_block_device_that_cannot_be_read_any_more_is_taken_out_of_service() {
    let disk = Loop::new(VOLUME_BYTES);
    let objects = objects(16);
    let mut router = with_objects_on(&disk, &objects);
    assert_eq!(router.get("/object/0").as_ref(), Some(&objects[0].1));
    assert_eq!(router.count("volumes_out_of_service"), 0);
    disk.cut(0);
    for (name, bytes) in &objects {
        // Of the first object, some may be in memory still.
        let found = router.get_at_once(name);
        assert!(found.is_none() || found.as_ref() == Some(bytes), "{name}");
    }
    assert!(
        router.count("volumes_out_of_service") > 0,
        "{}",
        router.said()
    );
    assert!(router.count("device_errors") > 0);
    goes_on_without(&router, &disk);
    router.end(Signal::TERM);
}

#[test]
fn a_block_device_that_cannot_be_written_any_more_is_taken_out_of_service() {
    const N_OBJECTS: u64 = 20;
    let disk = Loop::with_blocks_for(2 << 20, VOLUME_BYTES);
    // Batches that are divided among workers are not awaited for long.
    let extra = format!("{}second_level.assembly_ms = 200\n", workers());
    let mut router = Process::on_block_device(disk.device(), &extra);
    for n in 0..N_OBJECTS {
        router.publish(&format!("/object/{n}"), &noise(n, 400_000));
    }
    router.wait(|it| it.count("volumes_out_of_service") > 0);
    assert!(router.count("lost") > 0, "{}", router.stats());
    for n in 0..N_OBJECTS {
        let found = router.get_at_once(&format!("/object/{n}"));
        assert!(found.is_none_or(|it| it == noise(n, 400_000)), "{n}");
    }
    goes_on_without(&router, &disk);
    router.end(Signal::TERM);
}

#[test]
fn what_a_block_device_has_garbled_is_not_served() {
    let disk = Loop::new(VOLUME_BYTES);
    let objects = objects(4);
    let mut router = with_objects_on(&disk, &objects);
    disk.garble(0);
    for (name, _) in &objects {
        assert_eq!(router.get_at_once(name), None, "{name}");
    }
    assert!(router.count("damaged") > 0, "{}", router.stats());
    for (name, bytes) in &objects {
        router.publish(name, bytes);
    }
    router.end(Signal::TERM);
}

/// Does what a refusal says.
fn obey(said: &str) {
    let (_, commands) = said
        .split_once("start with an empty store: ")
        .expect("it says how");
    // The kernel keeps the device for a moment after a router has ended.
    let deadline = Instant::now() + PATIENCE;
    loop {
        let done = Command::new("sh").args(["-ec", commands]).status();
        if done.expect("there is a shell").success() {
            return;
        }
        assert!(Instant::now() < deadline, "{said}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// What a refusal names to be done is done as it is written there, and suffices.
#[test]
fn a_block_device_is_given_up_by_the_command_that_the_refusal_names() {
    let disk = Loop::new(VOLUME_BYTES);
    let folder = tempfile::tempdir().expect("a folder");
    let mut router = Process::at_rest(folder, disk.device(), "");
    router.start();
    router.publish("/object", &noise(3, 400_000));
    router.end(Signal::TERM);
    for (extra, expected) in [
        (
            "workers.threads = 2",
            "restore the bytes of the volumes and the number of workers (it fits one worker",
        ),
        ("second_level.batch = 8", "set second_level.batch = 10, or"),
    ] {
        router.configure(disk.device(), extra);
        let said = router.refusal();
        assert!(said.contains(expected), "{said}");
        router.configure(disk.device(), "");
        router.start();
        assert!(router.count("recovered") > 0);
        router.end(Signal::TERM);
        router.configure(disk.device(), extra);
        obey(&said);
        router.start();
        assert_eq!(router.count("recovered"), 0);
        router.end(Signal::TERM);
        // Again as it was at first.
        router.configure(disk.device(), "");
        obey(&router.refusal());
        router.start();
        router.publish("/object", &noise(3, 400_000));
        router.end(Signal::TERM);
    }
}
