//! Power of a router by its load: equations 6.1 to 6.10 of Takemasa 2019.
//!
//! A load is cycles, bytes and packets per second. Cycles go to as few processors and as few
//! cores as carry them; these run at the highest frequency. Only where one core is enough is
//! its frequency lower, chosen by the threshold `theta`.

use serde::{Deserialize, Serialize};

/// The threshold of a core's utilization from which its frequency rises, of Linux's governor
/// `conservative`. The thesis gives it as an instance, not as the value of its figures.
pub const CONSERVATIVE_THETA: f64 = 0.8;

/// How the power of one core grows with its utilization.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoreCurve {
    /// The exponent: 1 is proportional, 0 is all or nothing.
    pub sigma: f64,
    /// Power of the fully utilized core.
    pub max_w: f64,
}

impl CoreCurve {
    /// Power at a utilization of 0 to 1. An idle core takes nothing.
    #[must_use]
    pub fn power_w(self, utilization: f64) -> f64 {
        if utilization <= 0.0 {
            return 0.0;
        }
        self.max_w * utilization.powf(self.sigma)
    }
}

/// A frequency of a processor, and the power of its only active core at it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PState {
    /// Cycles per second.
    pub frequency_hz: f64,
    /// See [`CoreCurve::sigma`].
    pub sigma: f64,
    /// See [`CoreCurve::max_w`].
    pub max_w: f64,
}

impl PState {
    /// Its curve.
    #[must_use]
    pub const fn curve(self) -> CoreCurve {
        CoreCurve {
            sigma: self.sigma,
            max_w: self.max_w,
        }
    }
}

/// Processors of a server, all alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cpu {
    /// Processors.
    pub n_devices: u32,
    /// Cores of each.
    pub n_cores: u32,
    /// Shape of the largest power over the frequency.
    pub nu: f64,
    /// The least power of an active core.
    pub active_min_w: f64,
    /// Frequencies in ascending order, each with the curve of the only active core.
    pub p_states: Vec<PState>,
    /// Curves of the second and further cores at the highest frequency.
    pub further_cores: Vec<CoreCurve>,
}

/// Where a load goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CpuLoad {
    /// Active processors.
    pub n_devices: u32,
    /// Active cores of the least loaded of these.
    pub n_cores: u32,
    /// Cycles per second of this processor.
    pub device_hz: f64,
    /// Cycles per second of its least loaded core.
    pub core_hz: f64,
    /// Index of its frequency in [`Cpu::p_states`].
    pub p_state: usize,
}

impl Cpu {
    /// The highest frequency.
    #[must_use]
    pub fn top(&self) -> PState {
        self.p_states[self.p_states.len() - 1]
    }

    /// Cycles per second of all cores of all processors.
    #[must_use]
    pub fn capacity_hz(&self) -> f64 {
        f64::from(self.n_devices * self.n_cores) * self.top().frequency_hz
    }

    /// The curve of core `n`, counted from 1, at the highest frequency.
    #[must_use]
    fn curve(&self, n: u32) -> CoreCurve {
        match n {
            0 | 1 => self.top().curve(),
            _ => self.further_cores[n as usize - 2],
        }
    }

    /// Power of a processor whose first `n` cores are fully utilized.
    #[must_use]
    pub fn full_w(&self, n_cores: u32) -> f64 {
        (1..=n_cores).map(|n| self.curve(n).max_w).sum()
    }

    /// The largest power of the only active core at a frequency (equation 6.8).
    #[must_use]
    pub fn largest_w(&self, frequency_hz: f64) -> f64 {
        let top = self.top();
        let root = |watts: f64| watts.powf(1.0 / self.nu);
        let low = root(self.active_min_w);
        let rise = (root(top.max_w) - low) * frequency_hz / top.frequency_hz;
        (low + rise).powf(self.nu)
    }

    /// Divides a load among processors and cores (equations 6.2 to 6.6); `None` if it is
    /// negative or more than all cores carry.
    #[must_use]
    pub fn place(&self, load_hz: f64, theta: f64) -> Option<CpuLoad> {
        if !(0.0..=self.capacity_hz()).contains(&load_hz) {
            return None;
        }
        let top_hz = self.top().frequency_hz;
        let n_devices = active(load_hz, f64::from(self.n_cores) * top_hz, self.n_devices);
        let others = f64::from(n_devices.saturating_sub(1) * self.n_cores);
        let device_hz = (load_hz - others * top_hz).max(0.0);
        let n_cores = active(device_hz, top_hz, self.n_cores);
        let core_hz = (device_hz - f64::from(n_cores.saturating_sub(1)) * top_hz).max(0.0);
        Some(CpuLoad {
            n_devices,
            n_cores,
            device_hz,
            core_hz,
            p_state: self.p_state(device_hz, theta),
        })
    }

    /// The least frequency that keeps the utilization under `theta`, or else the highest.
    fn p_state(&self, device_hz: f64, theta: f64) -> usize {
        let mut slower = self.p_states.iter();
        slower
            .position(|it| device_hz / it.frequency_hz < theta)
            .unwrap_or(self.p_states.len() - 1)
    }

    /// Power of the processors at a load (equation 6.7); `None` as for [`Self::place`].
    #[must_use]
    pub fn power_w(&self, load_hz: f64, theta: f64) -> Option<f64> {
        let at = self.place(load_hz, theta)?;
        if at.n_cores == 0 {
            return Some(0.0);
        }
        let p_state = self.p_states[at.p_state];
        let (curve, frequency_hz) = match at.n_cores {
            1 => (p_state.curve(), p_state.frequency_hz),
            n => (self.curve(n), self.top().frequency_hz),
        };
        let least = curve.power_w((at.core_hz / frequency_hz).min(1.0));
        let others = f64::from(at.n_devices - 1) * self.full_w(self.n_cores);
        Some(least + self.full_w(at.n_cores - 1) + others)
    }
}

/// How many units of a size a load needs, at most all. Of a load that is an exact multiple,
/// rounding does not wake one more.
fn active(load_hz: f64, unit_hz: f64, n_units: u32) -> u32 {
    let n = load_hz / unit_hz;
    let n = if (n - n.round()).abs() < 1e-12 * n {
        n.round()
    } else {
        n.ceil()
    };
    (n as u32).min(n_units)
}

/// What a router does per second.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Load {
    /// Cycles of the processors.
    pub cycles_hz: f64,
    /// Bytes accessed in memory.
    pub memory_bytes_per_s: f64,
    /// Packets forwarded by the network cards.
    pub packets_per_s: f64,
}

/// Power of a router by device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Watts {
    /// Processors.
    pub cpu_w: f64,
    /// Memory.
    pub memory_w: f64,
    /// Network cards.
    pub nic_w: f64,
    /// All the rest, and what an idle router takes.
    pub chassis_w: f64,
}

impl Watts {
    /// The sum (equation 6.1).
    #[must_use]
    pub fn total_w(self) -> f64 {
        self.cpu_w + self.memory_w + self.nic_w + self.chassis_w
    }
}
