//! Prefetching: a hint that a cache line will be read soon.

/// Asks for the first cache line of `value` to be brought into the nearest
/// cache. On other processors than x86-64 and 64-bit ARM it does nothing.
#[inline(always)]
pub fn prefetch<T: ?Sized>(value: &T) {
    prefetch_address((&raw const *value).cast());
}

/// As [`prefetch`], of any address, mapped or not.
#[inline(always)]
pub(crate) fn prefetch_address(address: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch of any address, even an invalid one, changes
        // nothing that a program can see (Intel SDM, PREFETCHh).
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    {
        // SAFETY: `prfm` never faults (Arm ARM, PRFM) and writes neither memory
        // nor registers, as the options say.
        unsafe {
            std::arch::asm!(
                "prfm pldl1keep, [{address}]",
                address = in(reg) address,
                options(nostack, readonly, preserves_flags)
            );
        }
    }
    #[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
    let _ = address;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefetch_of_anything_is_harmless() {
        prefetch(&1_u64);
        prefetch("");
        prefetch(&[] as &[u64]);
        for address in [0, 1, usize::MAX, usize::MAX / 2] {
            prefetch_address(std::ptr::without_provenance(address));
        }
    }
}
