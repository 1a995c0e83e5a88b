//! Standard output and standard error, whose readers may close them.
//!
//! Owns how the tools print: a failed write is an error, where `println!` would panic. A
//! closed pipe, as after `| head`, is no failure of the tool: `main` ends it with success.
//! The router itself goes on without a reader.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, Write as _};

use tachonym_client::{Controller, EndpointError};

use crate::printable::is_unprintable;

/// Prints `what` as a line.
///
/// # Errors
/// If it cannot be written; [`is_reader_gone`] detects a closed pipe.
pub fn line(what: impl Display) -> io::Result<()> {
    writeln!(io::stdout().lock(), "{}", harmless(&what.to_string()))
}

/// Prints `what`, which ends its lines itself.
///
/// # Errors
/// If it cannot be written; [`is_reader_gone`] detects a closed pipe.
pub fn text(what: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(harmless(what).as_bytes())?;
    out.flush()
}

/// Prints `what` on standard error as a line that begins with `tachonym:`. If standard error
/// is closed, the line is lost.
pub fn note(what: impl Display) {
    let what = what.to_string();
    let _ = writeln!(io::stderr().lock(), "tachonym: {}", harmless(&what));
}

/// Replaces characters that control a terminal by question marks: a router, or a peer of it,
/// chose part of the text.
fn harmless(what: &str) -> Cow<'_, str> {
    let is_harmful = |c: char| !matches!(c, '\n' | '\t') && is_unprintable(c);
    match what.contains(is_harmful) {
        true => Cow::Owned(what.replace(is_harmful, "?")),
        false => Cow::Borrowed(what),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_a_router_cannot_control_a_terminal() {
        assert_eq!(harmless("a\tb\nc"), "a\tb\nc");
        assert_eq!(harmless("\u{1b}[2J\r\u{202e}x"), "?[2J??x");
    }
}
