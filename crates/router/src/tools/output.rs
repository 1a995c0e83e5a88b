//! Standard output and standard error, whose readers may close them.
//!
//! Owns how the tools print: a failed write is an error, where `println!` would panic. A
//! closed pipe, as after `| head`, is no failure of the tool: `main` ends it with success.
//! The router itself goes on without a reader.

use std::fmt::Display;
use std::io::{self, Write as _};

use tachonym_client::{Controller, EndpointError};

/// Prints `what` as a line.
///
/// # Errors
/// If it cannot be written; [`is_reader_gone`] detects a closed pipe.
pub fn line(what: impl Display) -> io::Result<()> {
    writeln!(io::stdout().lock(), "{what}")
}

/// Prints `what`, which ends its lines itself.
///
/// # Errors
/// If it cannot be written; [`is_reader_gone`] detects a closed pipe.
pub fn text(what: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(what.as_bytes())?;
    out.flush()
}

/// Prints `what` on standard error as a line that begins with `tachonym:`. If standard error
/// is closed, the line is lost.
pub fn note(what: impl Display) {
    let _ = writeln!(io::stderr().lock(), "tachonym: {what}");
}

/// Prints the warning with which the router accepted the last command, if it gave one.
pub(super) fn warning(controller: &mut Controller<'_>) {
    if let Some(warning) = controller.take_warning() {
        note(format_args!("warning: {warning}"));
    }
}

/// Whether `error` is that the reader closed the output.
#[must_use]
pub fn is_reader_gone(error: &anyhow::Error) -> bool {
    let broken = |cause: &(dyn std::error::Error + 'static)| {
        let cause = cause.downcast_ref::<io::Error>();
        cause.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    };
    // A connection to a router may break as well, and that is a failure.
    !error.chain().any(|cause| cause.is::<EndpointError>()) && error.chain().any(broken)
}
