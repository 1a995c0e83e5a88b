//! What happens because time passes.
//!
//! Each face has at most one alarm, set to the earliest time at which it may
//! need attention. When that comes the face is asked again: idle times move on
//! with every packet without the alarm hearing of it.

use std::io;

use tachonym_packet::MonoNs;

use super::FaceSystem;
use crate::error::CloseReason;
use crate::face::FaceState;
use crate::transport::Transport;
use crate::transport::stream::StreamState;

impl FaceSystem {
    /// When [`FaceSystem::handle_timeout`] next has work;
    /// [`MonoNs::NEVER`]: not before something else happens.
    pub(super) fn next_timeout(&self) -> MonoNs {
        let timer = self.alarms.first().map_or(MonoNs::NEVER, |(at, _)| *at);
        timer.min(self.resume_listeners_at)
    }

    /// Does what is due now: closes idle and stalled faces, gives up connections
    /// and incomplete packets, dials again, prepares retransmissions, which the
    /// next flush sends.
    pub(super) fn handle_timeout(&mut self) {
        let now = self.now;
        if self.resume_listeners_at <= now {
            self.resume_listeners();
        }
        while let Some(&(at, id)) = self.alarms.first()
            && at <= now
        {
            self.alarms.pop_first();
            let Some(slot) = self.faces.slot_of(id) else {
                continue;
            };
            self.faces[slot].armed_at = MonoNs::NEVER;
            self.handle_face_timeout(slot, now);
        }
    }

    fn handle_face_timeout(&mut self, slot: usize, now: MonoNs) {
        let face = &mut self.faces[slot];
        if matches!(face.state, FaceState::Closing(_)) {
            return;
        }
        if face.is_idle(now) {
            self.close(slot, CloseReason::Idle);
            return;
        }
        if face.is_silent(now) {
            self.counters.n_silent += 1;
            self.close(slot, CloseReason::Silent);
            return;
        }
        if face.is_stalled(now) {
            self.counters.n_stalled += 1;
            self.close(slot, CloseReason::Stalled);
            return;
        }
        if face.check_deadline().is_some_and(|at| at <= now) && !self.check_peer(slot) {
            return;
        }
        let face = &mut self.faces[slot];
        let is_due = face
            .link
            .handle_timeout(now, &mut face.counters, &mut self.reassembly);
        if is_due {
            self.mark_dirty(slot);
        }
        let face = &self.faces[slot];
        if face.transport_deadline().is_some_and(|at| at <= now) {
            let is_waiting = match &face.transport {
                Transport::Stream(stream) => matches!(stream.state, StreamState::Waiting(_)),
                Transport::WebSocket(socket) => socket.is_waiting(),
                Transport::Udp(_) | Transport::Multicast(_) => false,
            };
            if is_waiting {
                self.redial(slot);
            } else {
                let reason = CloseReason::ConnectFailed(io::ErrorKind::TimedOut);
                self.close(slot, reason);
            }
            return;
        }
        if !is_due || face.is_held {
            // What is due is written by the next flush, which arms again, unless
            // the kernel has to take something first.
            self.arm(slot);
        }
    }

    /// Looks whether the peer of a WebSocket is still there. False if it is not.
    fn check_peer(&mut self, slot: usize) -> bool {
        let interval = self.options.websocket_ping_interval;
        let Transport::WebSocket(socket) = &mut self.faces[slot].transport else {
            return true;
        };
        let outcome = socket.check_peer(self.now, interval);
        let (_, n_writes) = socket.take_syscalls();
        self.counters.n_tx_syscalls += n_writes;
        self.count_unsent(slot);
        match outcome {
            Ok(true) => return true,
            Ok(false) => {
                self.counters.n_unanswered_pings += 1;
                self.close(slot, CloseReason::NoPong);
            }
            Err(error) => self.close(slot, CloseReason::Failed(error.kind())),
        }
        false
    }

    /// Makes sure that a face is looked at when it next needs to be.
    pub(super) fn arm(&mut self, slot: usize) {
        let face = &mut self.faces[slot];
        if matches!(face.state, FaceState::Closing(_)) {
            return;
        }
        let deadline = face.deadline();
        if deadline < face.armed_at {
            if face.armed_at != MonoNs::NEVER {
                self.alarms.remove(&(face.armed_at, face.id));
            }
            face.armed_at = deadline;
            self.alarms.insert((deadline, face.id));
        }
    }
}
