//! The manager's thread: takes management Interests off the worker's hands.

use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError};
use tachonym_client::wall_ms;
use tachonym_face::{CloseReason, FaceEvent, monotonic_now};
use tachonym_manage::{Brought, FaceReport, Manager};
use tachonym_packet::{FaceId, InterestView, MonoNs};
use tachonym_protocol::{FaceEventKind, FaceEventNotification};

use crate::control::RouterControl;
use crate::handle::Threads;
use crate::internal::ToManager;
use crate::plane::Plane;

/// Where names of management are at home.
const MANAGEMENT_THREAD: usize = 0;

/// Most commands that are carried out together.
const MAX_BURST: usize = 256;

/// Most replies in one job, so that packets never wait long.
const REPLIES_PER_JOB: usize = 64;

/// How long the worker drops the management Interests of a face with too many refused
/// commands. The count of refused commands falls meanwhile.
const MUTE_FOR: Duration = Duration::from_secs(1);

/// The manager and what it listens to.
pub(crate) struct ManagerThread {
    pub(crate) manager: Manager<RouterControl>,
    pub(crate) threads: Threads,
    pub(crate) inbox: Receiver<ToManager>,
}

impl ManagerThread {
    /// Serves until the router stops.
    pub(crate) fn run(mut self) {
        loop {
            let first = match self.next() {
                Ok(message) => Some(message),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            // In this order, so that what was signed after the start never seems older.
            let wall_ms = wall_ms();
            let now = monotonic_now();
            let mut replies = Vec::new();
            self.manager
                .handle_timeout(now, &mut |wire| replies.push(wire));
            let mut commands = Vec::new();
            let rest = self.inbox.try_iter().take(MAX_BURST);
            for message in first.into_iter().chain(rest.collect::<Vec<_>>()) {
                match message {
                    ToManager::Interest { incoming, wire, .. } => commands.push((incoming, wire)),
                    ToManager::Announcement {
                        face, name, wire, ..
                    } => {
                        let brought = Brought {
                            face,
                            name: name.view(),
                            wire: &wire,
                        };
                        let out = &mut |wire| replies.push(wire);
                        self.manager.handle_announcement(now, wall_ms, brought, out);
                    }
                    ToManager::Unreachable { face, name, .. } => {
                        let out = &mut |wire| replies.push(wire);
                        self.manager.handle_unreachable(face, name.view(), out);
                    }
                    ToManager::Face(event) => {
                        // What was asked before the event is answered before it.
                        let commands = std::mem::take(&mut commands);
                        self.carry_out((now, wall_ms), &commands, &mut replies);
                        if event.kind == FaceEventKind::Created
                            && let Some(source) = event.face.source
                        {
                            self.manager.note_source(event.face.id, source);
                        }
                        let out = &mut |wire| replies.push(wire);
                        let report = FaceReport {
                            event: notification_of(&event),
                            cause: event.reason.map(CloseReason::cause),
                        };
                        self.manager.handle_face_event(now, report, out);
                    }
                    ToManager::Retired(policy) => drop(policy),
                    ToManager::Stop => return,
                }
            }
            self.carry_out((now, wall_ms), &commands, &mut replies);
            self.send(&mut replies);
        }
    }

    fn carry_out(
        &mut self,
        (now, wall_ms): (MonoNs, u64),
        commands: &[(FaceId, Vec<u8>)],
        replies: &mut Vec<Vec<u8>>,
    ) {
        let views: Vec<_> = commands
            .iter()
            .filter_map(|(face, wire)| Some((*face, InterestView::parse(wire).ok()?)))
            .collect();
        let mut burst = views.iter().map(|(face, view)| (*face, view)).peekable();
        while burst.peek().is_some() {
            let out = &mut |wire| replies.push(wire);
            self.manager.handle_some(now, wall_ms, &mut burst, out);
            for face in self.manager.take_throttled() {
                let until = monotonic_now() + MUTE_FOR;
                // A worker that has ended receives no Interests either.
                let mute = move |plane: &mut Plane| plane.mute(face, until);
                let _ = self.threads.post(MANAGEMENT_THREAD, mute);
            }
            if burst.peek().is_some() {
                // Many changes were applied; their replies need not wait for the others.
                self.send(replies);
            }
        }
    }

    /// Hands the replies to the worker.
    fn send(&self, replies: &mut Vec<Vec<u8>>) {
        if replies.is_empty() {
            return;
        }
        let mut replies = std::mem::take(replies).into_iter();
        while replies.len() > 0 {
            let some: Vec<_> = replies.by_ref().take(REPLIES_PER_JOB).collect();
            // A worker that has gone needs no answers.
            let _ = self.threads.post(MANAGEMENT_THREAD, move |plane| {
                for wire in &some {
                    plane.inject_data(wire);
                }
            });
        }
    }

    fn next(&mut self) -> Result<ToManager, RecvTimeoutError> {
        let now = monotonic_now();
        match self.manager.poll_timeout() {
            Some(at) => {
                let wait = at.saturating_since(now).max(Duration::from_millis(1));
                self.inbox.recv_timeout(wait)
            }
            None => self
                .inbox
                .recv()
                .map_err(|_| RecvTimeoutError::Disconnected),
        }
    }
}

fn notification_of(event: &FaceEvent) -> FaceEventNotification {
    let info = &event.face;
    FaceEventNotification {
        kind: event.kind,
        face_id: info.id.0,
        uri: info.remote.to_string(),
        local_uri: info.local.to_string(),
        face_scope: info.scope,
        face_persistency: info.persistency,
        link_type: info.link_type,
        flags: info.flags(),
    }
}
