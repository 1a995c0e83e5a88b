//! The process that counts: it lets the other one execute an instruction at a
//! time, and asks before each where in the packet path it is.

use std::fs;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;

use anyhow::{Context, anyhow, bail};
use rustix::process::{Pid, WaitOptions, waitpid};
use rustix::thread::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};

use super::counted::{BLOCK_AT, N_PLACES, NOWHERE, PLACE_AT};
use super::{CountError, CountOptions, Tally};
use crate::sys::page::{PAGE_BYTES, SharedPage};
use crate::sys::trace;

/// Blocks with their numbers, and 0 for none.
pub(super) const N_BLOCKS: usize = tachonym_forward::Block::ALL.len() + 1;

/// What was counted at each place, by block.
pub(super) type Tallies = [[Tally; N_BLOCKS]; N_PLACES];

/// The other process; it goes with this value.
struct Traced(Child);

impl Drop for Traced {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Traced {
    fn pid(&self) -> libc::pid_t {
        self.0.id() as libc::pid_t
    }

    /// Waits until it stops; the signal that did it.
    fn wait_for_stop(&self) -> anyhow::Result<i32> {
        let pid = Pid::from_raw(self.pid()).context("a process has a number")?;
        let Some((_, status)) = waitpid(Some(pid), WaitOptions::empty())? else {
            bail!("the counted process is gone");
        };
        status
            .stopping_signal()
            .ok_or_else(|| anyhow!("the counted process ended early: {status:?}"))
    }
}

/// Counts the instructions of `program`, a build of this one, as it carries what
/// `options` say.
pub(super) fn count(program: &Path, options: &CountOptions) -> Result<Tallies, CountError> {
    let flags = rustix::fs::MemfdFlags::empty();
    let file = rustix::fs::memfd_create("tachonym-lab", flags).context("cannot create a page")?;
    let _pinned = OneCpu::take();
    let file = fs::File::from(file);
    file.set_len(PAGE_BYTES as u64)
        .context("cannot create a page")?;
    let page = SharedPage::map(&file).context("cannot map a page")?;
    let mut command = Command::new(program);
    command.args(options.arguments());
    // The child has the same descriptor.
    command.arg(format!("--page=/proc/self/fd/{}", file.as_raw_fd()));
    command.stdin(Stdio::null()).stdout(Stdio::null());
    trace::trace_child(&mut command);
    let traced = match command.spawn() {
        Ok(child) => Traced(child),
        Err(error) if is_forbidden(&error) => {
            return Err(CountError::Unavailable(format!(
                "this machine does not let a process be traced: {error}"
            )));
        }
        Err(error) => {
            let told = anyhow!(error).context(format!("cannot start {}", program.display()));
            return Err(CountError::Failed(told));
        }
    };
    let pid = traced.pid();
    match trace::instruction_address(pid) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            return Err(CountError::Unavailable(
                "instructions can be counted on x86-64 only".to_owned(),
            ));
        }
        // It may not have stopped yet.
        _ => {}
    }
    // It stops as it begins, and when its bed is ready.
    for meant in [libc::SIGTRAP, libc::SIGSTOP] {
        let stopped_by = traced.wait_for_stop()?;
        if stopped_by != meant {
            return Err(anyhow!("the counted process got signal {stopped_by}").into());
        }
        if meant == libc::SIGTRAP {
            trace::resume(pid).context("cannot continue the process")?;
        }
    }
    let text = text_of(pid, program)?;
    let mut tallies = [[Tally::default(); N_BLOCKS]; N_PLACES];
    let bytes = page.bytes();
    let mut was_own = true;
    loop {
        let place = bytes[PLACE_AT].load(Ordering::Relaxed);
        if place != NOWHERE {
            let block = bytes[BLOCK_AT].load(Ordering::Relaxed);
            let address = trace::instruction_address(pid).context("ask for an address")?;
            let is_own = text.contains(&address);
            let tally = tallies
                .get_mut(usize::from(place))
                .and_then(|blocks| blocks.get_mut(usize::from(block)))
                .ok_or_else(|| anyhow!("place {place}, block {block} in the page"))?;
            tally.n_own += u64::from(is_own);
            tally.n_foreign += u64::from(!is_own);
            tally.n_calls_out += u64::from(was_own && !is_own);
            was_own = is_own;
        }
        trace::step(pid).context("cannot step the process")?;
        match traced.wait_for_stop()? {
            libc::SIGTRAP => {}
            libc::SIGSTOP => break,
            other => return Err(anyhow!("the counted process got signal {other}").into()),
        }
    }
    // How its packets went it says at its end.
    trace::resume(pid).context("cannot end the process")?;
    let mut traced = traced;
    let status = traced.0.wait().context("cannot wait for the process")?;
    if !status.success() {
        return Err(anyhow!("the counted process failed: {status}").into());
    }
    Ok(tallies)
}

/// Keeps this thread, and what it starts, on the CPU where it is: each step wakes the
/// other process, which on another CPU takes ten times as long.
struct OneCpu {
    before: Option<CpuSet>,
}

impl OneCpu {
    fn take() -> Self {
        let before = sched_getaffinity(None).ok();
        let mut here = CpuSet::new();
        here.set(sched_getcpu());
        // Without it counting takes longer, and that is all.
        let _ = sched_setaffinity(None, &here);
        Self { before }
    }
}

impl Drop for OneCpu {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = sched_setaffinity(None, before);
        }
    }
}

fn is_forbidden(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported
    )
}

/// Where the code of `program` lies in a process, libraries left out.
fn text_of(pid: libc::pid_t, program: &Path) -> anyhow::Result<Range<u64>> {
    let maps =
        fs::read_to_string(format!("/proc/{pid}/maps")).context("cannot read its mappings")?;
    let program = program.canonicalize().context("cannot find the program")?;
    let program = program.to_str().context("a program with a name in UTF-8")?;
    text_range(&maps, program).context("the mappings of the process do not contain its program")
}

/// The executable mappings of the file `program` in the text of `/proc/…/maps`,
/// from the first one's begin to the last one's end.
fn text_range(maps: &str, program: &str) -> Option<Range<u64>> {
    let mut ranges = maps.lines().filter_map(|line| {
        // The file is the sixth field, and may hold blanks.
        let (addresses, rest) = line.split_once(' ')?;
        let is_code = rest.as_bytes().get(2) == Some(&b'x');
        if !is_code || !rest.ends_with(&format!(" {program}")) {
            return None;
        }
        let (start, end) = addresses.split_once('-')?;
        let start = u64::from_str_radix(start, 16).ok()?;
        Some(start..u64::from_str_radix(end, 16).ok()?)
    });
    let first = ranges.next()?;
    let end = ranges.next_back().map_or(first.end, |last| last.end);
    Some(first.start..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_a_program_is_found_among_its_mappings() {
        let maps = "\
555555554000-555555580000 r--p 00000000 fe:00 17  /opt/a lab
555555580000-555555700000 r-xp 0002b000 fe:00 17  /opt/a lab
555555700000-555555800000 rw-p 001ab000 fe:00 17  /opt/a lab
7ffff7c00000-7ffff7d00000 r-xp 00026000 fe:00 19  /usr/lib/libc.so.6
7ffff7fc5000-7ffff7fc7000 r-xp 00000000 00:00 0   [vdso]
";
        let range = text_range(maps, "/opt/a lab");
        assert_eq!(range, Some(0x5555_5558_0000..0x5555_5570_0000));
        assert_eq!(text_range(maps, "/opt/b"), None);
    }
}
