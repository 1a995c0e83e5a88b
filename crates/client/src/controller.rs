//! The client side of the management protocol.
//!
//! Owns how commands are sent and datasets fetched; what they mean is in
//! `tachonym-protocol`. Source: NFD Management protocol, "ControlCommand",
//! "StatusDataset" and "NotificationStream".

use tachonym_packet::types::{component, content_type};
use tachonym_packet::{Component, DecodeError, Interest, MonoNs, Name};
use tachonym_protocol::segments::{Reassembly, ReassemblyError};
use tachonym_protocol::{
    CommandName, ControlParameters, ControlResponse, CsInfo, CsPopularity, CsStats, DropCount,
    ExplainQuery, FaceEventNotification, FaceProgram, FaceQueryFilter, FaceStatus, FibEntry,
    ForwarderStatus, NameExplanation, PowerStatus, RecentDrop, RibEntry, Scope, StrategyChoice,
    TableMemory, TraceBatch, TraceQuery, WorkersStatus, face_flags, status_code,
};
use tachonym_security::{CommandSigner, KeyError, Signer};

use crate::endpoint::{Endpoint, ExpressError, wall_ms};

/// Lifetime of a command, in milliseconds: a face may have to connect.
const COMMAND_LIFETIME_MS: u64 = 10_000;
/// Lifetime of an Interest for a segment of a dataset, in milliseconds.
const DATASET_LIFETIME_MS: u64 = 4_000;
/// Retransmissions of an Interest for a dataset.
const DATASET_RETRIES: u32 = 2;
/// Both for the first segment over a transport on which a router may ignore management:
/// such a wait ends within 3 s.
const REMOTE_DATASET_LIFETIME_MS: u64 = 1_400;
const REMOTE_DATASET_RETRIES: u32 = 1;
/// Largest dataset that is accepted, in bytes.
const MAX_DATASET_BYTES: usize = 1 << 30;
/// Lifetime of an Interest for a notification, in milliseconds.
const NOTIFICATION_LIFETIME_MS: u64 = 60_000;

/// Why a command or a dataset failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommandError {
    /// The router refused.
    #[error("the router refused: {text} ({code})")]
    Refused {
        /// Status code.
        code: u64,
        /// The router's reason.
        text: String,
        /// Parameters in the response, such as the face that exists already.
        parameters: Box<ControlParameters>,
    },
    /// The command or the Interest for a dataset could not be sent, or the connection
    /// failed.
    #[error(transparent)]
    Express(#[from] ExpressError),
    /// There was no answer.
    #[error("the router did not answer {question}: {error}")]
    Unanswered {
        /// Module and verb of the command or dataset, as in `rib/register`.
        question: String,
        /// A timeout or a Nack.
        error: ExpressError,
    },
    /// There was no answer, and a router may not take such Interests over this
    /// transport.
    #[error("the router did not answer {question}: {error}; {}", scope_hint(*.scope, .scheme))]
    OutOfScope {
        /// Module and verb of the command or dataset, as in `rib/register`.
        question: String,
        /// A timeout or a Nack.
        error: ExpressError,
        /// The scheme of the router's address.
        scheme: &'static str,
        /// The scope of the command or dataset.
        scope: Scope,
    },
    /// The answer is malformed.
    #[error("the router's answer is malformed")]
    Malformed(#[from] DecodeError),
    /// The segments of a dataset contradict each other.
    #[error("the router's dataset is malformed")]
    Segments(#[from] ReassemblyError),
    /// The command could not be signed.
    #[error("cannot sign the command")]
    Sign(#[from] KeyError),
}

/// What an operator can do if commands of this scope get no answer.
fn scope_hint(scope: Scope, scheme: &str) -> String {
    match scope {
        Scope::Localhost => format!(
            "over {scheme} a router answers /localhost only on faces that it counts as local \
             ([faces] udp.local, websocket.local, tcp.local; commands: \
             [management] transports); check the address and port, or connect to its Unix \
             socket"
        ),
        Scope::Localhop => format!(
            "over {scheme} a router accepts registrations only with [management.localhop] enabled = \
             true; set that, check the address and port, or connect to its Unix socket"
        ),
    }
}

/// Sends commands to the router behind an endpoint, and fetches its datasets.
pub struct Controller<'e> {
    endpoint: &'e mut Endpoint,
    signer: CommandSigner,
    warning: Option<String>,
}

impl<'e> Controller<'e> {
    /// Commands signed by `signer`.
    pub const fn new(endpoint: &'e mut Endpoint, signer: Signer) -> Self {
        Self {
            endpoint,
            signer: CommandSigner::new(signer),
            warning: None,
        }
    }

    /// The warning of the last command that succeeded with one, such as that a face leads
    /// back to the router itself. Each is returned once.
    pub const fn take_warning(&mut self) -> Option<String> {
        self.warning.take()
    }

    /// Sends the command `/localhost/nfd/<module>/<verb>` and returns the parameters in
    /// effect.
    ///
    /// # Errors
    /// If the router refuses or does not answer.
    pub fn command(
        &mut self,
        module: &str,
        verb: &str,
        parameters: &ControlParameters,
    ) -> Result<ControlParameters, CommandError> {
        let command = CommandName::local(module, verb);
        let interest = command_interest(command.with_parameters(parameters));
        self.give(&command, &interest)
    }

    fn give(
        &mut self,
        command: &CommandName<'_>,
        interest: &Interest,
    ) -> Result<ControlParameters, CommandError> {
        let wire = self.signer.sign(interest, wall_ms())?;
        let answer = self.endpoint.express_wire(&wire, 0);
        let answer = answer.map_err(|error| self.unanswered(command, error))?;
        let response = ControlResponse::decode(answer.data().content())?;
        if response.code != status_code::OK {
            return Err(refused(response));
        }
        // Every forwarder writes "OK", or nothing, where nothing else is to be said.
        self.warning = response.text.strip_prefix("OK, but ").map(str::to_owned);
        Ok(response.parameters()?.unwrap_or_default())
    }

    /// The error of a command or dataset without an answer. Where the face is not local,
    /// the scope of its name may be the cause.
    fn unanswered(&self, command: &CommandName<'_>, error: ExpressError) -> CommandError {
        if !matches!(error, ExpressError::TimedOut | ExpressError::Nack(_)) {
            return error.into();
        }
        let question = format!("{}/{}", command.module, command.verb);
        if self.endpoint.registration_scope() == Scope::Localhost {
            return CommandError::Unanswered { question, error };
        }
        CommandError::OutOfScope {
            question,
            error,
            scheme: self.endpoint.remote().scheme(),
            scope: command.scope,
        }
    }

    /// Registers `prefix` for this program: by `/localhost/nfd`, or by `/localhop/nfd` where
    /// [`Endpoint::registration_scope`] says so.
    ///
    /// # Errors
    /// If the router refuses or does not answer.
    pub fn register(&mut self, prefix: &Name) -> Result<(), CommandError> {
        let parameters = ControlParameters {
            name: Some(prefix.clone()),
            ..ControlParameters::default()
        };
        let command = self.own_command("register");
        let interest = command_interest(command.with_parameters(&parameters));
        self.give(&command, &interest).map(|_| ())
    }

    /// A command of the module `rib` that concerns this face.
    fn own_command<'v>(&self, verb: &'v str) -> CommandName<'v> {
        CommandName {
            scope: self.endpoint.registration_scope(),
            module: "rib",
            verb,
        }
    }

    /// Registers the prefix of `announcement` as [`register`](Self::register) does, and lets
    /// routers downstream learn the route. `announcement` is the wire of a signed
    /// [prefix announcement](tachonym_protocol::prefix_announcement).
    ///
    /// # Errors
    /// If the router refuses, does not know the command, or does not answer.
    pub fn announce(&mut self, announcement: &[u8]) -> Result<ControlParameters, CommandError> {
        let command = self.own_command("announce");
        let interest = Interest {
            application_parameters: Some(announcement.to_vec()),
            ..command_interest(command.name())
        };
        self.give(&command, &interest)
    }

    /// Has the router write NDNLPv2 local fields on this face: then Data and Nacks say by
    /// which of its faces they came. False if the router is not on this machine: only local
    /// faces may have them.
    ///
    /// # Errors
    /// If the router refuses or does not answer.
    pub fn enable_local_fields(&mut self) -> Result<bool, CommandError> {
        if !self.endpoint.accept_local_fields() {
            return Ok(false);
        }
        let mut parameters = ControlParameters::default();
        parameters.set_flag(face_flags::LOCAL_FIELDS, true);
        self.command("faces", "update", &parameters).map(|_| true)
    }

    /// The content of the dataset `/localhost/nfd/<module>/<verb>`, followed by
    /// `suffix`.
    ///
    /// # Errors
    /// If the router does not answer, or its answer is malformed.
    pub fn dataset(
        &mut self,
        module: &str,
        verb: &str,
        suffix: Option<&Component>,
    ) -> Result<Vec<u8>, CommandError> {
        let command = CommandName::local(module, verb);
        let mut prefix = command.name();
        if let Some(suffix) = suffix {
            prefix.push(suffix);
        }
        let n_prefix = prefix.len();
        let (lifetime_ms, mut n_retries) = match self.endpoint.registration_scope() {
            Scope::Localhost => (DATASET_LIFETIME_MS, DATASET_RETRIES),
            Scope::Localhop => (REMOTE_DATASET_LIFETIME_MS, REMOTE_DATASET_RETRIES),
        };
        let mut interest = Interest {
            can_be_prefix: true,
            must_be_fresh: true,
            lifetime_ms: Some(lifetime_ms),
            ..Interest::new(prefix)
        };
        let mut parts = Reassembly::new(MAX_DATASET_BYTES);
        loop {
            let answer = self.endpoint.express(&interest, n_retries);
            let answer = answer.map_err(|error| self.unanswered(&command, error))?;
            let data = answer.data();
            let segment = data
                .name()
                .last()
                .filter(|_| data.name().len() == n_prefix + 2)
                .filter(|last| last.typ() == component::SEGMENT)
                .and_then(|last| last.as_number());
            // A refused query gets a ControlResponse: in a Data of type NACK, or from ndnd in
            // a Data that is not a segment.
            let is_refusal = data.content_type() == content_type::NACK;
            let Some(number) = segment.filter(|_| !is_refusal) else {
                return Err(refused(ControlResponse::decode(data.content())?));
            };
            let last = data.final_block_id().and_then(|id| id.as_number());
            parts.insert(number, last, data.content())?;
            let versioned = data.name().prefix(n_prefix + 1).to_name();
            let Some(missing) = parts.next_missing() else {
                break;
            };
            interest.name = versioned.with(&Component::segment(missing));
            interest.can_be_prefix = false;
            interest.must_be_fresh = false;
            interest.lifetime_ms = Some(DATASET_LIFETIME_MS);
            n_retries = DATASET_RETRIES;
        }
        Ok(parts.into_content().unwrap_or_default())
    }

    /// Counters and table sizes.
    ///
    /// # Errors
    /// If the router does not answer, or its answer is malformed.
    pub fn general_status(&mut self) -> Result<ForwarderStatus, CommandError> {
        Ok(ForwarderStatus::decode_value(
            &self.dataset("status", "general", None)?,
        )?)
    }

    /// Drops by reason. Only routers of this kind have this dataset; others refuse it or do
    /// not answer.
    ///
    /// # Errors
    /// If the router refuses, does not answer, or its answer is malformed.
    pub fn drops(&mut self) -> Result<Vec<DropCount>, CommandError> {
        Ok(DropCount::decode_list(
            &self.dataset("status", "drops", None)?,
        )?)
    }

    /// What a router of this kind would do with an Interest; others as for
    /// [`drops`](Self::drops).
    ///
    /// # Errors
    /// If the router refuses, does not answer, or its answer is malformed.
    pub fn explain(&mut self, query: &ExplainQuery) -> Result<NameExplanation, CommandError> {
        let suffix = Component::generic(query.encode());
        let content = self.dataset("status", "explain", Some(&suffix))?;
        Ok(NameExplanation::decode(&content)?)
    }

    /// Memory of the tables by page size. Only routers of this kind have this dataset;
    /// others refuse it or do not answer.
    ///
    /// # Errors
    /// If the router refuses, does not answer, or its answer is malformed.
    pub fn table_memory(&mut self) -> Result<TableMemory, CommandError> {
        Ok(TableMemory::decode(
            &self.dataset("status", "memory", None)?,
        )?)
    }

    /// Packets under `prefix` that were dropped lately, newest first; only routers of this
    /// kind keep a record of them.
    ///
    /// # Errors
    /// If the router refuses, does not answer, or its answer is malformed.
    pub fn recent_drops(&mut self, prefix: &Name) -> Result<Vec<RecentDrop>, CommandError> {
        let query = RecentDrop::query(prefix);
        let content = self.dataset("status", "recent-drops", Some(&query))?;
        Ok(RecentDrop::decode_list(&content)?)
    }

    /// What a trace has recorded since it was last read; only routers of this kind have
    /// traces.
    ///
    /// # Errors
    /// If the trace has ended, the router does not answer, or its answer is malformed.
    pub fn read_trace(&mut self, query: &TraceQuery) -> Result<TraceBatch, CommandError> {
        let content = self.dataset("trace", "records", Some(&query.to_component()))?;
        Ok(TraceBatch::decode(&content)?)
    }

    /// All faces.
    ///
    /// # Errors
    /// If the router does not answer, or its answer is malformed.
    pub fn faces(&mut self) -> Result<Vec<FaceStatus>, CommandError> {
        Ok(FaceStatus::decode_list(
            &self.dataset("faces", "list", None)?,
        )?)
    }

    /// The programs behind the faces of the router's Unix socket; only routers of this kind
    /// have this dataset.
    ///
    /// # Errors
    /// If the router refuses, does not answer, or its answer is malformed.
    pub fn face_programs(&mut self) -> Result<Vec<FaceProgram>, CommandError> {
        Ok(FaceProgram::decode_list(
            &self.dataset("faces", "programs", None)?,
        )?)
    }

    /// The faces that agree with `filter`.
    ///
    /// # Errors
    /// If the router does not answer, or its answer is malformed.
    pub fn query_faces(
        &mut self,
        filter: &FaceQueryFilter,
    ) -> Result<Vec<FaceStatus>, CommandError> {
        let suffix = Component::generic(filter.encode());
        Ok(FaceStatus::decode_list(&self.dataset(
            "faces",
            "query",
            Some(&suffix),
        )?)?)
    }

    /// The listeners.
    ///
    /// # Errors
    /// If the router does not answer, or its answer is malformed.
    pub fn channels(&mut self) -> Result<Vec<tachonym_protocol::ChannelStatus>, CommandError> {
        let content = self.dataset("faces", "channels", None)?;
        Ok(tachonym_protocol::ChannelStatus::decode_list(&content)?)
    }

    /// The forwarding table.
    ///
    /// # Errors
    /// If the router does not answer, or its answer is malformed.
    pub fn fib(&mut self) -> Result<Vec<FibEntry>, CommandError> {
        Ok(FibEntry::decode_list(&self.dataset("fib", "list", None)?)?)
    }

    /// The routes.
    ///
    /// # Errors
    /// If the router does not answer, or its answer is malformed.
    pub fn rib(&mut self) -> Result<Vec<RibEntry>, CommandError> {
        Ok(RibEntry::decode_list(&self.dataset("rib", "list", None)?)?)
    }

    /// The strategies and where they apply.
    ///
    /// # Errors
    /// If the router does not answer, or its answer is malformed.
    pub fn strategies(&mut self) -> Result<Vec<StrategyChoice>, CommandError> {
        let content = self.dataset("strategy-choice", "list", None)?;
        Ok(StrategyChoice::decode_list(&content)?)
    }

    /// State of the content store.
    ///
    /// # Errors
    /// If the router does not answer, or its answer is malformed.
    pub fn content_store(&mut self) -> Result<CsInfo, CommandError> {
        Ok(CsInfo::decode(&self.dataset("cs", "info", None)?)?)
    }

    /// Counters of the content store; only routers of this kind have this dataset.
    ///
    /// # Errors
    /// If the router refuses, does not answer, or its answer is malformed.
    pub fn content_store_stats(&mut self) -> Result<CsStats, CommandError> {
        Ok(CsStats::decode(&self.dataset("cs", "stats", None)?)?)
    }

    /// Popularity of names; only routers of this kind have this dataset.
    ///
    /// # Errors
    /// If the router refuses, does not answer, or its answer is malformed.
    pub fn content_store_popularity(&mut self) -> Result<CsPopularity, CommandError> {
        let content = self.dataset("cs", "popularity", None)?;
        Ok(CsPopularity::decode(&content)?)
    }

    /// State of the workers; only routers of this kind have this dataset.
    ///
    /// # Errors
    /// If the router refuses, does not answer, or its answer is malformed.
    pub fn workers(&mut self) -> Result<WorkersStatus, CommandError> {
        Ok(WorkersStatus::decode(
            &self.dataset("workers", "list", None)?,
        )?)
    }

    /// How the router governs its power; only routers of this kind have this dataset.
    ///
    /// # Errors
    /// If the router refuses, does not answer, or its answer is malformed.
    pub fn power(&mut self) -> Result<PowerStatus, CommandError> {
        Ok(PowerStatus::decode(
            &self.dataset("status", "power", None)?,
        )?)
    }

    /// Waits for the next event of a face. `seen` is the number of the last notification,
    /// `None` at first; it is updated. Returns `None` at `deadline`.
    ///
    /// # Errors
    /// If the router refuses, or its answer is malformed.
    pub fn next_face_event(
        &mut self,
        seen: &mut Option<u64>,
        deadline: Option<MonoNs>,
    ) -> Result<Option<FaceEventNotification>, CommandError> {
        let stream = CommandName::local("faces", "events").name();
        loop {
            let mut lifetime_ms = NOTIFICATION_LIFETIME_MS;
            if let Some(deadline) = deadline {
                let left = deadline.saturating_since(self.endpoint.now()).as_millis();
                if left == 0 {
                    return Ok(None);
                }
                lifetime_ms = lifetime_ms.min(u64::try_from(left).unwrap_or(u64::MAX));
            }
            let name = match seen {
                Some(number) => stream
                    .clone()
                    .with(&Component::sequence(number.saturating_add(1))),
                None => stream.clone(),
            };
            let interest = Interest {
                can_be_prefix: seen.is_none(),
                must_be_fresh: seen.is_none(),
                lifetime_ms: Some(lifetime_ms),
                ..Interest::new(name)
            };
            match self.endpoint.express(&interest, 0) {
                Ok(answer) => {
                    let data = answer.data();
                    *seen = data.name().last().and_then(|last| last.as_number());
                    return Ok(Some(FaceEventNotification::decode(data.content())?));
                }
                Err(ExpressError::TimedOut) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn command_interest(name: Name) -> Interest {
    Interest {
        lifetime_ms: Some(COMMAND_LIFETIME_MS),
        must_be_fresh: true,
        ..Interest::new(name)
    }
}

fn refused(response: ControlResponse) -> CommandError {
    // A body that is not ControlParameters is ignored.
    let parameters = response.parameters().ok().flatten().unwrap_or_default();
    CommandError::Refused {
        code: response.code,
        text: response.text,
        parameters: Box::new(parameters),
    }
}
