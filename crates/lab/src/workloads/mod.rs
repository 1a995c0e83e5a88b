//! What experiments ask for: popularity of names, and traces of real traffic.

pub(crate) mod capture;
pub mod names;
pub mod trace;
pub mod zipf;

/// Where requests come from.
pub(crate) trait Requests {
    /// Writes the next object numbers to `objects`; how many there were. Fewer than asked
    /// for only at the end.
    fn fill(&mut self, objects: &mut [u32]) -> usize;
}
