//! What threads synchronise by: the standard library's, or loom's where built
//! with `--cfg loom`.
//!
//! A protocol that names these instead of `std::sync` can be model-checked
//! without a change. Under loom they work only inside `loom::model`, [`Arc`]
//! cannot be a receiver (`self: &Arc<Self>`; the standard one can, and loom does
//! not mind), and there is `Tracked`, which stands for memory that is not atomic.

#[cfg(loom)]
pub use crate::sys::tracked::Tracked;
#[cfg(loom)]
pub use loom::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
#[cfg(loom)]
pub use loom::sync::{Arc, Mutex, MutexGuard};
#[cfg(not(loom))]
pub use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
#[cfg(not(loom))]
pub use std::sync::{Arc, Mutex, MutexGuard};

/// Lets other threads run before the caller asks again for what it waits for,
/// longer the more often it `n_asked`: what others do takes nanoseconds, or
/// their processor is another thread's for milliseconds.
pub fn back_off(n_asked: u32) {
    #[cfg(loom)]
    {
        let _ = n_asked;
        loom::thread::yield_now();
    }
    #[cfg(not(loom))]
    {
        use std::time::Duration;
        /// So often, only a moment is waited.
        const N_SPINS: u32 = 32;
        /// And so often, other threads are let run, if there are any.
        const N_YIELDS: u32 = 32;
        match n_asked {
            0..N_SPINS => std::hint::spin_loop(),
            N_SPINS.. if n_asked < N_SPINS + N_YIELDS => std::thread::yield_now(),
            _ => {
                let doublings = (n_asked - N_SPINS - N_YIELDS).min(5);
                std::thread::sleep(Duration::from_micros(32 << doublings));
            }
        }
    }
}
