//! Volumes are taken for one process, and nothing of others' is touched.

mod loop_device;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use loop_device::{Loop, run};
use rustix::process::{Uid, getuid};
use tachonym_memory::IoBuffer;
use tachonym_packet::MonoNs;
use tachonym_store::device::{
    Backend, BlockDevice, DirectoryLock, HEAD_BYTES, Op, Request, Volume, VolumeError, open,
};
use tempfile::TempDir;

const MAGIC: [u8; 16] = *b"volumes of tests";
const MIB: u64 = 1 << 20;
/// Set for the process that holds a lock for a test.
const HOLD: &str = "TACHONYM_TEST_HOLD";

fn new_dir() -> TempDir {
    tempfile::tempdir_in("/var/tmp").unwrap()
}

fn acquire(dir: &TempDir) -> DirectoryLock {
    DirectoryLock::acquire(dir.path()).unwrap()
}

fn volume(dir: &TempDir, bytes: u64) -> Result<Volume, VolumeError> {
    Volume::in_directory(&acquire(dir), "l2", bytes, &MAGIC)
}

/// The message, which is to name the path and these words.
fn told(error: &VolumeError, path: &Path, words: &[&str]) {
    let text = error.to_string();
    assert!(text.contains(path.to_str().unwrap()), "{text}");
    for word in words {
        assert!(text.contains(word), "`{word}` is not in: {text}");
    }
}

#[test]
fn a_new_volume_is_zeros_and_has_its_blocks() {
    let dir = new_dir();
    let made = volume(&dir, 3 * MIB + 1000).unwrap();
    assert_eq!(made.bytes(), 3 * MIB);
    let found = fs::metadata(made.path()).unwrap();
    assert_eq!(found.len(), 3 * MIB);
    assert!(found.blocks() * 512 >= 3 * MIB);
    assert_eq!(found.permissions().mode() & 0o777, 0o600);
    assert!(
        made.read_head()
            .unwrap()
            .as_slice()
            .iter()
            .all(|&byte| byte == 0)
    );
}

#[test]
fn the_head_is_there_after_it_was_written() {
    let dir = new_dir();
    let first = [&MAGIC[..], &[1; HEAD_BYTES / 2 - 16]].concat();
    let second = [2; HEAD_BYTES / 2];
    let made = volume(&dir, MIB).unwrap();
    made.write_head(HEAD_BYTES / 2, &second).unwrap();
    made.write_head(0, &first).unwrap();
    drop(made);
    let head = volume(&dir, MIB).unwrap().read_head().unwrap();
    let (one, other) = head.as_slice()[..HEAD_BYTES].split_at(HEAD_BYTES / 2);
    assert!(one == first && other == second);
}

#[test]
fn a_volume_grows_and_keeps_what_it_has() {
    let dir = new_dir();
    let mark = [&MAGIC[..], &[9; 4080]].concat();
    volume(&dir, MIB).unwrap().write_head(0, &mark).unwrap();
    let grown = volume(&dir, 4 * MIB).unwrap();
    assert_eq!(grown.bytes(), 4 * MIB);
    assert!(fs::metadata(grown.path()).unwrap().blocks() * 512 >= 4 * MIB);
    assert!(grown.read_head().unwrap().as_slice().starts_with(&mark));
}

#[test]
fn a_larger_volume_is_not_cut() {
    let dir = new_dir();
    let path = volume(&dir, 4 * MIB).unwrap().path().to_path_buf();
    let error = volume(&dir, MIB).unwrap_err();
    assert!(matches!(
        error,
        VolumeError::FileLarger { has_bytes, wants_bytes, .. }
            if has_bytes == 4 * MIB && wants_bytes == MIB
    ));
    told(&error, &path, &["4194304", "remove the file"]);
    assert_eq!(fs::metadata(&path).unwrap().len(), 4 * MIB);
}

#[test]
fn what_is_no_store_is_left_alone() {
    let mut old = MAGIC;
    old[15] += 1;
    // A file system of the ext family, and others, have nothing in their first bytes.
    let mut file_system = vec![0; 300 << 10];
    file_system[1080] = 0x53;
    let mut far = vec![0; 300 << 10];
    far[64 << 10] = b'_';
    for content in [b"my thesis".to_vec(), old.to_vec(), file_system, far] {
        let dir = new_dir();
        let path = dir.path().join("l2");
        fs::write(&path, &content).unwrap();
        let error = volume(&dir, MIB).unwrap_err();
        assert!(matches!(error, VolumeError::Foreign { .. }), "{error}");
        told(
            &error,
            &path,
            &["other data than a content store", "remove it"],
        );
        assert!(fs::read(&path).unwrap() == content);
    }
    let dir = new_dir();
    fs::create_dir(dir.path().join("l2")).unwrap();
    let error = volume(&dir, MIB).unwrap_err();
    assert!(matches!(error, VolumeError::Foreign { .. }), "{error}");
}

#[test]
fn a_lock_file_of_others_is_left_alone() {
    let dir = new_dir();
    let path = dir.path().join("tachonym.lock");
    fs::write(&path, "my thesis").unwrap();
    let error = DirectoryLock::acquire(dir.path()).unwrap_err();
    told(
        &error,
        &path,
        &["other data than a content store", "remove the file"],
    );
    assert_eq!(fs::read(&path).unwrap(), b"my thesis");
    // What another process has left is no obstacle.
    fs::write(&path, "123456\n").unwrap();
    acquire(&dir);
}

#[test]
fn a_file_system_without_room_is_told_before_it_is_filled() {
    let dir = new_dir();
    let path = dir.path().join("l2");
    let wanted = 1 << 43;
    let error = volume(&dir, wanted).unwrap_err();
    match &error {
        VolumeError::NoSpace {
            needed_bytes,
            available_bytes,
            ..
        } => {
            assert_eq!(*needed_bytes, wanted);
            assert!(*available_bytes < wanted);
        }
        other => panic!("{other}"),
    }
    told(&error, &path, &["8.0 TiB", "smaller content store"]);
    assert!(!path.exists(), "nothing is left behind");
    volume(&dir, MIB).unwrap();
    assert!(matches!(
        volume(&dir, wanted),
        Err(VolumeError::NoSpace { .. })
    ));
    assert_eq!(fs::metadata(&path).unwrap().len(), MIB, "it is as it was");
}

#[test]
fn a_directory_that_is_none_is_refused() {
    let dir = new_dir();
    let path = dir.path().join("none");
    let error = DirectoryLock::acquire(&path).unwrap_err();
    assert!(matches!(error, VolumeError::Absent { .. }));
    told(&error, &path, &["mkdir"]);
    fs::write(&path, "").unwrap();
    let error = DirectoryLock::acquire(&path).unwrap_err();
    assert!(matches!(error, VolumeError::NotADirectory { .. }));
    told(&error, &path, &["not a directory"]);
}

#[test]
fn a_directory_of_another_user_is_refused() {
    let dir = new_dir();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o555)).unwrap();
    let path = dir.path().to_path_buf();
    let tried = std::thread::spawn(move || {
        if getuid().is_root() {
            // This thread alone is nobody from here on.
            let nobody = Uid::from_raw(65_534);
            rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
        }
        DirectoryLock::acquire(&path)
    });
    let error = tried.join().unwrap().unwrap_err();
    assert!(matches!(error, VolumeError::NotWritable { .. }), "{error}");
    told(&error, dir.path(), &["chown"]);
}

#[test]
fn a_lock_lives_as_long_as_a_volume() {
    let dir = new_dir();
    let lock = acquire(&dir);
    let first = Volume::in_directory(&lock, "l2-0", MIB, &MAGIC).unwrap();
    let second = Volume::in_directory(&lock, "l2-1", MIB, &MAGIC).unwrap();
    drop((lock, first));
    let error = DirectoryLock::acquire(dir.path()).unwrap_err();
    assert!(matches!(error, VolumeError::Locked { pid, .. } if pid == Some(std::process::id())));
    told(&error, dir.path(), &["this process"]);
    drop(second);
    acquire(&dir);
}

/// Another process, that has taken something and waits.
struct Holder(Child);

impl Holder {
    /// Runs the test of this name as that process, until it says that it has it.
    fn new(path: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "another_process_is_named", "--nocapture"])
            .env(HOLD, path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut lines = lines.map(Result::unwrap);
        assert!(lines.any(|line| line.contains("held")), "it has not got it");
        Self(child)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// What the other process does.
fn hold(path: &Path) {
    let wait = || {
        println!("held");
        std::io::stdout().flush().unwrap();
        let _ = std::io::stdin().read_line(&mut String::new());
    };
    if path.is_dir() {
        let _held = DirectoryLock::acquire(path).unwrap();
        wait();
    } else {
        let _held = BlockDevice::open(path).unwrap();
        wait();
    }
}

#[test]
fn another_process_is_named() {
    if let Some(path) = std::env::var_os(HOLD) {
        return hold(Path::new(&path));
    }
    let dir = new_dir();
    let other = Holder::new(dir.path());
    let pid = other.0.id();
    let error = DirectoryLock::acquire(dir.path()).unwrap_err();
    assert!(matches!(error, VolumeError::Locked { pid: told, .. } if told == Some(pid)));
    told(&error, dir.path(), &[&format!("process {pid}"), "stop it"]);
    // It goes with the process, killed or not.
    drop(other);
    acquire(&dir);
}

#[test]
fn parts_of_a_block_device_are_apart() {
    let made = Loop::new(8 * MIB);
    let device = BlockDevice::open(made.device()).unwrap();
    assert_eq!(device.bytes(), 8 * MIB);
    let part = |part| Volume::on_block_device(&device, part, &MAGIC);
    let parts = [part(0..MIB).unwrap(), part(MIB..3 * MIB).unwrap()];
    assert_eq!(parts[1].bytes(), 2 * MIB);
    for backend in [Backend::Auto, Backend::Threads] {
        let volumes = vec![part(0..MIB).unwrap(), part(MIB..3 * MIB).unwrap()];
        let (mut device, _) = open(volumes, &[], 4, backend).unwrap();
        let mut ended = Vec::new();
        // The second part from its beginning, and the first to its end and no further.
        let requests = [
            (Op::Write, 1, 512 << 10),
            (Op::Read, 0, MIB - 4096),
            (Op::Sync, 1, 0),
        ];
        for (token, (op, volume, offset)) in requests.into_iter().enumerate() {
            let mut buffer = IoBuffer::new(8192, 0).unwrap();
            buffer.as_mut_slice().fill(7);
            let request = Request {
                token: token as u64,
                volume,
                op,
                offset,
                len: 8192,
                buffer: Some(buffer),
            };
            device.submit(request).unwrap();
        }
        device.start();
        while ended.len() < 3 {
            device.poll(MonoNs::ZERO, &mut ended);
        }
        ended.sort_by_key(|ended| ended.token);
        let lengths: Vec<_> = ended
            .iter()
            .map(|ended| *ended.outcome.as_ref().unwrap())
            .collect();
        assert_eq!(lengths, [8192, 4096, 0]);
    }
    let mut bytes = [0; 8192];
    let blocks = File::open(made.device()).unwrap();
    blocks.read_exact_at(&mut bytes, MIB + (512 << 10)).unwrap();
    assert_eq!(bytes, [7; 8192]);

    let error = part(MIB..9 * MIB).unwrap_err();
    assert!(
        matches!(error, VolumeError::DeviceSmaller { has_bytes, wants_bytes, .. }
        if has_bytes == 8 * MIB && wants_bytes == 9 * MIB)
    );
    told(&error, made.device(), &["8388608", "no more than it has"]);
    let error = part(1000..MIB).unwrap_err();
    assert!(matches!(error, VolumeError::Unaligned { offset: 1000, .. }));
    // What was written lies in its first 256 KiB.
    let error = part((MIB + (448 << 10))..3 * MIB).unwrap_err();
    assert!(matches!(error, VolumeError::Foreign { .. }));
    told(&error, made.device(), &["blkdiscard"]);
}

#[test]
fn a_block_device_in_use_is_refused() {
    let made = Loop::new(8 * MIB);
    let device = BlockDevice::open(made.device()).unwrap();
    let volume = Volume::on_block_device(&device, 0..MIB, &MAGIC).unwrap();
    drop(device);
    let error = BlockDevice::open(made.device()).unwrap_err();
    assert!(matches!(error, VolumeError::Locked { pid, .. } if pid == Some(std::process::id())));
    drop(volume);
    let other = Holder::new(made.device());
    let error = BlockDevice::open(made.device()).unwrap_err();
    let told_pid = Some(other.0.id());
    assert!(
        matches!(error, VolumeError::Locked { pid, .. } if pid == told_pid),
        "{error}"
    );
    drop(other);
    let error = BlockDevice::open(made.backing()).unwrap_err();
    assert!(matches!(error, VolumeError::NotABlockDevice { .. }));
    told(&error, made.backing(), &["lsblk"]);
    let error = BlockDevice::open(Path::new("/dev/no-such-disk")).unwrap_err();
    assert!(matches!(error, VolumeError::Absent { .. }));

    run("mkfs.ext4", &["-q"], made.device());
    let device = BlockDevice::open(made.device()).unwrap();
    let error = Volume::on_block_device(&device, 0..MIB, &MAGIC).unwrap_err();
    assert!(matches!(error, VolumeError::Foreign { .. }), "{error}");
    drop(device);
    let mount = new_dir();
    let device = made.device().to_str().unwrap();
    run("mount", &[device], mount.path());
    let tried = BlockDevice::open(made.device());
    run("umount", &[], mount.path());
    let error = tried.unwrap_err();
    assert!(matches!(error, VolumeError::InUse { .. }), "{error}");
    told(&error, made.device(), &["unmount it"]);
}

#[test]
fn a_block_device_that_fails_says_so() {
    let made = Loop::new(8 * MIB);
    let device = BlockDevice::open(made.device()).unwrap();
    made.cut(4 * MIB);
    for backend in [Backend::Auto, Backend::Threads] {
        let volume = Volume::on_block_device(&device, 0..8 * MIB, &MAGIC).unwrap();
        let (mut device, opened) = open(vec![volume], &[], 4, backend).unwrap();
        for (offset, expected) in [(0, Ok(65_536)), (6 * MIB, Err(5))] {
            let request = Request {
                token: 0,
                volume: 0,
                op: Op::Read,
                offset,
                len: 65_536,
                buffer: IoBuffer::new(65_536, 0).ok(),
            };
            device.submit(request).unwrap();
            device.start();
            let mut ended = Vec::new();
            while ended.is_empty() {
                device.poll(MonoNs::ZERO, &mut ended);
            }
            let outcome = ended.pop().unwrap().outcome;
            let outcome = outcome.map_err(|error| error.raw_os_error().unwrap());
            assert_eq!(outcome, expected, "{opened}");
        }
    }
}
