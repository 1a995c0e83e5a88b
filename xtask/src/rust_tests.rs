//! Unit, property and documentation tests of the workspace, and the release
//! build; also how cargo's account of a test run is read.

use std::fs::File;
use std::net::UdpSocket;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Context as _;

use crate::lint::cargo_step;
use crate::process::{Finished, run, tool};
use crate::programs::{Program, install_programs};
use crate::report::{Counts, Outcome, Report};
use crate::workspace::Workspace;

/// Longest that one run of tests may take, compiling included.
const TEST_LIMIT: Duration = Duration::from_secs(40 * 60);

/// With what keys are exchanged in tests, all of which have its name in theirs.
const OPENSSL: Program = ("openssl", &["version"], "openssl");

/// How many huge pages of 2 MiB the kernel has in its pool.
const HUGE_PAGES: &str = "/proc/sys/vm/nr_hugepages";

/// What makes block devices of files, and the file systems on them.
const BLOCK_DEVICES: [Program; 3] = [
    ("losetup", &["--version"], "mount"),
    ("mount", &["--version"], "mount"),
    ("mkfs.ext4", &["-V"], "e2fsprogs"),
];

/// What tests of a whole router add to its configuration.
pub(crate) const TEST_CONFIG: &str = "TACHONYM_TEST_CONFIG";

/// With several workers a router does what it does with one: the same tests, fed each way. All
/// run: a worker that sleeps leaves the others less of each table.
pub(crate) const SEVERAL_WORKERS: [(&str, &str); 2] = [
    (
        "two workers",
        "workers.threads = 2\nworkers.max_threads = 3\npower.governor = \"none\"\n",
    ),
    (
        "two workers, io threads",
        "workers.threads = 2\nworkers.feed = \"io-threads\"\nworkers.io_threads = 2\n\
         workers.dispatch = \"name\"\npower.governor = \"none\"\n",
    ),
];

/// The same with PIT tokens, which not all peers know.
const WITH_TOKENS: (&str, &str) = (
    "two workers, PIT tokens",
    "workers.threads = 2\nworkers.dispatch = \"batch\"\nworkers.pit_tokens = true\n\
     power.governor = \"none\"\n",
);

/// Runs the tests that need nothing but Rust, and Debian's `openssl`.
pub(crate) fn run_all(workspace: &Workspace, report: &mut Report) {
    let mut has_openssl = false;
    report.step("tests openssl", || {
        match install_programs(workspace, &[OPENSSL]) {
            Ok(()) => {
                has_openssl = true;
                Outcome::Passed(1)
            }
            Err(error) => {
                let reason = format!("no keys were exchanged with openssl: {error:#}");
                Outcome::Skipped(reason.lines().next().unwrap_or_default().to_owned())
            }
        }
    });
    let mut has_huge_pages = false;
    report.step("tests huge pages", || {
        let outcome = huge_pages_outcome(File::options().write(true).open(HUGE_PAGES));
        has_huge_pages = matches!(outcome, Outcome::Passed(_));
        outcome
    });
    let mut has_block_devices = false;
    report.step("tests block devices", || {
        let installed = install_programs(workspace, &BLOCK_DEVICES);
        let outcome = block_devices_outcome(installed.and_then(|()| {
            tool(Path::new("losetup"), &["--find"]).context("losetup finds none that is free")
        }));
        has_block_devices = matches!(outcome, Outcome::Passed(_));
        outcome
    });
    report.step("tests", || {
        let mut cargo = workspace.cargo();
        cargo.args(["test", "--workspace", "--locked", "--no-fail-fast"]);
        cargo.args(["--exclude", "tachonym-interop"]);
        let wanting = [
            ("openssl", has_openssl),
            ("huge_pages", has_huge_pages),
            ("block_device", has_block_devices),
        ];
        cargo.args(skips(&wanting));
        test_step(workspace, "tests", &mut cargo)
    });
    for (name, config) in SEVERAL_WORKERS.into_iter().chain([WITH_TOKENS]) {
        let log = format!("tests {name}");
        report.step(&log, || {
            let mut cargo = workspace.cargo();
            cargo.args([
                "test",
                "--locked",
                "--no-fail-fast",
                "-p",
                "tachonym-router",
            ]);
            cargo.args(["--test", "*"]);
            let wanting = [
                ("openssl", has_openssl),
                ("block_device", has_block_devices),
            ];
            cargo.args(skips(&wanting));
            cargo.env(TEST_CONFIG, config);
            test_step(
                workspace,
                &log.replace(", ", " ").replace(' ', "-"),
                &mut cargo,
            )
        });
    }
    report.step("loom", || models(workspace));
    // The tests above pass without IPv6; this step reports what they leave out then.
    report.step("tests ipv6", || ipv6_outcome(UdpSocket::bind("[::1]:0")));
}

/// Crates that have models for loom, in `tests/loom.rs`.
const MODELLED: [&str; 2] = ["tachonym-memory", "tachonym-tables"];

/// Runs the models: the protocols between threads, in every order of their steps.
/// The crates are built apart, with loom's atomics in the place of real ones.
fn models(workspace: &Workspace) -> Outcome {
    let mut cargo = workspace.cargo();
    cargo.args(["test", "--locked", "--no-fail-fast", "--test", "loom"]);
    cargo.args(MODELLED.iter().flat_map(|name| ["-p", name]));
    cargo.env("RUSTFLAGS", "--cfg loom");
    cargo.env("CARGO_TARGET_DIR", workspace.target.join("loom"));
    test_step(workspace, "loom", &mut cargo)
}

/// Whether the tests that need huge pages, all of which have that in their name,
/// can add some to the kernel's pool.
fn huge_pages_outcome(opened: std::io::Result<File>) -> Outcome {
    match opened {
        Ok(_) => Outcome::Passed(1),
        Err(error) => Outcome::Skipped(format!(
            "no huge pages were tested, for {HUGE_PAGES} cannot be written: {error}"
        )),
    }
}

/// Whether the tests that need block devices, all of which have that in their name, can make
/// some.
fn block_devices_outcome(found: anyhow::Result<String>) -> Outcome {
    match found {
        Ok(_) => Outcome::Passed(1),
        Err(error) => {
            let reason = format!("no block devices were tested: {error:#}");
            Outcome::Skipped(reason.lines().next().unwrap_or_default().to_owned())
        }
    }
}

/// What tells cargo to leave out tests by what they need and is not had.
fn skips(needs: &[(&'static str, bool)]) -> Vec<&'static str> {
    let wanting = needs.iter().filter(|(_, had)| !had);
    let mut skips: Vec<_> = wanting.flat_map(|(name, _)| ["--skip", name]).collect();
    if !skips.is_empty() {
        skips.insert(0, "--");
    }
    skips
}

/// Whether the tests of faces could include those over IPv6.
fn ipv6_outcome(bound: std::io::Result<UdpSocket>) -> Outcome {
    match bound {
        Ok(_) => Outcome::Passed(1),
        Err(error) => Outcome::Skipped(format!(
            "no IPv6 loopback address, so faces were not tested over IPv6: {error}"
        )),
    }
}

/// Builds the router and the lab as users have them.
pub(crate) fn build_release(workspace: &Workspace, report: &mut Report) -> bool {
    report.step("release build", || {
        cargo_step(workspace, "release", |cargo| {
            cargo.args(["build", "--release", "--locked", "--bins"]);
            cargo.args(["-p", "tachonym-router", "-p", "tachonym-lab"]);
        })
    })
}

/// Runs a `cargo test` command and counts what it says.
pub(crate) fn test_step(workspace: &Workspace, name: &str, cargo: &mut Command) -> Outcome {
    match run(cargo, &workspace.log(name), TEST_LIMIT) {
        Ok(finished) => outcome_of(&finished),
        Err(error) => Outcome::Failed(format!("{error:#}")),
    }
}

fn outcome_of(finished: &Finished) -> Outcome {
    let counts = count(&finished.output);
    match (finished.status.success(), counts) {
        (true, Some(counts)) => Outcome::Mixed(counts, String::new()),
        (true, None) => Outcome::Failed("no test ran".to_owned()),
        (false, Some(counts)) if counts.n_failed > 0 => {
            Outcome::Mixed(counts, failures(&finished.output))
        }
        // It did not compile, or a test program died.
        (false, _) => Outcome::Failed(finished.tail(100)),
    }
}

/// Adds up the `test result:` lines; `None` if there is none, or no test ran.
fn count(output: &str) -> Option<Counts> {
    let mut counts = Counts::default();
    for line in output
        .lines()
        .filter(|line| line.starts_with("test result: "))
    {
        let figure = |what: &str| -> u64 {
            let mut parts = line.split([';', '.']).map(str::trim);
            let part = parts.find_map(|part| part.strip_suffix(what));
            part.and_then(|figure| figure.trim().parse().ok())
                .unwrap_or(0)
        };
        counts.n_passed += figure("passed");
        counts.n_failed += figure("failed");
        counts.n_skipped += figure("ignored");
    }
    (counts != Counts::default()).then_some(counts)
}

/// What the failed tests printed: every block between a first `failures:` and
/// its `test result:`.
fn failures(output: &str) -> String {
    let mut inside = false;
    let mut kept = Vec::new();
    for line in output.lines() {
        match line {
            "failures:" => inside = true,
            _ if line.starts_with("test result: ") => inside = false,
            _ if inside && !line.is_empty() => kept.push(line),
            _ => {}
        }
    }
    kept.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "
running 2 tests
test a ... ok
test b ... FAILED

failures:

---- b stdout ----
thread 'b' panicked at src/lib.rs:1:1: no

failures:
    b

test result: FAILED. 1 passed; 1 failed; 2 ignored; 0 measured; 0 filtered out; finished in 0.00s

running 1 test
test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 3 filtered out; finished in 0.1s
";

    #[test]
    fn results_of_every_test_program_are_added() {
        let expected = Counts {
            n_passed: 2,
            n_failed: 1,
            n_skipped: 2,
        };
        assert_eq!(count(OUTPUT), Some(expected));
    }

    #[test]
    fn faces_that_cannot_be_tested_over_ipv6_are_a_skip() {
        let refused = std::io::ErrorKind::AddrNotAvailable.into();
        let outcome = ipv6_outcome(Err(refused));
        let Outcome::Skipped(reason) = outcome else {
            panic!("{outcome:?}");
        };
        assert!(
            reason.contains("IPv6") && !reason.contains('\n'),
            "{reason}"
        );
        let bound = UdpSocket::bind("127.0.0.1:0");
        assert!(matches!(ipv6_outcome(bound), Outcome::Passed(1)));
    }

    #[test]
    fn pool_of_pages_that_cannot_grow_is_a_skip() {
        let refused = std::io::ErrorKind::PermissionDenied.into();
        let outcome = huge_pages_outcome(Err(refused));
        let Outcome::Skipped(reason) = outcome else {
            panic!("{outcome:?}");
        };
        assert!(
            reason.contains("huge pages") && !reason.contains('\n'),
            "{reason}"
        );
    }

    #[test]
    fn block_devices_that_cannot_be_made_are_a_skip() {
        let outcome = block_devices_outcome(Err(anyhow::anyhow!("none\nat all")));
        let Outcome::Skipped(reason) = outcome else {
            panic!("{outcome:?}");
        };
        assert!(
            reason.contains("block devices") && !reason.contains('\n'),
            "{reason}"
        );
        let found = Ok("/dev/loop0".to_owned());
        assert!(matches!(block_devices_outcome(found), Outcome::Passed(1)));
    }

    #[test]
    fn tests_are_skipped_by_what_they_need_and_is_not_had() {
        assert!(skips(&[("a", true), ("b", true)]).is_empty());
        let left_out = skips(&[("a", false), ("b", true), ("c", false)]);
        assert_eq!(left_out, ["--", "--skip", "a", "--skip", "c"]);
    }

    #[test]
    fn run_without_any_test_has_no_count() {
        let none = "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out";
        assert_eq!(count(none), None);
        assert_eq!(count("error: could not compile"), None);
    }

    #[test]
    fn output_of_failed_tests_is_kept() {
        let kept = failures(OUTPUT);
        assert!(kept.contains("panicked at src/lib.rs:1:1: no"), "{kept}");
        assert!(!kept.contains("test a ... ok"), "{kept}");
    }
}
