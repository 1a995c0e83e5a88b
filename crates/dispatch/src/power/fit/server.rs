//! A whole server from a table of samples, by the method of Takemasa 2019, section 6.3.
//!
//! Each device is fitted to what the watts of the whole server exceed those of the devices
//! before it:
//!
//! 1. the chassis is the mean of an idle server's watts;
//! 2. of the first core, the exponent and the largest watts at each frequency;
//! 3. the shape of equation 6.8 over these largest watts. Those of each P-state then come
//!    from the shape, as in the published tables, and its exponent is fitted to them;
//! 4. each further core, on top of the cores before it;
//! 5. memory and network card, a line through 0 each.

use std::fmt;

use super::super::model::{CoreCurve, Cpu, PState};
use super::super::servers::{Server, ServerError};
use super::samples::{Activity, Cores, Sample};
use super::{Fit, SIGMAS, Shape, curve, energy_j, least, r_squared, shape, squares};

/// What a table of samples does not say about a server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hardware<'a> {
    /// What the server is called.
    pub name: &'a str,
    /// The product of its processors.
    pub processor: &'a str,
    /// How many of them it has. Samples are of one, while the others are idle.
    pub n_processors: u32,
    /// Energy of a packet that the network card forwards, in joules; `None` if it is fitted to
    /// the samples.
    pub nic_j_per_packet: Option<f64>,
}

/// What a fit is of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Part {
    /// The core with this number, from 1, at a frequency.
    Core {
        /// Its number.
        n: u32,
        /// Its frequency.
        frequency_hz: f64,
    },
    /// The largest watts of the first core over its frequencies.
    Frequencies,
    /// Memory by bytes.
    Memory,
    /// The network card by packets.
    Nic,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Core { n, frequency_hz } => {
                write!(f, "core {n} at {:.3} GHz", frequency_hz / 1e9)
            }
            Self::Frequencies => f.write_str("largest watts by frequency"),
            Self::Memory => f.write_str("memory by bytes"),
            Self::Nic => f.write_str("network card by packets"),
        }
    }
}

/// How well a part was fitted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PartFit {
    /// Which.
    pub part: Part,
    /// Points that it was fitted to.
    pub n_points: usize,
    /// See [`Fit::r_squared`].
    pub r_squared: f64,
}

/// A fitted server.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted {
    /// Its parameters; [`Server::check`] accepts them.
    pub server: Server,
    /// The fits, in their order.
    pub fits: Vec<PartFit>,
}

/// Why samples do not give a server.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FitError {
    /// No sample of a device.
    #[error("no row has {what}; {remedy}")]
    NoRows {
        /// Of what.
        what: String,
        /// What to measure.
        remedy: &'static str,
    },
    /// A sample that is of no table, with a number out of its range.
    #[error(
        "a sample of {activity:?} with {watts} W is impossible; utilization and rates must be over \
         0, watts not negative"
    )]
    Sample {
        /// Of what.
        activity: Activity,
        /// Its watts.
        watts: f64,
    },
    /// Samples of further cores at another frequency than the highest.
    #[error(
        "line {line}, column frequency_hz: {frequency_hz} with {n_cores} cores, but the highest \
         frequency of one core is {top_hz}; measure further cores at it"
    )]
    Frequency {
        /// Which line.
        line: usize,
        /// Its frequency.
        frequency_hz: f64,
        /// Its cores.
        n_cores: u32,
        /// The highest frequency of the rows with one core.
        top_hz: f64,
    },
    /// A sample of memory or network card in a state of the processor that was not measured.
    #[error(
        "line {line}, columns n_cores and frequency_hz: no rows of the device cpu have {n_cores} \
         cores at {frequency_hz} hertz; measure these first"
    )]
    UnknownState {
        /// Which line.
        line: usize,
        /// Its frequency.
        frequency_hz: f64,
        /// Its cores.
        n_cores: u32,
    },
    /// Samples that all have the same utilization.
    #[error(
        "line {line}, column utilization: all rows of {part} have {utilization}; measure two \
         utilizations or more"
    )]
    OneUtilization {
        /// Line of the first of them.
        line: usize,
        /// Of what.
        part: Part,
        /// The utilization.
        utilization: f64,
    },
    /// Watts that a load does not raise.
    #[error(
        "line {line}, column watts: the rows of {part} exceed the watts without it by {mean_w:.3} \
         W on average; check the unit and whether the server was idle before"
    )]
    NotMore {
        /// Line of the first of them.
        line: usize,
        /// Of what.
        part: Part,
        /// Mean of what they exceed it by.
        mean_w: f64,
    },
    /// Parameters that no server has.
    #[error("the fitted parameters are impossible: {0}")]
    Server(#[from] ServerError),
}

/// Fits a server to samples of all its devices.
///
/// # Errors
/// If a device has no samples, or they contradict each other.
pub fn server(hardware: &Hardware<'_>, samples: &[Sample]) -> Result<Fitted, FitError> {
    if let Some(it) = samples.iter().find(|it| !it.is_valid()) {
        let Sample {
            activity, watts, ..
        } = *it;
        return Err(FitError::Sample { activity, watts });
    }
    let mut fits = Vec::new();
    let chassis_w = chassis_w(samples)?;
    let cpu = cpu(hardware, samples, chassis_w, &mut fits)?;
    let mut energy = |part| {
        let rows = rates(samples, part, &cpu, chassis_w)?;
        let fit = energy_j(&rows.points).ok_or_else(|| no_rows_of(part))?;
        fits.push(rows.fit(fit.r_squared));
        Ok::<_, FitError>(fit.value)
    };
    let server = Server {
        name: hardware.name.to_owned(),
        processor: hardware.processor.to_owned(),
        chassis_w,
        memory_j_per_byte: energy(Part::Memory)?,
        nic_j_per_packet: hardware
            .nic_j_per_packet
            .map_or_else(|| energy(Part::Nic), Ok)?,
        cpu,
    };
    server.check()?;
    Ok(Fitted { server, fits })
}

/// Points of a part: x by what the watts of the server exceed those without the part.
struct Rows {
    part: Part,
    line: usize,
    points: Vec<(f64, f64)>,
}

impl Rows {
    fn new(part: Part) -> Self {
        Self {
            part,
            line: 0,
            points: Vec::new(),
        }
    }

    fn push(&mut self, line: usize, x: f64, watts: f64) {
        if self.points.is_empty() {
            self.line = line;
        }
        self.points.push((x, watts));
    }

    /// Itself, unless there are no points or a load does not raise the watts.
    fn checked(self) -> Result<Self, FitError> {
        if self.points.is_empty() {
            return Err(no_rows_of(self.part));
        }
        let sum: f64 = self.points.iter().map(|it| it.1).sum();
        let mean_w = sum / self.points.len() as f64;
        let Self { part, line, .. } = self;
        if mean_w <= 0.0 {
            return Err(FitError::NotMore { line, part, mean_w });
        }
        Ok(self)
    }

    /// The curve of a core.
    fn curve(&self) -> Result<Fit<CoreCurve>, FitError> {
        curve(&self.points).ok_or(FitError::OneUtilization {
            line: self.line,
            part: self.part,
            utilization: self.points[0].0,
        })
    }

    /// The exponent of a core whose largest watts are known.
    fn with_max(&self, max_w: f64) -> Fit<CoreCurve> {
        let of = |sigma| CoreCurve { sigma, max_w };
        let error = |sigma| squares(&self.points, |x| of(sigma).power_w(x));
        let value = of(least(SIGMAS, error));
        Fit {
            value,
            r_squared: r_squared(&self.points, |x| value.power_w(x)),
        }
    }

    fn fit(&self, r_squared: f64) -> PartFit {
        PartFit {
            part: self.part,
            n_points: self.points.len(),
            r_squared,
        }
    }
}

fn no_rows_of(part: Part) -> FitError {
    let (what, remedy) = match part {
        Part::Core { n, frequency_hz } => (
            format!("device cpu and n_cores {n} at {frequency_hz} hertz"),
            "measure each further core, with the cores before it fully utilized",
        ),
        Part::Frequencies => (
            "device cpu and n_cores 1".to_owned(),
            "measure one core at each frequency and two utilizations or more",
        ),
        Part::Memory => (
            "device memory".to_owned(),
            "measure a program that reads memory, with its bytes per second as rate",
        ),
        Part::Nic => (
            "device nic".to_owned(),
            "measure while packets are forwarded, with packets per second as rate",
        ),
    };
    FitError::NoRows { what, remedy }
}

fn chassis_w(samples: &[Sample]) -> Result<f64, FitError> {
    let idle = samples.iter().filter(|it| it.activity == Activity::Chassis);
    let (n, sum) = idle.fold((0, 0.0), |(n, sum), it| (n + 1, sum + it.watts));
    if n == 0 {
        return Err(FitError::NoRows {
            what: "device chassis".to_owned(),
            remedy: "measure the idle server",
        });
    }
    Ok(sum / f64::from(n))
}

/// Samples of the processor alone, with their lines and watts.
fn of_cpu(samples: &[Sample]) -> impl Iterator<Item = (usize, Cores, f64)> + Clone {
    samples.iter().filter_map(|it| match it.activity {
        Activity::Cpu(cores) => Some((it.line, cores, it.watts)),
        _ => None,
    })
}

fn cpu(
    hardware: &Hardware<'_>,
    samples: &[Sample],
    chassis_w: f64,
    fits: &mut Vec<PartFit>,
) -> Result<Cpu, FitError> {
    let alone = of_cpu(samples).filter(|it| it.1.n_cores == 1);
    let mut frequencies: Vec<f64> = alone.map(|it| it.1.frequency_hz).collect();
    frequencies.sort_by(f64::total_cmp);
    frequencies.dedup();
    let top_hz = *frequencies.last().ok_or(no_rows_of(Part::Frequencies))?;
    let mut first = Vec::new();
    for &frequency_hz in &frequencies {
        let part = Part::Core { n: 1, frequency_hz };
        let rows = core(samples, part, chassis_w)?;
        let max_w = rows.curve()?.value.max_w;
        first.push((rows, frequency_hz, max_w));
    }
    let top_w = first[first.len() - 1].2;
    let points = first.iter().map(|it| (it.1 / top_hz, it.2));
    let shape = shape_of(&points.collect::<Vec<_>>(), top_w, fits);
    let mut cpu = Cpu {
        n_devices: hardware.n_processors,
        n_cores: 1,
        nu: shape.nu,
        active_min_w: shape.active_min_w,
        p_states: vec![PState {
            frequency_hz: top_hz,
            sigma: 0.0,
            max_w: top_w,
        }],
        further_cores: Vec::new(),
    };
    // Where frequency makes no difference, rounding would let watts fall with it.
    let mut least_w = shape.active_min_w;
    let p_states = first.iter().map(|(rows, frequency_hz, _)| {
        least_w = cpu.largest_w(*frequency_hz).max(least_w);
        let Fit { value, r_squared } = rows.with_max(least_w);
        fits.push(rows.fit(r_squared));
        PState {
            frequency_hz: *frequency_hz,
            sigma: value.sigma,
            max_w: value.max_w,
        }
    });
    cpu.p_states = p_states.collect();
    let further = of_cpu(samples).filter(|it| it.1.n_cores > 1);
    if let Some((line, cores, _)) = further.clone().find(|it| it.1.frequency_hz != top_hz) {
        return Err(FitError::Frequency {
            line,
            frequency_hz: cores.frequency_hz,
            n_cores: cores.n_cores,
            top_hz,
        });
    }
    for n in 2..=further.map(|it| it.1.n_cores).max().unwrap_or(1) {
        let part = Part::Core {
            n,
            frequency_hz: top_hz,
        };
        let rows = core(samples, part, chassis_w + cpu.full_w(n - 1))?;
        let fit = rows.curve()?;
        fits.push(rows.fit(fit.r_squared));
        cpu.further_cores.push(fit.value);
        cpu.n_cores = n;
    }
    Ok(cpu)
}

/// The shape of equation 6.8 over the largest watts of the first core. A processor of one
/// frequency has none: its exponent is 1, its least watts are 0.
fn shape_of(points: &[(f64, f64)], top_w: f64, fits: &mut Vec<PartFit>) -> Shape {
    let Some(Fit { value, r_squared }) = shape(points, top_w) else {
        return Shape {
            nu: 1.0,
            active_min_w: 0.0,
        };
    };
    fits.push(PartFit {
        part: Part::Frequencies,
        n_points: points.len(),
        r_squared,
    });
    value
}

/// The rows of a core, by its utilization and the watts above those without it.
fn core(samples: &[Sample], part: Part, without_w: f64) -> Result<Rows, FitError> {
    let mut rows = Rows::new(part);
    for (line, cores, watts) in of_cpu(samples) {
        let Cores {
            n_cores: n,
            frequency_hz,
            utilization,
        } = cores;
        if part == (Part::Core { n, frequency_hz }) {
            rows.push(line, utilization, watts - without_w);
        }
    }
    rows.checked()
}

/// The rows of memory or of the network card, by their rate and the watts above those of
/// chassis and processor.
fn rates(samples: &[Sample], part: Part, cpu: &Cpu, chassis_w: f64) -> Result<Rows, FitError> {
    let mut rows = Rows::new(part);
    for sample in samples {
        let (rate, cores) = match (part, sample.activity) {
            (Part::Memory, Activity::Memory { bytes_per_s, cores }) => (bytes_per_s, cores),
            (
                Part::Nic,
                Activity::Nic {
                    packets_per_s,
                    cores,
                },
            ) => (packets_per_s, cores),
            _ => continue,
        };
        let line = sample.line;
        let cpu_w = cores.map_or(Some(0.0), |it| cores_w(cpu, it));
        let cpu_w = cpu_w.ok_or_else(|| {
            let cores = cores.expect("an idle processor takes nothing");
            FitError::UnknownState {
                line,
                frequency_hz: cores.frequency_hz,
                n_cores: cores.n_cores,
            }
        })?;
        rows.push(line, rate, sample.watts - chassis_w - cpu_w);
    }
    rows.checked()
}

/// Watts of a processor by what its cores do; `None` if it has no such core or frequency.
fn cores_w(cpu: &Cpu, cores: Cores) -> Option<f64> {
    let Cores {
        n_cores,
        frequency_hz,
        utilization,
    } = cores;
    let curve = match n_cores {
        0 => return None,
        1 => {
            let mut p_states = cpu.p_states.iter();
            p_states.find(|it| it.frequency_hz == frequency_hz)?.curve()
        }
        _ if frequency_hz != cpu.top().frequency_hz => return None,
        n => *cpu.further_cores.get(n as usize - 2)?,
    };
    Some(cpu.full_w(n_cores - 1) + curve.power_w(utilization))
}

/// Watts that a meter would show of a server; `None` if it has no such core or frequency.
#[must_use]
pub fn metered_w(server: &Server, activity: Activity) -> Option<f64> {
    let (above_w, cores) = match activity {
        Activity::Chassis => (0.0, None),
        Activity::Cpu(cores) => (0.0, Some(cores)),
        Activity::Memory { bytes_per_s, cores } => (server.memory_j_per_byte * bytes_per_s, cores),
        Activity::Nic {
            packets_per_s,
            cores,
        } => (server.nic_j_per_packet * packets_per_s, cores),
    };
    let cpu_w = cores.map_or(Some(0.0), |it| cores_w(&server.cpu, it))?;
    Some(server.chassis_w + cpu_w + above_w)
}

/// What to measure, by the published method: the idle server, its first core at each
/// frequency and further cores at the highest, each in `n_utilizations` steps; memory with
/// one core fully utilized, and the network card with an idle processor, each at `rates`.
#[must_use]
pub fn plan(
    cpu: &Cpu,
    n_utilizations: u32,
    bytes_per_s: &[f64],
    packets_per_s: &[f64],
) -> Vec<Activity> {
    let states = cpu.p_states.iter().map(|it| (1, it.frequency_hz));
    let top_hz = cpu.top().frequency_hz;
    let states = states.chain((2..=cpu.n_cores).map(|n| (n, top_hz)));
    let mut plan = vec![Activity::Chassis];
    for (n_cores, frequency_hz) in states {
        let utilizations = (1..=n_utilizations).map(f64::from);
        plan.extend(utilizations.map(|step| {
            Activity::Cpu(Cores {
                n_cores,
                frequency_hz,
                utilization: step / f64::from(n_utilizations),
            })
        }));
    }
    let one = Cores {
        n_cores: 1,
        frequency_hz: top_hz,
        utilization: 1.0,
    };
    plan.extend(bytes_per_s.iter().map(|&bytes_per_s| Activity::Memory {
        bytes_per_s,
        cores: Some(one),
    }));
    plan.extend(packets_per_s.iter().map(|&packets_per_s| Activity::Nic {
        packets_per_s,
        cores: None,
    }));
    plan
}

#[cfg(test)]
mod tests;
