//! Whether PIT and content store share an index.

use std::fmt;
use std::str::FromStr;

/// Whether pending Interests and cached Data share an index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PitCsLayout {
    /// Each has its own.
    Separate,
    /// They share one.
    #[default]
    Composite,
}

impl PitCsLayout {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Separate, Self::Composite];

    /// The word for it in configurations.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Separate => "separate",
            Self::Composite => "composite",
        }
    }
}

impl fmt::Display for PitCsLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for PitCsLayout {
    type Err = UnknownPitCsLayout;

    fn from_str(text: &str) -> Result<Self, UnknownPitCsLayout> {
        let found = Self::ALL.into_iter().find(|kind| kind.as_str() == text);
        found.ok_or(UnknownPitCsLayout)
    }
}

/// A text that names no layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownPitCsLayout;

impl fmt::Display for UnknownPitCsLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("unknown layout; use separate or composite")
    }
}

impl std::error::Error for UnknownPitCsLayout {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_written_as_they_are_read() {
        for layout in PitCsLayout::ALL {
            assert_eq!(layout.to_string().parse(), Ok(layout));
        }
        assert_eq!("both".parse::<PitCsLayout>(), Err(UnknownPitCsLayout));
    }
}
