//! A plain value of a model: loom tells when two threads' accesses to it race.

use std::fmt;

use loom::cell::UnsafeCell;

/// Stands for memory that is not atomic. It holds nothing; under loom, a write
/// that is not ordered against every other access fails the model.
#[derive(Default)]
pub struct Tracked(UnsafeCell<()>);

// SAFETY: it has no content that accesses could race for; loom's cell keeps its
// account behind locks of its own and exists to be accessed by several threads.
unsafe impl Sync for Tracked {}

impl Tracked {
    /// One that nobody has accessed.
    pub fn new() -> Self {
        Self(UnsafeCell::new(()))
    }

    /// A read of the value.
    pub fn read(&self) {
        self.0.with(|_| ());
    }

    /// A write to the value.
    pub fn write(&self) {
        self.0.with_mut(|_| ());
    }
}

impl fmt::Debug for Tracked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tracked")
    }
}
