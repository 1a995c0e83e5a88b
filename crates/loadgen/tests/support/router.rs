//! A test program that becomes a router, so that experiments can start one without the
//! router's binary. A test file that uses it has a test [`TEST`] that calls [`run_if_asked`].

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tachonym_router::Router;
use tachonym_router::config::Config;

/// Names the configuration file of the child process's router.
const CONFIG_VARIABLE: &str = "TACHONYM_LAB_TEST_CONFIG";

/// The test that becomes a router where the variable is set.
pub(crate) const TEST: &str = "this_program_is_a_router_where_asked";

/// Makes this process a router where [`program`] started it, until it receives SIGTERM; then
/// it prints its system calls as `tachonym run` does.
pub(crate) fn run_if_asked() {
    let Some(path) = std::env::var_os(CONFIG_VARIABLE) else {
        return;
    };
    let config = Config::load(Path::new(&path)).expect("a good configuration");
    let router = Router::start(&config).expect("it starts");
    let signals = signal_hook::iterator::Signals::new([signal_hook::consts::SIGTERM]);
    signals.expect("signals can be waited for").forever().next();
    let snapshot = router.snapshot().expect("it runs");
    eprintln!(
        "stopping syscalls_per_packet={:.3}",
        snapshot.syscalls_per_packet
    );
    std::process::exit(0);
}

/// Writes a program into `folder` that does what `tachonym run --config FILE` does: it starts
/// this test program again.
pub(crate) fn program(folder: &Path) -> PathBuf {
    let this = std::env::current_exe().expect("this test has a program");
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = --version ] && echo test && exit\n\
         {CONFIG_VARIABLE}=\"$3\" exec '{}' --exact --nocapture {TEST}\n",
        this.display()
    );
    let path = folder.join("tachonym");
    std::fs::write(&path, script).expect("the folder is ours");
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&path, executable).expect("the file is ours");
    path
}
