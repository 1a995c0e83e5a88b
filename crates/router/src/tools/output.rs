//! Standard output and standard error, whose readers may go away.
//!
//! Owns how the tools print: an output that fails is an error like any other,
//! where `println!` panics. A reader that has gone away, as `head` does once it
//! has seen enough, is no failure of the tool: `main` ends it quietly. The
//! router itself does not end for want of a reader.

use std::fmt::Display;
use std::io::{self, Write as _};

use tachonym_client::EndpointError;

/// Prints `what` as a line.
///
/// # Errors
/// If it cannot be written; [`is_reader_gone`] tells the harmless case.
pub fn line(what: impl Display) -> io::Result<()> {
    writeln!(io::stdout().lock(), "{what}")
}

/// Prints `what`, which ends its lines itself.
///
/// # Errors
/// If it cannot be written; [`is_reader_gone`] tells the harmless case.
pub fn text(what: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(what.as_bytes())?;
    out.flush()
}

/// Tells `what` on standard error, as a line that says whose it is. Whoever has
/// closed standard error does not want to know.
pub fn note(what: impl Display) {
    let _ = writeln!(io::stderr().lock(), "tachonym: {what}");
}

/// Whether `error` is that nobody reads the output any more.
#[must_use]
pub fn is_reader_gone(error: &anyhow::Error) -> bool {
    let broken = |cause: &(dyn std::error::Error + 'static)| {
        let cause = cause.downcast_ref::<io::Error>();
        cause.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    };
    // A connection to a router may break as well, and that is a failure.
    !error.chain().any(|cause| cause.is::<EndpointError>()) && error.chain().any(broken)
}
