//! The unsafe code: mappings whose length and protection no type can tell, and
//! instructions without a safe form.
//!
//! [`mapping`] keeps what is shown as a slice within what is mapped to be read
//! and written; policy (which pages, how much) is above, in `words`.

pub(crate) mod copy;
pub(crate) mod halves;
pub(crate) mod io_buffer;
pub(crate) mod line_search;
#[cfg(not(any(loom, miri)))]
pub(crate) mod mapping;
#[cfg(not(loom))]
pub(crate) mod plain;
pub(crate) mod prefetch;
#[cfg(not(loom))]
pub(crate) mod slots;
#[cfg(loom)]
pub(crate) mod tracked;
