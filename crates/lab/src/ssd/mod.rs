//! `tachonym-lab ssd`: the second level of the content store on a disk of this machine.
//!
//! Each command measures one promise on a file in a folder of its own, through the router's
//! engine and the same device that the router opens, and removes the file afterwards. Packets
//! come from memory: faces are measured by `exchange`. What is compared takes turns in every
//! round.

mod amplification;
pub(crate) mod disk;
mod fio;
mod foyer;
mod hit_path;
mod index;
mod latency;
mod packets;
mod raw;
mod recovery;
mod report;
mod rig;
mod serve;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use self::packets::Packets;

/// Measures the SSD level of the content store on a disk, and compares it with its targets
#[derive(Args, Clone, Debug)]
pub struct SsdArgs {
    #[command(subcommand)]
    command: SsdCommand,
}

#[derive(Subcommand, Clone, Debug)]
enum SsdCommand {
    Serve(serve::ServeArgs),
    HitPath(hit_path::HitPathArgs),
    Recovery(recovery::RecoveryArgs),
    Latency(latency::LatencyArgs),
    Amplification(amplification::AmplificationArgs),
    Index(index::IndexArgs),
    Foyer(foyer::FoyerArgs),
}

/// Where a store is, and what it holds.
#[derive(Args, Clone, Debug)]
struct StoreArgs {
    /// Directory on the file system to measure
    #[arg(long, default_value = "/var/tmp", value_name = "DIR")]
    directory: PathBuf,
    /// Size of a store, in MiB
    #[arg(long, default_value_t = 4_096, value_name = "MIB",
          value_parser = clap::value_parser!(u32).range(16..=1 << 24))]
    store_mib: u32,
    /// Segments in a batch
    #[arg(long, default_value_t = 10, value_name = "N",
          value_parser = clap::value_parser!(u8).range(1..=16))]
    batch: u8,
    /// Segments in an object
    #[arg(long, default_value_t = 1_000, value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    object_chunks: u64,
    /// Size of a Data packet in bytes [default: such that its content has 8192]
    #[arg(long, value_name = "BYTES",
          value_parser = clap::value_parser!(u16).range(256..=8_800))]
    packet_bytes: Option<u16>,
    /// Prints one line of JSON
    #[arg(long)]
    json: bool,
}

/// Bytes of content unless something else is asked for.
const CONTENT_BYTES: usize = 8_192;

impl StoreArgs {
    const fn bytes(&self) -> u64 {
        (self.store_mib as u64) << 20
    }

    const fn batch_len(&self) -> usize {
        self.batch as usize
    }

    fn packets(&self) -> Packets {
        match self.packet_bytes {
            Some(bytes) => Packets::of_size(bytes.into()),
            None => Packets::with_content(CONTENT_BYTES),
        }
    }

    /// Chunks that fill most of a store, and of which none has to make room for another.
    fn n_chunks(&self) -> u64 {
        self.n_chunks_of(&self.packets())
    }

    /// The same of other packets.
    fn n_chunks_of(&self, packets: &Packets) -> u64 {
        const STORED_PCT: u64 = 90;
        // A batch of one has its head alone.
        const HEAD_BYTES: u64 = 192;
        self.bytes() / (packets.data_bytes() as u64 + HEAD_BYTES) * STORED_PCT / 100
    }

    /// Entries of an index for them.
    fn max_batches(&self, batch_len: usize) -> usize {
        self.max_batches_of(&self.packets(), batch_len)
    }

    /// The same of other packets.
    fn max_batches_of(&self, packets: &Packets, batch_len: usize) -> usize {
        let n_batches = self.n_chunks_of(packets) as usize / batch_len;
        n_batches + n_batches / 4 + 4_096
    }
}

/// Runs the command.
///
/// # Errors
/// If the disk has not enough room, or does not do what it is asked for.
pub fn run(args: &SsdArgs) -> anyhow::Result<()> {
    match &args.command {
        SsdCommand::Serve(args) => serve::run(args),
        SsdCommand::HitPath(args) => hit_path::run(args),
        SsdCommand::Recovery(args) => recovery::run(args),
        SsdCommand::Latency(args) => latency::run(args),
        SsdCommand::Amplification(args) => amplification::run(args),
        SsdCommand::Index(args) => index::run(args),
        SsdCommand::Foyer(args) => foyer::run(args),
    }
}
