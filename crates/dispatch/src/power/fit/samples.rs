//! A table of a power meter's samples: what a server was doing, and the watts that the meter
//! showed.
//!
//! The table is text: a line of column names, then a line for each sample, cells divided by
//! commas. Columns come in any order. `#` begins a comment.
//!
//! | column | what |
//! |---|---|
//! | `device` | what the sample is of: `chassis`, `cpu`, `memory` or `nic` |
//! | `watts` | watts of the whole server |
//! | `n_cores` | cores of one processor that run; all but the last are fully utilized |
//! | `frequency_hz` | their frequency |
//! | `utilization` | of the last of these cores, over 0 and at most 1 |
//! | `rate` | bytes of memory per second, or packets forwarded per second |
//!
//! A row `chassis` is of the idle server, a row `cpu` of one that computes without memory. A
//! row `memory` or `nic` has a rate; its three columns of the processor say what the
//! processor does meanwhile, and are empty if it is idle. A column that no row needs can be
//! left out.

use std::fmt::Write as _;

/// More than this is a wrong unit, not a server.
const MAX_W: f64 = 1e5;
/// Below this are gigahertz, not hertz.
const MIN_HZ: f64 = 1e6;
const MAX_HZ: f64 = 1e11;
const MAX_RATE: f64 = 1e15;
const MAX_CORES: f64 = 1024.0;

/// Names of the columns, in the order in which [`write_samples`] has them.
const COLUMNS: [&str; 6] = [
    "device",
    "n_cores",
    "frequency_hz",
    "utilization",
    "rate",
    "watts",
];

/// What the cores of one processor do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cores {
    /// Cores that run, all but the last of them fully utilized.
    pub n_cores: u32,
    /// Their frequency.
    pub frequency_hz: f64,
    /// Utilization of the last one, over 0 and at most 1.
    pub utilization: f64,
}

/// What a server does during a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Activity {
    /// Nothing.
    Chassis,
    /// It computes, without accesses to memory.
    Cpu(Cores),
    /// It reads memory.
    Memory {
        /// How fast.
        bytes_per_s: f64,
        /// What the processor does meanwhile; `None` if that is nothing.
        cores: Option<Cores>,
    },
    /// It forwards packets.
    Nic {
        /// How fast.
        packets_per_s: f64,
        /// What the processor does meanwhile; `None` if that is nothing.
        cores: Option<Cores>,
    },
}

/// A sample of a power meter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Line of the table, from 1; 0 if it is of no table.
    pub line: usize,
    /// What the server does.
    pub activity: Activity,
    /// Watts of the whole server.
    pub watts: f64,
}

impl Sample {
    /// Whether its numbers are in the ranges that [`read_samples`] accepts.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        let has = |of: &Numbers, number: f64| (of.range.0..=of.range.1).contains(&number);
        let (cores, rate) = match self.activity {
            Activity::Chassis => (None, None),
            Activity::Cpu(cores) => (Some(cores), None),
            Activity::Memory { bytes_per_s, cores } => (cores, Some(bytes_per_s)),
            Activity::Nic {
                packets_per_s,
                cores,
            } => (cores, Some(packets_per_s)),
        };
        let cores = cores.is_none_or(|it| {
            has(&N_CORES, it.n_cores.into())
                && has(&FREQUENCY, it.frequency_hz)
                && has(&UTILIZATION, it.utilization)
        });
        cores && rate.is_none_or(|it| has(&RATE, it)) && has(&WATTS, self.watts)
    }
}

/// Why a text is no table of samples.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SamplesError {
    /// No line but comments.
    #[error("the table of samples is empty; begin with the line `{}`", COLUMNS.join(","))]
    Empty,
    /// A column that does not exist.
    #[error("line {line}: no column is called {name:?}; columns are {}", COLUMNS.join(", "))]
    UnknownColumn {
        /// Line of the column names.
        line: usize,
        /// The name.
        name: String,
    },
    /// A column twice.
    #[error("line {line}: column {name} is there twice; leave one out")]
    DoubleColumn {
        /// Line of the column names.
        line: usize,
        /// Its name.
        name: &'static str,
    },
    /// A row that is longer or shorter than the line of column names.
    #[error("line {line} has {n} cells, but there are {n_columns} columns; divide by commas")]
    Cells {
        /// Which line.
        line: usize,
        /// Its cells.
        n: usize,
        /// Columns.
        n_columns: usize,
    },
    /// A cell that is empty, or whose column is missing.
    #[error("line {line}, column {column}: empty, but a row {device} needs {needed}")]
    Missing {
        /// Which line.
        line: usize,
        /// Which column.
        column: &'static str,
        /// What the row is of.
        device: String,
        /// What the cell needs.
        needed: &'static str,
    },
    /// A cell that its row must leave empty.
    #[error("line {line}, column {column}: {cell:?}, but a row {device} leaves it empty")]
    NotEmpty {
        /// Which line.
        line: usize,
        /// Which column.
        column: &'static str,
        /// What the row is of.
        device: String,
        /// The cell.
        cell: String,
    },
    /// A cell that is no number, or one out of its range.
    #[error("line {line}, column {column}: {cell:?} is not {needed}")]
    Cell {
        /// Which line.
        line: usize,
        /// Which column.
        column: &'static str,
        /// The cell.
        cell: String,
        /// What the cell needs.
        needed: &'static str,
    },
}

/// Reads a table of samples.
///
/// # Errors
/// With the first line, and where there is one the column, that is not as it should be.
pub fn read_samples(csv: &str) -> Result<Vec<Sample>, SamplesError> {
    let csv = csv.trim_start_matches('\u{feff}');
    let lines = csv.lines().enumerate().filter_map(|(idx, line)| {
        let text = line.split('#').next().unwrap_or_default().trim();
        (!text.is_empty()).then_some((idx + 1, text))
    });
    let mut lines = lines.peekable();
    let (line, names) = lines.next().ok_or(SamplesError::Empty)?;
    let places = places(line, names)?;
    let n_columns = cells(names).count();
    lines
        .map(|(line, text)| {
            let cells: Vec<&str> = cells(text).collect();
            let n = cells.len();
            if n != n_columns {
                return Err(SamplesError::Cells { line, n, n_columns });
            }
            let cell = |place: &Option<usize>| place.map_or("", |place| cells[place]);
            let cells = std::array::from_fn(|column| cell(&places[column]));
            Row { line, cells }.sample()
        })
        .collect()
}

/// Writes a table that [`read_samples`] reads. A row's watts are left empty if they are not
/// finite, for a person with a meter to fill in.
#[must_use]
pub fn write_samples(samples: &[Sample]) -> String {
    let mut csv = COLUMNS.join(",") + "\n";
    for sample in samples {
        let (device, cores, rate) = match sample.activity {
            Activity::Chassis => ("chassis", None, None),
            Activity::Cpu(cores) => ("cpu", Some(cores), None),
            Activity::Memory { bytes_per_s, cores } => ("memory", cores, Some(bytes_per_s)),
            Activity::Nic {
                packets_per_s,
                cores,
            } => ("nic", cores, Some(packets_per_s)),
        };
        let text = |number: Option<f64>| number.map(|it| it.to_string()).unwrap_or_default();
        let columns = [
            device.to_owned(),
            text(cores.map(|it| it.n_cores.into())),
            text(cores.map(|it| it.frequency_hz)),
            text(cores.map(|it| it.utilization)),
            text(rate),
            text(Some(sample.watts).filter(|it| it.is_finite())),
        ];
        let _ = writeln!(csv, "{}", columns.join(","));
    }
    csv
}

fn cells(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim)
}

/// Where each of [`COLUMNS`] is in a row.
fn places(line: usize, names: &str) -> Result<[Option<usize>; COLUMNS.len()], SamplesError> {
    let mut places = [None; COLUMNS.len()];
    for (place, name) in cells(names).enumerate() {
        let Some(column) = COLUMNS.iter().position(|it| *it == name) else {
            let name = name.to_owned();
            return Err(SamplesError::UnknownColumn { line, name });
        };
        if places[column].replace(place).is_some() {
            let name = COLUMNS[column];
            return Err(SamplesError::DoubleColumn { line, name });
        }
    }
    Ok(places)
}

/// A line of the table, its cells in the order of [`COLUMNS`].
struct Row<'a> {
    line: usize,
    cells: [&'a str; COLUMNS.len()],
}

/// A column, and which numbers it takes.
struct Numbers {
    column: usize,
    range: (f64, f64),
    needed: &'static str,
}

const N_CORES: Numbers = numbers(1, (1.0, MAX_CORES), "a whole number of cores, 1 to 1024");
const FREQUENCY: Numbers = numbers(2, (MIN_HZ, MAX_HZ), "a frequency in hertz, 1e6 to 1e11");
const UTILIZATION: Numbers = numbers(3, (1e-6, 1.0), "a utilization over 0 and at most 1");
const RATE: Numbers = numbers(4, (1e-6, MAX_RATE), "bytes or packets per second, over 0");
const WATTS: Numbers = numbers(5, (0.0, MAX_W), "watts, 0 to 100000");

const fn numbers(column: usize, range: (f64, f64), needed: &'static str) -> Numbers {
    Numbers {
        column,
        range,
        needed,
    }
}

impl Row<'_> {
    fn sample(&self) -> Result<Sample, SamplesError> {
        let idle = self.cells[1..4].iter().all(|it| it.is_empty());
        let activity = match self.cells[0] {
            "chassis" => {
                self.leaves_empty(&[N_CORES, FREQUENCY, UTILIZATION, RATE])?;
                Activity::Chassis
            }
            "cpu" => {
                self.leaves_empty(&[RATE])?;
                Activity::Cpu(self.cores()?)
            }
            "memory" => Activity::Memory {
                bytes_per_s: self.number(&RATE)?,
                cores: (!idle).then(|| self.cores()).transpose()?,
            },
            "nic" => Activity::Nic {
                packets_per_s: self.number(&RATE)?,
                cores: (!idle).then(|| self.cores()).transpose()?,
            },
            other => {
                return Err(SamplesError::Cell {
                    line: self.line,
                    column: COLUMNS[0],
                    cell: other.to_owned(),
                    needed: "chassis, cpu, memory or nic",
                });
            }
        };
        let watts = self.number(&WATTS)?;
        Ok(Sample {
            line: self.line,
            activity,
            watts,
        })
    }

    fn cores(&self) -> Result<Cores, SamplesError> {
        let n_cores = self.number(&N_CORES)?;
        if n_cores.fract() > 0.0 {
            return Err(self.wrong(&N_CORES));
        }
        Ok(Cores {
            n_cores: n_cores as u32,
            frequency_hz: self.number(&FREQUENCY)?,
            utilization: self.number(&UTILIZATION)?,
        })
    }

    fn number(&self, of: &Numbers) -> Result<f64, SamplesError> {
        let cell = self.cells[of.column];
        if cell.is_empty() {
            return Err(SamplesError::Missing {
                line: self.line,
                column: COLUMNS[of.column],
                device: self.cells[0].to_owned(),
                needed: of.needed,
            });
        }
        let number: Option<f64> = cell.parse().ok();
        let (min, max) = of.range;
        let number = number.filter(|it| (min..=max).contains(it));
        number.ok_or_else(|| self.wrong(of))
    }

    fn wrong(&self, of: &Numbers) -> SamplesError {
        SamplesError::Cell {
            line: self.line,
            column: COLUMNS[of.column],
            cell: self.cells[of.column].to_owned(),
            needed: of.needed,
        }
    }

    fn leaves_empty(&self, columns: &[Numbers]) -> Result<(), SamplesError> {
        let full = columns.iter().find(|it| !self.cells[it.column].is_empty());
        full.map_or(Ok(()), |it| {
            Err(SamplesError::NotEmpty {
                line: self.line,
                column: COLUMNS[it.column],
                device: self.cells[0].to_owned(),
                cell: self.cells[it.column].to_owned(),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\u{feff}# Meter: none, watts by hand.
watts, device, n_cores, frequency_hz, utilization, rate
34.2,chassis,,,,\r
44.6 , cpu, 1, 3.1e9, 1, # the first core

39.0,cpu,1,1600000000,0.5,
45.2,memory,1,3.1e9,1.0,1e9
35.5,nic,,,,1e5
";

    #[test]
    fn rows_are_read_by_the_names_of_their_columns() {
        let samples = read_samples(TABLE).expect("a table");
        let lines: Vec<_> = samples.iter().map(|it| (it.line, it.watts)).collect();
        assert_eq!(
            lines,
            [(3, 34.2), (4, 44.6), (6, 39.0), (7, 45.2), (8, 35.5)]
        );
        let full = Cores {
            n_cores: 1,
            frequency_hz: 3.1e9,
            utilization: 1.0,
        };
        assert_eq!(samples[0].activity, Activity::Chassis);
        assert_eq!(samples[1].activity, Activity::Cpu(full));
        let memory = Activity::Memory {
            bytes_per_s: 1e9,
            cores: Some(full),
        };
        assert_eq!(samples[3].activity, memory);
        let nic = Activity::Nic {
            packets_per_s: 1e5,
            cores: None,
        };
        assert_eq!(samples[4].activity, nic);
        // Written and read again they are the same, but for their lines.
        let again = read_samples(&write_samples(&samples)).expect("what was written");
        let same = |(a, b): (&Sample, &Sample)| (a.activity, a.watts) == (b.activity, b.watts);
        assert!(samples.iter().zip(&again).all(same) && samples.len() == again.len());
    }

    #[test]
    fn columns_that_no_row_needs_can_be_left_out() {
        let samples = read_samples("device,watts\nchassis,34.2\nchassis,34.3\n").expect("two");
        assert_eq!(samples.len(), 2);
        let error = read_samples("device,watts\ncpu,34.2\n").expect_err("no cores");
        let text = error.to_string();
        assert!(
            text.contains("line 2") && text.contains("n_cores"),
            "{text}"
        );
    }

    #[test]
    fn a_plan_is_written_with_watts_to_fill_in() {
        let plan = [Sample {
            line: 0,
            activity: Activity::Chassis,
            watts: f64::NAN,
        }];
        let csv = write_samples(&plan);
        assert!(csv.ends_with("\nchassis,,,,,\n"), "{csv}");
        let error = read_samples(&csv).expect_err("not filled in");
        assert!(error.to_string().contains("column watts"), "{error}");
    }

    #[test]
    fn nonsense_is_refused_with_its_line_and_column() {
        let refused = |from: &str, to: &str, parts: &[&str]| {
            assert!(TABLE.contains(from), "{from}");
            let error = read_samples(&TABLE.replace(from, to)).expect_err(to);
            let text = error.to_string();
            assert!(parts.iter().all(|it| text.contains(it)), "{to}: {text}");
        };
        refused(
            "39.0,cpu",
            "-39.0,cpu",
            &["line 6", "column watts", "-39.0"],
        );
        refused("39.0,cpu", "39000000,cpu", &["line 6", "column watts"]);
        refused("39.0,cpu", "nan,cpu", &["line 6", "column watts"]);
        refused("39.0,cpu", "many,cpu", &["line 6", "column watts", "many"]);
        refused("39.0,cpu", ",cpu", &["line 6", "column watts", "empty"]);
        refused(
            "39.0,cpu",
            "39.0,gpu",
            &["line 6", "device", "memory or nic"],
        );
        refused("1,1600000000", "1,1.6", &["frequency_hz", "in hertz"]);
        refused("1,1600000000", "1.5,1600000000", &["n_cores", "whole"]);
        refused("1,1600000000", "0,1600000000", &["n_cores", "whole"]);
        refused(",0.5,", ",50,", &["utilization", "at most 1"]);
        refused(",0.5,", ",0,", &["utilization", "over 0"]);
        refused(",0.5,", ",,", &["utilization", "empty", "cpu"]);
        refused(",0.5,", ",0.5,7", &["line 6", "rate", "leaves it empty"]);
        refused("1e5", "-1e5", &["line 8", "column rate"]);
        refused("1e5", "", &["line 8", "column rate", "row nic"]);
        refused("35.5,nic,,", "35.5,nic,1,", &["frequency_hz", "empty"]);
        refused("34.2,chassis,,", "34.2,chassis,1,", &["line 3", "n_cores"]);
        refused(",,,1e5", ",,1e5", &["line 8", "5 cells", "6 columns"]);
        refused(", rate", ", power", &["line 2", "power", "utilization"]);
        refused(", rate", ", watts", &["line 2", "watts", "twice"]);
        assert_eq!(read_samples("# nothing\n\n"), Err(SamplesError::Empty));
    }
}
