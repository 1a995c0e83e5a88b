//! System calls that the safe crates do not offer: batches of datagrams with
//! their control messages, programs that choose among sockets, and a few socket
//! options of Linux. Beside them, instructions that watch a cache line.
//!
//! The only `unsafe` of this crate. Addresses and control messages are written
//! and read as bytes, in safe code; `unsafe` are the calls themselves. Next:
//! `udp` for the batches, `addr` and `control` for the byte layouts, `filter` for
//! the programs, `option` for the rest; `monitor` for the instructions.

pub(crate) mod addr;
pub(crate) mod control;
pub(crate) mod filter;
pub(crate) mod monitor;
pub(crate) mod option;
pub(crate) mod udp;
