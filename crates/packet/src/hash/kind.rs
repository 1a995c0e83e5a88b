//! The functions to choose from, and what speaks for each.

use std::fmt;

/// A keyed function that hashes names.
///
/// All of them are believed to be pseudo-random functions, so that the choice
/// among them is one of speed, and of what one would rather believe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HashKind {
    /// SipHash with 2 rounds for each word and 4 at the end, as its authors
    /// propose (Aumasson and Bernstein 2012, section 2). No attack is known that
    /// is better than trying keys.
    SipHash24,
    /// SipHash with 1 round for each word and 3 at the end: a smaller margin
    /// against attacks to come, and none known that works without seeing hashes
    /// whole. Rust's standard library has it for the same purpose.
    SipHash13,
    /// Universal hashing, then AES-128. That names collide before the cipher has
    /// a proven bound, 2⁻⁶³ for any two of up to 64 blocks of 16 bytes, each
    /// component taking whole ones; that hashes tell nothing follows if AES is
    /// a pseudo-random permutation. Fast where the processor has instructions
    /// for AES, and slow elsewhere, with the same values.
    MultilinearAes,
}

impl HashKind {
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::SipHash24, Self::SipHash13, Self::MultilinearAes];

    /// The fastest kind on this processor.
    #[must_use]
    pub fn fastest() -> Self {
        if has_aes() {
            Self::MultilinearAes
        } else {
            Self::SipHash13
        }
    }

    /// Whether this processor has the instructions that the kind is made for.
    /// Without them its values are the same, but cost many times as much.
    #[must_use]
    pub fn is_native(self) -> bool {
        match self {
            Self::SipHash24 | Self::SipHash13 => true,
            Self::MultilinearAes => has_aes(),
        }
    }

    /// Its name, in the letters of the configuration.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::SipHash24 => "siphash-2-4",
            Self::SipHash13 => "siphash-1-3",
            Self::MultilinearAes => "multilinear-aes",
        }
    }
}

impl fmt::Display for HashKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.label())
    }
}

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
fn has_aes() -> bool {
    std::arch::is_x86_feature_detected!("aes")
}

#[cfg(target_arch = "aarch64")]
fn has_aes() -> bool {
    std::arch::is_aarch64_feature_detected!("aes")
}

#[cfg(not(any(target_arch = "x86", target_arch = "x86_64", target_arch = "aarch64")))]
fn has_aes() -> bool {
    false
}
