//! The tools: everything the binary does besides running a router.
//!
//! Each module is one subcommand and speaks to a router through
//! `tachonym-client` like any other program; none knows the router's inside.
//! Here is what they share: how the router is found, how commands are signed,
//! and what an error means to a shell.

pub mod cs;
pub mod dissect;
pub mod face;
pub mod get;
pub mod keys;
pub mod peek;
pub mod ping;
pub mod pingserver;
pub mod poke;
pub mod put;
pub mod route;
pub mod status;
pub mod strategy;
mod text;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use serde_json::Value;
use signal_hook::consts::{SIGINT, SIGTERM};
use tachonym_client::{
    CommandError, Controller, Endpoint, EndpointError, ExpressError, FetchError, transport,
};
use tachonym_packet::{MonoNs, Name};
use tachonym_protocol::FaceUri;
use tachonym_security::{KeyStore, Signer};

/// Longest that a loop waits before it looks whether it was told to stop.
const STOP_INTERVAL: Duration = Duration::from_millis(500);

/// Exit codes beyond success (0), failure (1) and wrong usage (2).
mod exit {
    /// Nobody answered in time.
    pub(super) const TIMED_OUT: u8 = 3;
    /// A router sent the Interest back.
    pub(super) const NACK: u8 = 4;
    /// The router refused a command.
    pub(super) const REFUSED: u8 = 5;
    /// There is no router, or no longer.
    pub(super) const NO_ROUTER: u8 = 6;
}

/// What `tachonym --help` says about exit codes.
pub const EXIT_CODES: &str = "\
Exit codes: 0 success, 1 failure, 2 wrong usage, 3 no answer in time, \
4 an Interest came back as a Nack, 5 the router refused a command, \
6 no router could be reached.";

/// The exit code that tells a shell what kind of failure `error` is.
#[must_use]
pub fn exit_code(error: &anyhow::Error) -> ExitCode {
    let of_express = |error: &ExpressError| match error {
        ExpressError::TimedOut => exit::TIMED_OUT,
        ExpressError::Nack(_) => exit::NACK,
        ExpressError::Endpoint(_) => exit::NO_ROUTER,
        _ => 1,
    };
    for cause in error.chain() {
        if let Some(CommandError::Refused { .. }) = cause.downcast_ref() {
            return exit::REFUSED.into();
        }
        if let Some(CommandError::Express(error)) = cause.downcast_ref() {
            return of_express(error).into();
        }
        if let Some(error) = cause.downcast_ref::<ExpressError>() {
            return of_express(error).into();
        }
        if let Some(FetchError::GaveUp { nack, .. }) = cause.downcast_ref() {
            return if nack.is_some() {
                exit::NACK
            } else {
                exit::TIMED_OUT
            }
            .into();
        }
        if cause.is::<EndpointError>() || cause.is::<transport::TransportError>() {
            return exit::NO_ROUTER.into();
        }
    }
    ExitCode::FAILURE
}

/// How the router is reached.
#[derive(Args)]
pub struct Connection {
    /// The router, as a FaceUri; else NDN_CLIENT_TRANSPORT, client.conf, or the
    /// usual sockets.
    #[arg(long, value_name = "FACEURI", global = true)]
    transport: Option<String>,
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    /// If there is no router.
    pub fn open(&self) -> anyhow::Result<Endpoint> {
        let uri = match &self.transport {
            Some(text) => transport::parse(text, "--transport")?,
            None => transport::find()?,
        };
        Ok(Endpoint::connect(&uri)?)
    }
}

/// What signs commands and Data.
#[derive(Args)]
pub struct Identity {
    /// Sign with the default key of this identity; without it, by plain digest.
    #[arg(long, value_name = "NAME", global = true)]
    identity: Option<Name>,
    /// Folder of the key store.
    #[arg(long, value_name = "DIR", global = true)]
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

/// Where keys lie unless another folder is named.
///
/// # Errors
/// If the environment names no home.
pub fn default_key_store() -> anyhow::Result<PathBuf> {
    if let Some(data) = std::env::var_os("XDG_DATA_HOME") {
        return Ok(PathBuf::from(data).join("tachonym/keys"));
    }
    let home = std::env::var_os("HOME").context("HOME is not set; name a folder")?;
    Ok(PathBuf::from(home).join(".local/share/tachonym/keys"))
}

/// What the management tools share.
#[derive(Args)]
pub struct Management {
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    identity: Identity,
    /// Print JSON for scripts.
    #[arg(long, global = true)]
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

    /// Prints `value` if JSON is wanted, else what `text` makes of it.
    fn print(&self, value: &Value, text: impl FnOnce() -> String) {
        if self.json {
            println!("{value:#}");
        } else {
            print!("{}", text());
        }
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
    const fn is_on(self) -> bool {
        matches!(self, Self::On)
    }
}

/// The face that `text` names by its number or its remote address.
fn find_face(controller: &mut Controller<'_>, text: &str) -> anyhow::Result<u64> {
    use tachonym_protocol::FaceQueryFilter;
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    let uri = canonical(text)?;
    let filter = FaceQueryFilter {
        uri: Some(uri.to_string()),
        ..FaceQueryFilter::default()
    };
    let faces = controller.query_faces(&filter)?;
    match faces.as_slice() {
        [] => anyhow::bail!("no face to {uri}; `tachonym face list` shows those there are"),
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

/// `text` as a FaceUri that needs no further look-up.
fn canonical(text: &str) -> anyhow::Result<FaceUri> {
    Ok(transport::parse(text, "face")?)
}

/// Becomes true when the program is told to stop.
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

    /// When to look again.
    fn next_look(endpoint: &Endpoint) -> MonoNs {
        endpoint.now() + STOP_INTERVAL
    }
}
