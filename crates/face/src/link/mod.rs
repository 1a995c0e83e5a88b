//! The link service of one face: what NDNLPv2 adds to packets.
//!
//! Owns fragmentation, reassembly, retransmission, congestion marks and the
//! rule of local fields. Takes frames from a transport and adds packets to a
//! batch; takes packets and adds frames to the face's queue. Knows no socket
//! and reads no clock. Next: `receive` and `send` for the two directions, the
//! other modules for one feature each.

pub(crate) mod budget;
pub(crate) mod congestion;
pub(crate) mod encode;
mod partial;
pub(crate) mod reassembly;
mod receive;
pub(crate) mod reliability;
mod rtt;
mod send;

pub(crate) use receive::RxContext;
pub(crate) use send::{BareOutcome, Congested, MAX_DUE_BYTES, TxContext};

use tachonym_packet::MonoNs;

use crate::counters::{DropReason, FaceCounters};
use crate::options::LinkOptions;
use crate::source::SourceIdx;
use budget::ReassemblyBudget;
use congestion::Congestion;
use reassembly::Reassembler;
use reliability::Reliability;

/// See the module documentation.
pub(crate) struct Link {
    options: LinkOptions,
    /// Largest frame; `None`: any.
    mtu_bytes: Option<usize>,
    next_sequence: u64,
    out_congestion: Congestion,
    /// Made with the first fragment: most faces never see one.
    reassembler: Option<Box<Reassembler>>,
    reliability: Option<Box<Reliability>>,
    /// To whose share incomplete packets count.
    source: SourceIdx,
    last_exchange_at: MonoNs,
}

impl Link {
    /// A link whose sequences begin at `first_sequence`, which should not
    /// repeat what an earlier life of this router used.
    pub(crate) fn new(options: LinkOptions, mtu_bytes: Option<usize>, first_sequence: u64) -> Self {
        let mut link = Self {
            options,
            mtu_bytes,
            next_sequence: first_sequence,
            out_congestion: Congestion::default(),
            reassembler: None,
            reliability: None,
            source: SourceIdx::default(),
            last_exchange_at: MonoNs::ZERO,
        };
        link.set_options(options);
        link
    }

    pub(crate) fn options(&self) -> &LinkOptions {
        &self.options
    }

    /// When a Data was last sent, or received for an Interest that was sent; ZERO: never.
    #[inline]
    pub(crate) fn last_exchange_at(&self) -> MonoNs {
        self.last_exchange_at
    }

    pub(crate) fn source(&self) -> SourceIdx {
        self.source
    }

    /// Sets the source of a new link.
    pub(crate) fn set_source(&mut self, source: SourceIdx) {
        self.source = source;
    }

    /// Changes the source, and moves what incomplete packets hold.
    pub(crate) fn change_source(&mut self, source: SourceIdx, budget: &mut ReassemblyBudget) {
        if let Some(reassembler) = &mut self.reassembler {
            reassembler.change_source(self.source, source, budget);
        }
        self.source = source;
    }

    pub(crate) fn mtu_bytes(&self) -> Option<usize> {
        self.mtu_bytes
    }

    /// Changes the options. Switching reliability off forgets what is
    /// unacknowledged.
    pub(crate) fn set_options(&mut self, options: LinkOptions) {
        self.options = options;
        if !options.reliability {
            self.reliability = None;
        } else if self.reliability.is_none() {
            self.reliability = Some(Box::new(Reliability::new(self.next_sequence)));
        }
    }

    /// Changes the MTU of a link that has one.
    pub(crate) fn set_mtu_bytes(&mut self, mtu_bytes: usize) {
        if self.mtu_bytes.is_some() {
            self.mtu_bytes = Some(mtu_bytes);
        }
    }

    /// Drops incomplete packets that have waited for too long. Whether
    /// [`Link::write_due`] has something to write now.
    pub(crate) fn handle_timeout(
        &mut self,
        now: MonoNs,
        counters: &mut FaceCounters,
        budget: &mut ReassemblyBudget,
    ) -> bool {
        if let Some(reassembler) = &mut self.reassembler {
            let n_expired = reassembler.handle_timeout(now, self.source, budget);
            counters.drops.add(DropReason::ReassemblyTimeout, n_expired);
        }
        self.is_due(now)
    }

    /// When [`Link::handle_timeout`] next has packets to drop.
    pub(crate) fn reassembly_timeout(&self) -> Option<MonoNs> {
        self.reassembler.as_ref()?.poll_timeout()
    }

    /// Whether it may ever have timeouts.
    #[inline]
    pub(crate) fn has_timers(&self) -> bool {
        self.reassembler.is_some() || self.reliability.is_some()
    }

    /// Begins anew, with a new connection or none: what was under way on the
    /// old one is forgotten, and shared memory given back.
    pub(crate) fn reset(&mut self, budget: &mut ReassemblyBudget) {
        if let Some(reassembler) = &mut self.reassembler {
            reassembler.clear(self.source, budget);
        }
        self.reassembler = None;
        self.reliability = None;
        self.out_congestion = Congestion::default();
        self.set_options(self.options);
    }
}
