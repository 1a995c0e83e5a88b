//! Samples of a power meter, drawn from the published servers or read from a file, and the
//! servers fitted to them.

use anyhow::Context as _;
use tachonym_bench::stats::Mean;
use tachonym_bench::{Context, Param, ParamKind, Record};
use tachonym_dispatch::power::fit::samples::{Activity, Sample, read_samples};
use tachonym_dispatch::power::fit::server::{Fitted, Hardware, metered_w, plan};
use tachonym_dispatch::power::fit::{self, server::PartFit};
use tachonym_dispatch::power::servers::Server;
use tachonym_sim::random::Random;

use super::servers;

const fn numbers(name: &'static str, help: &'static str, values: &'static str) -> Param {
    Param::new(name, help, ParamKind::Numbers, [values; 3])
}

pub(super) const PARAMS: [Param; 7] = [
    Param::new(
        "samples",
        "file of a power meter's samples (CSV), or nothing to draw them",
        ParamKind::Text,
        [""; 3],
    ),
    Param::count(
        "utilizations",
        "utilizations of each core that are drawn",
        ["5", "10", "20"],
    ),
    Param::count("minutes", "samples of each load, one a minute", ["20"; 3]),
    numbers(
        "noise_w",
        "deviation of a drawn sample, W, of servers 1 to 3",
        "0.41,0.22,0.43",
    ),
    numbers(
        "memory_gb_per_s",
        "rates of memory accesses that are drawn, GB/s",
        "1,2,4,6,8,10",
    ),
    numbers(
        "kpps",
        "rates of packets that are drawn, thousands per second",
        "50,100,200,400,600,800",
    ),
    Param::seed(),
];

/// A server that was fitted.
pub(super) struct Metered {
    /// The server that samples were drawn from; `None` of a file.
    pub(super) origin: Option<Server>,
    pub(super) fitted: Fitted,
    /// Each load with what the meter showed above the chassis and what ran before.
    pub(super) points: Vec<(Activity, Mean)>,
}

impl Metered {
    /// The three published servers, or the one of the file.
    ///
    /// # Errors
    /// If there is no such file, it is no table of samples, or these do not give a server.
    pub(super) fn all(context: &Context, record: &mut Record) -> anyhow::Result<Vec<Self>> {
        let path = context.text("samples");
        if !path.is_empty() {
            let text = std::fs::read_to_string(path).with_context(|| path.to_owned())?;
            let samples = read_samples(&text).with_context(|| path.to_owned())?;
            let hardware = Hardware {
                name: path,
                processor: path,
                n_processors: 1,
                nic_j_per_packet: None,
            };
            record.note(format!("{} samples of {path}.", samples.len()));
            return Ok(vec![Self::of(&hardware, None, &samples)?]);
        }
        let noise = context.values.numbers("noise_w");
        let servers = servers()?;
        let n = servers.len();
        anyhow::ensure!(noise.len() == n, "noise_w needs {n} numbers");
        let mut random = Random::new(context.seed());
        let drawn = servers
            .into_iter()
            .zip(noise)
            .map(|((server, _), noise_w)| {
                let samples = draw(context, &server, noise_w, &mut random)?;
                let hardware = Hardware {
                    name: &server.name,
                    processor: &server.processor,
                    n_processors: server.cpu.n_devices,
                    nic_j_per_packet: None,
                };
                Self::of(&hardware, Some(&server), &samples)
            });
        let drawn = drawn.collect::<anyhow::Result<Vec<_>>>()?;
        record.note(
            "No power meter was used: samples are drawn from the published parameters with \
             normal noise, and fitted. The deviation of a sample is inferred from the published \
             95 % intervals of the idle servers, each of 20 samples. Loads are ours. \
             `--set samples=FILE` fits the samples of a meter.",
        );
        record.note(
            "R² here is lowered by noise alone, that of means less than that of samples. Published \
             R² is lowered by what the model misses of a real server as well, so they do not have \
             to agree.",
        );
        Ok(drawn)
    }

    fn of(
        hardware: &Hardware<'_>,
        origin: Option<&Server>,
        samples: &[Sample],
    ) -> anyhow::Result<Self> {
        let fitted = fit::server(hardware, samples)?;
        let mut by_load: Vec<(Activity, Vec<f64>)> = Vec::new();
        for sample in samples {
            let own_w = own_w(&fitted.server, sample.activity);
            let all_w = metered_w(&fitted.server, sample.activity);
            let Some((own_w, all_w)) = own_w.zip(all_w) else {
                continue;
            };
            let above_w = sample.watts - (all_w - own_w);
            match by_load.iter_mut().find(|it| it.0 == sample.activity) {
                Some(it) => it.1.push(above_w),
                None => by_load.push((sample.activity, vec![above_w])),
            }
        }
        let points = by_load.into_iter();
        let points = points.filter_map(|(load, watts)| Some((load, Mean::of(&watts)?)));
        Ok(Self {
            origin: origin.cloned(),
            points: points.collect(),
            fitted,
        })
    }

    pub(super) fn label(&self) -> &str {
        &self.fitted.server.processor
    }

    /// Points of the loads that `x` gives a place to: the place, the mean and the fitted
    /// watts.
    pub(super) fn curve(&self, x: impl Fn(Activity) -> Option<f64>) -> Vec<(f64, f64, f64)> {
        let points = self.points.iter().filter_map(|&(load, watts)| {
            let fitted_w = own_w(&self.fitted.server, load)?;
            Some((x(load)?, watts.mean, fitted_w))
        });
        let mut points: Vec<_> = points.collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points
    }

    /// The share of the variance of means that the fitted watts explain.
    pub(super) fn r2_of_means(points: &[(f64, f64, f64)]) -> f64 {
        let mean = points.iter().map(|it| it.1).sum::<f64>() / points.len() as f64;
        let squares = |off: &dyn Fn(&(f64, f64, f64)) -> f64| -> f64 {
            points.iter().map(|it| off(it).powi(2)).sum()
        };
        1.0 - squares(&|it| it.1 - it.2) / squares(&|it| it.1 - mean)
    }

    /// The widest half of a 95 % interval.
    pub(super) fn widest_w(&self) -> f64 {
        let halves = self.points.iter().filter_map(|it| it.1.half_width);
        halves.fold(0.0, f64::max)
    }

    pub(super) fn fits(&self) -> impl Iterator<Item = &PartFit> {
        self.fitted.fits.iter()
    }
}

/// Watts of the device that a load is of: of a core what it takes beside those before it.
fn own_w(server: &Server, load: Activity) -> Option<f64> {
    let without = match load {
        Activity::Chassis => return Some(0.0),
        Activity::Cpu(cores) => server.chassis_w + server.cpu.full_w(cores.n_cores - 1),
        Activity::Memory { cores, .. } | Activity::Nic { cores, .. } => {
            metered_w(server, cores.map_or(Activity::Chassis, Activity::Cpu))?
        }
    };
    Some(metered_w(server, load)? - without)
}

/// Samples by the published method.
fn draw(
    context: &Context,
    server: &Server,
    noise_w: f64,
    random: &mut Random,
) -> anyhow::Result<Vec<Sample>> {
    let scaled = |name: &str, unit: f64| -> Vec<f64> {
        let numbers = context.values.numbers(name).into_iter();
        numbers.map(|it| it * unit).collect()
    };
    let (bytes, packets) = (scaled("memory_gb_per_s", 1e9), scaled("kpps", 1e3));
    let n_utilizations = context.values.count32("utilizations");
    let mut samples = Vec::new();
    for activity in plan(&server.cpu, n_utilizations, &bytes, &packets) {
        let watts = metered_w(server, activity).context("a load of the server")?;
        samples.extend((0..context.count("minutes")).map(|_| Sample {
            line: 0,
            activity,
            watts: watts + random.normal(noise_w),
        }));
    }
    Ok(samples)
}
