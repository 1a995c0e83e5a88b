//! Which commands, datasets and streams there are, and which parameters each
//! command takes.
//!
//! Owns the grammar of management only: what a command does is in `commands`,
//! who may give it in `authorize`. Source: NFD Management protocol, the page of
//! each module.

use tachonym_packet::NameView;
use tachonym_protocol::{CommandName, ControlParameters, TRACE_MAX_MS};

/// A part of the router that is managed; privileges are given by module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Module {
    /// `faces`.
    Faces,
    /// `fib`.
    Fib,
    /// `rib`.
    Rib,
    /// `cs`.
    Cs,
    /// `strategy-choice`.
    StrategyChoice,
    /// `workers`, this router's own.
    Workers,
    /// `trace`, this router's own.
    Trace,
}

impl Module {
    /// Every module that takes commands.
    pub const ALL: [Self; 7] = [
        Self::Faces,
        Self::Fib,
        Self::Rib,
        Self::Cs,
        Self::StrategyChoice,
        Self::Workers,
        Self::Trace,
    ];

    /// The name component.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Faces => "faces",
            Self::Fib => "fib",
            Self::Rib => "rib",
            Self::Cs => "cs",
            Self::StrategyChoice => "strategy-choice",
            Self::Workers => "workers",
            Self::Trace => "trace",
        }
    }

    /// The module with this name component.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|module| module.as_str() == name)
    }
}

/// A command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    FacesCreate,
    FacesUpdate,
    FacesDestroy,
    FibAddNextHop,
    FibRemoveNextHop,
    RibRegister,
    RibUnregister,
    RibAnnounce,
    CsConfig,
    CsErase,
    StrategySet,
    StrategyUnset,
    Workers(WorkersVerb),
    Trace(TraceVerb),
}

/// A command on the workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WorkersVerb {
    Freeze,
    Thaw,
    Pin,
    Unpin,
    Add,
    Remove,
}

/// A command on traces of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TraceVerb {
    Start,
    Stop,
}

/// Something to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dataset {
    FacesList,
    FacesQuery,
    FacesChannels,
    /// This router's own; NFD has no such dataset.
    FacesPrograms,
    FibList,
    RibList,
    CsInfo,
    /// This router's own; NFD has no such dataset.
    CsStats,
    /// Likewise.
    CsPopularity,
    StrategyList,
    GeneralStatus,
    /// This router's own; NFD has no such dataset.
    Drops,
    /// Likewise.
    Memory,
    /// Likewise.
    Explain,
    /// Likewise.
    Workers,
    /// Packets that were dropped lately; this router's own.
    RecentDrops,
    /// How the router governs its power; this router's own.
    Power,
    /// What a trace of packets has recorded; this router's own.
    TraceRecords,
}

/// What a module and a verb together name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Command(Module, Verb),
    Dataset(Dataset),
    FaceEvents,
    /// A verb that this module does not have, or a module that is not there.
    Unknown(Option<Module>),
}

impl Target {
    pub(crate) fn of(module: &str, verb: &str) -> Self {
        let dataset = match (module, verb) {
            ("faces", "list") => Dataset::FacesList,
            ("faces", "query") => Dataset::FacesQuery,
            ("faces", "channels") => Dataset::FacesChannels,
            ("faces", "programs") => Dataset::FacesPrograms,
            ("faces", "events") => return Self::FaceEvents,
            ("fib", "list") => Dataset::FibList,
            ("rib", "list") => Dataset::RibList,
            ("cs", "info") => Dataset::CsInfo,
            ("cs", "stats") => Dataset::CsStats,
            ("cs", "popularity") => Dataset::CsPopularity,
            ("strategy-choice", "list") => Dataset::StrategyList,
            ("status", "general") => Dataset::GeneralStatus,
            ("status", "drops") => Dataset::Drops,
            ("status", "memory") => Dataset::Memory,
            ("status", "explain") => Dataset::Explain,
            ("status", "recent-drops") => Dataset::RecentDrops,
            ("status", "power") => Dataset::Power,
            ("trace", "records") => Dataset::TraceRecords,
            ("workers", "list") => Dataset::Workers,
            _ => return Self::command(module, verb),
        };
        Self::Dataset(dataset)
    }

    /// The dataset that answers an Interest with CanBePrefix for `name`, the name of a
    /// module or a prefix of one: the one whose name the module's others follow, or the
    /// router's status.
    pub(crate) fn of_prefix(name: NameView<'_>) -> Option<CommandName<'static>> {
        const REPRESENTATIVES: [(&str, &str); 8] = [
            ("status", "general"),
            ("faces", "list"),
            ("fib", "list"),
            ("rib", "list"),
            ("cs", "info"),
            ("strategy-choice", "list"),
            ("workers", "list"),
            ("trace", "records"),
        ];
        let names = REPRESENTATIVES.map(|(module, verb)| CommandName::local(module, verb));
        names
            .into_iter()
            .find(|dataset| dataset.name().starts_with(name))
    }

    fn command(module: &str, verb: &str) -> Self {
        let Some(module) = Module::from_name(module) else {
            return Self::Unknown(None);
        };
        let verb = match (module, verb) {
            (Module::Faces, "create") => Verb::FacesCreate,
            (Module::Faces, "update") => Verb::FacesUpdate,
            (Module::Faces, "destroy") => Verb::FacesDestroy,
            (Module::Fib, "add-nexthop") => Verb::FibAddNextHop,
            (Module::Fib, "remove-nexthop") => Verb::FibRemoveNextHop,
            (Module::Rib, "register") => Verb::RibRegister,
            (Module::Rib, "unregister") => Verb::RibUnregister,
            (Module::Rib, "announce") => Verb::RibAnnounce,
            (Module::Cs, "config") => Verb::CsConfig,
            (Module::Cs, "erase") => Verb::CsErase,
            (Module::StrategyChoice, "set") => Verb::StrategySet,
            (Module::StrategyChoice, "unset") => Verb::StrategyUnset,
            (Module::Workers, "freeze") => Verb::Workers(WorkersVerb::Freeze),
            (Module::Workers, "thaw") => Verb::Workers(WorkersVerb::Thaw),
            (Module::Workers, "pin") => Verb::Workers(WorkersVerb::Pin),
            (Module::Workers, "unpin") => Verb::Workers(WorkersVerb::Unpin),
            (Module::Workers, "add") => Verb::Workers(WorkersVerb::Add),
            (Module::Workers, "remove") => Verb::Workers(WorkersVerb::Remove),
            (Module::Trace, "start") => Verb::Trace(TraceVerb::Start),
            (Module::Trace, "stop") => Verb::Trace(TraceVerb::Stop),
            _ => return Self::Unknown(Some(module)),
        };
        Self::Command(module, verb)
    }
}

/// A set of fields of [`ControlParameters`].
#[derive(Clone, Copy)]
struct Fields(u32);

impl Fields {
    const NONE: Self = Self(0);
    const NAME: Self = Self(1 << 0);
    const FACE_ID: Self = Self(1 << 1);
    const URI: Self = Self(1 << 2);
    const LOCAL_URI: Self = Self(1 << 3);
    const ORIGIN: Self = Self(1 << 4);
    const COST: Self = Self(1 << 5);
    const CAPACITY: Self = Self(1 << 6);
    const COUNT: Self = Self(1 << 7);
    const FLAGS: Self = Self(1 << 8);
    const MASK: Self = Self(1 << 9);
    const STRATEGY: Self = Self(1 << 10);
    const EXPIRATION: Self = Self(1 << 11);
    const PERSISTENCY: Self = Self(1 << 12);
    const BASE_INTERVAL: Self = Self(1 << 13);
    const THRESHOLD: Self = Self(1 << 14);
    const MTU: Self = Self(1 << 15);
    const CS_POLICY: Self = Self(1 << 16);
    const WORKER: Self = Self(1 << 17);
    const TRACE_ID: Self = Self(1 << 18);
    const SAMPLE: Self = Self(1 << 19);

    const NAMES: [&'static str; 20] = [
        "Name",
        "FaceId",
        "Uri",
        "LocalUri",
        "Origin",
        "Cost",
        "Capacity",
        "Count",
        "Flags",
        "Mask",
        "Strategy",
        "ExpirationPeriod",
        "FacePersistency",
        "BaseCongestionMarkingInterval",
        "DefaultCongestionThreshold",
        "Mtu",
        "CsPolicy",
        "Worker",
        "TraceId",
        "Sample",
    ];

    const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    fn of(p: &ControlParameters) -> Self {
        let present = [
            p.name.is_some(),
            p.face_id.is_some(),
            p.uri.is_some(),
            p.local_uri.is_some(),
            p.origin.is_some(),
            p.cost.is_some(),
            p.capacity.is_some(),
            p.count.is_some(),
            p.flags.is_some(),
            p.mask.is_some(),
            p.strategy.is_some(),
            p.expiration_period_ms.is_some(),
            p.face_persistency.is_some(),
            p.base_congestion_marking_interval_ns.is_some(),
            p.default_congestion_threshold_bytes.is_some(),
            p.mtu_bytes.is_some(),
            p.cs_policy.is_some(),
            p.worker.is_some(),
            p.trace_id.is_some(),
            p.sample.is_some(),
        ];
        let bits = present.iter().enumerate();
        Self(bits.fold(0, |bits, (i, &is_there)| bits | u32::from(is_there) << i))
    }

    /// The protocol's name of the first field in the set.
    fn first_name(self) -> &'static str {
        Self::NAMES[self.0.trailing_zeros() as usize]
    }
}

/// What is wrong with the parameters of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ParameterError {
    #[error("{0} is required but missing")]
    Missing(&'static str),
    #[error("{0} is forbidden but present")]
    Forbidden(&'static str),
    #[error("Flags must be accompanied by Mask")]
    FlagsWithoutMask,
    #[error("{0} is out of range")]
    OutOfRange(&'static str),
}

impl Verb {
    /// Fields that have to be there, and fields that may.
    const fn fields(self) -> (Fields, Fields) {
        type F = Fields;
        const LINK: Fields = F::FLAGS
            .and(F::MASK)
            .and(F::PERSISTENCY)
            .and(F::BASE_INTERVAL)
            .and(F::THRESHOLD)
            .and(F::MTU);
        match self {
            Self::FacesCreate => (F::URI, F::LOCAL_URI.and(LINK)),
            Self::FacesUpdate => (F::NONE, F::FACE_ID.and(LINK)),
            Self::FacesDestroy => (F::FACE_ID, F::NONE),
            Self::FibAddNextHop => (F::NAME, F::FACE_ID.and(F::COST)),
            Self::FibRemoveNextHop => (F::NAME, F::FACE_ID),
            Self::RibRegister => (
                F::NAME,
                F::FACE_ID
                    .and(F::ORIGIN)
                    .and(F::COST)
                    .and(F::FLAGS)
                    .and(F::EXPIRATION),
            ),
            Self::RibUnregister => (F::NAME, F::FACE_ID.and(F::ORIGIN)),
            Self::RibAnnounce => (F::NONE, F::NONE),
            Self::CsConfig => (
                F::NONE,
                F::CAPACITY.and(F::FLAGS).and(F::MASK).and(F::CS_POLICY),
            ),
            Self::CsErase => (F::NAME, F::COUNT),
            Self::StrategySet => (F::NAME.and(F::STRATEGY), F::NONE),
            Self::StrategyUnset => (F::NAME, F::NONE),
            Self::Workers(verb) => (verb.fields(), F::NONE),
            Self::Trace(TraceVerb::Start) => (F::NAME, F::COUNT.and(F::EXPIRATION).and(F::SAMPLE)),
            Self::Trace(TraceVerb::Stop) => (F::TRACE_ID, F::NONE),
        }
    }

    /// Checks which fields are there, and the ranges that hold for every router.
    pub(crate) fn check(self, parameters: &ControlParameters) -> Result<(), ParameterError> {
        let (required, optional) = self.fields();
        let present = Fields::of(parameters);
        let missing = Fields(required.0 & !present.0);
        if missing.0 != 0 {
            return Err(ParameterError::Missing(missing.first_name()));
        }
        let forbidden = Fields(present.0 & !required.and(optional).0);
        if forbidden.0 != 0 {
            return Err(ParameterError::Forbidden(forbidden.first_name()));
        }
        let takes_mask = optional.has(Fields::FLAGS.and(Fields::MASK));
        if takes_mask && present.has(Fields::FLAGS) != present.has(Fields::MASK) {
            return Err(ParameterError::FlagsWithoutMask);
        }
        let out_of_range = match self {
            Self::FacesDestroy => (parameters.face_id == Some(0)).then_some("FaceId"),
            Self::RibRegister | Self::RibUnregister => parameters
                .origin
                .is_some_and(|origin| origin > u64::from(u16::MAX))
                .then_some("Origin"),
            Self::CsErase => (parameters.count == Some(0)).then_some("Count"),
            Self::Trace(TraceVerb::Start) if parameters.count == Some(0) => Some("Count"),
            Self::Trace(TraceVerb::Start) if parameters.sample == Some(0) => Some("Sample"),
            Self::Trace(TraceVerb::Start) => parameters
                .expiration_period_ms
                .is_some_and(|ms| ms == 0 || ms > TRACE_MAX_MS)
                .then_some("ExpirationPeriod"),
            Self::StrategyUnset => parameters
                .name
                .as_ref()
                .is_some_and(|name| name.is_empty())
                .then_some("Name"),
            _ => None,
        };
        out_of_range.map_or(Ok(()), |field| Err(ParameterError::OutOfRange(field)))
    }
}

impl WorkersVerb {
    /// Fields that have to be there; no other may.
    const fn fields(self) -> Fields {
        match self {
            Self::Freeze | Self::Thaw | Self::Add => Fields::NONE,
            Self::Pin => Fields::NAME.and(Fields::WORKER),
            Self::Unpin => Fields::NAME,
            Self::Remove => Fields::WORKER,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn p() -> ControlParameters {
        ControlParameters::default()
    }

    #[test]
    fn required_forbidden_and_unpaired_fields_are_told_apart() {
        use ParameterError::*;
        assert_eq!(Verb::FacesCreate.check(&p()), Err(Missing("Uri")));
        let uri = ControlParameters {
            uri: Some("null://".into()),
            ..p()
        };
        assert_eq!(Verb::FacesCreate.check(&uri), Ok(()));
        let with_cost = ControlParameters {
            cost: Some(1),
            ..uri.clone()
        };
        assert_eq!(Verb::FacesCreate.check(&with_cost), Err(Forbidden("Cost")));
        let unpaired = ControlParameters {
            flags: Some(1),
            ..uri
        };
        assert_eq!(Verb::FacesCreate.check(&unpaired), Err(FlagsWithoutMask));
        let unpaired = ControlParameters {
            mask: Some(1),
            ..p()
        };
        assert_eq!(Verb::CsConfig.check(&unpaired), Err(FlagsWithoutMask));
        // A route's flags have no mask.
        let route = ControlParameters {
            name: Some("/a".parse().unwrap()),
            flags: Some(1),
            ..p()
        };
        assert_eq!(Verb::RibRegister.check(&route), Ok(()));
        let masked = ControlParameters {
            mask: Some(1),
            ..route
        };
        assert_eq!(Verb::RibRegister.check(&masked), Err(Forbidden("Mask")));
    }

    #[test]
    fn values_that_no_router_takes_are_out_of_range() {
        use ParameterError::OutOfRange;
        let root = ControlParameters {
            name: Some("/".parse().unwrap()),
            ..p()
        };
        assert_eq!(Verb::StrategyUnset.check(&root), Err(OutOfRange("Name")));
        let face = ControlParameters {
            face_id: Some(0),
            ..p()
        };
        assert_eq!(Verb::FacesDestroy.check(&face), Err(OutOfRange("FaceId")));
        let erase = ControlParameters {
            count: Some(0),
            ..root.clone()
        };
        assert_eq!(Verb::CsErase.check(&erase), Err(OutOfRange("Count")));
        let route = ControlParameters {
            origin: Some(65536),
            ..root
        };
        assert_eq!(Verb::RibRegister.check(&route), Err(OutOfRange("Origin")));
    }

    #[test]
    fn each_prefix_of_management_has_a_dataset_and_nothing_else_has() {
        for (uri, dataset) in [
            ("/localhost", Some("/localhost/nfd/status/general")),
            ("/localhost/nfd", Some("/localhost/nfd/status/general")),
            ("/localhost/nfd/rib", Some("/localhost/nfd/rib/list")),
            ("/localhost/nfd/cs", Some("/localhost/nfd/cs/info")),
            ("/localhost/nfd/disco", None),
            ("/localhop", None),
            ("/local", None),
        ] {
            let name: tachonym_packet::Name = uri.parse().unwrap();
            let found = Target::of_prefix(name.view()).map(|it| it.name().to_string());
            assert_eq!(found.as_deref(), dataset, "{uri}");
        }
        for module in Module::ALL {
            let name = CommandName::local(module.as_str(), "x").name();
            let name = name.prefix(name.len() - 1);
            let dataset = Target::of_prefix(name).expect("every module has one");
            let target = Target::of(dataset.module, dataset.verb);
            assert!(matches!(target, Target::Dataset(_)), "{target:?}");
        }
    }

    #[test]
    fn unknown_verbs_of_known_modules_are_told_from_unknown_modules() {
        assert_eq!(
            Target::of("rib", "register"),
            Target::Command(Module::Rib, Verb::RibRegister)
        );
        assert_eq!(Target::of("rib", "list"), Target::Dataset(Dataset::RibList));
        assert_eq!(
            Target::of("rib", "dance"),
            Target::Unknown(Some(Module::Rib))
        );
        assert_eq!(Target::of("disco", "dance"), Target::Unknown(None));
    }
}
