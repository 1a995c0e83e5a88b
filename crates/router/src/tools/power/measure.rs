//! `tachonym power measure`: the load program of a fit (Takemasa 2019, section 6.3.1).

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, ensure};
use clap::Args;
use rustix::thread::{CpuSet, sched_setaffinity};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use tachonym_dispatch::power::fit::samples::{Activity, Cores, Sample, write_samples};

use super::super::output;
use crate::config::{KEPT, usable_cpus};
use crate::power::{Cpufreq, Folder, Rapl};

/// A core alternates between working and sleeping so often.
const PERIOD: Duration = Duration::from_millis(10);
/// More than any cache holds.
const MEMORY_BYTES: usize = 1 << 28;
/// How much is read at once.
const CHUNK_BYTES: usize = 1 << 16;
const N_UTILIZATIONS: u32 = 4;

/// Load this machine step by step and print what its energy counters (RAPL) measure, as samples
/// for `tachonym power fit`. Stop other programs first. Takes a warm-up and a measurement for
/// each step: four utilizations of each core, and the first core at each frequency.
#[derive(Args)]
pub(super) struct Measure {
    /// Time before each measurement. Published: 600.
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = super::parse_seconds)]
    warm_up: Duration,
    /// Time of each measurement. Published: 1200.
    #[arg(long, value_name = "SECONDS", default_value = "20", value_parser = super::parse_seconds)]
    seconds: Duration,
    /// Samples in that time, each the mean of its part. Published: 20.
    #[arg(long, value_name = "N", default_value = "20", value_parser = clap::value_parser!(u32).range(1..))]
    samples: u32,
    /// Cores of one processor, one thread of each; by default those of the first processor that
    /// this process may use.
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    cpus: Vec<u16>,
    /// Where sysfs is mounted.
    #[arg(long, value_name = "FOLDER", default_value = "/sys")]
    sysfs: PathBuf,
}

/// Runs it.
///
/// # Errors
/// If there are no counters, or a core can't be used.
pub(super) fn run(arguments: &Measure) -> anyhow::Result<()> {
    let usable = usable_cpus();
    let sys = Folder::new(&arguments.sysfs);
    let cpus = match arguments.cpus.is_empty() {
        true => cores_of_one_processor(&sys, &usable),
        false => arguments.cpus.clone(),
    };
    for (idx, cpu) in cpus.iter().enumerate() {
        ensure!(
            !cpus[..idx].contains(cpu),
            "--cpus: core {cpu} stands there twice"
        );
        ensure!(
            usable.contains(cpu),
            "--cpus: this process may not use core {cpu}"
        );
    }
    let stop = stop_by_signals()?;
    let rapl = Rapl::open(&sys).map_err(|why| {
        anyhow!(
            "{why}; use a power meter and write its samples yourself (docs/tools.md, \"Power\")"
        )
    })?;
    let numbers: Vec<_> = cpus.iter().map(|&cpu| u32::from(cpu)).collect();
    let cpufreq =
        Cpufreq::open(&sys, Path::new(KEPT), &numbers).and_then(|mut it| it.claim().map(|()| it));
    output::note(format_args!("cores that are loaded: {cpus:?}"));
    let mut meter = Meter {
        arguments,
        stop,
        fixed_hz: crate::power::cpuinfo_khz().map_or(1e9, |khz| 1e3 * khz as f64),
        rapl,
        cpus: &cpus,
        cpufreq: match cpufreq {
            Ok(cpufreq) => Some(cpufreq),
            Err(why) => {
                output::note(format_args!("frequencies stay as they are: {why}"));
                None
            }
        },
    };
    output::line("# watts by RAPL, of processors and memory alone: add rows of the device nic")?;
    output::line("# by a power meter, or give `tachonym power fit` --nic-j-per-packet")?;
    let mut is_first = true;
    for step in meter.steps() {
        let samples = meter.measure(step)?;
        let table = write_samples(&samples);
        let (head, rows) = table.split_once('\n').unwrap_or((&table, ""));
        if std::mem::take(&mut is_first) {
            output::line(head)?;
        }
        output::text(rows)?;
    }
    Ok(())
}

/// What a step loads.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Step {
    Idle,
    Cpu {
        n_cores: u32,
        p_state: u8,
        utilization: f64,
    },
    /// The first core reads memory for this share of its time, and works for the rest.
    Memory {
        share: f64,
    },
}

struct Meter<'a> {
    arguments: &'a Measure,
    stop: Arc<AtomicBool>,
    /// Of a machine without cpufreq: whatever it is, all steps have the same.
    fixed_hz: f64,
    rapl: Rapl,
    cpufreq: Option<Cpufreq>,
    cpus: &'a [u16],
}

impl Meter<'_> {
    fn steps(&self) -> Vec<Step> {
        let p_states = match &self.cpufreq {
            Some(cpufreq) => cpufreq.p_states(),
            None => vec![0],
        };
        let of_first = p_states.iter().rev().map(|&p_state| (1, p_state));
        let others = (2..=self.cpus.len() as u32).map(|n_cores| (n_cores, 0));
        let mut steps = vec![Step::Idle];
        for (n_cores, p_state) in of_first.chain(others) {
            steps.extend((1..=N_UTILIZATIONS).map(|nth| Step::Cpu {
                n_cores,
                p_state,
                utilization: f64::from(nth) / f64::from(N_UTILIZATIONS),
            }));
        }
        steps.extend([0.5, 1.0].map(|share| Step::Memory { share }));
        steps
    }

    fn frequency_hz(&self) -> f64 {
        let first = Some(self.cpus[0].into());
        let cpufreq = self.cpufreq.as_ref();
        cpufreq.map_or(self.fixed_hz, |it| 1e3 * it.khz(first) as f64)
    }

    fn measure(&mut self, step: Step) -> anyhow::Result<Vec<Sample>> {
        let (n_cores, p_state, utilization) = match step {
            Step::Idle => (0, 0, 0.0),
            Step::Cpu {
                n_cores,
                p_state,
                utilization,
            } => (n_cores, p_state, utilization),
            Step::Memory { .. } => (1, 0, 1.0),
        };
        if let Some(cpufreq) = &mut self.cpufreq {
            cpufreq.set(&[(None, p_state)])?;
        }
        let cores = Cores {
            n_cores,
            frequency_hz: self.frequency_hz(),
            utilization,
        };
        let (stop, n_bytes) = (AtomicBool::new(false), AtomicU64::new(0));
        // Written once, so that the kernel has given all of it before anything is measured.
        let memory = match step {
            Step::Memory { .. } => vec![1_u8; MEMORY_BYTES],
            _ => Vec::new(),
        };
        std::thread::scope(|scope| {
            for (nth, &cpu) in (1..=n_cores).zip(self.cpus) {
                let share = if nth == n_cores { utilization } else { 1.0 };
                let (stop, n_bytes, memory) = (&stop, &n_bytes, &memory);
                scope.spawn(move || {
                    pin(cpu);
                    match step {
                        Step::Memory { share } => read_memory(memory, share, stop, n_bytes),
                        _ => work(share, stop),
                    }
                });
            }
            let samples = self.samples(step, cores, &n_bytes);
            stop.store(true, Ordering::Relaxed);
            samples
        })
    }

    /// Waits, reads the counters before they begin again, and ends early by a signal.
    fn sleep(&mut self, time: Duration) -> anyhow::Result<()> {
        let until = Instant::now() + time;
        let mut read = Instant::now();
        loop {
            ensure!(!self.stop.load(Ordering::Relaxed), "interrupted");
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(Duration::from_millis(100)));
            if read.elapsed() > Duration::from_secs(30) {
                self.rapl.read();
                read = Instant::now();
            }
        }
    }

    fn samples(
        &mut self,
        step: Step,
        cores: Cores,
        n_bytes: &AtomicU64,
    ) -> anyhow::Result<Vec<Sample>> {
        self.sleep(self.arguments.warm_up)?;
        let part = self.arguments.seconds / self.arguments.samples;
        let mut samples = Vec::new();
        self.rapl.read();
        let mut before = (
            Instant::now(),
            self.rapl.all_uj(),
            n_bytes.load(Ordering::Relaxed),
        );
        for _ in 0..self.arguments.samples {
            self.sleep(part)?;
            self.rapl.read();
            let after = (
                Instant::now(),
                self.rapl.all_uj(),
                n_bytes.load(Ordering::Relaxed),
            );
            let elapsed_s = after.0.duration_since(before.0).as_secs_f64();
            let bytes_per_s = (after.2 - before.2) as f64 / elapsed_s;
            let watts = (after.1 - before.1) as f64 / 1e6 / elapsed_s;
            ensure!(
                watts > 0.0,
                "the energy counters do not move: they are of no use here"
            );
            samples.push(Sample {
                line: 0,
                activity: match step {
                    Step::Idle => Activity::Chassis,
                    Step::Cpu { .. } => Activity::Cpu(cores),
                    Step::Memory { .. } => Activity::Memory {
                        bytes_per_s,
                        cores: Some(cores),
                    },
                },
                watts,
            });
            before = after;
        }
        Ok(samples)
    }
}

/// Ends the measurement by SIGINT, SIGTERM or SIGHUP, so that frequencies are set back.
fn stop_by_signals() -> anyhow::Result<Arc<AtomicBool>> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&stop))
            .context("cannot wait for signals")?;
    }
    Ok(stop)
}

/// Of these, one thread of each core of the processor that has the first.
fn cores_of_one_processor(sys: &Folder, usable: &[u16]) -> Vec<u16> {
    let topology = |cpu: u16, file: &str| {
        let folder = format!("devices/system/cpu/cpu{cpu}/topology");
        sys.folder(&folder).text(file).ok()
    };
    let Some(&first) = usable.first() else {
        return Vec::new();
    };
    let package = topology(first, "physical_package_id");
    let mut seen = Vec::new();
    let mut cores = usable.to_vec();
    cores.retain(|&cpu| {
        let siblings = topology(cpu, "thread_siblings_list");
        let is_new = siblings.is_none() || !seen.contains(&siblings);
        seen.push(siblings);
        is_new && topology(cpu, "physical_package_id") == package
    });
    cores
}

fn pin(cpu: u16) {
    let mut only = CpuSet::new();
    only.set(cpu.into());
    // It was usable; if it no longer is, the load runs elsewhere.
    let _ = sched_setaffinity(None, &only);
}

/// Works for a share of each period.
fn work(share: f64, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let since = Instant::now();
        let busy = PERIOD.mul_f64(share);
        let mut x = 1_u64;
        while since.elapsed() < busy {
            for _ in 0..1_000 {
                x = black_box(x.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (x >> 7));
            }
        }
        if share < 1.0 {
            std::thread::sleep(PERIOD.saturating_sub(since.elapsed()));
        }
    }
}

/// Reads memory for a share of each period, and works without memory for the rest.
fn read_memory(memory: &[u8], share: f64, stop: &AtomicBool, n_bytes: &AtomicU64) {
    let mut chunks = memory.chunks(CHUNK_BYTES).cycle();
    while !stop.load(Ordering::Relaxed) {
        let since = Instant::now();
        let reading = PERIOD.mul_f64(share);
        while since.elapsed() < reading {
            let Some(chunk) = chunks.next() else {
                return;
            };
            let (words, _) = chunk.as_chunks::<8>();
            let sum = words.iter().map(|&it| u64::from_ne_bytes(it));
            black_box(sum.fold(0_u64, u64::wrapping_add));
            n_bytes.fetch_add(chunk.len() as u64, Ordering::Relaxed);
        }
        let mut x = 1_u64;
        while since.elapsed() < PERIOD {
            x = black_box(x.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (x >> 7));
        }
    }
}
