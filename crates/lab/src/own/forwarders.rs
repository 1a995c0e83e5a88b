//! The forwarders that an experiment starts: the router, and beside it ndnd and NFD where
//! their programs are given.

use std::path::Path;

use anyhow::Context as _;
use tachonym_bench::machine::version_of;
use tachonym_bench::{Context, Param, ParamKind, Record};
use tachonym_loadgen::figures::WorkFolder;
use tachonym_loadgen::figures::peers::{Peer, Program};

/// ndnd's program, read by [`Forwarders::all`].
pub(super) const NDND: Param = Param::new(
    "ndnd",
    "path of ndnd's program, measured beside the router; empty: not measured",
    ParamKind::Text,
    [""; 3],
);

/// NFD's program, read by [`Forwarders::all`].
pub(super) const NFD: Param = Param::new(
    "nfd",
    "path of NFD's program, measured beside the router; empty: not measured",
    ParamKind::Text,
    [""; 3],
);

/// Forwarders with their configurations, in a folder that is removed with them.
pub(super) struct Forwarders {
    peers: Vec<Peer>,
    folder: WorkFolder,
}

impl Forwarders {
    /// The router alone.
    pub(super) fn router_only(context: &Context) -> anyhow::Result<Self> {
        let folder = WorkFolder::new()?;
        let router = context.router.as_ref().context("the router is missing")?;
        Ok(Self {
            peers: vec![Peer::prepare(Program::Tachonym, router, folder.path())?],
            folder,
        })
    }

    /// The router, and the other forwarders that [`NDND`] and [`NFD`] name.
    pub(super) fn all(context: &Context) -> anyhow::Result<Self> {
        let mut forwarders = Self::router_only(context)?;
        for (program, name) in [(Program::Ndnd, NDND.name), (Program::Nfd, NFD.name)] {
            let path = context.text(name);
            if !path.is_empty() {
                let peer = Peer::prepare(program, Path::new(path), forwarders.folder())?;
                forwarders.peers.push(peer);
            }
        }
        Ok(forwarders)
    }

    /// All, the router first.
    pub(super) fn peers(&self) -> &[Peer] {
        &self.peers
    }

    /// The router.
    pub(super) fn router(&self) -> &Peer {
        &self.peers[0]
    }

    /// Where configurations and sockets are.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Adds a note with the version of each.
    pub(super) fn note_versions(&self, record: &mut Record) -> anyhow::Result<()> {
        for peer in &self.peers {
            let version = version_of(&peer.binary)?;
            record.note(format!("{}: {version}.", peer.program.label()));
        }
        Ok(())
    }
}
