//! Tables and engines filled as experiments need them.

pub(crate) mod fib;
