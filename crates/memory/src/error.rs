//! Why memory was refused, in words that say what to do about it.

use std::fmt;
use std::io;

/// Why an array could not be reserved or grown. Nothing has changed then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// There is less memory than this would take.
    #[error(
        "{} of memory needed, but only {} available within {limit}: {} missing; {}",
        Size(*.needed_bytes),
        Size(*.available_bytes),
        Size(.needed_bytes.saturating_sub(*.available_bytes)),
        limit.remedy()
    )]
    TooLarge {
        /// Bytes that were asked for beyond what there is already.
        needed_bytes: u64,
        /// Bytes that could have been had.
        available_bytes: u64,
        /// What sets the bound.
        limit: Limit,
    },
    /// More words than the array was reserved for.
    #[error("{asked_words} words needed in an array of at most {max_words}")]
    BeyondReserve {
        /// Words that were asked for.
        asked_words: usize,
        /// Words that the array can have.
        max_words: usize,
    },
    /// The system refused a mapping for another reason.
    #[error("cannot map {} of memory: {source}", Size(*.needed_bytes))]
    Map {
        /// Bytes that were asked for.
        needed_bytes: u64,
        /// What the system said.
        source: io::Error,
    },
}

/// What bounds the memory of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Limit {
    /// The machine has no more that is free or can be freed.
    Machine,
    /// The control group of the process, as containers and services have one.
    ControlGroup,
    /// The address space of the process (`RLIMIT_AS`).
    AddressSpace,
}

impl Limit {
    fn remedy(self) -> &'static str {
        match self {
            Self::Machine => "lower the limits of the tables, stop other programs or add memory",
            Self::ControlGroup => {
                "lower the limits of the tables, or raise the memory limit of the container or \
                 service (MemoryMax=, --memory)"
            }
            Self::AddressSpace => {
                "lower the limits of the tables, or raise the limit of address space (ulimit -v)"
            }
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Machine => "this machine's free memory",
            Self::ControlGroup => "the memory limit of the control group",
            Self::AddressSpace => "the limit of address space",
        })
    }
}

/// A number of bytes as people read it.
struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(&str, u32); 4] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
        match UNITS.into_iter().find(|(_, shift)| self.0 >> shift > 0) {
            Some((unit, shift)) => {
                let tenths = (u128::from(self.0) * 10) >> shift;
                write!(f, "{}.{} {unit}", tenths / 10, tenths % 10)
            }
            None => write!(f, "{} bytes", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusal_says_how_much_is_missing_and_what_to_do() {
        let refused = MemoryError::TooLarge {
            needed_bytes: 12 << 30,
            available_bytes: 8 << 30,
            limit: Limit::ControlGroup,
        };
        let text = refused.to_string();
        assert!(text.contains("12.0 GiB of memory needed"), "{text}");
        assert!(text.contains("4.0 GiB missing"), "{text}");
        assert!(text.contains("MemoryMax="), "{text}");
    }

    #[test]
    fn sizes_are_written_in_the_largest_unit_that_fits() {
        assert_eq!(Size(0).to_string(), "0 bytes");
        assert_eq!(Size(1023).to_string(), "1023 bytes");
        assert_eq!(Size(1536).to_string(), "1.5 KiB");
        assert_eq!(Size(3 << 40).to_string(), "3.0 TiB");
        assert_eq!(Size(u64::MAX).to_string(), "16777215.9 TiB");
    }
}
