//! Sizes of pages: what is asked for, and what was got.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};
use std::str::FromStr;

/// What pages an array should have. Whatever cannot be had is replaced, stretch
/// by stretch, by the next smaller kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PagePreference {
    /// 1 GiB pages for an array of several GiB if enough of them are free; else
    /// 2 MiB pages if enough are free; else transparent ones; else base pages.
    #[default]
    Auto,
    /// 1 GiB pages wherever the array is long enough, then as for `Huge2M`.
    Huge1G,
    /// 2 MiB pages of the kernel's pool, then as for `Transparent`.
    Huge2M,
    /// Memory for which the kernel is asked to use 2 MiB pages as it sees fit.
    Transparent,
    /// The smallest pages of the machine, even where the kernel would use
    /// larger ones by itself.
    Base,
}

impl PagePreference {
    /// All of them, in the order in which they fall back.
    pub const ALL: [Self; 5] = [
        Self::Auto,
        Self::Huge1G,
        Self::Huge2M,
        Self::Transparent,
        Self::Base,
    ];

    /// The word for it in configurations.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Huge1G => "1g",
            Self::Huge2M => "2m",
            Self::Transparent => "transparent",
            Self::Base => "base",
        }
    }
}

impl fmt::Display for PagePreference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for PagePreference {
    type Err = UnknownPages;

    fn from_str(text: &str) -> Result<Self, UnknownPages> {
        let found = Self::ALL.into_iter().find(|pages| pages.as_str() == text);
        found.ok_or(UnknownPages)
    }
}

/// A word that names no kind of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown kind of pages; use \"auto\", \"1g\", \"2m\", \"transparent\" or \"base\"")]
pub struct UnknownPages;

/// What a piece of memory consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PageSize {
    /// The smallest pages of the machine: 4 KiB on most.
    Base,
    /// Stretches for which the kernel uses a 2 MiB page whenever it finds one.
    Transparent,
    /// 2 MiB pages of the kernel's pool.
    Huge2M,
    /// 1 GiB pages of the kernel's pool.
    Huge1G,
}

/// Bytes by what they consist of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pages {
    /// In base pages.
    pub base_bytes: u64,
    /// In whole stretches of 2 MiB that the kernel was asked to back by huge
    /// pages; it does so for each when it is first written to, if it finds one.
    pub transparent_bytes: u64,
    /// In 2 MiB pages of the kernel's pool.
    pub huge_2m_bytes: u64,
    /// In 1 GiB pages of the kernel's pool.
    pub huge_1g_bytes: u64,
}

impl Pages {
    /// Bytes of one kind.
    pub fn bytes(self, size: PageSize) -> u64 {
        match size {
            PageSize::Base => self.base_bytes,
            PageSize::Transparent => self.transparent_bytes,
            PageSize::Huge2M => self.huge_2m_bytes,
            PageSize::Huge1G => self.huge_1g_bytes,
        }
    }

    /// Bytes of every kind.
    pub fn total_bytes(self) -> u64 {
        self.base_bytes + self.transparent_bytes + self.huge_2m_bytes + self.huge_1g_bytes
    }
}

impl Add for Pages {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            base_bytes: self.base_bytes + other.base_bytes,
            transparent_bytes: self.transparent_bytes + other.transparent_bytes,
            huge_2m_bytes: self.huge_2m_bytes + other.huge_2m_bytes,
            huge_1g_bytes: self.huge_1g_bytes + other.huge_1g_bytes,
        }
    }
}

impl AddAssign for Pages {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Pages {
    fn sum<I: Iterator<Item = Self>>(pages: I) -> Self {
        pages.fold(Self::default(), Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preference_has_a_word_of_its_own() {
        for pages in PagePreference::ALL {
            assert_eq!(pages.to_string().parse(), Ok(pages));
        }
        assert_eq!("4k".parse::<PagePreference>(), Err(UnknownPages));
    }

    #[test]
    fn pages_are_summed_by_kind() {
        let one = Pages {
            base_bytes: 1,
            transparent_bytes: 2,
            huge_2m_bytes: 3,
            huge_1g_bytes: 4,
        };
        let sum: Pages = [one, one].into_iter().sum();
        assert_eq!(sum.bytes(PageSize::Base), 2);
        assert_eq!(sum.bytes(PageSize::Transparent), 4);
        assert_eq!(sum.bytes(PageSize::Huge2M), 6);
        assert_eq!(sum.bytes(PageSize::Huge1G), 8);
        assert_eq!(sum.total_bytes(), 20);
    }
}
