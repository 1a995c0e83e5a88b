//! Devices do what requests say, all alike, and say when.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Resource, Uid, getrlimit, getuid, setrlimit};
use tachonym_memory::{IO_ALIGN, IoBuffer};
use tachonym_packet::MonoNs;
use tachonym_store::device::{
    Backend, Completion, Contents, Device, DirectoryLock, Emulated, Op, Opened, Ram, Request,
    Threads, Uring, Volume, Waiting, open,
};
use tempfile::TempDir;

const BLOCK: u64 = IO_ALIGN as u64;
const MAGIC: [u8; 16] = *b"devices of tests";
/// Of both volumes, in blocks: requests of up to 8 pass their ends.
const N_BLOCKS: [u64; 2] = [40, 24];
const N_REQUESTS: u32 = 8;

fn volumes(dir: &TempDir) -> Vec<Volume> {
    let lock = DirectoryLock::acquire(dir.path()).unwrap();
    let volume = |(i, n_blocks)| {
        let name = format!("l2-{i}");
        let volume = Volume::in_directory(&lock, &name, n_blocks * BLOCK, &MAGIC).unwrap();
        // What begins with anything else is not opened again.
        let head = [&MAGIC[..], &[0; IO_ALIGN - 16]].concat();
        volume.write_head(0, &head).unwrap();
        volume
    };
    N_BLOCKS.into_iter().enumerate().map(volume).collect()
}

fn new_dir() -> TempDir {
    // Not in memory, where that is: direct reads and writes are what is tried.
    tempfile::tempdir_in("/var/tmp").unwrap()
}

fn buffers(n_buffers: u16, bytes: usize) -> Vec<IoBuffer> {
    IoBuffer::many(0..n_buffers, bytes).unwrap()
}

fn request(token: u64, op: Op, offset: u64, buffer: Option<IoBuffer>) -> Request {
    let len = buffer
        .as_ref()
        .map_or(0, |buffer| buffer.as_slice().len() as u32);
    Request {
        token,
        volume: 0,
        op,
        offset,
        len,
        buffer,
    }
}

/// Waits as an event loop does, until something has ended.
fn wait(device: &mut dyn Device) -> Vec<Completion> {
    let mut ended = Vec::new();
    while ended.is_empty() {
        if let Some(fd) = device.wake_fd() {
            // A minute: far more than any request takes.
            let limit = Timespec::try_from(Duration::from_secs(60)).unwrap();
            let woken = poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&limit));
            // A signal of the kernel's own may come between.
            assert_ne!(woken, Ok(0), "something ended, and nobody was woken");
        } else {
            assert!(device.next_poll().is_some(), "nothing will ever end");
        }
        device.poll(MonoNs::NEVER, &mut ended);
    }
    ended
}

/// Each kind of device that keeps what is written, and what it is called.
fn devices(dir: &TempDir, buffers: &[IoBuffer], seed: u64) -> Vec<(&'static str, Box<dyn Device>)> {
    let bytes = N_BLOCKS.map(|n_blocks| (n_blocks * BLOCK) as usize);
    let sub_dir = |name: &str| {
        let path = dir.path().join(name);
        std::fs::create_dir(&path).unwrap();
        let lock = DirectoryLock::acquire(&path).unwrap();
        let volume = |(i, n_blocks)| {
            Volume::in_directory(&lock, &format!("{i}"), n_blocks * BLOCK, &MAGIC).unwrap()
        };
        let volumes: Vec<_> = N_BLOCKS.into_iter().enumerate().map(volume).collect();
        Arc::from(volumes)
    };
    let ram = || Ram::new(&bytes).with_capacity(N_REQUESTS as usize);
    let emulated = |waiting, bits_per_s| {
        let contents = Contents::Static(bytes.map(|bytes| vec![0; bytes]).to_vec());
        let device = Emulated::new(contents, waiting, bits_per_s);
        device.with_capacity(N_REQUESTS as usize)
    };
    let fast = Some(1 << 36);
    let threads = Threads::new(sub_dir("threads"), 3, N_REQUESTS).unwrap();
    let mut devices: Vec<(_, Box<dyn Device>)> = vec![
        ("emulated", Box::new(emulated(Waiting::Busy, None))),
        ("emulated, busy", Box::new(emulated(Waiting::Busy, fast))),
        ("emulated, sleep", Box::new(emulated(Waiting::Sleep, fast))),
        (
            "emulated, deferred",
            Box::new(emulated(Waiting::Deferred, fast)),
        ),
        ("threads", Box::new(threads)),
        ("ram", Box::new(ram())),
        ("ram out of order", Box::new(ram().with_seed(seed))),
    ];
    if has_uring() {
        let registered = Uring::new(sub_dir("registered"), buffers, N_REQUESTS).unwrap();
        assert_eq!(registered.is_registered(), !buffers.is_empty());
        devices.push(("uring, registered", Box::new(registered)));
        let plain = Uring::new(sub_dir("plain"), &[], N_REQUESTS).unwrap();
        assert!(!plain.is_registered());
        devices.push(("uring", Box::new(plain)));
    }
    devices
}

/// Set where the kernel has no io_uring, and its tests are to be left out though `CI` is set.
const WITHOUT_URING: &str = "TACHONYM_TEST_WITHOUT_IO_URING";

/// Whether the kernel has io_uring for this process.
///
/// # Panics
/// If it has not, and a test that is left out is a failure.
fn has_uring() -> bool {
    match Uring::new(Arc::new([]), &[], 1) {
        Ok(_) => true,
        Err(error) => {
            let forbidden = [ErrorKind::PermissionDenied, ErrorKind::Unsupported];
            assert!(forbidden.contains(&error.kind()), "{error}");
            let is_set = |name| std::env::var_os(name).is_some_and(|value| value == "true");
            assert!(
                !is_set("CI") || is_set(WITHOUT_URING),
                "there is no io_uring ({error}): let this process use it \
                 (kernel.io_uring_disabled), or set {WITHOUT_URING}=true"
            );
            eprintln!("not tried: io_uring ({error})");
            false
        }
    }
}

/// A request of a test: where and how much in blocks, and what is written.
#[derive(Clone, Debug)]
struct Step {
    op: Op,
    volume: u8,
    block: u64,
    n_blocks: u32,
    fill: u8,
    /// Start and poll after it.
    polls: bool,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let op = prop_oneof![4 => Just(Op::Read), 4 => Just(Op::Write), 1 => Just(Op::Sync)];
    let step = (op, 0..3_u8, 0..48_u64, 0..9_u32, 1..=255_u8, any::<bool>());
    let step = step.prop_map(|(op, volume, block, n_blocks, fill, polls)| Step {
        op,
        volume,
        block,
        n_blocks,
        fill,
        polls,
    });
    prop::collection::vec(step, 1..60)
}

/// What is under way: what it is, and where.
type UnderWay = HashMap<u64, Step>;

/// Checks what has ended against `oracle`, and carries out its writes there.
fn settle(
    name: &str,
    ended: Vec<Completion>,
    oracle: &mut [Vec<u8>],
    under_way: &mut UnderWay,
    free: &mut Vec<IoBuffer>,
) {
    for completion in ended {
        let step = under_way.remove(&completion.token).expect("each ends once");
        let buffer = completion.buffer.expect("it came with one");
        let start = (step.block * BLOCK) as usize;
        let len = step.n_blocks as usize * IO_ALIGN;
        let outcome = completion.outcome.map_err(|error| error.kind());
        match (oracle.get_mut(usize::from(step.volume)), step.op) {
            (None, _) => assert_eq!(outcome, Err(ErrorKind::InvalidInput), "{name}: {step:?}"),
            (Some(_), Op::Sync) => assert_eq!(outcome, Ok(0), "{name}: {step:?}"),
            (Some(bytes), Op::Read) => {
                let rest = bytes.get(start..).unwrap_or_default();
                let n_read = len.min(rest.len());
                assert_eq!(outcome, Ok(n_read as u32), "{name}: {step:?}");
                assert!(
                    buffer.as_slice()[..n_read] == rest[..n_read],
                    "{name}: {step:?}"
                );
            }
            (Some(_), Op::Write) if len == 0 => assert_eq!(outcome, Ok(0), "{name}: {step:?}"),
            (Some(bytes), Op::Write) if start + len > bytes.len() => {
                assert_eq!(outcome, Err(ErrorKind::StorageFull), "{name}: {step:?}");
            }
            (Some(bytes), Op::Write) => {
                assert_eq!(outcome, Ok(len as u32), "{name}: {step:?}");
                bytes[start..start + len].fill(step.fill);
            }
        }
        free.push(buffer);
    }
}

fn overlap(a: &Step, b: &Step) -> bool {
    let writes = a.op == Op::Write || b.op == Op::Write;
    let end = |step: &Step| step.block + u64::from(step.n_blocks);
    writes && a.volume == b.volume && a.block < end(b) && b.block < end(a)
}

/// Runs the steps, those that touch the same place one after another, the others side by side.
fn run(name: &str, device: &mut dyn Device, steps: &[Step], free: &mut Vec<IoBuffer>) {
    let mut oracle = N_BLOCKS.map(|n_blocks| vec![0; (n_blocks * BLOCK) as usize]);
    let mut under_way = UnderWay::new();
    let mut n_refused = 0;
    for (token, step) in steps.iter().enumerate() {
        let token = token as u64;
        while under_way.values().any(|other| overlap(step, other)) {
            device.start();
            let ended = wait(device);
            settle(name, ended, &mut oracle, &mut under_way, free);
        }
        let mut buffer = free.pop().expect("there are more than requests");
        buffer.as_mut_slice().fill(step.fill);
        let mut request = Request {
            token,
            volume: step.volume,
            op: step.op,
            offset: step.block * BLOCK,
            len: step.n_blocks * BLOCK as u32,
            buffer: Some(buffer),
        };
        while let Err(refused) = device.submit(request) {
            assert_eq!(device.n_in_flight(), N_REQUESTS as usize, "{name}");
            request = refused;
            n_refused += 1;
            device.start();
            let ended = wait(device);
            settle(name, ended, &mut oracle, &mut under_way, free);
        }
        under_way.insert(token, step.clone());
        assert_eq!(device.n_in_flight(), under_way.len(), "{name}");
        if step.polls {
            let mut ended = Vec::new();
            device.start();
            device.poll(MonoNs::NEVER, &mut ended);
            settle(name, ended, &mut oracle, &mut under_way, free);
        }
    }
    while !under_way.is_empty() {
        device.start();
        let ended = wait(device);
        settle(name, ended, &mut oracle, &mut under_way, free);
    }
    assert_eq!(device.n_in_flight(), 0, "{name}");
    assert!(n_refused <= steps.len());
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 24,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn all_devices_do_the_same(steps in steps(), seed in any::<u64>()) {
        let dir = new_dir();
        let mut free = buffers(N_REQUESTS as u16 + 2, 8 * IO_ALIGN);
        let devices = devices(&dir, &free, seed);
        for (name, mut device) in devices {
            run(name, device.as_mut(), &steps, &mut free);
            prop_assert_eq!(free.len(), N_REQUESTS as usize + 2);
        }
    }
}

#[test]
fn what_makes_no_sense_is_refused_alike() {
    let dir = new_dir();
    let all = buffers(4, IO_ALIGN);
    for (name, mut device) in devices(&dir, &all, 1) {
        let mut buffers = buffers(4, IO_ALIGN);
        let good = |buffer| request(1, Op::Read, 0, buffer);
        let bad = [
            Request {
                offset: 512,
                ..good(buffers.pop())
            },
            Request {
                len: 100,
                ..good(buffers.pop())
            },
            Request {
                len: 2 * IO_ALIGN as u32,
                ..good(buffers.pop())
            },
            Request {
                len: IO_ALIGN as u32,
                ..good(None)
            },
            Request {
                op: Op::Write,
                len: IO_ALIGN as u32,
                ..good(None)
            },
            Request {
                volume: 2,
                ..good(buffers.pop())
            },
        ];
        for request in bad {
            let told = format!("{name}: {request:?}");
            device.submit(request).unwrap();
            device.start();
            let ended = wait(device.as_mut());
            assert_eq!(ended.len(), 1, "{told}");
            let kind = ended[0].outcome.as_ref().map_err(std::io::Error::kind);
            assert_eq!(kind, Err(ErrorKind::InvalidInput), "{told}");
        }
    }
}

#[test]
fn a_full_device_takes_more_after_a_completion() {
    let dir = new_dir();
    for (name, mut device) in devices(&dir, &[], 1) {
        for (token, buffer) in buffers(N_REQUESTS as u16, IO_ALIGN).into_iter().enumerate() {
            let request = request(token as u64, Op::Read, 0, Some(buffer));
            device.submit(request).unwrap();
        }
        let late = request(99, Op::Sync, 0, None);
        let late = device.submit(late).expect_err("it is full");
        assert_eq!((late.token, late.op), (99, Op::Sync), "{name}");
        device.start();
        let n_ended = wait(device.as_mut()).len();
        device.submit(late).unwrap();
        assert_eq!(
            device.n_in_flight(),
            N_REQUESTS as usize - n_ended + 1,
            "{name}"
        );
    }
}

#[test]
fn requests_under_way_do_not_outlive_a_device() {
    let dir = new_dir();
    let all = buffers(N_REQUESTS as u16, 8 * IO_ALIGN);
    for (name, mut device) in devices(&dir, &all, 1) {
        for (i, mut buffer) in buffers(N_REQUESTS as u16, 8 * IO_ALIGN)
            .into_iter()
            .enumerate()
        {
            buffer.as_mut_slice().fill(i as u8);
            let op = [Op::Write, Op::Read][i % 2];
            device
                .submit(request(i as u64, op, i as u64 * 4 * BLOCK, Some(buffer)))
                .unwrap();
            // Some are never started.
            if i == 5 {
                device.start();
            }
        }
        assert_eq!(device.n_in_flight(), N_REQUESTS as usize, "{name}");
        drop(device);
        // Memory that was freed too soon would be written to now, by the kernel.
        let fresh = buffers(N_REQUESTS as u16, 8 * IO_ALIGN);
        assert!(
            fresh
                .iter()
                .all(|buffer| buffer.as_slice().iter().all(|&byte| byte == 0))
        );
    }
}

#[test]
fn what_was_written_is_there_when_the_volume_is_opened_again() {
    let dir = new_dir();
    for backend in [Backend::Uring, Backend::Threads, Backend::Auto] {
        for reads in [false, true] {
            let (mut device, opened) = match open(volumes(&dir), &[], 4, backend) {
                Ok(made) => made,
                Err(_) => {
                    assert!(backend == Backend::Uring && !has_uring());
                    continue;
                }
            };
            match backend {
                Backend::Auto | Backend::Uring if has_uring() => {
                    assert_eq!(opened, Opened::Uring { registered: false });
                }
                _ => assert_eq!(opened, Opened::Threads),
            }
            let mut buffer = IoBuffer::new(2 * IO_ALIGN, 0).unwrap();
            let fill = backend as u8 + 1;
            let op = match reads {
                true => Op::Read,
                false => {
                    buffer.as_mut_slice().fill(fill);
                    Op::Write
                }
            };
            device
                .submit(request(7, op, 3 * BLOCK, Some(buffer)))
                .unwrap();
            device.start();
            let ended = wait(device.as_mut()).pop().unwrap();
            assert_eq!(ended.outcome.unwrap(), 2 * IO_ALIGN as u32);
            let bytes = ended.buffer.unwrap();
            assert!(
                bytes.as_slice().iter().all(|&byte| byte == fill),
                "{opened}"
            );
        }
    }
}

#[test]
fn a_file_cut_short_is_read_short() {
    let dir = new_dir();
    for backend in [Backend::Auto, Backend::Threads] {
        let (mut device, opened) = open(volumes(&dir), &[], 4, backend).unwrap();
        let file = std::fs::File::options()
            .write(true)
            .open(dir.path().join("l2-0"))
            .unwrap();
        file.set_len(5 * BLOCK).unwrap();
        for (offset, expected) in [(4, BLOCK as u32), (5, 0), (9, 0)] {
            let buffer = IoBuffer::new(3 * IO_ALIGN, 0).ok();
            device
                .submit(request(1, Op::Read, offset * BLOCK, buffer))
                .unwrap();
            device.start();
            let ended = wait(device.as_mut()).pop().unwrap();
            assert_eq!(ended.outcome.unwrap(), expected, "{opened}");
        }
    }
}

#[test]
fn a_device_goes_from_thread_to_thread() {
    let dir = new_dir();
    let free = buffers(N_REQUESTS as u16, IO_ALIGN);
    for (name, mut device) in devices(&dir, &free, 1) {
        let free = buffers(N_REQUESTS as u16, IO_ALIGN);
        let mut device = std::thread::spawn(move || {
            for (i, buffer) in free.into_iter().enumerate() {
                let op = [Op::Read, Op::Sync][i % 2];
                device
                    .submit(request(i as u64, op, 0, Some(buffer)))
                    .unwrap();
            }
            device.start();
            device
        })
        .join()
        .unwrap();
        // What the first thread started ends without it, well or not.
        let mut tokens = Vec::new();
        while device.n_in_flight() > 0 {
            tokens.extend(wait(device.as_mut()).into_iter().map(|ended| ended.token));
        }
        tokens.sort_unstable();
        assert!(tokens.into_iter().eq(0..N_REQUESTS.into()), "{name}");
        device.submit(request(10, Op::Sync, 0, None)).unwrap();
        device.start();
        let ended = wait(device.as_mut()).pop().unwrap();
        assert_eq!((ended.token, ended.outcome.unwrap()), (10, 0), "{name}");
    }
}

#[test]
fn buffers_that_may_not_be_pinned_work_all_the_same() {
    const LIMIT_BYTES: u64 = 8 << 20;
    if !has_uring() {
        return;
    }
    let dir = new_dir();
    let volumes: Arc<[Volume]> = volumes(&dir).into();
    let tried = std::thread::spawn(move || {
        // The least of what a user without privileges may pin.
        let mut limit = getrlimit(Resource::Memlock);
        if limit.current.is_none_or(|bytes| bytes > LIMIT_BYTES) {
            limit.current = Some(LIMIT_BYTES);
            setrlimit(Resource::Memlock, limit).unwrap();
        }
        if getuid().is_root() {
            // This thread alone is nobody from here on.
            let nobody = Uid::from_raw(65_534);
            rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
        }
        let mut free = IoBuffer::many(0..9, 1 << 20).unwrap();
        let mut device = Uring::new(volumes, &free, 4).unwrap();
        assert!(!device.is_registered());
        device.submit(request(0, Op::Read, 0, free.pop())).unwrap();
        device.start();
        wait(&mut device).pop().unwrap().outcome.unwrap()
    });
    assert_eq!(u64::from(tried.join().unwrap()), N_BLOCKS[0] * BLOCK);
}

#[test]
fn a_device_sleeps_when_nothing_has_ended() {
    let dir = new_dir();
    for backend in [Backend::Auto, Backend::Threads] {
        let (mut device, opened) = open(volumes(&dir), &[], 4, backend).unwrap();
        let zero = Timespec::default();
        let is_readable = |device: &dyn Device| {
            let fd = device.wake_fd().unwrap();
            poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&zero)) == Ok(1)
        };
        assert!(!is_readable(device.as_ref()), "{opened}");
        let mut n_quiet = 0;
        for round in 0..50 {
            let buffer = IoBuffer::new(IO_ALIGN, 0).ok();
            device.submit(request(round, Op::Read, 0, buffer)).unwrap();
            device.start();
            wait(device.as_mut());
            // A late event is taken back after a poll or two that found nothing.
            for _ in 0..8 {
                device.poll(MonoNs::NEVER, &mut Vec::new());
            }
            n_quiet += u32::from(!is_readable(device.as_ref()));
        }
        assert_eq!(n_quiet, 50, "{opened}");
    }
}
