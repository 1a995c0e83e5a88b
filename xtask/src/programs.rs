//! Programs that tests need, installed from Debian where they are missing and this is root.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::process::{run_well, tool};
use crate::workspace::Workspace;

/// Longest that one installation may take.
const INSTALL_LIMIT: Duration = Duration::from_secs(15 * 60);

/// What must be there, how that is seen, and the Debian package that brings it.
pub(crate) type Program = (&'static str, &'static [&'static str], &'static str);

/// Makes sure of `programs`.
///
/// # Errors
/// If some are missing and cannot be installed here: the first line names them.
pub(crate) fn install_programs(workspace: &Workspace, programs: &[Program]) -> anyhow::Result<()> {
    let missing = || -> Vec<&str> {
        programs
            .iter()
            .filter(|(program, arguments, _)| tool(Path::new(program), arguments).is_none())
            .map(|&(_, _, package)| package)
            .collect()
    };
    let packages = missing();
    if packages.is_empty() {
        return Ok(());
    }
    let list = packages.join(" ");
    if !is_root() {
        anyhow::bail!("missing {list}: apt-get install {list}");
    }
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command
            .args(arguments)
            .env("DEBIAN_FRONTEND", "noninteractive");
        quietly(workspace, &mut command)
    };
    apt(&["update"])?;
    let mut arguments = vec!["install", "--yes", "--no-install-recommends"];
    arguments.extend(&packages);
    apt(&arguments)?;
    let still = missing();
    anyhow::ensure!(still.is_empty(), "missing {}", still.join(" "));
    Ok(())
}

/// Runs an installation, whose output goes to a log.
pub(crate) fn quietly(workspace: &Workspace, command: &mut Command) -> anyhow::Result<()> {
    run_well(command, &workspace.log("interop-install"), INSTALL_LIMIT).map(|_| ())
}

fn is_root() -> bool {
    tool(Path::new("id"), &["-u"]).is_some_and(|id| id.trim() == "0")
}
