//! How commands print: a line of JSON that says where and how it was measured,
//! or text.
//!
//! Refuses to measure: figures come from the modules of each command.

use std::fmt::Display;

use serde::Serialize;
use tachonym_bench::machine::Machine;

/// Figures with what belongs beside them.
#[derive(Serialize)]
struct Envelope<'a, T> {
    machine: Machine,
    command_line: String,
    figures: &'a T,
}

/// The command line of this process.
#[must_use]
pub fn command_line() -> String {
    std::env::args().collect::<Vec<_>>().join(" ")
}

/// Prints `figures` as one line of JSON, or for a reader.
///
/// # Errors
/// If they cannot be written as JSON.
pub fn print<T: Serialize + Display>(figures: &T, as_json: bool) -> anyhow::Result<()> {
    if as_json {
        let envelope = Envelope {
            machine: Machine::read(),
            command_line: command_line(),
            figures,
        };
        println!("{}", serde_json::to_string(&envelope)?);
    } else {
        println!("{}\n{}\n{figures}", Machine::read(), command_line());
    }
    Ok(())
}

/// Bytes as mebibytes.
#[must_use]
pub fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
