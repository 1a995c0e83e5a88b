//! Block devices whose blocks lie in files, which only root may have. Tests of them have
//! `block_device` in their names: `cargo xtask test` skips them, and says so, where there are none.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file includes this and uses its part"
)]

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

/// A block device, until it is dropped.
pub struct Loop {
    device: PathBuf,
    backing: PathBuf,
    /// Where the file lies is a file system of its own.
    is_mounted: bool,
    dir: TempDir,
}

impl Loop {
    pub fn new(bytes: u64) -> Self {
        Self::in_dir(tempfile::tempdir_in("/var/tmp").expect("a folder"), bytes)
    }

    /// One that has blocks for so many bytes only: writing others fails.
    pub fn with_blocks_for(max_bytes: u64, bytes: u64) -> Self {
        let dir = tempfile::tempdir_in("/var/tmp").expect("a folder");
        let size = format!("size={max_bytes}");
        run("mount", &["-t", "tmpfs", "-o", &size, "tmpfs"], dir.path());
        let mut made = Self::in_dir(dir, bytes);
        made.is_mounted = true;
        made
    }

    fn in_dir(dir: TempDir, bytes: u64) -> Self {
        let backing = dir.path().join("blocks");
        let file = File::create(&backing).expect("the folder is ours");
        file.set_len(bytes).expect("the file is ours");
        let device = run("losetup", &["--find", "--show"], &backing);
        Self {
            device: device.trim().into(),
            backing,
            is_mounted: false,
            dir,
        }
    }

    pub fn device(&self) -> &Path {
        &self.device
    }

    pub fn backing(&self) -> &Path {
        &self.backing
    }

    pub fn begins_with_zeros(&self) -> bool {
        let mut head = vec![0xff; 256 << 10];
        let read = self.file().read_exact_at(&mut head, 0);
        read.is_ok() && head.iter().all(|&byte| byte == 0)
    }

    /// From here on what lies behind `bytes` cannot be read.
    pub fn cut(&self, bytes: u64) {
        self.file().set_len(bytes).expect("the file is ours");
    }

    /// Changes a byte of every 4096, from `start` on.
    pub fn garble(&self, start: u64) {
        let file = self.file();
        let len = file.metadata().expect("it is there").len();
        for at in (start..len).step_by(4096) {
            let mut byte = [0];
            file.read_exact_at(&mut byte, at).expect("it is there");
            file.write_all_at(&[!byte[0]], at).expect("it is ours");
        }
    }

    fn file(&self) -> File {
        let opened = File::options().read(true).write(true).open(&self.backing);
        opened.expect("it is there")
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        run("losetup", &["--detach"], &self.device);
        if self.is_mounted {
            // The device may be gone a moment later.
            run("umount", &["--lazy"], self.dir.path());
        }
    }
}

/// What a program prints that must succeed.
pub fn run(program: &str, arguments: &[&str], path: &Path) -> String {
    let done = Command::new(program).args(arguments).arg(path).output();
    let done = done.unwrap_or_else(|error| panic!("{program}: {error}"));
    let is_done = done.status.success();
    assert!(is_done, "{program} (which must be run by root): {done:?}");
    String::from_utf8(done.stdout).expect("text")
}
