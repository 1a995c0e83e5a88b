//! What requests all devices refuse alike, and what they do at the end of a volume.

use std::io;

use rustix::io::Errno;
use tachonym_memory::IO_ALIGN;

use super::{Completion, Op, Request};

/// What a device is to do with a request.
pub(super) enum Checked {
    /// Read or write so many bytes, not none; or sync.
    Do(u32),
    /// Nothing: it has ended already.
    Ended(io::Result<u32>),
}

/// Looks at a request for a volume of so many bytes, a multiple of [`IO_ALIGN`]; `None` if
/// there is no such volume.
pub(super) fn check(request: &Request, volume_bytes: Option<u64>) -> Checked {
    let invalid = || Checked::Ended(Err(io::ErrorKind::InvalidInput.into()));
    let Some(volume_bytes) = volume_bytes else {
        return invalid();
    };
    if request.op == Op::Sync {
        return Checked::Do(0);
    }
    let align = IO_ALIGN as u64;
    let aligned = request.offset.is_multiple_of(align) && request.len.is_multiple_of(align as u32);
    let has_bytes = request
        .buffer
        .as_ref()
        .map_or(0, |buffer| buffer.as_slice().len());
    if !aligned || request.buffer.is_none() || request.len as usize > has_bytes {
        return invalid();
    }
    let rest = volume_bytes.saturating_sub(request.offset);
    match request.op {
        _ if request.len == 0 => Checked::Ended(Ok(0)),
        Op::Read if rest == 0 => Checked::Ended(Ok(0)),
        Op::Write if u64::from(request.len) > rest => Checked::Ended(Err(Errno::NOSPC.into())),
        // No more than `len`, which is a `u32`.
        _ => Checked::Do(rest.min(request.len.into()) as u32),
    }
}

/// The completion of a request.
pub(super) fn complete(request: Request, outcome: io::Result<u32>) -> Completion {
    Completion {
        token: request.token,
        outcome,
        buffer: request.buffer,
    }
}
