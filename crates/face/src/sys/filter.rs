//! Small programs that the kernel runs on datagrams: classic BPF.
//!
//! Instructions by what they do, with offsets into the IP header, and the call
//! that lets a program choose among the sockets of a group. The machine has an
//! accumulator, an index register and scratch words, of which one is used;
//! everything wraps at 32 bits. Source: the kernel's `Documentation/networking/filter.rst`.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// One instruction.
pub(crate) type Instruction = libc::sock_filter;

const LOAD: u32 = libc::BPF_LD;
const ALU: u32 = libc::BPF_ALU;
/// Offsets from here on count from the IP header: a datagram's program is
/// given what comes after the UDP header.
const IP_HEADER: u32 = libc::SKF_NET_OFF as u32;

const fn instruction(code: u32, value: u32) -> Instruction {
    Instruction {
        code: code as u16,
        jt: 0,
        jf: 0,
        k: value,
    }
}

/// The accumulator becomes `value`.
pub(crate) const fn set(value: u32) -> Instruction {
    instruction(LOAD | libc::BPF_IMM, value)
}

/// The accumulator becomes the big-endian word at this offset.
pub(crate) const fn load_word(offset: u32) -> Instruction {
    instruction(LOAD | libc::BPF_W | libc::BPF_ABS, IP_HEADER + offset)
}

/// The accumulator becomes the big-endian half word at this offset.
pub(crate) const fn load_half(offset: u32) -> Instruction {
    instruction(LOAD | libc::BPF_H | libc::BPF_ABS, IP_HEADER + offset)
}

/// The accumulator becomes the first half word behind the IPv4 header, which
/// has options or not. Overwrites the index register.
pub(crate) const fn load_half_behind_ipv4() -> [Instruction; 2] {
    let header = libc::BPF_LDX | libc::BPF_B | libc::BPF_MSH;
    [
        instruction(header, IP_HEADER),
        instruction(LOAD | libc::BPF_H | libc::BPF_IND, IP_HEADER),
    ]
}

/// Puts the accumulator into the scratch word.
pub(crate) const fn keep() -> Instruction {
    instruction(libc::BPF_ST, 0)
}

/// Xors the accumulator with the scratch word. Overwrites the index register.
pub(crate) const fn xor_kept() -> [Instruction; 2] {
    [
        instruction(libc::BPF_LDX | libc::BPF_W | libc::BPF_MEM, 0),
        instruction(ALU | libc::BPF_XOR | libc::BPF_X, 0),
    ]
}

/// Multiplies the accumulator.
pub(crate) const fn multiply(factor: u32) -> Instruction {
    instruction(ALU | libc::BPF_MUL | libc::BPF_K, factor)
}

/// Shifts the accumulator right.
pub(crate) const fn shift_right(n_bits: u32) -> Instruction {
    instruction(ALU | libc::BPF_RSH | libc::BPF_K, n_bits)
}

/// Leaves out the next `n_skipped` instructions unless the accumulator is
/// `value`.
pub(crate) const fn skip_unless(value: u32, n_skipped: u8) -> Instruction {
    Instruction {
        jf: n_skipped,
        ..instruction(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, value)
    }
}

/// Ends with `value`.
pub(crate) const fn answer(value: u32) -> Instruction {
    instruction(libc::BPF_RET | libc::BPF_K, value)
}

/// Ends with the accumulator.
pub(crate) const fn answer_accumulator() -> Instruction {
    instruction(libc::BPF_RET | libc::BPF_A, 0)
}

/// Lets `program` choose, by its place, a socket of the group in which the socket
/// is; replaces an earlier program.
pub(crate) fn attach_to_group(fd: BorrowedFd<'_>, program: &[Instruction]) -> io::Result<()> {
    let program = libc::sock_fprog {
        len: u16::try_from(program.len()).map_err(|_| io::ErrorKind::InvalidInput)?,
        filter: program.as_ptr().cast_mut(),
    };
    // SAFETY:
    // - the pointer and the length given describe `program`, which outlives the call;
    // - its own pointer and length are those of the slice, as do they;
    // - the kernel copies the instructions and writes to neither.
    let rc = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_REUSEPORT_CBPF,
            (&raw const program).cast(),
            size_of::<libc::sock_fprog>() as libc::socklen_t,
        )
    };
    if rc == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
