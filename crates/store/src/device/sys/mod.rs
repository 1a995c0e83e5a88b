//! The unsafe code of devices: memory that the kernel reads into while requests are under way.

pub(super) mod ring;
