//! The device as fio measures it.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::Value;

/// A sentence for a machine without fio.
pub(super) const HOW_TO_GET: &str =
    "fio is not installed (Debian: apt install fio): its rows are left out.";

/// Whether the program can be started.
pub(super) fn is_installed() -> bool {
    let version = Command::new("fio").arg("--version").output();
    version.is_ok_and(|output| output.status.success())
}

/// What fio says of reading a file in order.
#[derive(Clone, Copy, Debug)]
pub(super) struct FioRead {
    pub(super) mib_per_s: f64,
    pub(super) cpu_us_per_read: f64,
}

/// Has fio read a file in order, by io_uring, past the page cache, `depth` reads of
/// `read_bytes` at a time, of its first `used_bytes`.
pub(super) fn read(
    (path, used_bytes): (&Path, u64),
    read_bytes: usize,
    depth: usize,
    time: Duration,
) -> anyhow::Result<FioRead> {
    let size = used_bytes / read_bytes as u64 * read_bytes as u64;
    let output = Command::new("fio")
        .args(["--name=read", "--rw=read", "--direct=1", "--readonly"])
        .args(["--ioengine=io_uring", "--output-format=json", "--thread"])
        .args(["--time_based", "--norandommap", "--invalidate=0"])
        .arg(format!("--filename={}", path.display()))
        .arg(format!("--size={size}"))
        .arg(format!("--bs={read_bytes}"))
        .arg(format!("--iodepth={depth}"))
        .arg(format!("--runtime={}ms", time.as_millis()))
        .output()
        .context(HOW_TO_GET)?;
    ensure!(
        output.status.success(),
        "fio failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let told: Value =
        serde_json::from_slice(&output.stdout).context("the output of fio is not JSON")?;
    let job = &told["jobs"][0];
    let field = |value: &Value| {
        value
            .as_f64()
            .context("the output of fio has other fields than expected; use fio 3")
    };
    let bytes_per_s = field(&job["read"]["bw_bytes"])?;
    let reads_per_s = field(&job["read"]["iops"])?;
    let cpu_pct = field(&job["usr_cpu"])? + field(&job["sys_cpu"])?;
    Ok(FioRead {
        mib_per_s: bytes_per_s / f64::from(1 << 20),
        cpu_us_per_read: cpu_pct / 100.0 * 1e6 / reads_per_s.max(1.0),
    })
}
