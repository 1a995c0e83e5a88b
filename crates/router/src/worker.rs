//! The worker: the one thread on which packets travel.
//!
//! It owns the faces and the engine. A round reads a burst, carries it through
//! the engine, sends what came of it, and then runs the jobs that other
//! threads have asked for. It blocks in `epoll_wait` alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossbeam_channel::Receiver;
use tachonym_face::{DropReason, FaceEvent, FaceInfo, FaceSystem, RxBatch, monotonic_now};
use tachonym_forward::{Engine, FaceTraits, LinkType, Output, RxKind, RxPacket, Scope};
use tachonym_packet::lp::Headers;
use tachonym_packet::{
    DataView, FaceId, InterestRewrite, InterestView, MonoNs, NackReason, NameView, PacketView,
};
use tachonym_protocol::{self as protocol, FaceEventKind, FacePersistency};
use tracing::{debug, info};

use crate::handle::Job;
use crate::internal::InternalFace;

/// Most jobs between two bursts, so that management never starves packets.
const MAX_JOBS_PER_ROUND: usize = 64;

/// No job begins after so many Data of the manager between two bursts: each
/// costs as much as a packet from outside.
const MAX_INJECTED_PER_ROUND: usize = 64;

/// What the worker owns and jobs may change.
pub(crate) struct Plane {
    pub(crate) engine: Engine,
    pub(crate) faces: FaceSystem,
    pub(crate) internal: InternalFace,
    /// Data of the manager since the last burst.
    n_injected: usize,
}

impl Plane {
    pub(crate) fn new(engine: Engine, faces: FaceSystem, internal: InternalFace) -> Self {
        Self {
            engine,
            faces,
            internal,
            n_injected: 0,
        }
    }

    /// Feeds a Data that the manager made into the engine.
    pub(crate) fn inject_data(&mut self, wire: &[u8]) {
        let Ok(data) = DataView::parse(wire) else {
            debug_assert!(false, "the manager encodes valid Data");
            return;
        };
        let rx = RxPacket {
            face: FaceId::INTERNAL,
            packet: RxKind::Data(data),
            // The next command makes it untrue.
            headers: &Headers {
                no_cache: true,
                ..Headers::default()
            },
            prefix_announcement: None,
        };
        self.n_injected += 1;
        let now = monotonic_now();
        let mut out = ToFaces {
            faces: &mut self.faces,
            internal: &mut self.internal,
        };
        self.engine.handle_burst(now, &[rx], &mut out);
    }

    /// Drops until then what a face has to say to management.
    pub(crate) fn mute(&mut self, face: FaceId, until: MonoNs) {
        // It may have gone meanwhile, and will not be heard of again.
        if self.faces.info(face).is_some() {
            self.internal.mute(face, until);
        }
    }

    /// Leaves to the manager what takes long to be freed.
    fn hand_over_retired(&mut self) {
        while let Some(policy) = self.engine.cs_mut().take_retired_policy() {
            self.internal.hand_over(policy);
        }
    }

    /// Tells the engine what a face has become by a command.
    pub(crate) fn renew_traits(&mut self, face: FaceId) {
        if let Some(info) = self.faces.info(face) {
            self.engine.add_face(face, traits_of(&info));
        }
    }

    /// Tells the engine and the manager which faces came and went.
    pub(crate) fn handle_face_events(&mut self) {
        while let Some(event) = self.faces.poll_event() {
            log(&event);
            match event.kind {
                FaceEventKind::Created => {
                    self.engine.add_face(event.face.id, traits_of(&event.face));
                }
                FaceEventKind::Destroyed => {
                    self.engine.remove_face(event.face.id);
                }
                FaceEventKind::Up | FaceEventKind::Down => {}
            }
            self.internal.deliver_event(event);
        }
    }
}

/// What happens to the faces of strangers is told to those who look for it, what
/// happens to others to everybody.
fn log(event: &FaceEvent) {
    let (kind, info) = (event.kind, &event.face);
    let reason = event.reason.map(|reason| format!(": {reason}"));
    let reason = reason.unwrap_or_default();
    if info.persistency == FacePersistency::OnDemand {
        debug!("face {} to {} is {kind}{reason}", info.id, info.remote);
    } else {
        info!("face {} to {} is {kind}{reason}", info.id, info.remote);
    }
}

/// Where the engine's packets go: to a face, or to the manager.
struct ToFaces<'a> {
    faces: &'a mut FaceSystem,
    internal: &'a mut InternalFace,
}

impl Output for ToFaces<'_> {
    fn send_interest(
        &mut self,
        face: FaceId,
        interest: &InterestView<'_>,
        rewrite: &InterestRewrite,
        headers: &Headers,
    ) {
        if face == FaceId::INTERNAL {
            let mut wire = Vec::with_capacity(interest.wire().len() + 8);
            rewrite.write_into(interest, &mut wire);
            let Some(incoming) = headers.incoming_face_id else {
                debug_assert!(false, "the engine tells where an Interest came from");
                return;
            };
            self.internal.deliver_interest(incoming, wire);
        } else {
            let hint_bytes = interest.wire().len();
            // What cannot be sent is counted on its face.
            let _ = self.faces.send_with(face, headers, hint_bytes, |out| {
                rewrite.write_into(interest, out);
            });
        }
    }

    fn send_data(&mut self, face: FaceId, data_wire: &[u8], headers: &Headers) {
        if face != FaceId::INTERNAL {
            let _ = self.faces.send(face, headers, data_wire);
        }
    }

    fn send_data_announcing(
        &mut self,
        face: FaceId,
        data_wire: &[u8],
        headers: &Headers,
        announcement: &[u8],
    ) {
        if face != FaceId::INTERNAL {
            let _ = self
                .faces
                .send_announcing(face, headers, Some(announcement), data_wire);
        }
    }

    fn learn_route(&mut self, face: FaceId, name: NameView<'_>, announcement: &[u8]) {
        self.internal.deliver_announcement(face, name, announcement);
    }

    fn forget_learnt_route(&mut self, face: FaceId, name: NameView<'_>) {
        self.internal.deliver_unreachable(face, name);
    }

    fn send_nack(
        &mut self,
        face: FaceId,
        reason: NackReason,
        interest_wire: &[u8],
        headers: &Headers,
    ) {
        if face != FaceId::INTERNAL {
            let headers = Headers {
                nack: Some(reason),
                ..*headers
            };
            let _ = self.faces.send(face, &headers, interest_wire);
        }
    }
}

/// The worker's thread.
pub(crate) struct Worker {
    plane: Plane,
    jobs: Receiver<Job>,
    stop: Arc<AtomicBool>,
}

impl Worker {
    pub(crate) fn new(plane: Plane, jobs: Receiver<Job>, stop: Arc<AtomicBool>) -> Self {
        Self { plane, jobs, stop }
    }

    /// Forwards until asked to stop.
    ///
    /// # Errors
    /// When the kernel refuses to wait for packets at all.
    pub(crate) fn run(mut self) -> std::io::Result<()> {
        let mut batch = RxBatch::new();
        let mut spare = Vec::new();
        while !self.stop.load(Ordering::Relaxed) {
            let timeout = self.timeout();
            self.plane.faces.poll(timeout, &mut batch)?;
            self.plane.handle_face_events();
            spare = self.forward(batch.received_at(), &batch, spare);
            self.run_jobs();
            self.plane.hand_over_retired();
            self.plane.handle_face_events();
            self.plane.faces.flush();
        }
        Ok(())
    }

    /// How long the worker may sleep.
    fn timeout(&mut self) -> Option<Duration> {
        if !self.jobs.is_empty() {
            return Some(Duration::ZERO);
        }
        let timer = self.plane.engine.poll_timeout()?;
        Some(timer.saturating_since(monotonic_now()))
    }

    /// Carries one burst through the engine. `spare` lends its memory.
    fn forward(
        &mut self,
        now: MonoNs,
        batch: &RxBatch,
        spare: Vec<RxPacket<'static>>,
    ) -> Vec<RxPacket<'static>> {
        let mut burst = relend(spare);
        let plane = &mut self.plane;
        for frame in batch.frames() {
            let packet = PacketView::parse(frame.l3).ok();
            let packet = packet.and_then(|p| RxPacket::new(frame.face, frame.headers, p));
            let refusal = match &packet {
                None => Some(DropReason::Malformed),
                Some(RxPacket {
                    packet: RxKind::Interest(interest),
                    ..
                }) => plane.internal.refusal(frame.face, interest.name(), now),
                Some(_) => None,
            };
            match (packet, refusal) {
                (Some(packet), None) => burst.push(RxPacket {
                    prefix_announcement: frame.prefix_announcement,
                    ..packet
                }),
                (_, reason) => {
                    let reason = reason.unwrap_or(DropReason::Malformed);
                    plane.faces.count_drop(frame.face, reason);
                }
            }
        }
        let mut out = ToFaces {
            faces: &mut plane.faces,
            internal: &mut plane.internal,
        };
        plane.engine.handle_burst(now, &burst, &mut out);
        plane.engine.handle_timeout(now, &mut out);
        burst.clear();
        relend(burst)
    }

    fn run_jobs(&mut self) {
        self.plane.n_injected = 0;
        for job in self.jobs.try_iter().take(MAX_JOBS_PER_ROUND) {
            job(&mut self.plane);
            if self.plane.n_injected >= MAX_INJECTED_PER_ROUND {
                break;
            }
        }
    }
}

/// Gives the memory of an empty vector to one whose elements live otherwise;
/// the collection happens in place, so nothing is allocated.
fn relend<'b>(mut empty: Vec<RxPacket<'_>>) -> Vec<RxPacket<'b>> {
    empty.clear();
    empty
        .into_iter()
        .map(|_| unreachable!("the vector was cleared"))
        .collect()
}

/// What the engine needs to know of a face.
fn traits_of(info: &FaceInfo) -> FaceTraits {
    FaceTraits {
        scope: match info.scope {
            protocol::FaceScope::Local => Scope::Local,
            protocol::FaceScope::NonLocal => Scope::NonLocal,
        },
        link: match info.link_type {
            protocol::LinkType::PointToPoint => LinkType::PointToPoint,
            protocol::LinkType::MultiAccess => LinkType::MultiAccess,
            protocol::LinkType::AdHoc => LinkType::AdHoc,
        },
        is_on_demand: info.persistency == FacePersistency::OnDemand,
    }
}
