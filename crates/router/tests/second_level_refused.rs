//! Places that the second level of the content store does not take, and leaves as they are.
//!
//! The routers run in this process. Nothing here starts another one: it would hold the lock of a
//! directory, which it inherits, for a moment after the router has ended.

use std::fs::{self, File};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use tachonym_router::Router;
use tachonym_router::config::Config;

fn parsed(text: &str) -> Config {
    let config = format!(
        "faces.unix.enabled = false\nfaces.udp.listen = [\"127.0.0.1:0\"]\n\
         faces.tcp.listen = []\nfaces.websocket.listen = []\n{text}"
    );
    Config::parse(&config).expect("it makes sense")
}

/// What a router says that does not start.
fn refusal(text: &str) -> String {
    refusal_of(&parsed(text))
}

fn refusal_of(config: &Config) -> String {
    match Router::start(config) {
        Ok(_) => panic!("it starts"),
        Err(error) => format!("{error:#}"),
    }
}

fn volume(path: &Path, bytes: u64) -> String {
    format!(
        "[[second_level.volume]]\npath = \"{}\"\nbytes = {bytes}\n",
        path.display()
    )
}

/// Starts a router with this configuration, and ends it.
fn start(text: &str) -> Router {
    Router::start(&parsed(text)).expect("it starts")
}

const BYTES: u64 = 64 << 20;

fn store_in(folder: &Path) -> PathBuf {
    folder.join("worker-0-of-1.store")
}

#[test]
fn what_cannot_be_is_refused_with_a_remedy_and_nothing_is_overwritten() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path();
    // What is not there is told when the configuration is read, or else at the start.
    for (says, make) in [
        ("does not exist", None),
        ("is not a directory", Some(b"mine")),
    ] {
        let place = path.join("place");
        fs::create_dir(&place).expect("the folder is ours");
        let config = parsed(&volume(&place, BYTES));
        fs::remove_dir(&place).expect("the folder is ours");
        if let Some(content) = make {
            fs::write(&place, content).expect("the folder is ours");
        }
        let said = refusal_of(&config);
        assert!(said.contains(says), "{said}");
        assert_eq!(fs::read(&place).ok(), make.map(|it| it.to_vec()));
    }
    let said = refusal(&volume(path, 1 << 43));
    assert!(said.contains(" free; free some space"), "{said}");
    assert!(!store_in(path).exists());
    fs::write(store_in(path), b"a diary\n".repeat(2_000)).expect("the folder is ours");
    let said = refusal(&volume(path, BYTES));
    assert!(said.contains("other data than a content store"), "{said}");
    let kept = fs::read(store_in(path)).expect("it is there");
    assert_eq!(kept, b"a diary\n".repeat(2_000));
}

/// How to give up what is in these folders, as a refusal names it.
fn anew(folders: &[&tempfile::TempDir]) -> String {
    let commands: Vec<String> = folders
        .iter()
        .map(|it| format!("rm {}/worker-*-of-1.store", it.path().display()))
        .collect();
    format!("start with an empty store: {}", commands.join("; "))
}

/// Does what a refusal says: removes files of the one worker. A command would hold locks for a
/// moment, as another router would.
fn obey(said: &str) {
    let (_, commands) = said
        .split_once("start with an empty store: ")
        .expect("it says how");
    for command in commands.split("; ") {
        let pattern = command.strip_prefix("rm ").expect("it is in a directory");
        let path = pattern.replace("worker-*", "worker-0");
        fs::remove_file(path).expect("it is there");
    }
}

fn folders<const N: usize>() -> [tempfile::TempDir; N] {
    std::array::from_fn(|_| tempfile::tempdir().expect("a folder"))
}

#[test]
fn a_store_of_another_version_size_or_batch_is_refused_and_kept() {
    let [first] = folders();
    let a = volume(first.path(), BYTES);
    start(&a).stop().expect("it ends");
    let said = refusal(&format!("second_level.batch = 8\n{a}"));
    assert!(said.contains("has batches of 10"), "{said}");
    let remedy = format!("set second_level.batch = 10, or {}", anew(&[&first]));
    assert!(said.ends_with(&remedy), "{said}");
    let said = refusal(&volume(first.path(), BYTES / 2));
    assert!(
        said.contains("67108864 bytes") && said.contains("33554432"),
        "{said}"
    );
    let remedy = format!("set bytes = 67108864, or {}", anew(&[&first]));
    assert!(said.ends_with(&remedy), "{said}");
    let mut file = File::options()
        .write(true)
        .open(store_in(first.path()))
        .expect("it is there");
    for at in [16, 4096 + 16] {
        file.seek(SeekFrom::Start(at)).expect("a file");
        file.write_all(&[99]).expect("the file is ours");
    }
    let said = refusal(&a);
    assert!(said.contains("version 99"), "{said}");
    let remedy = format!("run the program that wrote it, or {}", anew(&[&first]));
    assert!(said.ends_with(&remedy), "{said}");
    obey(&said);
    start(&a).stop().expect("it ends");
}

#[test]
fn volumes_of_two_stores_are_not_taken_together() {
    let [a, b] = folders();
    let text = |it: &tempfile::TempDir| volume(it.path(), BYTES);
    start(&text(&a)).stop().expect("it ends");
    start(&text(&b)).stop().expect("it ends");
    let said = refusal(&(text(&a) + &text(&b)));
    let expected = "is volume 0 of 1, but is configured as 0 of 2; name it alone, or";
    assert!(said.contains(expected), "{said}");
    assert!(said.ends_with(&anew(&[&a, &b])), "{said}");
    start(&text(&a)).stop().expect("it ends");
}

#[test]
fn volumes_of_two_stores_are_told_apart_by_their_keys() {
    let [a, b, c, d] = folders();
    let text = |first: &tempfile::TempDir, second: &tempfile::TempDir| {
        volume(first.path(), BYTES) + &volume(second.path(), BYTES)
    };
    start(&text(&a, &b)).stop().expect("it ends");
    start(&text(&c, &d)).stop().expect("it ends");
    // Each is where it was, but for the store.
    let said = refusal(&text(&a, &d));
    assert!(said.contains("is part of another store than"), "{said}");
    assert!(said.contains("volume[1].path"), "{said}");
    assert!(said.ends_with(&anew(&[&a, &d])), "{said}");
    let said = refusal(&text(&b, &a));
    assert!(
        said.contains("is volume 1 of 2, but is configured as 0"),
        "{said}"
    );
    start(&text(&a, &b)).stop().expect("it ends");
    start(&text(&c, &d)).stop().expect("it ends");
}

#[test]
fn a_volume_that_was_replaced_is_refused_until_the_others_are_given_up() {
    let [a, b, new] = folders();
    let text = |second: &tempfile::TempDir| volume(a.path(), BYTES) + &volume(second.path(), BYTES);
    start(&text(&b)).stop().expect("it ends");
    let said = refusal(&text(&new));
    let expected = format!("is empty, but {} is not", store_in(a.path()).display());
    assert!(said.contains(&expected), "{said}");
    assert!(said.contains("put back the volume"), "{said}");
    assert!(said.ends_with(&anew(&[&a, &new])), "{said}");
    start(&text(&b)).stop().expect("it ends");
    obey(&said);
    start(&text(&new)).stop().expect("it ends");
}

#[test]
fn two_routers_do_not_share_a_directory() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = volume(folder.path(), BYTES);
    let router = start(&text);
    let said = refusal(&text);
    assert!(said.contains("is in use by"), "{said}");
    router.stop().expect("it ends");
    start(&text).stop().expect("it ends");
}

#[test]
fn a_store_of_another_size_is_left_as_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    start(&volume(folder.path(), BYTES))
        .stop()
        .expect("it ends");
    let said = refusal(&volume(folder.path(), 2 * BYTES));
    assert!(
        said.contains("67108864 bytes") && said.contains("134217728"),
        "{said}"
    );
    start(&volume(folder.path(), BYTES))
        .stop()
        .expect("it ends");
    fs::remove_file(store_in(folder.path())).expect("it is there");
    start(&volume(folder.path(), 2 * BYTES))
        .stop()
        .expect("it ends");
}

/// One by one, the places of superblocks of two volumes are as a power loss may leave them when
/// a store is made anew: the router makes it to its end.
#[test]
fn a_store_that_was_half_made_is_made_anew() {
    let folders = [tempfile::tempdir(), tempfile::tempdir()].map(|it| it.expect("a folder"));
    let text: String = folders.iter().map(|it| volume(it.path(), BYTES)).collect();
    let heads = || -> Vec<Vec<u8>> {
        let read = |folder: &tempfile::TempDir| {
            let mut head = vec![0; 8192];
            let mut file = File::open(store_in(folder.path())).expect("it is there");
            file.read_exact(&mut head).expect("it is long");
            head
        };
        folders.iter().map(read).collect()
    };
    start(&text).stop().expect("it ends");
    let old = heads();
    for folder in &folders {
        fs::remove_file(store_in(folder.path())).expect("the folder is ours");
    }
    start(&text).stop().expect("it ends");
    let new = heads();
    // The order of writing: first copies, then second ones.
    let places = [(0, 0), (1, 0), (0, 4096), (1, 4096)];
    for former in [&vec![vec![0; 8192]; 2], &old] {
        for n_written in 0..places.len() {
            for (number, folder) in folders.iter().enumerate() {
                let mut head = former[number].clone();
                for &(_, at) in places[..n_written].iter().filter(|it| it.0 == number) {
                    head[at..at + 4096].copy_from_slice(&new[number][at..at + 4096]);
                }
                let mut file = File::options()
                    .write(true)
                    .open(store_in(folder.path()))
                    .expect("it is there");
                file.write_all(&head).expect("the file is ours");
            }
            start(&text).stop().expect("it ends");
            let [first, second] = [0, 1].map(|number| heads()[number][24..40].to_vec());
            assert_eq!(first, second, "{n_written}");
        }
    }
}
