//! Where `get -o` writes, and what is left when it cannot finish.

mod bed;

use std::io::Read as _;
use std::os::unix::fs::{FileTypeExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::{fs, thread};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use bed::{Bed, Server, noise};

fn serve(bed: &Bed, content: &[u8]) -> Server {
    bed.serve(&["put", "/f", "-", "--json"], content)
}

fn get(bed: &Bed, path: &Path) -> Vec<u8> {
    let path = path.to_str().expect("text");
    let output = bed.run(&["get", "/f", "--quiet", "-o", path]);
    assert!(output.status.success(), "{path}: {output:?}");
    output.stdout
}

fn n_files(folder: &Path) -> usize {
    fs::read_dir(folder).expect("a folder").count()
}

fn is_link(path: &Path) -> bool {
    let metadata = fs::symlink_metadata(path).expect("it is there");
    metadata.file_type().is_symlink()
}

#[test]
fn a_regular_file_is_replaced_by_a_whole_one() {
    let bed = Bed::new();
    let content = noise(50_000);
    let _server = serve(&bed, &content);
    let folder = bed.path("copies");
    fs::create_dir(&folder).expect("a folder");
    let copy = folder.join("copy");
    for _ in 0..2 {
        get(&bed, &copy);
        assert!(fs::read(&copy).expect("a file") == content);
        fs::write(&copy, noise(100_000)).expect("a file");
    }
    assert_eq!(n_files(&folder), 1);
}

#[test]
fn what_is_no_regular_file_is_written_to_and_stays() {
    let bed = Bed::new();
    let content = noise(200_000);
    let _server = serve(&bed, &content);

    let fifo = bed.path("fifo");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a FIFO");
    let reader = thread::spawn({
        let fifo = fifo.clone();
        move || fs::read(fifo).expect("content")
    });
    get(&bed, &fifo);
    // It would wait for ever if the FIFO were replaced; look before it does.
    let kind = fs::symlink_metadata(&fifo)
        .expect("it is there")
        .file_type();
    assert!(kind.is_fifo());
    assert!(reader.join().expect("it reads") == content);

    // Links of its own, so that no fault in here can harm the machine's files.
    let (null, stdout) = (bed.path("null"), bed.path("stdout"));
    symlink("/dev/null", &null).expect("a link");
    symlink("/dev/stdout", &stdout).expect("a link");
    assert!(get(&bed, &null).is_empty());
    assert!(get(&bed, &stdout) == content);
    for link in [&null, &stdout] {
        assert!(is_link(link), "{}", link.display());
    }

    // Once to what is not there yet, once to what is longer.
    let (link, end) = (bed.path("link"), bed.path("end"));
    symlink("end", &link).expect("a link");
    for _ in 0..2 {
        get(&bed, &link);
        assert!(is_link(&link));
        assert!(fs::read(&end).expect("a file") == content);
        fs::write(&end, noise(300_000)).expect("a file");
    }
}

#[test]
fn a_hyphen_is_standard_output() {
    let bed = Bed::new();
    let content = noise(20_000);
    let _server = serve(&bed, &content);
    let folder = bed.path("here");
    fs::create_dir(&folder).expect("a folder");
    let mut get = bed.command(&["get", "/f", "--json", "-o", "-"]);
    let output = get.current_dir(&folder).output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    assert!(output.stdout == content);
    assert_eq!(n_files(&folder), 0);
    // The report must not get into the content.
    let report: Value = serde_json::from_slice(&output.stderr).expect("JSON");
    assert_eq!(report["bytes"], content.len());
}

#[test]
fn an_interrupted_get_leaves_the_old_file_and_nothing_else() {
    let bed = Bed::new();
    let socket = bed.path("silent");
    let listener = UnixListener::bind(&socket).expect("it binds");
    let transport = format!("unix://{}", socket.display());
    let folder = bed.path("copies");
    fs::create_dir(&folder).expect("a folder");
    let copy = folder.join("copy");
    fs::write(&copy, "old").expect("a file");
    for signal in [Signal::INT, Signal::TERM] {
        let mut get = bed.command(&["get", "/f", "--transport", &transport, "-o"]);
        let mut get = get.arg(&copy).spawn().expect("it runs");
        // Once it asks, it has something to write to.
        let (mut router, _) = listener.accept().expect("a client");
        assert!(router.read(&mut [0; 8800]).expect("an Interest") > 0);
        assert_eq!(n_files(&folder), 2);
        kill_process(Pid::from_child(&get), signal).expect("it runs");
        let status = get.wait().expect("it ends");
        assert_eq!(status.signal(), Some(signal.as_raw()), "{status:?}");
        assert_eq!(fs::read(&copy).expect("a file"), b"old");
        assert_eq!(n_files(&folder), 1);
    }
}

#[test]
fn a_get_that_fails_leaves_the_old_file_and_nothing_else() {
    let bed = Bed::new();
    let folder = bed.path("copies");
    fs::create_dir(&folder).expect("a folder");
    let copy = folder.join("copy");
    fs::write(&copy, "old").expect("a file");
    let (code, _) = bed.failure(&["get", "/nobody", "-o", copy.to_str().expect("text")]);
    assert_eq!(code, 4);
    assert_eq!(fs::read(&copy).expect("a file"), b"old");
    assert_eq!(n_files(&folder), 1);
}
