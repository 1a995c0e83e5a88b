//! Who decides where names are at home, for all receivers.
//!
//! One thread asks it every millisecond or so to look at samples and queues. It moves names
//! off overloaded workers, and publishes what changed.

use tachonym_dispatch::{Homes, Laps, Publisher};

use crate::dispatcher::FORWARDING;
use crate::receiver::ReceiverView;

/// Most samples that are looked at in one go: what came in a millisecond, and some.
const MAX_SAMPLES_AT_ONCE: usize = 8_192;

/// See the module.
#[derive(Debug)]
pub struct Scheduler {
    laps: Laps,
    publisher: Publisher,
    receivers: Vec<ReceiverView>,
    /// By worker: how many packets are under way to it.
    queue_lens: Vec<u32>,
}

impl Scheduler {
    /// Schedules for `n_workers` by what `receivers` tell; `publisher` is whom their
    /// dispatchers read from.
    #[must_use]
    pub fn new(
        laps: Laps,
        n_workers: usize,
        publisher: Publisher,
        receivers: Vec<ReceiverView>,
    ) -> Self {
        Self {
            laps,
            publisher,
            receivers,
            queue_lens: vec![0; n_workers],
        }
    }

    /// Looks at what has come since, and how long queues are; how many names move for it.
    pub fn tick(&mut self) -> usize {
        for receiver in &mut self.receivers {
            for _ in 0..MAX_SAMPLES_AT_ONCE {
                let Some(key) = receiver.next_sample() else {
                    break;
                };
                self.laps.handle_sample(FORWARDING, key);
            }
        }
        let in_effect = self.receivers.iter().map(ReceiverView::in_effect).min();
        if let Some(in_effect) = in_effect {
            self.laps.handle_in_effect(in_effect);
        }
        self.queue_lens.fill(0);
        for receiver in &self.receivers {
            receiver.add_queue_lens(&mut self.queue_lens);
        }
        let n_moved = self.laps.handle_queue_lengths(&self.queue_lens);
        self.publisher.publish(self.laps.homes());
        n_moved
    }

    /// Packets under way to each worker, by number, when it was last looked.
    #[must_use]
    pub fn queue_lens(&self) -> &[u32] {
        &self.queue_lens
    }

    /// What decides.
    #[must_use]
    pub const fn laps(&self) -> &Laps {
        &self.laps
    }

    /// What decides, to be told by an operator; known to receivers after the next
    /// [`tick`](Self::tick).
    pub const fn laps_mut(&mut self) -> &mut Laps {
        &mut self.laps
    }

    /// Where names are at home.
    #[must_use]
    pub const fn homes(&self) -> &Homes {
        self.laps.homes()
    }
}
