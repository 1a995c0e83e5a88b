//! The `tachonym` command.

fn main() {}
