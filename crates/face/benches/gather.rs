//! Why frames are copied into one buffer: that and one `write`, against one
//! `writev` with an entry for each frame.
//!
//! `cargo bench -p tachonym-face` prints, for bursts of frames of three sizes,
//! median and p10–p90 over eleven runs in nanoseconds per frame over a Unix
//! socket. A run is the median of its bursts, so that what else the machine does
//! in between does not count. Reading is not timed.

use std::io::{IoSlice, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Instant;

const N_RUNS: usize = 11;
const N_BURSTS_PER_RUN: usize = 500;
/// Frames of a burst and their size in bytes: small Data, Data of 1,000 bytes,
/// and the largest packets.
const BURSTS: [(usize, usize); 3] = [(64, 100), (64, 1_100), (16, 8_800)];

fn main() {
    for (n_frames, frame_bytes) in BURSTS {
        let frames: Vec<Vec<u8>> = (0..n_frames).map(|i| vec![i as u8; frame_bytes]).collect();
        let mut buffer = Vec::with_capacity(n_frames * frame_bytes);
        report("copy-and-write", &frames, |socket, frames| {
            buffer.clear();
            for frame in frames {
                buffer.extend_from_slice(frame);
            }
            socket.write(&buffer)
        });
        report("writev", &frames, |socket, frames| {
            let slices: Vec<IoSlice<'_>> = frames.iter().map(|frame| IoSlice::new(frame)).collect();
            socket.write_vectored(&slices)
        });
    }
}

fn report(
    name: &str,
    frames: &[Vec<u8>],
    mut send: impl FnMut(&mut UnixStream, &[Vec<u8>]) -> std::io::Result<usize>,
) {
    let n_bytes: usize = frames.iter().map(Vec::len).sum();
    let (mut near, mut far) = UnixStream::pair().expect("a pair of sockets");
    let mut sink = vec![0; n_bytes];
    let mut runs_ns: Vec<f64> = (0..N_RUNS)
        .map(|_| {
            let mut bursts_ns = [0; N_BURSTS_PER_RUN];
            for burst_ns in &mut bursts_ns {
                let started = Instant::now();
                let n_sent = send(&mut near, frames).expect("the other end is open");
                *burst_ns = started.elapsed().as_nanos();
                assert_eq!(n_sent, n_bytes, "the socket has room for a burst");
                far.read_exact(&mut sink).expect("the other end is open");
            }
            bursts_ns.sort_unstable();
            bursts_ns[N_BURSTS_PER_RUN / 2] as f64 / frames.len() as f64
        })
        .collect();
    runs_ns.sort_by(f64::total_cmp);
    println!(
        "face/{name}/frames={},bytes={}: {:.0} ns/frame ({:.0}–{:.0})",
        frames.len(),
        n_bytes / frames.len(),
        runs_ns[N_RUNS / 2],
        runs_ns[N_RUNS / 10],
        runs_ns[N_RUNS * 9 / 10]
    );
}
