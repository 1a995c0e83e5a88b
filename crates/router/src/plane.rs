//! What a thread owns: faces, a worker, and ends of rings to the other threads.
//!
//! Jobs of other threads may look at it and change it between two bursts. A thread without
//! a worker only receives and sends; one whose worker failed does so until there is another.
//! How a thread waits is in `wait`.

mod wait;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::Receiver as Inbox;
use tachonym_dispatch::WorkerId;
use tachonym_face::{DropReason, FaceEvent, FaceInfo, FaceSystem, RxBatch, Waiting, monotonic_now};
use tachonym_forward::{
    Engine, FaceTraits, LinkType, RecentDrops, RxKind, RxPacket, Scope, relend,
};
use tachonym_packet::lp::Headers;
use tachonym_packet::{DataView, FaceId, HashedNames, MonoNs, Name};
use tachonym_protocol::{self as protocol, FaceEventKind, FacePersistency};
use tachonym_tables::CsCapacity;
use tachonym_workers::{Batch, Crossing, Links, Receiver, Worker};
use tracing::{debug, error, info};

use crate::busy::Busy;
use crate::internal::InternalFace;
use crate::packet_trace::Traces;
use crate::ports::{ForeignDrops, Ports, refusal};
use crate::second_level::Ssd;
use crate::task::Task;
use crate::team::{FaceNews, Team};
use crate::verification::DataGate;

/// How often it is looked whether a name has moved, while packets wait for that.
const RELEASE_INTERVAL: Duration = Duration::from_millis(1);
/// A worker that fails more often than this is replaced only so often.
const REPLACE_INTERVAL_MS: u64 = 500;
/// A thread that has waited for so long, in nanoseconds, had nothing to do: to ask whether
/// there is anything takes one or two thousand.
const PAUSE_NS: u64 = 20_000;
/// Of the packets that a thread has received without a pause, one in so many counts as one
/// that waits for its worker: its sockets do not tell how much they hold.
const BUSY_PKTS_BY_UNREAD: u32 = 4;

/// See the module.
pub(crate) struct Plane {
    me: WorkerId,
    team: Arc<Team>,
    pub(crate) faces: FaceSystem,
    pub(crate) internal: InternalFace,
    pub(crate) gate: DataGate,
    links: Links,
    worker: Option<Worker>,
    /// Takes what is received to its home, unless one thread does everything.
    receiver: Option<Receiver>,
    news: Inbox<FaceNews>,
    /// What the second level of the worker's content store lies on, if it has one.
    ssd: Option<Ssd>,
    /// Faces of other threads that have gone, of which there may be packets in rings.
    going: Vec<FaceId>,
    /// Packets whose names have moved to the worker of this thread.
    released: Batch,
    /// Batches of other threads that have been seen to in this round.
    done: Vec<(WorkerId, Box<Batch>)>,
    /// Hashes of the packets in hand.
    names: HashedNames,
    scratch: Vec<u8>,
    foreign_drops: ForeignDrops,
    /// Packets that were lately refused before the engine saw them.
    pub(crate) recent_drops: RecentDrops<DropReason>,
    /// Traces of packets, while any runs.
    pub(crate) traces: Option<Box<Traces>>,
    /// Its worker failed, and another one takes its place then.
    replace_at: Option<MonoNs>,
    replaced_at: MonoNs,
    /// Packets received since the thread last had to wait for any.
    n_since_pause: u32,
    /// Data of the manager since the last burst.
    pub(crate) n_injected: usize,
    pub(crate) counters: PlaneCounters,
    pub(crate) busy: Busy,
    /// How the thread waits for packets.
    pub(crate) waiting: Waiting,
    /// What ends the thread.
    failure: Option<anyhow::Error>,
}

/// What a thread counts beside its faces, its engine and its links.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PlaneCounters {
    /// Packets that were at home at a worker that had failed.
    pub(crate) n_without_worker: u64,
    /// Times that its worker failed.
    pub(crate) n_failures: u64,
    /// Packets that were at home here, and those of them that came by rings.
    pub(crate) n_at_home: u64,
    pub(crate) n_crossed: u64,
}

/// What a thread begins with.
pub(crate) struct Parts {
    pub(crate) me: WorkerId,
    pub(crate) team: Arc<Team>,
    pub(crate) faces: FaceSystem,
    pub(crate) internal: InternalFace,
    pub(crate) gate: DataGate,
    pub(crate) links: Links,
    pub(crate) worker: Option<Worker>,
    pub(crate) receiver: Option<Receiver>,
    pub(crate) news: Inbox<FaceNews>,
    pub(crate) ssd: Option<Ssd>,
    pub(crate) waiting: Waiting,
}

impl Plane {
    pub(crate) fn new(parts: Parts) -> Self {
        Self {
            me: parts.me,
            team: parts.team,
            faces: parts.faces,
            internal: parts.internal,
            gate: parts.gate,
            links: parts.links,
            worker: parts.worker,
            receiver: parts.receiver,
            news: parts.news,
            ssd: parts.ssd,
            going: Vec::new(),
            released: Batch::new(),
            done: Vec::new(),
            names: HashedNames::new(),
            scratch: Vec::new(),
            foreign_drops: ForeignDrops::default(),
            recent_drops: RecentDrops::new(),
            traces: None,
            replace_at: None,
            replaced_at: MonoNs::ZERO,
            n_since_pause: 0,
            n_injected: 0,
            counters: PlaneCounters::default(),
            busy: Busy::new(),
            waiting: parts.waiting,
            failure: None,
        }
    }

    /// The worker's engine, if there is one that has not failed.
    pub(crate) fn engine(&self) -> Option<&Engine> {
        self.worker().map(Worker::engine)
    }

    /// The same, to be changed.
    pub(crate) fn engine_mut(&mut self) -> Option<&mut Engine> {
        let worker = self.worker.as_mut().filter(|_| self.replace_at.is_none());
        worker.map(Worker::engine_mut)
    }

    /// The worker, if there is one that has not failed.
    pub(crate) fn worker(&self) -> Option<&Worker> {
        self.worker.as_ref().filter(|_| self.replace_at.is_none())
    }

    /// The worker's part in the limits of the content stores.
    pub(crate) fn cs_part(&self) -> CsCapacity {
        self.team.blueprint.settings().cs_part(self.me)
    }

    /// Whether there is a worker, or is to be one in a moment.
    pub(crate) const fn has_worker(&self) -> bool {
        self.worker.is_some()
    }

    /// Has a worker from now on.
    pub(crate) fn set_worker(&mut self, mut worker: Worker) {
        self.forget_news();
        self.team.blueprint.introduce(worker.engine_mut());
        self.worker = Some(worker);
        self.replace_at = None;
        if let Some(ssd) = &mut self.ssd {
            ssd.begin_anew(monotonic_now());
        }
    }

    /// Gives the worker what has become of its second level's requests.
    pub(crate) fn take_from_ssd(&mut self, now: MonoNs) {
        let Some(mut ssd) = self.ssd.take() else {
            return;
        };
        if self.worker().is_none() {
            ssd.forget_completions(now);
        }
        self.work(now, Task::Completions(&mut ssd));
        self.ssd = Some(ssd);
    }

    /// Takes to the device what the worker's second level asks for.
    pub(crate) fn give_to_ssd(&mut self, now: MonoNs) {
        let worker = self.worker.as_mut().filter(|_| self.replace_at.is_none());
        if let (Some(ssd), Some(worker)) = (&mut self.ssd, worker) {
            ssd.give_requests(now, worker.engine_mut());
        }
    }

    /// Erases what the worker has under a prefix from both levels, at most `limit` of the
    /// first; of the second, if asked to, when nothing is left in the first. How many, and
    /// whether there are more in the first.
    pub(crate) fn erase(
        &mut self,
        prefix: &Name,
        limit: usize,
        includes_second_level: bool,
    ) -> (usize, bool) {
        let Some(engine) = self.engine_mut() else {
            if let Some(ssd) = self.ssd.as_mut().filter(|_| includes_second_level) {
                ssd.erase_later(prefix.clone());
            }
            return (0, false);
        };
        let n_erased = engine.cs_mut().erase(prefix.view(), limit);
        let has_more = engine.cs_mut().has_below(prefix.view());
        // In one go: what comes back meanwhile would stay in the first level.
        let is_second_next = includes_second_level && !has_more;
        let has_second = engine.second_level().is_some();
        let n_of_second = match is_second_next && has_second {
            true => engine
                .cs_mut()
                .erase_second_level(monotonic_now(), prefix.view()),
            false => 0,
        };
        // Its store comes when what the former engine has asked for has ended.
        if let Some(ssd) = self.ssd.as_mut().filter(|_| is_second_next && !has_second) {
            ssd.erase_later(prefix.clone());
        }
        (n_erased + n_of_second, has_more)
    }

    /// Writes what the worker's second level has not written yet: the thread ends.
    pub(crate) fn shut_down(&mut self) {
        if let Some(mut ssd) = self.ssd.take() {
            let now = monotonic_now();
            self.work(now, Task::ShutDown(&mut ssd));
        }
    }

    /// For an engine that is told of all faces that there are.
    fn forget_news(&mut self) {
        self.take_news();
        for face in std::mem::take(&mut self.going) {
            self.internal.forget(face);
        }
    }

    /// The thread.
    pub(crate) const fn thread(&self) -> WorkerId {
        self.me
    }

    pub(crate) const fn links(&self) -> &Links {
        &self.links
    }

    pub(crate) const fn receiver(&self) -> Option<&Receiver> {
        self.receiver.as_ref()
    }

    /// What ends the thread, if anything does.
    pub(crate) fn take_failure(&mut self) -> Option<anyhow::Error> {
        self.failure.take()
    }

    /// Ends the thread for this reason.
    pub(crate) fn fail(&mut self, error: anyhow::Error) {
        self.failure = Some(error);
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
        self.work(now, Task::Burst(&[rx]));
    }

    /// Drops until then what a face has to say to management.
    pub(crate) fn mute(&mut self, face: FaceId, until: MonoNs) {
        // It may have gone meanwhile, and will not be heard of again.
        if self
            .engine()
            .is_some_and(|engine| engine.face(face).is_some())
        {
            self.internal.mute(face, until);
        }
    }

    /// Leaves to the manager what takes long to be freed.
    pub(crate) fn hand_over_retired(&mut self) {
        let Some(worker) = &mut self.worker else {
            return;
        };
        while let Some(policy) = worker.engine_mut().cs_mut().take_retired_policy() {
            self.internal.hand_over(policy);
        }
    }

    /// Tells the engines what a face has become by a command.
    pub(crate) fn renew_traits(&mut self, face: FaceId) {
        if let Some(info) = self.faces.info(face) {
            self.tell(FaceNews::Came(face, traits_of(&info)));
        }
    }

    /// Tells the engines and the manager which faces came and went.
    pub(crate) fn handle_face_events(&mut self) {
        while let Some(event) = self.faces.poll_event() {
            log(&event);
            let face = event.face.id;
            match event.kind {
                FaceEventKind::Created => self.tell(FaceNews::Came(face, traits_of(&event.face))),
                FaceEventKind::Destroyed => self.tell(FaceNews::Gone(face)),
                FaceEventKind::Up | FaceEventKind::Down => {}
            }
            self.internal.deliver_event(event);
        }
    }

    fn tell(&mut self, news: FaceNews) {
        if let FaceNews::Gone(_) = news {
            // Others carry what has come by it first.
            self.flush_links();
        }
        self.team.tell(self.me, news);
        match news {
            FaceNews::Came(face, traits) => self.add_face(face, traits),
            FaceNews::Gone(face) => self.remove_face(face),
            FaceNews::Dropped(..) => {}
        }
    }

    /// Takes what other threads tell of their faces.
    fn take_news(&mut self) {
        while let Ok(news) = self.news.try_recv() {
            match news {
                FaceNews::Came(face, traits) => self.add_face(face, traits),
                FaceNews::Gone(face) => self.going.push(face),
                FaceNews::Dropped(face, reason, n) => self.faces.count_drops(face, reason, n),
            }
        }
    }

    /// What is not told to an engine that has failed, the blueprint tells the next one.
    fn add_face(&mut self, face: FaceId, traits: FaceTraits) {
        if let Some(source) = traits.source {
            self.internal.note_source(face, source);
        }
        if let Some(engine) = self.engine_mut() {
            engine.add_face(face, traits);
        }
    }

    fn remove_face(&mut self, face: FaceId) {
        self.internal.forget(face);
        if let Some(engine) = self.engine_mut() {
            engine.remove_face(face);
        }
    }

    /// How long the thread may sleep if nothing happens.
    pub(crate) fn timeout(&mut self) -> Option<Duration> {
        let has_completions = self.ssd.as_ref().is_some_and(Ssd::has_completions);
        if has_completions
            || !self.links.is_idle()
            || !self.news.is_empty()
            || !self.going.is_empty()
        {
            return Some(Duration::ZERO);
        }
        let timer = match self.replace_at {
            Some(at) => Some(at),
            None => {
                let of_ssd = self.ssd.as_ref().filter(|_| self.worker.is_some());
                let timers = [
                    self.worker.as_ref().and_then(Worker::poll_timeout),
                    of_ssd.and_then(Ssd::poll_timeout),
                ];
                timers.into_iter().flatten().min()
            }
        };
        let timeout = timer.map(|at| at.saturating_since(monotonic_now()));
        match &self.receiver {
            Some(receiver) if !receiver.is_calm() => {
                Some(timeout.map_or(RELEASE_INTERVAL, |timeout| timeout.min(RELEASE_INTERVAL)))
            }
            _ => timeout,
        }
    }

    /// Tells the governor what the thread has done until `now`.
    pub(crate) fn publish_done(&self, now: MonoNs) {
        let done = self.team.done(self.me);
        done.set(self.counters.n_at_home, self.busy.busy_ns(now));
    }

    /// So many packets have come, after so long a wait.
    pub(crate) fn note_received(&mut self, n_received: usize, waited_ns: u64) {
        let before = match waited_ns >= PAUSE_NS {
            true => 0,
            false => self.n_since_pause,
        };
        self.n_since_pause = before.saturating_add(n_received as u32);
    }

    /// As [`receive`](Self::receive); what fails there, if only for a signature, is the
    /// worker's failure.
    pub(crate) fn receive_all(
        &mut self,
        batch: &RxBatch,
        spare: Vec<RxPacket<'static>>,
    ) -> Vec<RxPacket<'static>> {
        let received = catch_unwind(AssertUnwindSafe(|| self.receive(batch, spare)));
        received.unwrap_or_else(|_| {
            self.note_panic(batch.received_at());
            Vec::new()
        })
    }

    /// Carries one burst: through the engine what is at home here, to other threads what is
    /// at home there. `spare` lends its memory.
    fn receive(
        &mut self,
        batch: &RxBatch,
        spare: Vec<RxPacket<'static>>,
    ) -> Vec<RxPacket<'static>> {
        let now = batch.received_at();
        let mut burst = relend(spare);
        self.begin_receiving(now);
        for frame in batch.frames() {
            match RxPacket::parse(frame.face, frame.headers, frame.l3) {
                Some(packet) => burst.push(RxPacket {
                    prefix_announcement: frame.prefix_announcement,
                    ..packet
                }),
                None => self.faces.count_drop(frame.face, DropReason::Malformed),
            }
        }
        let mut names = std::mem::take(&mut self.names);
        let admits = |packet: &RxPacket<'_>| {
            let Some(reason) = refusal(&mut self.internal, &mut self.gate, packet, now) else {
                return true;
            };
            self.faces.count_drop(packet.face, reason);
            let dropped = packet.as_dropped();
            self.recent_drops.record(now, reason, &dropped);
            if let Some(traces) = &mut self.traces {
                traces.note_refused(now, reason, packet, &self.faces);
            }
            false
        };
        let task = match &mut self.receiver {
            Some(receiver) => {
                receiver.take(&mut burst, &mut names, &mut self.links, admits);
                Task::HashedBurst(&burst, &mut names)
            }
            None => {
                burst.retain(admits);
                Task::Burst(&burst)
            }
        };
        self.counters.n_at_home += burst.len() as u64;
        if self.worker().is_some() {
            self.work(now, task);
        } else {
            self.counters.n_without_worker += burst.len() as u64;
        }
        self.names = names;
        burst.clear();
        relend(burst)
    }

    /// Sees which names have moved, and carries what has waited for that.
    fn begin_receiving(&mut self, now: MonoNs) {
        let Some(receiver) = &mut self.receiver else {
            return;
        };
        receiver.observe(&mut self.links);
        if !receiver.is_calm() {
            // What former homes have done leaves before what waits for that.
            self.handle_crossing(now);
        }
        let Some(receiver) = &mut self.receiver else {
            return;
        };
        let n_unread = self.n_since_pause / BUSY_PKTS_BY_UNREAD;
        let released = &mut self.released;
        receiver.release(&mut self.links, n_unread, |parcel| released.push(parcel));
        if !self.released.is_empty() {
            let mut released = std::mem::take(&mut self.released);
            self.counters.n_at_home += released.len() as u64;
            self.handle_batch(now, &released);
            released.clear();
            self.released = released;
        }
    }

    /// Takes what other threads have sent.
    pub(crate) fn handle_crossing(&mut self, now: MonoNs) {
        self.take_news();
        // What has come by these is in the rings already.
        let n_going = self.going.len();
        for from in (0..self.links.n_threads()).map(|idx| WorkerId(idx as u16)) {
            for _ in 0..self.links.n_waiting_from(from) {
                let Some(batch) = self.links.receive(from) else {
                    break;
                };
                // Of faces that it has packets of, its sender has told before.
                self.take_news();
                self.send_leaving(&batch);
                let arrived = batch.iter().filter(|it| it.crossing == Crossing::Arrived);
                let n_arrived = arrived.count() as u64;
                self.counters.n_at_home += n_arrived;
                self.counters.n_crossed += n_arrived;
                self.handle_batch(now, &batch);
                self.done.push((from, batch));
            }
        }
        for idx in 0..n_going {
            self.remove_face(self.going[idx]);
        }
        self.going.drain(..n_going);
    }

    /// Sends what leaves by faces of this thread.
    fn send_leaving(&mut self, batch: &Batch) {
        for parcel in batch.iter() {
            if parcel.crossing == Crossing::Leaving {
                // What cannot be sent is counted on its face.
                let _ = self.faces.send_announcing(
                    parcel.face,
                    parcel.headers,
                    parcel.announcement,
                    parcel.wire(),
                );
            }
        }
    }

    fn handle_batch(&mut self, now: MonoNs, batch: &Batch) {
        if self.worker().is_some() {
            self.work(now, Task::Batch(batch));
        } else {
            let leaving = batch.iter().filter(|it| it.crossing == Crossing::Leaving);
            self.counters.n_without_worker += (batch.len() - leaving.count()) as u64;
        }
    }

    /// Does what has become due, a worker in the place of one that failed included.
    pub(crate) fn handle_timeout(&mut self, now: MonoNs) {
        if self.replace_at.is_some_and(|at| at <= now) {
            self.replace_worker(now);
        }
        self.work(now, Task::Timeout);
        if self.traces.is_some() {
            self.expire_traces(now);
        }
    }

    /// Hands everything over to the kernel and to other threads.
    pub(crate) fn flush(&mut self) {
        self.flush_links();
        self.faces.flush();
    }

    fn flush_links(&mut self) {
        if !self.team.layout.is_single() {
            self.team.wake(self.links.flush());
            self.foreign_drops.tell(&self.team);
            // Not before what came of them is on its way: who sent them waits for that.
            for (from, batch) in self.done.drain(..) {
                self.links.give_back(from, batch);
            }
        }
    }

    /// Has the worker do something, if there is one. If it panics, another one will take its
    /// place: what is pending and cached is lost, all else goes on.
    fn work(&mut self, now: MonoNs, task: Task<'_, '_>) {
        let Some(worker) = self.worker.as_mut().filter(|_| self.replace_at.is_none()) else {
            return;
        };
        let mut ports = Ports {
            me: self.me,
            now,
            team: &self.team,
            faces: &mut self.faces,
            internal: &mut self.internal,
            gate: &mut self.gate,
            links: &mut self.links,
            scratch: &mut self.scratch,
            foreign_drops: &mut self.foreign_drops,
            recent_drops: &mut self.recent_drops,
            tokens: worker.token_maker(),
        };
        let traces = &mut self.traces;
        let done = catch_unwind(AssertUnwindSafe(|| match traces {
            None => task.run(now, worker, &mut ports),
            Some(traces) => traces.run(now, task, worker, &mut ports),
        }));
        if done.is_err() {
            self.note_panic(now);
        }
    }

    /// Forgets traces that are not read any more, so that packets run without them again.
    #[cold]
    fn expire_traces(&mut self, now: MonoNs) {
        if let Some(traces) = &mut self.traces {
            traces.expire(now);
        }
        self.traces.take_if(|traces| traces.is_empty());
    }

    /// Runs a job of another thread, which may fail too.
    pub(crate) fn run(&mut self, job: impl FnOnce(&mut Self)) {
        if !self.news.is_empty() || !self.going.is_empty() {
            // Who asks for the job may have been told that this has happened.
            self.handle_crossing(monotonic_now());
        }
        if catch_unwind(AssertUnwindSafe(|| job(self))).is_err() {
            self.note_panic(monotonic_now());
        }
    }

    #[cold]
    fn note_panic(&mut self, now: MonoNs) {
        self.counters.n_failures += 1;
        let earliest = self.replaced_at.plus_ms(REPLACE_INTERVAL_MS);
        self.replace_at = self.worker.is_some().then(|| now.max(earliest));
        let name = self.team.layout.name_of_thread(self.me.idx());
        error!(
            "{name} failed by a fault of the router: its pending Interests and the Data in its \
             DRAM level are lost; a new one takes its place"
        );
    }

    #[cold]
    fn replace_worker(&mut self, now: MonoNs) {
        let engine = match self.team.blueprint.build(self.me) {
            Ok(engine) => engine,
            Err(error) => {
                return self.fail(error.context("cannot replace a worker that failed"));
            }
        };
        self.forget_news();
        let Some(worker) = &mut self.worker else {
            return;
        };
        let former = worker.replace_engine(engine);
        // It is in any state, but for what it has counted.
        worker.engine_mut().continue_counters(&former);
        let _ = catch_unwind(AssertUnwindSafe(|| drop(former)));
        if let Some(ssd) = &mut self.ssd {
            ssd.begin_anew(now);
        }
        self.team.blueprint.introduce(worker.engine_mut());
        (self.replace_at, self.replaced_at) = (None, now);
        let name = self.team.layout.name_of_thread(self.me.idx());
        info!("{name} forwards again");
    }
}

/// Logs what happened to a face: on-demand faces, which peers create, at debug level, and
/// others at info level.
fn log(event: &FaceEvent) {
    let info = &event.face;
    let reason = event.reason.map(|reason| format!(": {reason}"));
    let reason = reason.unwrap_or_default();
    let (id, remote, persistency) = (info.id, &info.remote, info.persistency);
    let news = match event.kind {
        FaceEventKind::Created if info.is_up() => format!("created ({persistency})"),
        FaceEventKind::Created => format!("created ({persistency}), connecting"),
        FaceEventKind::Up => "is up".to_owned(),
        FaceEventKind::Down => format!("is down{reason}; the router connects again by itself"),
        FaceEventKind::Destroyed => format!("is gone{reason}"),
    };
    if persistency == FacePersistency::OnDemand {
        debug!("face {id} to {remote} {news}");
    } else {
        info!("face {id} to {remote} {news}");
    }
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
        source: info.source,
    }
}
