//! What was asked of a router, beside what came into effect.
//!
//! A router may take another value than the one that it was given, as when an
//! MTU is too small for it, and says so only by what it shows afterwards.

use std::fmt::Display;

use tachonym_protocol::ControlParameters;

use super::failure::Failure;
use super::output;

/// That `parameters` ask for anything at all.
///
/// # Errors
/// If they do not.
pub(super) fn for_a_change(parameters: &ControlParameters) -> Result<(), Failure> {
    match *parameters == ControlParameters::default() {
        true => Err(Failure::NothingToChange),
        false => Ok(()),
    }
}

/// Tells on standard error if `taken` is not what was `asked` for.
pub(super) fn compare<T: Display + PartialEq>(what: &str, asked: Option<T>, taken: Option<T>) {
    let Some(asked) = asked else {
        return;
    };
    match taken {
        Some(taken) if taken == asked => {}
        Some(taken) => output::note(format_args!(
            "{what}: asked for {asked}, the router has {taken}"
        )),
        None => output::note(format_args!(
            "{what}: asked for {asked}, the router has none"
        )),
    }
}
