//! What a read costs: MiB/s, requests per second, and the time of the CPU that a request
//! takes, the kernel's included, by io_uring and by threads.
//!
//! `cargo bench -p tachonym-store --bench device [-- [PATH] [SECONDS] [FILTER]]`: a directory
//! on the disk to measure (`/var/tmp`), where a file of 4 GiB is written; for how long each
//! case runs (1); a part of the names of cases to run. Cases are run three times, taking
//! turns; the median is told, and the least and the most.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::time::{ClockId, clock_gettime};
use tachonym_memory::IoBuffer;
use tachonym_packet::MonoNs;
use tachonym_store::device::{
    Backend, Completion, Device, DirectoryLock, Op, Request, Volume, open,
};

const FILE_BYTES: u64 = 4 << 30;
const MAGIC: [u8; 16] = *b"a bench's volume";
const KIB: usize = 1 << 10;
const N_ROUNDS: usize = 3;

/// One that is measured.
#[derive(Clone, Copy)]
struct Case {
    backend: Backend,
    buffers: Buffers,
    access: Access,
    bytes: usize,
    depth: u16,
}

/// What is done, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    SequentialRead,
    RandomRead,
    /// To blocks that have been written before.
    SequentialWrite,
}

/// Where the memory of buffers comes from, and whether the kernel pins it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Buffers {
    /// Each by itself, not pinned.
    Plain,
    /// Each by itself, pinned.
    Pinned,
    /// All from one region on huge pages, not pinned.
    Huge,
    /// All from one region on huge pages, pinned.
    HugePinned,
}

impl Case {
    fn name(self) -> String {
        let access = match self.access {
            Access::SequentialRead => "sequential_read",
            Access::RandomRead => "random_read",
            Access::SequentialWrite => "sequential_write",
        };
        format!(
            "device/{access}/{:?},{:?},kib={},depth={}",
            self.backend,
            self.buffers,
            self.bytes / KIB,
            self.depth,
        )
        .to_lowercase()
    }
}

fn cases() -> Vec<Case> {
    let accesses = [
        (Access::SequentialRead, 80 * KIB, 8),
        (Access::SequentialRead, 80 * KIB, 16),
        (Access::SequentialRead, 80 * KIB, 32),
        (Access::RandomRead, 8 * KIB, 32),
        (Access::RandomRead, 80 * KIB, 16),
        (Access::SequentialWrite, 512 * KIB, 4),
    ];
    let mut cases = Vec::new();
    for (access, bytes, depth) in accesses {
        for (backend, buffers) in [
            (Backend::Uring, Buffers::Plain),
            (Backend::Uring, Buffers::Pinned),
            (Backend::Uring, Buffers::Huge),
            (Backend::Uring, Buffers::HugePinned),
            (Backend::Threads, Buffers::Huge),
        ] {
            cases.push(Case {
                backend,
                buffers,
                access,
                bytes,
                depth,
            });
        }
    }
    cases
}

/// What one run of a case has shown.
struct Seen {
    n_requests: u64,
    wall: Duration,
    cpu: Duration,
}

/// Time of the CPU that this process has taken, all threads, the kernel's on their behalf
/// included.
fn cpu_time() -> Duration {
    clock_gettime(ClockId::ProcessCPUTime)
        .try_into()
        .expect("time passes")
}

fn make_buffers(case: Case) -> Vec<IoBuffer> {
    let made = match case.buffers {
        Buffers::Plain | Buffers::Pinned => (0..case.depth)
            .map(|i| IoBuffer::new(case.bytes, i))
            .collect(),
        Buffers::Huge | Buffers::HugePinned => IoBuffer::many(0..case.depth, case.bytes),
    };
    made.expect("there is memory")
}

/// The next place to read.
fn next_offset(case: Case, i: u64) -> u64 {
    let n_places = FILE_BYTES / case.bytes as u64;
    let place = match case.access {
        Access::RandomRead => i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20,
        Access::SequentialRead | Access::SequentialWrite => i,
    };
    // Not over what the file begins with.
    (1 + place % (n_places - 1)) * case.bytes as u64
}

fn run(case: Case, dir: &Path, limit: Duration, from: &mut u64) -> Seen {
    let lock = DirectoryLock::acquire(dir).expect("nobody else is there");
    let volume = Volume::in_directory(&lock, "volume", FILE_BYTES, &MAGIC).expect("prepared");
    let buffers = make_buffers(case);
    let known = match case.buffers {
        Buffers::Pinned | Buffers::HugePinned => &buffers[..],
        Buffers::Plain | Buffers::Huge => &[],
    };
    let opened = open(vec![volume], known, case.depth.into(), case.backend);
    let (mut device, _) = opened.expect("the kernel has it");
    let mut completions: Vec<Completion> = Vec::new();
    let mut n_requests = 0;
    let mut submit = |device: &mut dyn Device, buffer: IoBuffer| {
        let request = Request {
            token: 0,
            volume: 0,
            op: match case.access {
                Access::SequentialWrite => Op::Write,
                Access::SequentialRead | Access::RandomRead => Op::Read,
            },
            offset: next_offset(case, *from),
            len: case.bytes as u32,
            buffer: Some(buffer),
        };
        *from += 1;
        device.submit(request).expect("as many as it was made for");
    };
    for buffer in buffers {
        submit(device.as_mut(), buffer);
    }
    device.start();
    let (start, cpu) = (Instant::now(), cpu_time());
    while start.elapsed() < limit {
        let fd = device.wake_fd().expect("files wake");
        let _ = poll(&mut [PollFd::new(&fd, PollFlags::IN)], None::<&Timespec>);
        device.poll(MonoNs::ZERO, &mut completions);
        for ended in completions.drain(..) {
            assert_eq!(ended.outcome.expect("a good disk"), case.bytes as u32);
            let buffer = ended.buffer.expect("it came with one");
            black_box(buffer.as_slice()[0]);
            n_requests += 1;
            submit(device.as_mut(), buffer);
        }
        device.start();
    }
    Seen {
        n_requests,
        wall: start.elapsed(),
        cpu: cpu_time() - cpu,
    }
}

/// Fills the file, so that all its blocks are written, not only allocated.
fn prepare(dir: &Path) {
    let lock = DirectoryLock::acquire(dir).expect("a directory of ours");
    let volume = Volume::in_directory(&lock, "volume", FILE_BYTES, &MAGIC);
    let volume = volume.expect("there are 4 GiB");
    let direct = volume.is_direct();
    println!("# {}: direct={direct}", volume.path().display());
    let mut buffers = IoBuffer::many(0..8, 1 << 20).expect("there is memory");
    for buffer in &mut buffers {
        buffer.as_mut_slice().fill(0xa5);
    }
    let opened = open(vec![volume], &buffers, 8, Backend::Auto);
    let (mut device, _) = opened.expect("some way");
    let mut completions = Vec::new();
    let mut offset = 0;
    let (start, cpu) = (Instant::now(), cpu_time());
    while offset < FILE_BYTES || device.n_in_flight() > 0 {
        while let Some(buffer) = buffers.pop_if(|_| offset < FILE_BYTES) {
            let bytes = buffer.as_slice().len() as u32;
            let request = Request {
                token: 0,
                volume: 0,
                op: Op::Write,
                offset,
                len: bytes,
                buffer: Some(buffer),
            };
            offset += u64::from(bytes);
            device.submit(request).expect("as many as it was made for");
        }
        device.start();
        let fd = device.wake_fd().expect("files wake");
        let _ = poll(&mut [PollFd::new(&fd, PollFlags::IN)], None::<&Timespec>);
        device.poll(MonoNs::ZERO, &mut completions);
        for ended in completions.drain(..) {
            ended.outcome.expect("a good disk");
            buffers.extend(ended.buffer);
        }
    }
    let mib = (FILE_BYTES >> 20) as f64;
    println!(
        "# written for the first time, 1 MiB each, 8 at a time: {:.0} MiB/s, {:.1} us of CPU per MiB",
        mib / start.elapsed().as_secs_f64(),
        (cpu_time() - cpu).as_secs_f64() * 1e6 / mib,
    );
    drop(device);
    let head = [&MAGIC[..], &[0; 4080]].concat();
    let volume = Volume::in_directory(&lock, "volume", FILE_BYTES, &[0xa5; 16]);
    let volume = volume.expect("ours");
    volume.write_head(0, &head).expect("a good disk");
}

fn main() {
    let args: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| arg != "--bench")
        .collect();
    let at: PathBuf = args.first().map_or("/var/tmp", String::as_str).into();
    let seconds: f64 = args.get(1).map_or(1.0, |arg| arg.parse().expect("seconds"));
    let filter = args.get(2).map_or("", String::as_str);
    let dir = tempfile::tempdir_in(at).expect("a directory that can be written");
    prepare(dir.path());
    let cases: Vec<_> = cases()
        .into_iter()
        .filter(|case| case.name().contains(filter))
        .collect();
    let mut seen: Vec<Vec<Seen>> = cases.iter().map(|_| Vec::new()).collect();
    let mut from = 0;
    for _ in 0..N_ROUNDS {
        for (case, seen) in cases.iter().zip(&mut seen) {
            seen.push(run(
                *case,
                dir.path(),
                Duration::from_secs_f64(seconds),
                &mut from,
            ));
        }
    }
    println!(
        "{:<62} {:>8} {:>8} {:>24} {:>9}",
        "case", "MiB/s", "IOPS", "us of CPU per request", "us/8 KiB"
    );
    for (case, seen) in cases.iter().zip(&seen) {
        let sorted = |of: &dyn Fn(&Seen) -> f64| {
            let mut figures: Vec<f64> = seen.iter().map(of).collect();
            figures.sort_by(f64::total_cmp);
            figures
        };
        let iops = sorted(&|seen| seen.n_requests as f64 / seen.wall.as_secs_f64());
        let cpu = sorted(&|seen| seen.cpu.as_secs_f64() * 1e6 / seen.n_requests as f64);
        let middle = N_ROUNDS / 2;
        let mib = iops[middle] * case.bytes as f64 / (1 << 20) as f64;
        println!(
            "{:<62} {:>8.0} {:>8.0} {:>9.2} [{:>5.2}, {:>5.2}] {:>9.2}",
            case.name(),
            mib,
            iops[middle],
            cpu[middle],
            cpu[0],
            cpu[N_ROUNDS - 1],
            cpu[middle] * 8.0 * KIB as f64 / case.bytes as f64,
        );
    }
}
