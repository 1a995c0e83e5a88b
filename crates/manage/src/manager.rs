//! The manager: an Interest in, Data out, and the router changed in between.
//!
//! Owns the dispatch of commands, datasets and notifications, the RIB, and the
//! order in which things happen: the signer is checked first, the command second,
//! and the reply leaves only after the [`ControlPlane`] has returned. It has no
//! thread, socket or clock: the router hands it the Interests under
//! `/localhost/nfd` and `/localhop/nfd` and takes its Data. The Data should not be
//! cached, because a dataset would be out of date with the next command.
//!
//! Registrations of one burst reach the FIB as one batch.

use tachonym_packet::{FaceId, InterestView, MonoNs, Name, NameView, SourceId, types};
use tachonym_protocol::{
    ChannelStatus, CommandName, ControlParameters, ControlResponse, DropCount, FaceEventKind,
    FacePersistency, FaceProgram, FaceQueryFilter, FaceStatus, Scope, StrategyChoice, status_code,
};
use tachonym_security::{Reject, ReplayCounters, VerifierCounters};
use tracing::{debug, info};

use crate::authorize::{Authorizer, ManagementTrust};
use crate::carriers::Carriers;
use crate::commands::{self, Creation, FIRST_FACE_ID};
use crate::connecting::{ConnectingFaces, FaceReport};
use crate::contents;
use crate::control::{ControlError, ControlPlane, FibChange, FibRefusal, FibRefusalReason};
use crate::counters::{Counters, DropReason};
use crate::datasets::{self, PublishedDatasets};
use crate::looping::LoopingFaces;
use crate::notifications::NotificationStream;
use crate::packet_trace;
use crate::replies;
use crate::rib::{Rib, RibLimits};
use crate::verbs::{Dataset, Module, Target, Verb};

/// Cost of a route that a prefix announcement makes: more than what operators
/// set by hand. The number is NFD's.
pub(crate) const ANNOUNCED_COST: u64 = 2048;

/// Changes of the FIB that may wait for further commands of a burst. A route that
/// many prefixes inherit makes one change for each of them, so commands alone
/// would be no bound.
const MAX_WAITING_CHANGES: usize = 4096;

/// What a manager is made from.
#[derive(Debug)]
pub struct ManagerConfig {
    /// Which signers may give which commands.
    pub trust: ManagementTrust,
    /// How much the RIB may hold.
    pub rib: RibLimits,
    /// Most bytes of published datasets that are kept for later segments.
    pub max_dataset_bytes: usize,
    /// When the router started. Commands that were signed before are refused: a former
    /// router may have carried them out.
    pub started: MonoNs,
}

impl Default for ManagerConfig {
    fn default() -> Self {
        Self {
            trust: ManagementTrust::default(),
            rib: RibLimits::default(),
            max_dataset_bytes: 64 << 20,
            started: MonoNs::ZERO,
        }
    }
}

/// The manager of one router.
#[derive(Debug)]
pub struct Manager<C> {
    pub(crate) control: C,
    pub(crate) authorizer: Authorizer,
    carriers: Carriers,
    pub(crate) rib: Rib,
    datasets: PublishedDatasets,
    face_events: NotificationStream,
    connecting: ConnectingFaces,
    looping: LoopingFaces,
    pub(crate) counters: Counters,
    /// Changes that the FIB must have before the commands below are answered.
    pub(crate) fib_changes: Vec<FibChange>,
    pub(crate) unanswered: Vec<UnansweredRoute>,
    /// Faces whose commands were refused unchecked, each once.
    throttled: Vec<FaceId>,
}

/// A route that has changed in the RIB, and not yet in the FIB.
#[derive(Debug)]
pub(crate) struct UnansweredRoute {
    /// The command that waits for it; `None` if the route was learnt.
    pub(crate) command: Option<RouteCommand>,
    pub(crate) prefix: Name,
    pub(crate) face: FaceId,
    pub(crate) origin: u64,
    pub(crate) adds: bool,
}

/// A command on the RIB.
#[derive(Debug)]
pub(crate) struct RouteCommand {
    /// Name of the command Interest.
    pub(crate) name: Name,
    /// The response, if the FIB takes everything.
    pub(crate) effective: ControlParameters,
}

/// An Interest and how it came.
#[derive(Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) now: MonoNs,
    pub(crate) wall_ms: u64,
    pub(crate) incoming: FaceId,
    pub(crate) interest: &'a InterestView<'a>,
    pub(crate) scope: Scope,
}

/// Where replies go: wires of Data packets.
pub type ReplySink<'a> = &'a mut dyn FnMut(Vec<u8>);

impl<C: ControlPlane> Manager<C> {
    /// A manager of `control`.
    #[must_use]
    pub fn new(mut config: ManagerConfig, control: C) -> Self {
        Self {
            control,
            carriers: Carriers::new(config.trust.transports.take()),
            authorizer: Authorizer::new(config.trust, config.started),
            rib: Rib::new(config.rib),
            datasets: PublishedDatasets::new(config.max_dataset_bytes),
            face_events: NotificationStream::new(CommandName::local("faces", "events").name()),
            connecting: ConnectingFaces::default(),
            looping: LoopingFaces::default(),
            counters: Counters::default(),
            fib_changes: Vec::new(),
            unanswered: Vec::new(),
            throttled: Vec::new(),
        }
    }

    /// The control plane.
    pub const fn control_mut(&mut self) -> &mut C {
        &mut self.control
    }

    /// What has been counted.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// How many commands were accepted, and refused with 403 for which reason.
    #[must_use]
    pub const fn verifier_counters(&self) -> &VerifierCounters {
        self.authorizer.counters()
    }

    /// What replay protection had to forget early.
    #[must_use]
    pub const fn replay_counters(&self) -> &ReplayCounters {
        self.authorizer.replay_counters()
    }

    /// The RIB.
    #[must_use]
    pub const fn rib(&self) -> &Rib {
        &self.rib
    }

    /// Answers one Interest that came in by the face `incoming`. `wall_ms` is the
    /// time in milliseconds since the Unix epoch.
    pub fn handle_interest(
        &mut self,
        now: MonoNs,
        wall_ms: u64,
        incoming: FaceId,
        interest: &InterestView<'_>,
        out: ReplySink<'_>,
    ) {
        self.handle_burst(now, wall_ms, [(incoming, interest)], out);
    }

    /// Answers Interests in their order, as [`handle_interest`] would one by one;
    /// but consecutive changes of the RIB reach the FIB together, so that a
    /// thousand of them cost one call of [`ControlPlane::fib_apply`].
    ///
    /// [`handle_interest`]: Self::handle_interest
    pub fn handle_burst<'a>(
        &mut self,
        now: MonoNs,
        wall_ms: u64,
        burst: impl IntoIterator<Item = (FaceId, &'a InterestView<'a>)>,
        out: ReplySink<'_>,
    ) {
        let mut burst = burst.into_iter().peekable();
        while burst.peek().is_some() {
            self.handle_some(now, wall_ms, &mut burst, out);
        }
    }

    /// As [`handle_burst`](Self::handle_burst), but may leave Interests in
    /// `burst`: it returns as soon as many changes of the FIB have been applied,
    /// so that their commands' replies can leave before the others are looked
    /// at. Takes at least one Interest, if there is any.
    pub fn handle_some<'a>(
        &mut self,
        now: MonoNs,
        wall_ms: u64,
        burst: &mut impl Iterator<Item = (FaceId, &'a InterestView<'a>)>,
        out: ReplySink<'_>,
    ) {
        while self.fib_changes.len() <= MAX_WAITING_CHANGES
            && let Some((incoming, interest)) = burst.next()
        {
            self.counters.n_interests += 1;
            let above = || match interest.can_be_prefix() {
                true => Some((Target::of_prefix(interest.name())?, NameView::EMPTY)),
                false => None,
            };
            let Some((command, rest)) = CommandName::parse(interest.name()).or_else(above) else {
                self.counters.drop(DropReason::NotManagement);
                continue;
            };
            let request = Request {
                now,
                wall_ms,
                incoming,
                interest,
                scope: command.scope,
            };
            let target = Target::of(command.module, command.verb);
            if command.scope == Scope::Localhop
                && !(self.authorizer.is_localhop_enabled()
                    && matches!(target, Target::Command(Module::Rib, _)))
            {
                self.counters.drop(DropReason::LocalhopDisabled);
                continue;
            }
            match target {
                Target::Command(module, verb) => {
                    self.handle_command(&request, module, verb, rest, out);
                }
                Target::Dataset(dataset) => {
                    self.apply_routes(out);
                    let full = command.name();
                    let name = match full.starts_with(interest.name()) {
                        true => full.view(),
                        false => interest.name(),
                    };
                    self.handle_dataset(&request, (dataset, name), rest, out);
                }
                Target::FaceEvents => self.handle_stream(&request, out),
                Target::Unknown(_) => {
                    let text = "this router has no such management command or dataset";
                    let response = ControlResponse::new(status_code::NOT_IMPLEMENTED, text);
                    self.respond(interest.name(), response, out);
                }
            }
        }
        self.apply_routes(out);
    }

    /// Faces that continued to send commands since the last call although too many of theirs
    /// had been refused. The caller may drop their Interests for a while.
    pub fn take_throttled(&mut self) -> Vec<FaceId> {
        std::mem::take(&mut self.throttled)
    }

    /// A new face shares the limits of refused commands with all others of `source`, until
    /// the event comes that it is destroyed. Others have limits of their own.
    pub fn note_source(&mut self, face: FaceId, source: SourceId) {
        self.authorizer.insert_face(face, source);
    }

    /// When [`handle_timeout`](Self::handle_timeout) next has work.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<MonoNs> {
        self.rib.next_expiry()
    }

    /// Removes the routes whose time has come.
    pub fn handle_timeout(&mut self, now: MonoNs, out: ReplySink<'_>) {
        self.counters.n_expired_routes += self.rib.expire(now, &mut self.fib_changes) as u64;
        self.apply_routes(out);
    }

    /// Handles an event of a face: removes the routes of a face that is gone, answers
    /// the command that waits for it, and sends the event to subscribers.
    pub fn handle_face_event(
        &mut self,
        now: MonoNs,
        report: impl Into<FaceReport>,
        out: ReplySink<'_>,
    ) {
        let FaceReport { event, cause } = report.into();
        self.carriers.note(&event);
        let face = FaceId(event.face_id);
        match event.kind {
            FaceEventKind::Created if event.face_persistency != FacePersistency::OnDemand => {
                let (remote, local) = (&event.uri, &event.local_uri);
                self.looping.note(&mut self.control, face, remote, local);
            }
            FaceEventKind::Destroyed => {
                self.authorizer.remove_face(face);
                self.looping.remove(face);
                let n_routes = self.forget_face(face);
                if n_routes > 0 {
                    info!(
                        "face {face} to {} is gone; routes removed with it: {n_routes}",
                        event.uri
                    );
                }
                self.apply_routes(out);
            }
            _ => {}
        }
        let answered = self.connecting.handle_event(&event, cause.as_deref());
        if let Some((name, response)) = answered {
            let response = self.looping.with_warning(face, response);
            self.respond(name.view(), response, out);
        }
        if let Some(wire) = self.face_events.push(now, event) {
            self.counters.n_notifications += 1;
            out(wire);
        }
    }

    /// Removes the routes of a face that is gone, and returns how many there were.
    fn forget_face(&mut self, face: FaceId) -> usize {
        let n_routes = self.rib.remove_face(face, &mut self.fib_changes);
        self.counters.n_routes_of_lost_faces += n_routes as u64;
        n_routes
    }

    fn handle_stream(&mut self, request: &Request<'_>, out: ReplySink<'_>) {
        match self.face_events.find(request.now, request.interest) {
            Some(wire) => out(wire),
            // The next notification will find the Interest in the PIT.
            None => self.counters.n_waiting += 1,
        }
    }

    fn handle_command(
        &mut self,
        request: &Request<'_>,
        module: Module,
        verb: Verb,
        rest: NameView<'_>,
        out: ReplySink<'_>,
    ) {
        self.counters.n_commands += 1;
        let name = request.interest.name();
        if self.connecting.is_under_way(name) {
            // A retransmission; the first one will be answered.
            self.counters.n_waiting += 1;
            return;
        }
        if request.scope == Scope::Localhost
            && let Some(text) = self.carriers.refusal(request.incoming)
        {
            self.counters.drop(DropReason::CommandTransport);
            let response = ControlResponse::new(status_code::FORBIDDEN, text);
            return self.respond(name, response, out);
        }
        let about = match request.scope {
            Scope::Localhost => None,
            Scope::Localhop => self.registered_by_neighbour(request, verb, rest),
        };
        let verdict = self.authorizer.check(
            request.interest,
            (request.scope, module),
            about.as_ref().map(Name::view),
            request.incoming,
            request.now,
            request.wall_ms,
        );
        if let Err(reject) = verdict {
            debug!(
                "command {name} of face {} refused: {reject}",
                request.incoming
            );
            if reject == Reject::Throttled && !self.throttled.contains(&request.incoming) {
                self.throttled.push(request.incoming);
            }
            let response = ControlResponse::new(status_code::FORBIDDEN, reject.to_string());
            return self.respond(name, response, out);
        }
        if verb == Verb::RibAnnounce {
            return self.announce(request, out);
        }
        let parameters = match command_parameters(rest, verb) {
            Ok(parameters) => parameters,
            Err(text) => {
                let response = ControlResponse::new(status_code::BAD_REQUEST, text);
                return self.respond(name, response, out);
            }
        };
        match verb {
            Verb::RibRegister => return self.register(request, &parameters, out),
            Verb::RibUnregister => return self.unregister(request, &parameters, out),
            _ => self.apply_routes(out),
        }
        let (control, incoming) = (&mut self.control, request.incoming);
        let outcome = match verb {
            Verb::FacesCreate => match commands::create_face(control, &parameters) {
                Ok(Creation {
                    face: status,
                    response,
                    effective,
                }) => {
                    let face = FaceId(status.face_id);
                    self.looping
                        .note(control, face, &status.uri, &status.local_uri);
                    match response {
                        Some(response) => Ok(self.looping.with_warning(face, response)),
                        None => return self.connecting.insert(face, name.to_name(), effective),
                    }
                }
                Err(error) => Err(error),
            },
            Verb::FacesUpdate => commands::update_face(control, &parameters, incoming),
            Verb::FacesDestroy => self.destroy_face(&parameters, out),
            Verb::FibAddNextHop => commands::add_next_hop(control, &parameters, incoming),
            Verb::FibRemoveNextHop => commands::remove_next_hop(control, &parameters, incoming),
            Verb::CsConfig => commands::configure_cs(control, &parameters),
            Verb::CsErase => commands::erase_cs(control, &parameters),
            Verb::StrategySet => commands::set_strategy(control, &parameters),
            Verb::StrategyUnset => commands::unset_strategy(control, &parameters),
            Verb::Workers(verb) => commands::change_workers(control, verb, &parameters),
            Verb::Trace(verb) => packet_trace::command(control, verb, &parameters),
            Verb::RibRegister | Verb::RibUnregister | Verb::RibAnnounce => {
                unreachable!("commands on the RIB were dealt with above")
            }
        };
        let response = outcome.unwrap_or_else(ControlResponse::from);
        self.respond(name, with_body(response, &parameters), out);
    }

    /// Destroys a face, and its routes before the reply rather than when the
    /// event comes.
    fn destroy_face(
        &mut self,
        parameters: &ControlParameters,
        out: ReplySink<'_>,
    ) -> Result<ControlResponse, ControlError> {
        let face = FaceId(parameters.face_id.unwrap_or(0));
        if face < FIRST_FACE_ID {
            let text = "faces below number 256 belong to the router and stay";
            return Ok(ControlResponse::new(status_code::CONFLICT, text));
        }
        self.control.destroy_face(face)?;
        let n_routes = self.forget_face(face);
        if n_routes > 0 {
            info!("face {face} was destroyed by command; routes removed with it: {n_routes}");
        }
        self.apply_routes(out);
        Ok(commands::ok(parameters))
    }

    /// Applies the changes of the RIB to the FIB, and then answers their commands.
    pub(crate) fn apply_routes(&mut self, out: ReplySink<'_>) {
        let mut unanswered = std::mem::take(&mut self.unanswered);
        let mut failures: Vec<Option<ControlResponse>> = vec![None; unanswered.len()];
        // What the FIB refuses is taken out of the RIB, which may change the FIB
        // again: by removals, and by routes that had been captured. Each round
        // takes out a face or a route, so this ends.
        while !self.fib_changes.is_empty() {
            let changes = std::mem::take(&mut self.fib_changes);
            self.counters.n_fib_changes += changes.len() as u64;
            let refusals = match self.control.fib_apply(changes) {
                Ok(refusals) => refusals,
                Err(error) => {
                    failures.fill(Some(error.into()));
                    break;
                }
            };
            for FibRefusal { change, reason } in refusals {
                let FibChange::Add { name, face, .. } = &change else {
                    continue;
                };
                self.counters.n_fib_refusals += 1;
                let is_face_gone = reason == FibRefusalReason::FaceNotFound;
                if is_face_gone {
                    self.forget_face(*face);
                }
                for (route, failure) in unanswered.iter().zip(&mut failures) {
                    if !route.adds || route.face != *face || failure.is_some() {
                        continue;
                    }
                    if is_face_gone {
                        *failure = Some(commands::refused(reason));
                    } else if route.prefix == *name {
                        *failure = Some(commands::refused(reason));
                        self.rib
                            .remove(name.view(), *face, route.origin, &mut self.fib_changes);
                    }
                }
            }
        }
        for (route, failure) in unanswered.drain(..).zip(failures) {
            let Some(RouteCommand { name, effective }) = route.command else {
                if failure.is_some() {
                    self.counters.drop(DropReason::AnnouncementBeyondLimit);
                }
                continue;
            };
            let response = failure.unwrap_or_else(|| commands::ok(&effective));
            let response = match route.adds {
                true => self.looping.with_warning(route.face, response),
                false => response,
            };
            let response = with_body(response, &effective);
            self.respond(name.view(), response, out);
        }
        self.unanswered = unanswered;
        self.forget_withdrawn();
    }

    /// Answers an Interest for a dataset; `name` is the Interest's, or longer if it asked
    /// for any Data under a shorter one.
    fn handle_dataset(
        &mut self,
        request: &Request<'_>,
        (dataset, name): (Dataset, NameView<'_>),
        rest: NameView<'_>,
        out: ReplySink<'_>,
    ) {
        self.counters.n_datasets += 1;
        let interest = request.interest;
        if datasets::names_version_or_segment(name) {
            let segment = self.datasets.find(name).and_then(|(published, segment)| {
                replies::segment(&published.name, &published.content, segment)
            });
            match segment {
                Some(wire) => out(wire),
                None => self.counters.drop(DropReason::UnknownSegment),
            }
            return;
        }
        if !interest.can_be_prefix() {
            // No Data with a version and a segment could answer it.
            return self.counters.drop(DropReason::DatasetWithoutCanBePrefix);
        }
        match self.dataset_content(dataset, rest, request.now) {
            Ok(content) => {
                let published = self.datasets.publish(name, content, request.wall_ms);
                match replies::segment(&published.name, &published.content, 0) {
                    Some(wire) => out(wire),
                    None => self.counters.drop(DropReason::ReplyTooLarge),
                }
            }
            Err(response) => {
                self.counters.n_errors += 1;
                match replies::refused_dataset(name.to_name(), &response) {
                    Some(wire) => out(wire),
                    None => self.counters.drop(DropReason::ReplyTooLarge),
                }
            }
        }
    }

    fn dataset_content(
        &mut self,
        dataset: Dataset,
        rest: NameView<'_>,
        now: MonoNs,
    ) -> Result<Vec<u8>, ControlResponse> {
        let control = &mut self.control;
        let content = match dataset {
            Dataset::FacesList => FaceStatus::encode_list(&control.faces()?),
            Dataset::FacesQuery => {
                let filter = rest
                    .get(0)
                    .and_then(|component| FaceQueryFilter::decode(component.value()).ok())
                    .ok_or_else(|| {
                        ControlResponse::new(status_code::BAD_REQUEST, "malformed FaceQueryFilter")
                    })?;
                let faces = control.faces()?;
                FaceStatus::encode_list(faces.iter().filter(|face| filter.matches(face)))
            }
            Dataset::FacesPrograms => FaceProgram::encode_list(&control.face_programs()?),
            Dataset::FacesChannels => ChannelStatus::encode_list(&control.channels()?),
            Dataset::FibList => fib_content(control)?,
            Dataset::RibList => contents::rib_list(&self.rib, now),
            Dataset::CsInfo => control.cs_info()?.encode(),
            Dataset::CsStats => control.cs_stats()?.encode(),
            Dataset::CsPopularity => control.cs_popularity()?.encode(),
            Dataset::StrategyList => StrategyChoice::encode_list(&control.strategies()?),
            Dataset::Drops => {
                let of_manager = self.counters.drops().filter(|&(_, n)| n > 0);
                let of_manager = of_manager.map(|(reason, n_dropped)| DropCount {
                    face_id: None,
                    reason: reason.label().to_owned(),
                    n_dropped,
                });
                let mut drops: Vec<_> = of_manager.collect();
                drops.extend(control.drops()?);
                DropCount::encode_list(&drops)
            }
            Dataset::Memory => control.table_memory()?.encode(),
            Dataset::Explain => contents::explanation(&mut self.control, &self.rib, rest)?.encode(),
            Dataset::RecentDrops => packet_trace::recent_drops(control, rest)?,
            Dataset::TraceRecords => packet_trace::records(control, rest)?,
            Dataset::Workers => control.workers()?.encode(),
            Dataset::Power => control.power()?.encode(),
            Dataset::GeneralStatus => {
                let mut content = Vec::new();
                control.general_status()?.encode_value_into(&mut content);
                content
            }
        };
        Ok(content)
    }

    /// Sends the response to the command that was called `name`.
    pub(crate) fn respond(
        &mut self,
        name: NameView<'_>,
        response: ControlResponse,
        out: ReplySink<'_>,
    ) {
        if response.code == status_code::OK {
            debug!("command {name} carried out");
        } else {
            debug!(
                "command {name} failed: {} ({})",
                response.text, response.code
            );
            self.counters.n_errors += 1;
        }
        let wire = replies::response(name.to_name(), &response).or_else(|| {
            // The parameters repeat what the name says already: a long name may
            // leave no room for them.
            let short = ControlResponse::new(response.code, "");
            replies::response(name.to_name(), &short)
        });
        match wire {
            Some(wire) => out(wire),
            None => self.counters.drop(DropReason::ReplyTooLarge),
        }
    }
}

/// The FIB, slice by slice: packets travel in between, and the entries of one
/// slice are all that is held besides the content.
fn fib_content(control: &mut impl ControlPlane) -> Result<Vec<u8>, ControlError> {
    let mut content = Vec::new();
    let mut from = Some(0);
    while let Some(place) = from {
        let slice = control.fib_slice(place)?;
        for entry in &slice.entries {
            entry.encode_into(&mut content);
        }
        from = slice.next;
    }
    Ok(content)
}

/// A response with `parameters` for a body unless it has one: ndnd's tools show
/// no response without, not even an error.
pub(crate) fn with_body(
    response: ControlResponse,
    parameters: &ControlParameters,
) -> ControlResponse {
    if response.body.is_empty() {
        response.with_parameters(parameters)
    } else {
        response
    }
}

/// The ControlParameters that follow a command's name, if they are what `verb`
/// takes; otherwise what is wrong with them.
pub(crate) fn command_parameters(
    rest: NameView<'_>,
    verb: Verb,
) -> Result<ControlParameters, String> {
    let component = rest.get(0).ok_or("the command has no ControlParameters")?;
    let is_generic = component.typ() == types::component::GENERIC;
    let parameters = Some(component.value())
        .filter(|_| is_generic)
        .and_then(|wire| ControlParameters::decode(wire).ok())
        .ok_or("malformed ControlParameters")?;
    verb.check(&parameters).map_err(|error| error.to_string())?;
    Ok(parameters)
}
