//! Making sure that what was offered survives.
//!
//! A flush ends when the batches that were closed for it are in the log, what was in the log
//! then has been written, and the devices say that it stays. Flushes that are asked for while
//! one is under way begin together when it ends. One during which a volume failed ends, too,
//! and is known to have failed, as are those that wait for it.

/// A flush: all with a lower number end before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// How far the flush in hand is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stage {
    #[default]
    Idle,
    /// So many batches are to be appended to the log.
    Appending { n_batches: usize },
    /// Writes below this number are to outlive a loss of power.
    Writing { before: u64 },
}

/// A sync of all volumes that is under way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Syncing {
    /// Writes below this number outlive a loss of power when all have answered.
    pub(crate) before: u64,
    /// Those that have not.
    pub(crate) n_volumes: usize,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Flush {
    asked: u64,
    /// What the one in hand ends.
    in_hand: u64,
    done: u64,
    /// The last that did not make everything last.
    failed: u64,
    pub(crate) stage: Stage,
}

impl Flush {
    /// Asks for one, while so many closed batches wait to be appended.
    pub(crate) fn begin(&mut self, n_closed: usize) -> Ticket {
        self.asked += 1;
        if let Stage::Idle | Stage::Appending { .. } = self.stage {
            self.in_hand = self.asked;
            self.stage = Stage::Appending {
                n_batches: n_closed,
            };
        }
        Ticket(self.asked)
    }

    /// Begins the flush that was asked for during the last one.
    pub(crate) fn go_on(&mut self, n_closed: usize) {
        self.in_hand = self.asked;
        self.stage = Stage::Appending {
            n_batches: n_closed,
        };
    }

    /// A batch has been appended, or will not be.
    pub(crate) fn note_appended(&mut self) {
        if let Stage::Appending { n_batches } = &mut self.stage {
            *n_batches = n_batches.saturating_sub(1);
        }
    }

    /// A volume has failed, and with it the flush that is under way, if there is one. So have
    /// those that wait for it: their Data may have been on the way to that volume.
    pub(crate) fn note_failed(&mut self) {
        if self.stage != Stage::Idle {
            self.failed = self.asked;
        }
    }

    pub(crate) const fn failed(&self) -> Ticket {
        Ticket(self.failed)
    }

    /// The flush in hand has ended; whether another one was asked for meanwhile.
    pub(crate) fn end(&mut self) -> bool {
        self.done = self.in_hand;
        self.stage = Stage::Idle;
        self.asked > self.done
    }

    pub(crate) const fn done(&self) -> Ticket {
        Ticket(self.done)
    }
}
