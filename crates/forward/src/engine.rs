//! The engine as its owner sees it: bursts and time in, packets out.

use tachonym_memory::MemoryError;
use tachonym_packet::{HashKey, HashSpan, MonoNs, NameHashes};
use tachonym_tables::FibReader;

use crate::block::Block;
use crate::burst::{Output, RxKind, RxPacket};
use crate::config::EngineConfig;
use crate::counters::{Counters, DropReason};
use crate::pipelines::{Arrival, Pipelines};
use crate::routes::Routes;

/// A forwarding engine with its tables.
///
/// It never reads a clock: `now` comes with every call that needs it and must
/// not go back.
#[derive(Debug)]
pub struct Engine {
    pub(crate) pipelines: Pipelines,
    pub(crate) routes: Routes,
    fib: FibReader,
    /// Prefix hashes of the names of one burst, and where each name's are.
    hashes: NameHashes,
    spans: Vec<HashSpan>,
}

/// How many entries the tables hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableSizes {
    /// Faces.
    pub n_faces: usize,
    /// Prefixes in the FIB.
    pub n_fib_entries: usize,
    /// Pending Interests.
    pub n_pit_entries: usize,
    /// Data in the content store.
    pub n_cs_entries: usize,
    /// Routes that strategies have measured.
    pub n_measurements: usize,
    /// Prefixes with a strategy of their own, the root included.
    pub n_strategy_choices: usize,
    /// Nonces in the dead nonce list.
    pub n_dead_nonces: usize,
}

impl Engine {
    /// An engine without faces, but the internal one (number 1), to which
    /// management routes its prefixes. `key` must be secret and random, lest
    /// peers choose names that collide; `seed` feeds nonces and random choices.
    ///
    /// # Errors
    /// If there is not as much memory as the tables need from the start.
    pub fn new(config: EngineConfig, key: HashKey, seed: u64) -> Result<Self, MemoryError> {
        let routes = Routes::new(config.fib, key)?;
        Ok(Self {
            fib: routes.reader(),
            routes,
            pipelines: Pipelines::new(config, key, seed),
            hashes: NameHashes::new(),
            spans: Vec::new(),
        })
    }

    /// Carries a burst of received packets through the tables, in order. The
    /// outcome is that of its packets one by one.
    pub fn handle_burst(&mut self, now: MonoNs, rx: &[RxPacket<'_>], out: &mut impl Output) {
        out.enter(Block::Timers);
        self.routes.go_on();
        let fib = self.fib.pin();
        self.pipelines.handle_timers(now, &fib, out);
        self.hashes.clear();
        self.spans.clear();
        for packet in rx {
            out.enter(packet.reception());
            let span = self.hashes.push_name(&self.pipelines.key, packet.name());
            self.spans.push(span);
        }
        for (packet, &span) in rx.iter().zip(&self.spans) {
            out.enter(Block::Checks);
            let pipelines = &mut self.pipelines;
            let Some(traits) = pipelines.faces.find(packet.face) else {
                pipelines.count_unknown_face(packet);
                continue;
            };
            let arrival = Arrival {
                face: packet.face,
                traits,
                headers: packet.headers,
                announcement: packet.prefix_announcement,
                hashes: self.hashes.slice(span),
                fib: &fib,
            };
            match &packet.packet {
                RxKind::Interest(interest) => pipelines.incoming_interest(&arrival, interest, out),
                RxKind::Data(data) => pipelines.incoming_data(&arrival, data, out),
                RxKind::Nack(reason, interest) => {
                    pipelines.incoming_nack(&arrival, *reason, interest, out);
                }
            }
        }
    }

    /// Does what has become due by `now`: expires pending Interests, forgets
    /// records of faces that have gone, offers pending Interests to new next
    /// hops.
    pub fn handle_timeout(&mut self, now: MonoNs, out: &mut impl Output) {
        self.routes.go_on();
        self.pipelines.handle_timers(now, &self.fib.pin(), out);
    }

    /// When [`Self::handle_timeout`] next has work; ask again after every
    /// `handle_*` and every change.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<MonoNs> {
        if self.routes.has_work() {
            return Some(self.pipelines.now);
        }
        self.pipelines.next_timer()
    }

    /// Events since the engine began.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.pipelines.counters
    }

    /// How full the tables are.
    #[must_use]
    pub fn sizes(&self) -> TableSizes {
        self.pipelines.sizes(self.routes.fib.len())
    }
}

impl Pipelines {
    fn count_unknown_face(&mut self, packet: &RxPacket<'_>) {
        match packet.packet {
            RxKind::Interest(_) => self.counters.n_in_interests += 1,
            RxKind::Data(_) => self.counters.n_in_data += 1,
            RxKind::Nack(..) => self.counters.n_in_nacks += 1,
        }
        self.counters.count_drop(DropReason::UnknownFace);
    }
}
