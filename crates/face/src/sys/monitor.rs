//! Instructions that watch a cache line until it is written or a time is over: `UMONITOR` and
//! `UMWAIT` (WAITPKG, Intel), `MONITORX` and `MWAITX` (AMD).
//!
//! Owns their detection and their encoding. A program in user mode may execute both pairs;
//! neither reads or writes memory. Which line to watch, and what has to be checked between
//! the two instructions, is in `waiting::monitor`.

use std::sync::atomic::AtomicU32;

/// A pair of instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pair {
    /// `UMONITOR` and `UMWAIT`.
    Umwait,
    /// `MONITORX` and `MWAITX`.
    Mwaitx,
}

/// The registers of `CPUID` that decide.
#[derive(Clone, Copy, Debug, Default)]
#[cfg_attr(
    not(all(target_arch = "x86_64", not(miri))),
    allow(dead_code, reason = "no CPUID")
)]
struct Features {
    /// Leaf 7, ECX.
    leaf_7_ecx: u32,
    /// Leaf `0x8000_0001`, ECX.
    extended_1_ecx: u32,
    /// Leaf `0x8000_0007`, EDX.
    extended_7_edx: u32,
}

#[cfg_attr(
    not(all(target_arch = "x86_64", not(miri))),
    allow(dead_code, reason = "no CPUID")
)]
impl Features {
    const WAITPKG: u32 = 1 << 5;
    const MONITORX: u32 = 1 << 29;
    /// The time stamp counter has one rate, in all states of all cores.
    const INVARIANT_TSC: u32 = 1 << 8;

    /// The pair that the processor has. Both need a time stamp counter of one rate: the
    /// longest wait is stated in its ticks.
    const fn pair(self) -> Option<Pair> {
        if self.extended_7_edx & Self::INVARIANT_TSC == 0 {
            None
        } else if self.leaf_7_ecx & Self::WAITPKG != 0 {
            Some(Pair::Umwait)
        } else if self.extended_1_ecx & Self::MONITORX != 0 {
            Some(Pair::Mwaitx)
        } else {
            None
        }
    }
}

/// A pair of instructions that this processor has.
/// Invariant: only `detect` makes one, and only where `CPUID` reports them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    not(all(target_arch = "x86_64", not(miri))),
    allow(dead_code, reason = "no CPUID")
)]
pub(crate) struct Instructions {
    pair: Pair,
    ticks_by_us: u64,
}

impl Instructions {
    pub(crate) const fn pair(self) -> Pair {
        self.pair
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86_64 {
    use std::arch::asm;
    use std::arch::x86_64::{__cpuid, __cpuid_count, _rdtsc};

    use super::{AtomicU32, Features, Instructions, Pair};
    use crate::clock::monotonic_now;

    /// Time over which ticks are counted, in nanoseconds.
    const CALIBRATION_NS: u64 = 200_000;
    /// Ticks in a microsecond, whatever was counted.
    const TICKS_BY_US: [u64; 2] = [100, 10_000];
    /// `UMWAIT`: the state C0.2, which saves more than C0.1 and is left more slowly.
    const C0_2: u32 = 0;
    /// `MWAITX`: stay in C0, which is left fastest.
    const STAY_IN_C0: u32 = 0xf0;
    /// `MWAITX`: EBX has the longest time.
    const HAS_TIMEOUT: u32 = 1 << 1;

    /// Ticks of the time stamp counter.
    fn ticks() -> u64 {
        // SAFETY: every x86-64 processor has `RDTSC`, and it only reads a counter. It faults
        // only in a process that has asked for that (`PR_SET_TSC`), as this one does not.
        unsafe { _rdtsc() }
    }

    impl Instructions {
        /// What the processor has.
        pub(crate) fn detect() -> Option<Self> {
            let highest = __cpuid(0).eax;
            let highest_extended = __cpuid(0x8000_0000).eax;
            let leaf = |leaf, highest| (leaf <= highest).then(|| __cpuid_count(leaf, 0));
            let extended = |number| leaf(number, highest_extended);
            let features = Features {
                leaf_7_ecx: leaf(7, highest).map_or(0, |it| it.ecx),
                extended_1_ecx: extended(0x8000_0001).map_or(0, |it| it.ecx),
                extended_7_edx: extended(0x8000_0007).map_or(0, |it| it.edx),
            };
            Some(Self {
                pair: features.pair()?,
                ticks_by_us: ticks_by_us(),
            })
        }

        /// Begins to watch the line of `word`.
        pub(crate) fn arm(self, word: &AtomicU32) {
            match self.pair {
                // SAFETY: `detect` has found WAITPKG.
                Pair::Umwait => unsafe { umonitor(word) },
                // SAFETY: `detect` has found MONITORX.
                Pair::Mwaitx => unsafe { monitorx(word) },
            }
        }

        /// Waits until the line of the latest `arm` is written, for about `ns` at most. An
        /// interrupt or the limit of the operating system may end the wait early.
        pub(crate) fn wait(self, ns: u64) {
            let n_ticks = ns.saturating_mul(self.ticks_by_us) / 1_000;
            match self.pair {
                // SAFETY: `detect` has found WAITPKG.
                Pair::Umwait => unsafe { umwait(ticks().saturating_add(n_ticks)) },
                // SAFETY: `detect` has found MONITORX.
                Pair::Mwaitx => unsafe { mwaitx(n_ticks.clamp(1, u32::MAX.into()) as u32) },
            }
        }
    }

    fn ticks_by_us() -> u64 {
        let (began, first) = (monotonic_now(), ticks());
        loop {
            let elapsed_ns = monotonic_now().saturating_since(began).as_nanos() as u64;
            if elapsed_ns >= CALIBRATION_NS {
                let n_ticks = ticks().saturating_sub(first);
                let [least, most] = TICKS_BY_US;
                return (n_ticks.saturating_mul(1_000) / elapsed_ns).clamp(least, most);
            }
            std::hint::spin_loop();
        }
    }

    /// # Safety
    /// The processor has WAITPKG.
    unsafe fn umonitor(word: &AtomicU32) {
        // SAFETY: the processor has the instruction, as the caller promises. It takes an
        // address that is mapped, and changes neither memory nor flags (Intel SDM, UMONITOR).
        unsafe {
            asm!(
                "umonitor {word}",
                word = in(reg) word,
                options(nostack, preserves_flags)
            );
        }
    }

    /// # Safety
    /// The processor has WAITPKG.
    unsafe fn umwait(deadline_ticks: u64) {
        // SAFETY: the processor has the instruction, as the caller promises. It changes
        // nothing but flags, and returns at the deadline (Intel SDM, UMWAIT).
        unsafe {
            asm!(
                "umwait {state:e}",
                state = in(reg) C0_2,
                in("eax") deadline_ticks as u32,
                in("edx") (deadline_ticks >> 32) as u32,
                options(nostack)
            );
        }
    }

    /// # Safety
    /// The processor has MONITORX.
    unsafe fn monitorx(word: &AtomicU32) {
        // SAFETY: the processor has the instruction, as the caller promises. It takes an
        // address that is mapped, and changes neither memory nor flags (AMD APM 3, MONITORX).
        unsafe {
            asm!(
                "monitorx",
                in("rax") word,
                in("ecx") 0,
                in("edx") 0,
                options(nostack, preserves_flags)
            );
        }
    }

    /// # Safety
    /// The processor has MONITORX.
    unsafe fn mwaitx(n_ticks: u32) {
        // SAFETY:
        // - The processor has the instruction, as the caller promises. It changes neither
        //   memory nor flags, and returns after `n_ticks` (AMD APM 3, MWAITX).
        // - RBX, which the compiler reserves, has its value again at the end.
        unsafe {
            asm!(
                "xchg rbx, {n_ticks}",
                "mwaitx",
                "xchg rbx, {n_ticks}",
                n_ticks = inout(reg) u64::from(n_ticks) => _,
                in("eax") STAY_IN_C0,
                in("ecx") HAS_TIMEOUT,
                options(nostack, preserves_flags)
            );
        }
    }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
impl Instructions {
    /// Other processors have none of the two pairs.
    pub(crate) const fn detect() -> Option<Self> {
        None
    }

    pub(crate) const fn arm(self, _: &AtomicU32) {}

    pub(crate) const fn wait(self, _: u64) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pair_is_chosen_by_its_bit_and_the_counter() {
        let none = Features::default();
        let steady = Features {
            extended_7_edx: 1 << 8,
            ..none
        };
        let intel = Features {
            leaf_7_ecx: 1 << 5,
            ..steady
        };
        let amd = Features {
            extended_1_ecx: 1 << 29,
            ..steady
        };
        let others = Features {
            leaf_7_ecx: !(1 << 5),
            extended_1_ecx: !(1 << 29),
            ..steady
        };
        assert_eq!((none.pair(), steady.pair()), (None, None));
        assert_eq!(intel.pair(), Some(Pair::Umwait));
        assert_eq!(amd.pair(), Some(Pair::Mwaitx));
        assert_eq!(others.pair(), None);
        for unsteady in [intel, amd].map(|features| Features {
            extended_7_edx: !(1 << 8),
            ..features
        }) {
            assert_eq!(unsteady.pair(), None);
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_kernel_lists_the_same_instructions() {
        let Ok(text) = std::fs::read_to_string("/proc/cpuinfo") else {
            return;
        };
        let flags = text.lines().find(|line| line.starts_with("flags"));
        let flags: Vec<_> = flags.expect("flags").split_whitespace().collect();
        let expected = match flags.contains(&"nonstop_tsc") {
            true if flags.contains(&"waitpkg") => Some(Pair::Umwait),
            true if flags.contains(&"mwaitx") => Some(Pair::Mwaitx),
            _ => None,
        };
        assert_eq!(Instructions::detect().map(Instructions::pair), expected);
    }
}
