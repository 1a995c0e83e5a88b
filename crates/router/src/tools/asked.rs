//! Requested values beside the values in effect.
//!
//! A router may use another value than the requested one, such as a larger MTU. Only the
//! status afterwards shows that.

use std::fmt::Display;

use tachonym_protocol::ControlParameters;

use super::failure::Failure;
use super::output;

/// Checks that `parameters` contain a change.
///
/// # Errors
/// If they are empty.
pub(super) fn for_a_change(parameters: &ControlParameters) -> Result<(), Failure> {
    match *parameters == ControlParameters::default() {
        true => Err(Failure::NothingToChange),
        false => Ok(()),
    }
}

/// Notes on standard error if the value in effect is not the one requested.
pub(super) fn compare<T: Display + PartialEq>(what: &str, asked: Option<T>, taken: Option<T>) {
    let Some(asked) = asked else {
        return;
    };
    match taken {
        Some(taken) if taken == asked => {}
        Some(taken) => output::note(format_args!(
            "{what}: {asked} was requested, the router uses {taken}"
        )),
        None => output::note(format_args!(
            "{what}: {asked} was requested, the router reports none"
        )),
    }
}
