//! The `tachonym-lab` command.

fn main() {}
