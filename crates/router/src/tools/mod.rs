//! The tools: everything the binary does besides running a router.
//!
//! Each public module is one subcommand and talks to a router through `tachonym-client`, like
//! any other application. This module has what they share: the connection, signing of
//! commands, output, and exit codes.

mod advise;
mod asked;
pub mod cs;
pub mod dissect;
mod drops;
pub mod explain;
pub mod face;
mod failure;
pub mod get;
mod hit_ratio;
mod hops;
pub mod keys;
mod memory;
mod name;
pub mod output;
mod own;
pub mod peek;
mod persistency;
pub mod ping;
pub mod pingserver;
pub mod poke;
pub mod power;
mod programs;
pub mod put;
pub mod route;
pub mod status;
pub mod strategy;
mod target;
mod text;
pub mod trace;
mod unanswered;
pub mod workers;

use std::fmt::{self, Display};
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use serde_json::Value;
use signal_hook::consts::{SIGINT, SIGTERM};
use tachonym_client::transport::{self, TransportError};
use tachonym_client::{
    CommandError, Controller, DiscoverError, Endpoint, EndpointError, ExpressError, FetchError,
    wall_ms,
};
use tachonym_packet::{MonoNs, Name};
use tachonym_protocol::{FaceQueryFilter, FaceUri, FaceUriError, prefix_announcement};
use tachonym_security::{KeyStore, Signer, VerifyError};

use failure::Failure;
use unanswered::Unanswered;

/// Longest time between two checks for a signal to stop.
const STOP_INTERVAL: Duration = Duration::from_millis(500);

/// Validity of a prefix announcement. Routers learn from it for minutes at a time.
const ANNOUNCEMENT_PERIOD_MS: u64 = 30 * 24 * 3_600_000;

/// Exit codes beyond success (0) and failure (1).
mod exit {
    /// Anything without a code of its own.
    pub(super) const FAILURE: u8 = 1;
    /// An argument is invalid; the parser of the command line ends with this code too.
    pub(super) const USAGE: u8 = 2;
    /// No answer came in time.
    pub(super) const TIMED_OUT: u8 = 3;
    /// An Interest came back as a Nack.
    pub(super) const NACK: u8 = 4;
    /// The router refused a command.
    pub(super) const REFUSED: u8 = 5;
    /// No router could be reached, or the connection failed.
    pub(super) const NO_ROUTER: u8 = 6;
    /// A signature is wrong or not trusted.
    pub(super) const UNTRUSTED: u8 = 7;
}

/// What `tachonym --help` says about exit codes.
pub const EXIT_CODES: &str = "\
Exit codes: 0 success, 1 failure, 2 wrong usage (an invalid option, name or address), \
3 no answer in time, 4 an Interest came back as a Nack, 5 the router refused a command, \
6 no router could be reached, 7 a signature is wrong or not trusted.";

/// The exit code for `error`.
#[must_use]
pub fn exit_code(error: &anyhow::Error) -> ExitCode {
    error
        .chain()
        .find_map(code_of)
        .map_or(ExitCode::FAILURE, ExitCode::from)
}

/// The code of one cause, if it has one of its own. A transparent error hides the error
/// inside from the chain, so both are matched.
fn code_of(cause: &(dyn std::error::Error + 'static)) -> Option<u8> {
    let of_express = |error: &ExpressError| match error {
        ExpressError::TimedOut => Some(exit::TIMED_OUT),
        ExpressError::Nack(_) => Some(exit::NACK),
        ExpressError::Endpoint(_) => Some(exit::NO_ROUTER),
        _ => None,
    };
    if let Some(error) = cause.downcast_ref() {
        return match error {
            CommandError::Refused { .. } => Some(exit::REFUSED),
            CommandError::Express(error)
            | CommandError::Unanswered { error, .. }
            | CommandError::OutOfScope { error, .. } => of_express(error),
            _ => None,
        };
    }
    if let Some(error) = cause.downcast_ref() {
        return match error {
            FetchError::GaveUp { nack: Some(_), .. } => Some(exit::NACK),
            FetchError::GaveUp { nack: None, .. } => Some(exit::TIMED_OUT),
            FetchError::Endpoint(_) => Some(exit::NO_ROUTER),
            FetchError::Untrusted { .. } => Some(exit::UNTRUSTED),
            _ => None,
        };
    }
    if let Some(error) = cause.downcast_ref() {
        return match error {
            DiscoverError::Express(error) => of_express(error),
            DiscoverError::Untrusted { .. } => Some(exit::UNTRUSTED),
            _ => None,
        };
    }
    if let Some(error) = cause.downcast_ref() {
        return match error {
            TransportError::BadUri { .. } => Some(exit::USAGE),
            _ => Some(exit::NO_ROUTER),
        };
    }
    if cause.is::<EndpointError>() {
        return Some(exit::NO_ROUTER);
    }
    if cause.is::<VerifyError>() {
        return Some(exit::UNTRUSTED);
    }
    if let Some(failure) = cause.downcast_ref() {
        return Some(Failure::exit_code(failure));
    }
    if let Some(unanswered) = cause.downcast_ref() {
        return Some(Unanswered::exit_code(unanswered));
    }
    cause.downcast_ref().and_then(of_express)
}

/// Heading of the options that most tools share, in their help.
const COMMON: &str = "Common options";

/// How the router is reached.
#[derive(Args)]
pub struct Connection {
    /// Address of the router, such as unix:///run/nfd/nfd.sock or tcp4://192.0.2.1:6363;
    /// without it, NDN_CLIENT_TRANSPORT, `transport` in client.conf, or the usual sockets.
    #[arg(long, value_name = "FACEURI", global = true, help_heading = COMMON)]
    transport: Option<FaceUri>,
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    /// If there is no router.
    pub fn open(&self) -> anyhow::Result<Endpoint> {
        Ok(Endpoint::connect(&self.uri()?)?)
    }

    /// The router's address.
    fn uri(&self) -> anyhow::Result<FaceUri> {
        Ok(match &self.transport {
            Some(uri) => transport::resolve(uri.clone())?,
            None => transport::find()?,
        })
    }
}

/// The key that signs commands and Data.
#[derive(Args)]
pub struct Identity {
    /// Sign with the default key of this identity; without it, with a plain digest.
    #[arg(long, value_name = "NAME", global = true, value_parser = name::parse,
          help_heading = COMMON)]
    identity: Option<Name>,
    /// Folder of the key store.
    #[arg(long, value_name = "DIR", global = true, help_heading = COMMON)]
    key_store: Option<PathBuf>,
}

impl Identity {
    /// The signer.
    ///
    /// # Errors
    /// If the identity has no key.
    pub fn signer(&self) -> anyhow::Result<Signer> {
        let Some(identity) = &self.identity else {
            return Ok(Signer::digest());
        };
        let folder = match &self.key_store {
            Some(folder) => folder.clone(),
            None => default_key_store()?,
        };
        let store = KeyStore::open(folder)?;
        store
            .signer(Some(identity))
            .with_context(|| format!("cannot sign as {identity}"))
    }
}

/// How a producer registers its prefix.
#[derive(Args)]
pub struct Registration {
    /// Announce the prefix, signed by the identity, so that routers with the strategy
    /// `self-learning` learn the route by themselves; valid for 30 days.
    #[arg(long)]
    announce: bool,
}

impl Registration {
    /// Has Interests under `prefix` sent to this program.
    ///
    /// # Errors
    /// If the router refuses or does not answer.
    pub fn make(
        &self,
        prefix: &Name,
        endpoint: &mut Endpoint,
        signer: &Signer,
    ) -> anyhow::Result<()> {
        let mut controller = Controller::new(endpoint, signer.clone());
        // The route lasts as long as the program, the announcement does not.
        controller.register(prefix)?;
        if self.announce {
            let version = wall_ms() * 1000;
            let announcement = prefix_announcement(prefix, version, ANNOUNCEMENT_PERIOD_MS);
            controller.announce(&signer.sign_data(&announcement)?)?;
        }
        Ok(())
    }
}

/// The folder of the key store without `--key-store`.
///
/// # Errors
/// If the environment names no home.
pub fn default_key_store() -> anyhow::Result<PathBuf> {
    // A relative path is ignored (XDG Base Directory Specification).
    let data = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from);
    if let Some(data) = data.filter(|data| data.is_absolute()) {
        return Ok(data.join("tachonym/keys"));
    }
    let home =
        std::env::var_os("HOME").context("HOME is not set; give a folder with --key-store")?;
    Ok(PathBuf::from(home).join(".local/share/tachonym/keys"))
}

/// The options that the management tools share.
#[derive(Args)]
pub struct Management {
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    identity: Identity,
    /// Print JSON for scripts.
    #[arg(long, global = true, help_heading = COMMON)]
    json: bool,
}

impl Management {
    /// Connects and runs `work` with a controller.
    fn with<T>(
        &self,
        work: impl FnOnce(&mut Controller<'_>) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let mut endpoint = self.connection.open()?;
        work(&mut Controller::new(&mut endpoint, self.identity.signer()?))
    }

    /// Prints `value` with `--json`, else `text`.
    fn print(&self, value: &Value, text: impl FnOnce() -> String) -> anyhow::Result<()> {
        if self.json {
            output::line(format_args!("{value:#}"))?;
        } else {
            output::text(&text())?;
        }
        Ok(())
    }
}

/// A switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// Enabled.
    On,
    /// Disabled.
    Off,
}

impl Switch {
    const fn of(is_on: bool) -> Self {
        if is_on { Self::On } else { Self::Off }
    }

    const fn is_on(self) -> bool {
        matches!(self, Self::On)
    }
}

impl Display for Switch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::On => "on",
            Self::Off => "off",
        })
    }
}

/// A face on the command line.
#[derive(Clone, Debug)]
enum FaceArgument {
    /// By its number.
    Id(u64),
    /// By its remote address.
    Remote(FaceUri),
}

impl FromStr for FaceArgument {
    type Err = FaceUriError;

    fn from_str(text: &str) -> Result<Self, FaceUriError> {
        match text.parse() {
            Ok(id) => Ok(Self::Id(id)),
            Err(_) => text.parse().map(Self::Remote),
        }
    }
}

/// The number of `face`.
fn find_face(controller: &mut Controller<'_>, face: &FaceArgument) -> anyhow::Result<u64> {
    let uri = match face {
        FaceArgument::Id(id) => return Ok(*id),
        FaceArgument::Remote(uri) => canonical(uri)?,
    };
    let filter = FaceQueryFilter {
        uri: Some(uri.to_string()),
        ..FaceQueryFilter::default()
    };
    let faces = controller.query_faces(&filter)?;
    match faces.as_slice() {
        [] if uri.is_multicast() => anyhow::bail!(
            "no face to {uri}, a multicast group; add one under [[faces.multicast]] in the \
             router's configuration"
        ),
        [] => anyhow::bail!("no face to {uri}; `tachonym face list` shows all faces"),
        [face] => Ok(face.face_id),
        several => {
            let ids: Vec<_> = several.iter().map(|f| f.face_id.to_string()).collect();
            anyhow::bail!(
                "several faces to {uri}; choose by number: {}",
                ids.join(", ")
            )
        }
    }
}

/// The address of a face with its host looked up. A failure is not one of the connection to
/// the router, so it is no [`TransportError`], which has the exit code of that.
fn canonical(uri: &FaceUri) -> anyhow::Result<FaceUri> {
    transport::resolve(uri.clone()).map_err(|error| anyhow::anyhow!("{error}"))
}

/// Becomes true on SIGINT or SIGTERM.
struct Stop(Arc<AtomicBool>);

impl Stop {
    fn on_signals() -> anyhow::Result<Self> {
        let flag = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // A second signal ends the program at once.
            signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&flag))
                .context("cannot wait for signals")?;
            signal_hook::flag::register(signal, Arc::clone(&flag))
                .context("cannot wait for signals")?;
        }
        Ok(Self(flag))
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// When to check again.
    fn next_look(endpoint: &Endpoint) -> MonoNs {
        endpoint.now() + STOP_INTERVAL
    }
}
