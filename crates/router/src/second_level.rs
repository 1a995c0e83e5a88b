//! The second level of the content store: what it lies on, and how requests get there.
//!
//! Each worker has a store of its own, a part of every volume; no two share anything but the
//! directory. A store belongs to the engine, which makes no input or output; here is its
//! device, and what takes requests from the one to the other and completions back, once in
//! every round of the thread.

mod belonging;
mod stats;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::event::{PollFd, PollFlags, poll};
use sha2::{Digest, Sha256};
use tachonym_face::monotonic_now;
use tachonym_forward::{Engine, Output};
use tachonym_packet::{MonoNs, Name};
use tachonym_store::device::{
    BlockDevice, Completion, Device, DirectoryLock, Opened, Volume, VolumeError, open,
};
use tachonym_store::layout::{MAGIC, SUPERBLOCK_BYTES, Superblock, SuperblockError};
use tachonym_store::{Beginning, Event, Geometry, SecondLevel};
use tracing::{error, info, warn};

use belonging::{Belonging, Fault, anew_in_directory, anew_on_device};
pub(crate) use stats::{stats, sum};

use crate::config::{Config, Dispatch};

/// How files in a directory end that are the stores of workers.
const FILE_SUFFIX: &str = ".store";

/// How long the end of the router waits for what is to be written.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(20);

/// How often the difference between the clocks is looked at, in milliseconds.
const CLOCK_INTERVAL_MS: u64 = 60_000;

/// Completions that an engine is given in a round of its thread.
const MAX_COMPLETIONS: usize = 8;

/// How long a round takes at most while nothing holds the thread up, in milliseconds.
const MAX_ROUND_MS: u64 = 50;

/// Prefixes kept that are to be erased from a store that is not in use; beyond, all goes.
const MAX_TO_ERASE: usize = 1_000;

/// What the stores of all workers are made of.
pub(crate) struct Stores {
    places: Vec<Place>,
    n_workers: usize,
    context: u64,
}

enum Place {
    Directory(DirectoryLock),
    Device(BlockDevice),
}

/// The device of a worker's store, and what the store is made with.
pub(crate) struct Ssd {
    worker: usize,
    device: Box<dyn Device>,
    config: tachonym_store::Config,
    superblocks: Vec<Superblock>,
    paths: Vec<String>,
    completions: Vec<Completion>,
    /// Requests of a store that is no more are under way: nothing may be asked for until they
    /// have ended.
    draining: Option<Draining>,
    clock_set_at: MonoNs,
    /// When completions were last given to the engine.
    taken_at: MonoNs,
    /// What is to be erased from the store when it is next in use.
    to_erase: Vec<Name>,
    /// That is everything, for it was too much to keep.
    has_merged: bool,
}

/// A store is to come when all has ended that another one has asked for.
#[derive(Clone, Copy, Debug)]
struct Draining {
    since: MonoNs,
    /// The warning about a long wait was logged.
    is_logged: bool,
}

impl Stores {
    /// Takes every place for this process. `None` if there is to be no second level.
    ///
    /// # Errors
    /// If a place cannot be had, for a person to read.
    pub(crate) fn take(config: &Config) -> anyhow::Result<Option<Self>> {
        let level = &config.second_level;
        if !level.is_on() {
            return Ok(None);
        }
        let mut places = Vec::new();
        for (i, volume) in level.volume.iter().enumerate() {
            let is_device = fs::metadata(&volume.path).is_ok_and(|it| is_block_device(&it));
            let place = match is_device {
                true => BlockDevice::open(&volume.path).map(Place::Device),
                false => DirectoryLock::acquire(&volume.path).map(Place::Directory),
            };
            places.push(place.map_err(|error| refused(config, i, &error))?);
        }
        let n_workers = config.workers.most();
        // Before anything is written to the part of any worker.
        for (i, place) in places.iter().enumerate() {
            if let Place::Device(device) = place {
                check_device(config, i, device, n_workers)?;
            }
        }
        tell_parted_batches(config);
        Ok(Some(Self {
            places,
            n_workers,
            context: context(config),
        }))
    }

    /// Opens the store of a worker, or makes it.
    ///
    /// # Errors
    /// If it cannot be had, for a person to read.
    pub(crate) fn open(
        &self,
        config: &Config,
        worker: usize,
    ) -> anyhow::Result<(Ssd, SecondLevel)> {
        let level = &config.second_level;
        let parts = level.part_bytes(self.n_workers);
        let mut volumes = Vec::new();
        for (i, (place, &bytes)) in self.places.iter().zip(&parts).enumerate() {
            let opened = match place {
                Place::Directory(lock) => {
                    let file = file_name(worker, self.n_workers);
                    self.check_size(config, i, &lock.dir().join(&file), bytes)?;
                    Volume::in_directory(lock, &file, bytes, &MAGIC)
                }
                Place::Device(device) => {
                    let start = worker as u64 * bytes;
                    Volume::on_block_device(device, start..start + bytes, &MAGIC)
                }
            };
            let volume = opened.map_err(|error| refused(config, i, &error))?;
            if !volume.is_direct() {
                let path = volume.path().display();
                warn!(
                    "{path}: the file system has no direct I/O (O_DIRECT), so reads and writes go \
                     through the page cache and are slower; use ext4 or XFS"
                );
            }
            volumes.push(volume);
        }
        let (superblocks, beginning) = self.superblocks(config, worker, &volumes)?;
        let seed = getrandom::u64()?;
        let store_config = level.store_config(self.n_workers, config.memory.pages.into(), seed);
        let buffers = SecondLevel::buffers(&store_config, &superblocks[0])?;
        let n_requests = 2 * (store_config.max_reads + store_config.n_write_buffers) as u32;
        let paths = volumes
            .iter()
            .map(|it| it.path().display().to_string())
            .collect();
        let (device, opened) =
            open(volumes, &buffers, n_requests, level.io.into()).map_err(|error| {
                config.failure(
                    "second_level.io",
                    format!("cannot set up I/O on the disks: {error}"),
                    "use \"auto\" or \"threads\", or allow io_uring to this process \
                     (sysctl kernel.io_uring_disabled=0)",
                )
            })?;
        tell(worker, &opened, beginning);
        let mut store =
            SecondLevel::with_buffers(store_config.clone(), &superblocks, beginning, buffers)?;
        let mut ssd = Ssd {
            worker,
            device,
            config: store_config,
            superblocks,
            paths,
            completions: Vec::new(),
            draining: None,
            clock_set_at: MonoNs::ZERO,
            taken_at: MonoNs::ZERO,
            to_erase: Vec::new(),
            has_merged: false,
        };
        ssd.set_clock(monotonic_now(), &mut store);
        Ok((ssd, store))
    }

    /// Whether a file that is there already has the size that it is to have: a store cannot be
    /// made larger or smaller.
    fn check_size(
        &self,
        config: &Config,
        volume: usize,
        path: &Path,
        bytes: u64,
    ) -> anyhow::Result<()> {
        let has_bytes = fs::metadata(path).map_or(0, |it| if it.is_file() { it.len() } else { 0 });
        if has_bytes == 0 || has_bytes == bytes {
            return Ok(());
        }
        let has_magic = fs::File::open(path).is_ok_and(|mut file| {
            let mut magic = [0; MAGIC.len()];
            io::Read::read_exact(&mut file, &mut magic).is_ok() && magic == MAGIC
        });
        if !has_magic {
            // Opening it fails with the reason.
            return Ok(());
        }
        let message = format!(
            "{} has {has_bytes} bytes, but the configuration asks for {bytes}; a store cannot \
             change its size",
            path.display()
        );
        let remedy = format!(
            "set bytes = {}, or start with an empty store: {}",
            has_bytes * self.n_workers as u64,
            self.anew(config)
        );
        let key = format!("second_level.volume[{volume}].bytes");
        Err(config.failure(key, message, remedy).into())
    }

    /// A secret that stays the same while the first store does, so that names are at home at
    /// the same workers after a restart.
    pub(crate) fn secret(ssd: &Ssd) -> [u8; 32] {
        let mut digest = Sha256::new();
        digest.update(b"tachonym dispatch");
        digest.update(ssd.superblocks[0].key);
        digest.finalize().into()
    }

    /// What the volumes of a worker are, and writes it where there is nothing yet.
    fn superblocks(
        &self,
        config: &Config,
        worker: usize,
        volumes: &[Volume],
    ) -> anyhow::Result<(Vec<Superblock>, Beginning)> {
        let (mut found, mut is_half_made) = (Vec::new(), false);
        for (i, volume) in volumes.iter().enumerate() {
            let key = path_key(i);
            let path = volume.path().display();
            let head = volume.read_head().map_err(|error| {
                config.failure(
                    &key,
                    format!("cannot read {path}: {error}"),
                    "see dmesg for the cause",
                )
            })?;
            let decoded = Superblock::decode(&head.as_slice()[..2 * SUPERBLOCK_BYTES]);
            found.push(decoded.map_err(|error| {
                let back = match error {
                    SuperblockError::Version { .. } => "run the program that wrote it, or ",
                    _ => "",
                };
                let remedy = format!("{back}start with an empty store: {}", self.anew(config));
                config.failure(&key, format!("{path} {error}"), remedy)
            })?);
            is_half_made |= i == 0 && is_half_made_on(head.as_slice());
        }
        let bytes: Vec<u64> = volumes.iter().map(Volume::bytes).collect();
        let geometry = Geometry::new(&bytes, config.second_level.batch)?;
        if found.iter().all(Option::is_none) || is_half_made {
            let made = self.make(config, worker, volumes, &geometry)?;
            return Ok((made, Beginning::New));
        }
        let paths: Vec<PathBuf> = volumes.iter().map(|it| it.path().to_path_buf()).collect();
        let belonging = Belonging {
            level: &config.second_level,
            n_workers: self.n_workers,
            worker,
            geometry: &geometry,
            paths: &paths,
            anew: &self.anew(config),
        };
        if let Some(fault) = belonging.fault(&found) {
            let Fault {
                key,
                message,
                remedy,
            } = fault;
            return Err(config.failure(key, message, remedy).into());
        }
        let found: Vec<Superblock> = found.into_iter().flatten().collect();
        if found.iter().any(|it| it.context != self.context) {
            warn!(
                "SSD level of worker {worker}: [[verification]] has changed since its Data were \
                 stored, so it starts empty"
            );
            let made = self.make(config, worker, volumes, &geometry)?;
            return Ok((made, Beginning::New));
        }
        Ok((found, Beginning::Existing))
    }

    /// How to give up what is on all volumes, of all workers: commands.
    fn anew(&self, config: &Config) -> String {
        let parts = config.second_level.part_bytes(self.n_workers);
        let commands = self
            .places
            .iter()
            .zip(parts)
            .map(|(place, bytes)| match place {
                Place::Directory(lock) => anew_in_directory(lock.dir(), self.n_workers),
                Place::Device(device) => anew_on_device(device.path(), self.n_workers, bytes),
            });
        commands.collect::<Vec<_>>().join("; ")
    }

    /// Makes a store of volumes, whatever is on them. The second copies come when all volumes
    /// have the first, so that one that was half made is known by those of its first volume.
    fn make(
        &self,
        config: &Config,
        worker: usize,
        volumes: &[Volume],
        geometry: &Geometry,
    ) -> anyhow::Result<Vec<Superblock>> {
        let mut key = [0; 16];
        getrandom::fill(&mut key)?;
        let mut superblocks = Vec::new();
        for i in 0..volumes.len() {
            let superblock = Superblock {
                key,
                worker: worker as u16,
                volume: i as u8,
                n_volumes: volumes.len() as u8,
                batch_len: config.second_level.batch as u8,
                region_bytes: geometry.region_bytes,
                n_regions: geometry.n_regions[i],
                // Later than any region that a former store has left there.
                first_seq: unix_ms(),
                context: self.context,
            };
            superblocks.push(superblock);
        }
        for at in [0, SUPERBLOCK_BYTES] {
            for (i, (volume, superblock)) in volumes.iter().zip(&superblocks).enumerate() {
                let written = volume.write_head(at, &superblock.encode());
                written.map_err(|error| {
                    let message = format!("cannot write {}: {error}", volume.path().display());
                    config.failure(path_key(i), message, "see dmesg for the cause")
                })?;
            }
        }
        Ok(superblocks)
    }

    /// Warns of files that no worker uses.
    pub(crate) fn tell_leftovers(&self) {
        let own: Vec<String> = (0..self.n_workers)
            .map(|worker| file_name(worker, self.n_workers))
            .collect();
        for place in &self.places {
            let Place::Directory(lock) = place else {
                continue;
            };
            for path in stores_in(lock.dir()).unwrap_or_default() {
                let name = path.file_name().and_then(|name| name.to_str());
                if !name.is_some_and(|name| own.iter().any(|own| own == name)) {
                    warn!(
                        "{} is not used, because it was written with another number of workers: \
                         remove it, or set workers.max_threads as before",
                        path.display()
                    );
                }
            }
        }
    }
}

/// Warns if the segments of a batch have different home workers: each would write and read
/// its part.
fn tell_parted_batches(config: &Config) {
    let (workers, batch) = (&config.workers, config.second_level.batch);
    let is_parted = match workers.dispatch {
        _ if workers.most() == 1 => false,
        Dispatch::Prefix => false,
        Dispatch::Name => true,
        Dispatch::Batch => !(workers.batch_segments as usize).is_multiple_of(batch),
    };
    if is_parted {
        warn!(
            "SSD level: the segments of one batch have different home workers, and each of them \
             writes and reads its part, which is slower; set workers.dispatch = \"prefix\", or \
             \"batch\" with batch_segments a multiple of second_level.batch ({batch})"
        );
    }
}

/// Whether a block device has room for the parts of all workers.
fn check_device(
    config: &Config,
    volume: usize,
    device: &BlockDevice,
    n_workers: usize,
) -> anyhow::Result<()> {
    let level = &config.second_level;
    let part_bytes = level.part_bytes(n_workers)[volume];
    if part_bytes.saturating_mul(n_workers as u64) <= device.bytes() {
        return Ok(());
    }
    let (has_bytes, wants_bytes) = (device.bytes(), level.volume[volume].bytes);
    let message = format!(
        "{} has {has_bytes} bytes, but bytes = {wants_bytes} is configured for all workers \
         together",
        device.path().display()
    );
    let remedy = format!("set bytes = {has_bytes} or less, or name a larger device");
    let key = format!("second_level.volume[{volume}].bytes");
    Err(config.failure(key, message, remedy).into())
}

fn path_key(volume: usize) -> String {
    format!("second_level.volume[{volume}].path")
}

fn is_block_device(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    metadata.file_type().is_block_device()
}

fn file_name(worker: usize, n_workers: usize) -> String {
    format!("worker-{worker}-of-{n_workers}{FILE_SUFFIX}")
}

fn stores_in(dir: &Path) -> io::Result<Vec<std::path::PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path
            .to_str()
            .is_some_and(|path| path.ends_with(FILE_SUFFIX))
        {
            found.push(path);
        }
    }
    Ok(found)
}

fn refused(config: &Config, volume: usize, error: &VolumeError) -> anyhow::Error {
    let key = path_key(volume);
    let message = error.to_string();
    // Each message ends with its remedy.
    let (message, remedy) = match message.rsplit_once(": ") {
        Some((message, remedy)) => (message.to_owned(), remedy.to_owned()),
        None => (message, "use another path".to_owned()),
    };
    config.failure(key, message, &remedy).into()
}

fn tell(worker: usize, opened: &Opened, beginning: Beginning) {
    let state = match beginning {
        Beginning::New => "a new, empty store",
        Beginning::Existing => "a store of an earlier run, whose Data are being recovered",
    };
    info!("SSD level of worker {worker}: {state}; I/O by {opened}");
}

/// Whether a store was not made to its end: the first volume's copies are of two stores.
fn is_half_made_on(head: &[u8]) -> bool {
    let mut copies = head.chunks_exact(SUPERBLOCK_BYTES).map(Superblock::decode);
    match (copies.next(), copies.next()) {
        (Some(Ok(Some(first))), Some(Ok(second))) => {
            second.is_none_or(|second| second.key != first.key)
        }
        _ => false,
    }
}

/// What Data are verified by, contents of certificates included: those that were taken under
/// other rules are not to be used.
fn context(config: &Config) -> u64 {
    let rules = serde_json::to_string(&config.verification).unwrap_or_default();
    let mut digest = Sha256::new_with_prefix(rules);
    for path in config
        .verification
        .iter()
        .flat_map(|it| it.anchors.iter().chain(&it.certificates))
    {
        // What cannot be read is refused where it is used.
        digest.update(Sha256::digest(fs::read(path).unwrap_or_default()));
    }
    let digest = digest.finalize();
    u64::from_le_bytes(digest[..8].try_into().expect("a digest has as many"))
}

fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

impl Ssd {
    /// Readable when the device has completions.
    pub(crate) fn wake_fd(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        self.device.wake_fd()
    }

    fn set_clock(&mut self, now: MonoNs, store: &mut SecondLevel) {
        store.set_wall_clock(now, unix_ms());
        self.clock_set_at = now;
    }

    /// An engine replaces another one: it gets a store once the requests of the former one
    /// have ended.
    pub(crate) const fn begin_anew(&mut self, now: MonoNs) {
        self.draining = Some(Draining {
            since: now,
            is_logged: false,
        });
    }

    /// When [`Ssd::take_completions`] has something to do at the latest, completions apart.
    pub(crate) fn poll_timeout(&self) -> Option<MonoNs> {
        let draining = self.draining?;
        match self.device.n_in_flight() {
            0 => Some(MonoNs::ZERO),
            _ if draining.is_logged => None,
            _ => Some(draining.since.plus_ms(self.config.stall_ms)),
        }
    }

    /// Warns once if the worker waits long for its store.
    fn tell_draining(&mut self, now: MonoNs) {
        let stall_ms = self.config.stall_ms;
        let Some(draining) = self.draining.as_mut().filter(|it| !it.is_logged) else {
            return;
        };
        if now < draining.since.plus_ms(stall_ms) {
            return;
        }
        draining.is_logged = true;
        warn!(
            "worker {} has no SSD level: {} requests of the failed worker before it have been \
             pending for {stall_ms} ms on {}. The SSD level returns when they end; see dmesg, \
             repair the disk, and restart the router",
            self.worker,
            self.device.n_in_flight(),
            self.paths.join(", ")
        );
    }

    /// Whether there are completions that the engine has not been given yet.
    pub(crate) const fn has_completions(&self) -> bool {
        !self.completions.is_empty()
    }

    /// Gives the engine what has become of requests; of many a part, and the rest in the next
    /// rounds, so that consumers ask for more, and the device gets it, while there still is
    /// something to give them.
    pub(crate) fn take_completions(
        &mut self,
        now: MonoNs,
        engine: &mut Engine,
        out: &mut impl Output,
    ) {
        // Also if no request seems to be in flight: the kernel may report completions late.
        self.device.poll(now, &mut self.completions);
        if let Some(draining) = self.draining {
            self.completions.clear();
            if self.device.n_in_flight() > 0 {
                return self.tell_draining(now);
            }
            self.draining = None;
            self.give_store(now, engine);
            if draining.is_logged && engine.second_level().is_some() {
                info!("worker {} has its SSD level again", self.worker);
            }
        }
        // After a pause all, before they are called late.
        let is_late = self.taken_at.plus_ms(MAX_ROUND_MS) < now;
        self.taken_at = now;
        let n = match is_late {
            true => self.completions.len(),
            false => self.completions.len().min(MAX_COMPLETIONS),
        };
        for completion in self.completions.drain(..n) {
            engine.handle_completion(now, completion, out);
        }
    }

    /// Drops the completions of an engine that is gone.
    pub(crate) fn forget_completions(&mut self, now: MonoNs) {
        self.device.poll(now, &mut self.completions);
        self.completions.clear();
    }

    /// Submits the requests of the engine to the device.
    pub(crate) fn give_requests(&mut self, now: MonoNs, engine: &mut Engine) {
        let is_draining = self.draining.is_some();
        let Some(store) = engine.cs_mut().second_level().filter(|_| !is_draining) else {
            return;
        };
        let mut has_new = false;
        while let Some(request) = store.poll_request() {
            if let Err(request) = self.device.submit(request) {
                store.give_back(request);
                break;
            }
            has_new = true;
        }
        if has_new {
            self.device.start();
        }
        while let Some(event) = store.poll_event() {
            self.tell(event);
        }
        if self.clock_set_at.plus_ms(CLOCK_INTERVAL_MS) <= now {
            store.set_wall_clock(now, unix_ms());
            self.clock_set_at = now;
        }
    }

    /// All under `prefix` is to be erased when there is an engine again.
    pub(crate) fn erase_later(&mut self, prefix: Name) {
        if self.has_merged || self.to_erase.contains(&prefix) {
            return;
        }
        self.to_erase.push(prefix);
        if self.to_erase.len() > MAX_TO_ERASE {
            self.to_erase = vec![Name::new()];
            self.has_merged = true;
            self.tell_merging(MAX_TO_ERASE);
        }
    }

    fn tell_merging(&self, max_prefixes: usize) {
        warn!(
            "SSD level on {}: more than {max_prefixes} prefixes were erased, which is the most \
             that are remembered, so all Data written until now are erased; erase by shorter \
             prefixes",
            self.paths.join(", ")
        );
    }

    fn give_store(&mut self, now: MonoNs, engine: &mut Engine) {
        let config = self.config.clone();
        match SecondLevel::new(config, &self.superblocks, Beginning::Existing) {
            Ok(mut store) => {
                self.set_clock(now, &mut store);
                if std::mem::take(&mut self.has_merged) {
                    store.note_merged_by_owner();
                }
                engine.cs_mut().set_second_level(Some(store));
                for prefix in std::mem::take(&mut self.to_erase) {
                    engine.cs_mut().erase_second_level(now, prefix.view());
                }
            }
            Err(error) => error!(
                "cannot reopen the SSD level: {error}; it is off until the router is restarted"
            ),
        }
    }

    fn tell(&self, event: Event) {
        match event {
            Event::VolumeLost { volume, why } => {
                let path = self
                    .paths
                    .get(usize::from(volume))
                    .map_or("", String::as_str);
                error!(
                    "SSD level: {path} is out of service: {why}. The router runs without it; see \
                     dmesg, repair or replace the disk, and restart the router"
                );
            }
            Event::Recovered { n_batches } => {
                info!(
                    "SSD level on {}: {n_batches} batches recovered",
                    self.paths.join(", ")
                );
            }
            Event::IndexFull => warn!(
                "SSD level of worker {}: the index is full, so the oldest Data are evicted before \
                 the disk is full; raise second_level.index_bytes",
                self.worker
            ),
            Event::ErasuresMerged { max_prefixes } => self.tell_merging(max_prefixes),
            _ => {}
        }
    }

    /// Flushes Data that wait to be written, because the router stops.
    pub(crate) fn shut_down(&mut self, engine: &mut Engine, out: &mut impl Output) {
        let deadline = Instant::now() + FLUSH_TIMEOUT;
        let now = monotonic_now();
        let is_draining = self.draining.is_some();
        let Some(store) = engine.cs_mut().second_level().filter(|_| !is_draining) else {
            return;
        };
        let ticket = store.flush(now);
        loop {
            let now = monotonic_now();
            self.take_completions(now, engine, out);
            engine.handle_timeout(now, out);
            self.give_requests(now, engine);
            let done = engine
                .second_level()
                .is_none_or(|store| store.poll_flushed() >= ticket || !store.is_in_use());
            if done {
                let store = engine.second_level();
                if store.is_some_and(|store| store.poll_flush_failed() >= ticket) {
                    warn!(
                        "SSD flush at shutdown failed for a part of the Data, which are lost; see \
                         dmesg for errors of {}",
                        self.paths.join(", ")
                    );
                }
                return;
            }
            if Instant::now() > deadline {
                warn!(
                    "SSD flush at shutdown timed out after {} s; unwritten Data is lost",
                    FLUSH_TIMEOUT.as_secs()
                );
                return;
            }
            let timer = engine.second_level().and_then(SecondLevel::poll_timeout);
            let is_due = timer.is_some_and(|at| at <= now);
            if !self.has_completions()
                && !is_due
                && let Some(fd) = self.device.wake_fd()
            {
                let pause = Duration::from_millis(100).try_into().ok();
                let _ = poll(&mut [PollFd::new(&fd, PollFlags::IN)], pause.as_ref());
            }
        }
    }
}

#[cfg(test)]
mod tests;
