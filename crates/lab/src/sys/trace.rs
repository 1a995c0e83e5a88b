//! Stepping a child process instruction by instruction.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Lets the child that `command` starts be traced by the thread that starts it,
/// and asks for the same addresses every time. The child stops as it begins.
pub(crate) fn trace_child(command: &mut Command) {
    let prepare = || {
        // Where this is refused, addresses differ from run to run.
        // SAFETY: it changes a flag of this process, which `exec` reads.
        unsafe { libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong) };
        // SAFETY: the call takes no memory: the rest of its arguments is unused.
        let traced = unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) };
        if traced == -1 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    };
    // SAFETY: between `fork` and `exec`, `prepare` makes two system calls and
    // allocates nothing.
    unsafe { command.pre_exec(prepare) };
}

/// Lets a stopped child go on, without the signal that stopped it.
///
/// # Errors
/// What the kernel reports.
pub(crate) fn resume(pid: libc::pid_t) -> io::Result<()> {
    request(libc::PTRACE_CONT, pid)
}

/// Lets a stopped child execute one instruction, without the signal that stopped
/// it. It stops again with `SIGTRAP`.
///
/// # Errors
/// What the kernel reports.
pub(crate) fn step(pid: libc::pid_t) -> io::Result<()> {
    request(libc::PTRACE_SINGLESTEP, pid)
}

fn request(what: libc::c_uint, pid: libc::pid_t) -> io::Result<()> {
    // SAFETY: these requests take no memory: an address of 0 is unused, and data
    // of 0 is no signal.
    match unsafe { libc::ptrace(what, pid, 0, 0) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Address of the instruction that a stopped child executes next.
///
/// # Errors
/// What the kernel reports; `Unsupported` where nobody has told this code how to
/// ask.
#[cfg(target_arch = "x86_64")]
pub(crate) fn instruction_address(pid: libc::pid_t) -> io::Result<u64> {
    // `struct user` begins with the registers.
    let offset = core::mem::offset_of!(libc::user_regs_struct, rip);
    // SAFETY: the request reads a word of the child's registers at this offset and
    // returns it; the last argument is unused.
    match unsafe { libc::ptrace(libc::PTRACE_PEEKUSER, pid, offset, 0) } {
        -1 => Err(io::Error::last_os_error()),
        word => Ok(word as u64),
    }
}

/// Address of the instruction that a stopped child executes next.
///
/// # Errors
/// `Unsupported`: on this architecture nobody has told this code how to ask.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn instruction_address(_: libc::pid_t) -> io::Result<u64> {
    Err(io::ErrorKind::Unsupported.into())
}
