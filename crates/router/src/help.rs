//! The help of `tachonym` itself: its subcommands in groups, examples, exit codes.
//!
//! Owns the groups. The help of each subcommand belongs to its module.

use std::fmt::Write as _;

use clap::Command;

use crate::tools::EXIT_CODES;

/// Which subcommands stand together, under which heading.
pub const GROUPS: [(&str, &[&str]); 4] = [
    ("Router", &["run", "check-config"]),
    (
        "Manage a running router",
        &[
            "status", "face", "route", "strategy", "cs", "workers", "power",
        ],
    ),
    (
        "Find out what happens to Interests",
        &["explain", "trace", "dissect"],
    ),
    (
        "Produce and request Data",
        &["ping", "pingserver", "peek", "poke", "put", "get"],
    ),
];
/// The heading of all others.
const OTHERS: &str = "Keys and shell";

const EXAMPLES: &str = "\
Examples:
  tachonym run                                     start a router with the defaults
  tachonym status                                  show whether it runs, and its counters
  tachonym route add /ndn udp4://192.0.2.1:6363    send Interests under /ndn to a neighbour
  tachonym ping /ndn                               measure the round trip to a pingserver
";

/// Examples of `tachonym run`.
pub const RUN_EXAMPLES: &str = "\
Examples:
  tachonym run
  tachonym run --config /etc/tachonym.toml
  tachonym run --socket /tmp/second.sock --port 6364    a second router on this machine

The router prints the addresses on which it listens. If its Unix socket is not
/run/nfd/nfd.sock, it also prints the line to paste into the shell that uses it:
  export NDN_CLIENT_TRANSPORT=unix:///tmp/second.sock";

/// Examples of `tachonym check-config`.
pub const CHECK_CONFIG_EXAMPLES: &str = "\
Examples:
  tachonym check-config /etc/tachonym.toml
  tachonym check-config --reference > configuration.md";

/// Examples of `tachonym completions`.
pub const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  tachonym completions bash > ~/.local/share/bash-completion/completions/tachonym
  tachonym completions zsh > ~/.zfunc/_tachonym";

/// `command`, whose help shows its subcommands in groups.
#[must_use]
pub fn grouped(command: Command) -> Command {
    let mut list = String::new();
    let is_grouped = |name: &str| GROUPS.iter().any(|(_, names)| names.contains(&name));
    let names = command.get_subcommands().map(Command::get_name);
    let others: Vec<_> = names.filter(|name| !is_grouped(name)).collect();
    let groups = GROUPS.iter().copied();
    for (heading, names) in groups.chain([(OTHERS, &others[..])]) {
        let _ = writeln!(list, "{heading}:");
        for name in names {
            let Some(subcommand) = command.find_subcommand(name) else {
                continue;
            };
            let about = subcommand.get_about().map(ToString::to_string);
            let _ = writeln!(list, "  {name:<13} {}", about.unwrap_or_default());
        }
        list.push('\n');
    }
    list.push_str("  help          Print the help of a subcommand\n");
    command
        .help_template(format!(
            "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}\nOptions:\n\
             {{options}}{{after-help}}"
        ))
        .after_help(format!("{EXAMPLES}\n{EXIT_CODES}"))
}
