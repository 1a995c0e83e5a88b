//! What the command lines of several experiments let one choose.

use clap::ValueEnum;
use tachonym_memory::PagePreference;
use tachonym_packet::HashKind;

/// Pages of the tables, on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PageChoice {
    /// The largest available.
    Auto,
    /// Of 1 GiB.
    #[value(name = "1g")]
    Huge1G,
    /// Of 2 MiB, reserved beforehand.
    #[value(name = "2m")]
    Huge2M,
    /// Of 2 MiB if the kernel provides them.
    Transparent,
    /// Ordinary ones.
    Base,
}

impl From<PageChoice> for PagePreference {
    fn from(choice: PageChoice) -> Self {
        match choice {
            PageChoice::Auto => Self::Auto,
            PageChoice::Huge1G => Self::Huge1G,
            PageChoice::Huge2M => Self::Huge2M,
            PageChoice::Transparent => Self::Transparent,
            PageChoice::Base => Self::Base,
        }
    }
}

/// The kind of hash that a command line asks for.
///
/// # Errors
/// If there is no such kind.
pub(crate) fn name_hash(text: &str) -> Result<HashKind, String> {
    if text == "auto" {
        return Ok(HashKind::fastest());
    }
    let kind = HashKind::ALL.into_iter().find(|kind| kind.label() == text);
    kind.ok_or_else(|| {
        let labels = HashKind::ALL.map(HashKind::label);
        format!("unknown word; use one of auto, {}", labels.join(", "))
    })
}
