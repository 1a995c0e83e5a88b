//! Everything the project's checks do.

fn main() {}
