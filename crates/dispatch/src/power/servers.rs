//! Parameters of a server's power, read from TOML, and the three published servers.

use serde::{Deserialize, Serialize};

use super::model::{Cpu, Load, Watts};

/// More than this is a wrong unit, not a server.
const MAX_W: f64 = 1e5;
/// Below this are gigahertz, not hertz.
const MIN_HZ: f64 = 1e6;
const MAX_HZ: f64 = 1e11;

/// A server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// What it is called.
    pub name: String,
    /// The product.
    pub processor: String,
    /// Power while nothing is done.
    pub chassis_w: f64,
    /// Energy of a byte read from memory or written to it.
    pub memory_j_per_byte: f64,
    /// Energy of a packet that the network card forwards.
    pub nic_j_per_packet: f64,
    /// The processors.
    pub cpu: Cpu,
}

/// Why parameters are not those of a server.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// Not TOML, or a field is missing or unknown.
    #[error("power parameters can't be read: {0}")]
    Toml(String),
    /// A number out of its range.
    #[error("{field} is {value}, but must be from {min} to {max}; give it in {unit}")]
    Range {
        /// Which.
        field: String,
        /// What it is.
        value: f64,
        /// The least.
        min: f64,
        /// The most.
        max: f64,
        /// Its unit.
        unit: &'static str,
    },
    /// A list is too short or too long.
    #[error("{field} has {n} rows, but needs {needed}: {remedy}")]
    Rows {
        /// Which.
        field: &'static str,
        /// Its rows.
        n: usize,
        /// As they should be.
        needed: String,
        /// What to add.
        remedy: &'static str,
    },
    /// Frequencies come lowest first.
    #[error(
        "cpu.p_states[{idx}].frequency_hz is {value}, not more than the {before} before it; list \
         frequencies in ascending order, each once"
    )]
    Order {
        /// Which.
        idx: usize,
        /// Its frequency.
        value: f64,
        /// The frequency before.
        before: f64,
    },
    /// None of the published ones.
    #[error("no published server {0:?}; use e5620, e3-1220 or 9520")]
    Unknown(String),
}

impl Server {
    /// The names that [`Self::published`] takes.
    pub const PUBLISHED: [&'static str; 3] = ["e5620", "e3-1220", "9520"];

    /// Reads and checks parameters.
    ///
    /// # Errors
    /// If a field is missing, unknown or out of its range.
    pub fn from_toml(text: &str) -> Result<Self, ServerError> {
        let server: Self = toml::from_str(text).map_err(|it| ServerError::Toml(it.to_string()))?;
        server.check()?;
        Ok(server)
    }

    /// Its parameters as TOML, which [`Self::from_toml`] reads.
    ///
    /// # Panics
    /// Never: text, numbers and lists of them have a form in TOML.
    #[must_use]
    pub fn to_toml(&self) -> String {
        toml::to_string_pretty(self).expect("text and numbers have a form in TOML")
    }

    /// A server of Takemasa 2019, Tables 6.1 to 6.3, by its processor.
    ///
    /// # Errors
    /// If there is none of this name.
    pub fn published(name: &str) -> Result<Self, ServerError> {
        Self::from_toml(match name {
            "e5620" => include_str!("servers/e5620.toml"),
            "e3-1220" => include_str!("servers/e3-1220.toml"),
            "9520" => include_str!("servers/9520.toml"),
            _ => return Err(ServerError::Unknown(name.to_owned())),
        })
    }

    /// Checks that numbers are possible.
    ///
    /// # Errors
    /// With the first field that is not.
    pub fn check(&self) -> Result<(), ServerError> {
        let watts = |field: &str, value| range(field.to_owned(), value, (0.0, MAX_W), "watts");
        watts("chassis_w", self.chassis_w)?;
        let energy = |field: &str, value, max| range(field.to_owned(), value, (0.0, max), "joules");
        energy("memory_j_per_byte", self.memory_j_per_byte, 1e-6)?;
        energy("nic_j_per_packet", self.nic_j_per_packet, 1e-2)?;
        let cpu = &self.cpu;
        range("cpu.nu".to_owned(), cpu.nu, (0.1, 1e6), "no unit")?;
        let (devices, cores) = (f64::from(cpu.n_devices), f64::from(cpu.n_cores));
        range(
            "cpu.n_devices".to_owned(),
            devices,
            (1.0, 64.0),
            "processors",
        )?;
        range("cpu.n_cores".to_owned(), cores, (1.0, 1024.0), "cores")?;
        if cpu.p_states.is_empty() {
            return Err(ServerError::Rows {
                field: "cpu.p_states",
                n: 0,
                needed: "1 or more".to_owned(),
                remedy: "add a row for each frequency, the lowest first",
            });
        }
        if cpu.further_cores.len() + 1 != cpu.n_cores as usize {
            return Err(ServerError::Rows {
                field: "cpu.further_cores",
                n: cpu.further_cores.len(),
                needed: format!("{} for cpu.n_cores = {}", cpu.n_cores - 1, cpu.n_cores),
                remedy: "add a row for each core but the first",
            });
        }
        let (mut before, mut min_w) = (0.0, 0.0);
        for (idx, row) in cpu.p_states.iter().enumerate() {
            let field = |name| format!("cpu.p_states[{idx}].{name}");
            let value = row.frequency_hz;
            range(field("frequency_hz"), value, (MIN_HZ, MAX_HZ), "hertz")?;
            range(field("sigma"), row.sigma, (0.0, 4.0), "no unit")?;
            // A higher frequency takes as much or more.
            range(field("max_w"), row.max_w, (min_w, MAX_W), "watts")?;
            min_w = row.max_w;
            if value <= before {
                return Err(ServerError::Order { idx, value, before });
            }
            before = value;
        }
        // A core is active in every P-state, so none takes less than the least of these.
        let least_w = (0.0, cpu.p_states[0].max_w);
        range(
            "cpu.active_min_w".to_owned(),
            cpu.active_min_w,
            least_w,
            "watts",
        )?;
        for (idx, row) in cpu.further_cores.iter().enumerate() {
            let field = |name| format!("cpu.further_cores[{idx}].{name}");
            range(field("sigma"), row.sigma, (0.0, 4.0), "no unit")?;
            watts(&field("max_w"), row.max_w)?;
        }
        Ok(())
    }

    /// Power at a load (equations 6.1, 6.9 and 6.10); `None` if the processors can't carry it.
    #[must_use]
    pub fn power(&self, load: Load, theta: f64) -> Option<Watts> {
        Some(Watts {
            cpu_w: self.cpu.power_w(load.cycles_hz, theta)?,
            memory_w: self.memory_j_per_byte * load.memory_bytes_per_s,
            nic_w: self.nic_j_per_packet * load.packets_per_s,
            chassis_w: self.chassis_w,
        })
    }
}

/// Refuses what is not a number, too.
fn range(
    field: String,
    value: f64,
    (min, max): (f64, f64),
    unit: &'static str,
) -> Result<(), ServerError> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    Err(ServerError::Range {
        field,
        value,
        min,
        max,
        unit,
    })
}

#[cfg(test)]
mod tests;
