//! The `tachonym` command.
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)]

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use crossbeam_channel::Receiver;
use signal_hook::consts::{SIGINT, SIGTERM};
use tachonym_client::transport;
use tachonym_protocol::FaceUri;
use tachonym_router::config::{Config, reference};
use tachonym_router::tools::{
    self, cs, dissect, explain, face, get, keys, output, peek, ping, pingserver, poke, power, put,
    route, status, strategy, trace, workers,
};
use tachonym_router::{Overrides, Router, help};
use tracing_subscriber::EnvFilter;

/// A router for Named Data Networking, and its tools.
#[derive(Parser)]
#[command(name = "tachonym", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the router until Ctrl-C or SIGTERM.
    #[command(after_help = help::RUN_EXAMPLES)]
    Run {
        /// Configuration file; `-` reads standard input. Without one, the defaults apply.
        #[arg(long, value_name = "FILE")]
        config: Option<PathBuf>,
        /// Unix socket to listen on, in place of the key faces.unix.path.
        #[arg(long, value_name = "PATH")]
        socket: Option<PathBuf>,
        /// UDP and TCP port to listen on, in place of the ports in faces.udp.listen and
        /// faces.tcp.listen. The default WebSocket listeners (port 9696) are then not opened.
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
        port: Option<u16>,
    },
    /// Check a configuration file without starting a router.
    #[command(after_help = help::CHECK_CONFIG_EXAMPLES)]
    CheckConfig {
        /// Configuration file; `-` reads standard input.
        #[arg(required_unless_present = "reference")]
        file: Option<PathBuf>,
        /// Print the reference of all keys as Markdown instead.
        #[arg(long)]
        reference: bool,
    },
    Status(status::Arguments),
    Explain(explain::Arguments),
    Face(face::Arguments),
    Route(route::Arguments),
    Strategy(strategy::Arguments),
    Cs(cs::Arguments),
    Workers(workers::Arguments),
    Power(power::Arguments),
    Ping(ping::Arguments),
    Pingserver(pingserver::Arguments),
    Trace(trace::Arguments),
    Peek(peek::Arguments),
    Poke(poke::Arguments),
    Put(put::Arguments),
    Get(get::Arguments),
    Dissect(dissect::Arguments),
    Keys(keys::Arguments),
    /// Print a completion script for a shell.
    #[command(after_help = help::COMPLETIONS_EXAMPLES)]
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

fn main() -> ExitCode {
    let command = help::grouped(Arguments::command());
    let arguments = Arguments::from_arg_matches(&command.get_matches());
    let result = match arguments.unwrap_or_else(|error| error.exit()).command {
        Command::Run {
            config,
            socket,
            port,
        } => run(config.as_deref(), &Overrides { socket, port }),
        Command::CheckConfig { file, reference } => check_config(file.as_deref(), reference),
        Command::Status(arguments) => status::run(&arguments),
        Command::Explain(arguments) => match explain::run(&arguments) {
            Ok(code) => return code,
            Err(error) => Err(error),
        },
        Command::Face(arguments) => face::run(&arguments),
        Command::Route(arguments) => route::run(&arguments),
        Command::Strategy(arguments) => strategy::run(&arguments),
        Command::Cs(arguments) => cs::run(&arguments),
        Command::Workers(arguments) => workers::run(&arguments),
        Command::Power(arguments) => power::run(&arguments),
        Command::Ping(arguments) => ping::run(&arguments),
        Command::Pingserver(arguments) => pingserver::run(&arguments),
        Command::Trace(arguments) => trace::run(&arguments),
        Command::Peek(arguments) => peek::run(&arguments),
        Command::Poke(arguments) => poke::run(&arguments),
        Command::Put(arguments) => put::run(&arguments),
        Command::Get(arguments) => get::run(&arguments),
        Command::Keys(arguments) => keys::run(&arguments),
        Command::Dissect(arguments) => match dissect::run(&arguments) {
            Ok(code) => return code,
            Err(error) => Err(error),
        },
        Command::Completions { shell } => {
            let mut command = Arguments::command();
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut command, "tachonym", &mut script);
            output::text(&String::from_utf8_lossy(&script)).map_err(Into::into)
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if output::is_reader_gone(&error) => ExitCode::SUCCESS,
        Err(error) => {
            output::note(format_args!("{error:#}"));
            tools::exit_code(&error)
        }
    }
}

fn check_config(file: Option<&std::path::Path>, print_reference: bool) -> anyhow::Result<()> {
    if print_reference {
        output::text(&reference::markdown())?;
    }
    if let Some(file) = file {
        let config = Config::load(file)?;
        for warning in config.warnings() {
            output::note(format_args!("warning: {warning}"));
        }
        output::line(format_args!("{} is correct", file.display()))?;
        output::line(config.summary())?;
    }
    Ok(())
}

fn run(file: Option<&std::path::Path>, overrides: &Overrides) -> anyhow::Result<()> {
    let mut config = file.map(Config::load).transpose()?.unwrap_or_default();
    overrides.apply(&mut config);
    let config = config;
    let filter: EnvFilter = config.log.level.parse().context("log.level")?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        // A closed standard error loses the log. Reporting that on standard error would
        // panic in the thread that logs.
        .log_internal_errors(false)
        .init();
    raise_descriptor_limit(config.faces.max_faces);
    let signals = signals().context("cannot wait for signals")?;
    let router = Router::start(&config)?;
    // The router goes on when the reader of this output is gone.
    for uri in router.listening() {
        let _ = output::line(format_args!("listening on {uri}"));
    }
    if let Some(line) = export_line(router.listening()) {
        let _ = output::line(line);
    }
    let _ = output::line("ready");
    crossbeam_channel::select! {
        recv(signals) -> _ => {}
        recv(router.ended()) -> _ => {
            let cause = router.stop().err();
            return Err(cause.unwrap_or_else(|| anyhow::anyhow!("the manager thread ended")));
        }
    }
    let snapshot = router.snapshot()?;
    for (reason, n) in &snapshot.drops {
        tracing::info!("dropped {n} packets since the start: {reason}");
    }
    tracing::info!(
        n_commands_dropped = router.n_dropped_commands(),
        n_verified = snapshot.n_verified,
        n_verified_before = snapshot.n_verified_before,
        n_refused_connections = snapshot.n_refused_connections,
        n_evicted_faces = snapshot.n_evicted_faces,
        n_silent_faces = snapshot.n_silent_faces,
        n_accept_pauses = snapshot.n_accept_pauses,
        n_stalled_connections = snapshot.n_stalled_connections,
        n_kernel_drops = snapshot.n_kernel_drops,
        syscalls_per_packet = format_args!("{:.3}", snapshot.syscalls_per_packet),
        "stopping"
    );
    router.stop()
}

/// The shell command that leads NDN programs to this router, unless its Unix socket is the
/// one where all of them look.
fn export_line(listening: &[FaceUri]) -> Option<String> {
    let socket = listening
        .iter()
        .find(|uri| matches!(uri, FaceUri::Unix(_)))?;
    if transport::is_usual(socket) {
        return None;
    }
    let mut value = socket.to_string();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/:._-+@%=,".contains(&byte);
    if !value.bytes().all(is_plain) {
        value = format!("'{}'", value.replace('\'', "'\\''"));
    }
    Some(format!("export {}={value}", transport::ENVIRONMENT))
}

/// Gets a message when the process receives SIGINT or SIGTERM.
fn signals() -> std::io::Result<Receiver<()>> {
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
    let (sender, receiver) = crossbeam_channel::bounded(1);
    std::thread::spawn(move || {
        signals.forever().next();
        // The receiver is gone if the router has ended by itself.
        let _ = sender.send(());
    });
    Ok(receiver)
}

/// Raises the limit of file descriptors to the hard limit: the usual soft limit of 1,024
/// is meant for programs that use `select`.
fn raise_descriptor_limit(max_faces: usize) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: maximum,
        maximum,
    };
    // If that is refused, the limit stays.
    let limit = setrlimit(Resource::Nofile, raised).map_or(current, |()| maximum);
    // Beside faces: listeners, the log, and those of the runtime.
    let wanted = max_faces as u64 + 64;
    if limit.is_some_and(|limit| limit < wanted) {
        tracing::warn!(
            "this process may open {} files, which is too few for faces.max_faces: raise the \
             limit (`ulimit -n`, or LimitNOFILE of systemd) to {wanted}, or lower faces.max_faces",
            limit.unwrap_or_default(),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subcommand_stands_in_one_group_of_the_help() {
        let command = Arguments::command();
        let groups = help::GROUPS.iter();
        let grouped: Vec<&str> = groups
            .flat_map(|(_, names)| names.iter().copied())
            .collect();
        for &name in &grouped {
            assert!(command.find_subcommand(name).is_some(), "{name}");
            let n_times = grouped.iter().filter(|&&it| it == name).count();
            assert_eq!(n_times, 1, "{name}");
        }
        // The last group has all others.
        let names = command.get_subcommands().map(clap::Command::get_name);
        let others: Vec<_> = names.filter(|name| !grouped.contains(name)).collect();
        assert_eq!(others, ["keys", "completions"]);
    }
}
