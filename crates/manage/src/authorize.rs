//! Which signers may give which commands.
//!
//! Owns the rules by which modules are open to signers, and asks
//! `tachonym-security` whether a command's signature is one of theirs. A module
//! that no rule opens is closed. What a permitted command does is `manager`'s.

use std::collections::HashMap;

use tachonym_packet::{FaceId, InterestView, MonoNs, NameView, SourceId};
use tachonym_protocol::Scope;
use tachonym_security::{
    Accepted, CommandVerifier, Reject, ReplayCounters, TrustPolicy, VerifierConfig,
    VerifierCounters,
};

use crate::announcement::Announcement;
use crate::carriers::CommandTransport;
use crate::verbs::Module;

/// Opens some modules to some signers.
#[derive(Clone, Debug)]
pub struct AuthorizeRule {
    /// Whose commands are obeyed.
    pub signers: TrustPolicy,
    /// In which modules.
    pub modules: Vec<Module>,
}

/// What neighbours may register by `/localhop/nfd/rib`, each to itself. The response to a
/// command shows what was granted.
#[derive(Clone, Debug)]
pub struct LocalhopRule {
    /// Whose commands are obeyed, and for which names.
    pub signers: TrustPolicy,
    /// Least cost of a route; one that asks for less gets this.
    pub min_cost: u64,
    /// Whether a route may have the CAPTURE flag; if not, it is made without.
    pub allows_capture: bool,
    /// Longest life of a route, in milliseconds; one that asks for more, or for none, gets
    /// this. `None`: routes live for as long as they ask.
    pub max_expiry_ms: Option<u64>,
}

impl LocalhopRule {
    /// Longest life of a route, in milliseconds, unless set otherwise: a day.
    pub const DEFAULT_MAX_EXPIRY_MS: u64 = 86_400_000;

    /// Obeys `signers`. Routes cost what they ask, do not capture, and live for a day at
    /// most.
    #[must_use]
    pub const fn new(signers: TrustPolicy) -> Self {
        Self {
            signers,
            min_cost: 0,
            allows_capture: false,
            max_expiry_ms: Some(Self::DEFAULT_MAX_EXPIRY_MS),
        }
    }

    /// How long a route may live that asks for `wanted_ms`; `None`: for ever.
    pub(crate) fn granted_ms(&self, wanted_ms: Option<u64>) -> Option<u64> {
        match (wanted_ms, self.max_expiry_ms) {
            (Some(wanted_ms), Some(max_ms)) => Some(wanted_ms.min(max_ms)),
            (wanted_ms, max_ms) => wanted_ms.or(max_ms),
        }
    }
}

/// Which signers may give which commands.
#[derive(Clone, Debug)]
pub struct ManagementTrust {
    /// Rules for `/localhost/nfd`. A command is obeyed if any of them allows it.
    pub local: Vec<AuthorizeRule>,
    /// Transports whose local faces may carry commands for `/localhost/nfd`; those of
    /// others may only read datasets. `None`: all.
    pub transports: Option<Vec<CommandTransport>>,
    /// Which neighbours may register what by `/localhop/nfd/rib`; `None`: it is not served.
    pub localhop: Option<LocalhopRule>,
    /// Whose prefix announcements count; the command that bears one has to be
    /// allowed as well.
    pub announcements: TrustPolicy,
    /// Whether those count that Data bring from neighbours, and make routes.
    pub learns_routes: bool,
    /// Limits of replay protection and of refused commands.
    pub verifier: VerifierConfig,
}

impl Default for ManagementTrust {
    /// What NFD's sample configuration allows: any program that reaches the router over a
    /// local face may do anything, if the command is signed. Digests are checked,
    /// and unknown keys are accepted. Neighbours may do nothing.
    fn default() -> Self {
        Self {
            local: vec![AuthorizeRule {
                signers: TrustPolicy::any(),
                modules: Module::ALL.to_vec(),
            }],
            transports: None,
            localhop: None,
            announcements: TrustPolicy::any(),
            learns_routes: false,
            verifier: verifier_config(),
        }
    }
}

/// Some clients sign commands by digest without time and nonce, and give the same
/// one again: a rule that accepts any signer accepts those. The holder of a trusted
/// key must write the time of signing.
fn verifier_config() -> VerifierConfig {
    let mut config = VerifierConfig::default();
    config.replay.require_time = false;
    config
}

/// Checks commands against a [`ManagementTrust`].
#[derive(Debug)]
pub(crate) struct Authorizer {
    trust: ManagementTrust,
    own: TrustPolicy,
    verifier: CommandVerifier,
    /// Of faces that share limits with others.
    sources: HashMap<FaceId, SourceId>,
}

impl Authorizer {
    /// `started` is the time of the start, before which nothing counts as signed.
    pub(crate) fn new(trust: ManagementTrust, started: MonoNs) -> Self {
        Self {
            verifier: CommandVerifier::new(trust.verifier, started),
            sources: HashMap::new(),
            own: TrustPolicy::any(),
            trust,
        }
    }

    pub(crate) const fn counters(&self) -> &VerifierCounters {
        self.verifier.counters()
    }

    pub(crate) const fn replay_counters(&self) -> &ReplayCounters {
        self.verifier.replay_counters()
    }

    /// Whether commands on `/localhop/nfd` are looked at.
    pub(crate) const fn is_localhop_enabled(&self) -> bool {
        self.trust.localhop.is_some()
    }

    /// Whether announcements of any signer count. Then the bearer of one answers for its
    /// prefix.
    pub(crate) const fn believes_any_announcement(&self) -> bool {
        self.trust.announcements.accepts_any()
    }

    /// What bounds the routes that commands of this scope make.
    pub(crate) fn bounds(&self, scope: Scope) -> Option<&LocalhopRule> {
        let is_neighbour = scope == Scope::Localhop;
        self.trust.localhop.as_ref().filter(|_| is_neighbour)
    }

    /// Whether the signer of `interest`, which came in by `face`, may command
    /// `module`, and on `/localhop` for the prefix `about`. The internal face is the router's own: what it asks for was
    /// configured, and only the signature has to be in order.
    pub(crate) fn check(
        &mut self,
        interest: &InterestView<'_>,
        (scope, module): (Scope, Module),
        about: Option<NameView<'_>>,
        face: FaceId,
        now: MonoNs,
        wall_ms: u64,
    ) -> Result<Accepted, Reject> {
        let policies: Vec<&TrustPolicy> = match scope {
            Scope::Localhost if face == FaceId::INTERNAL => vec![&self.own],
            Scope::Localhop => self.trust.localhop.iter().map(|it| &it.signers).collect(),
            Scope::Localhost => {
                let rules = self.trust.local.iter();
                rules
                    .filter(|rule| rule.modules.contains(&module))
                    .map(|rule| &rule.signers)
                    .collect()
            }
        };
        let source = self.sources.get(&face).copied();
        let source = source.unwrap_or_else(|| face.into());
        self.verifier
            .verify(interest, about, &policies, source, now, wall_ms)
    }

    /// A face shares the limits of refused commands with others of `source`.
    pub(crate) fn insert_face(&mut self, face: FaceId, source: SourceId) {
        self.sources.insert(face, source);
    }

    /// A face is gone.
    pub(crate) fn remove_face(&mut self, face: FaceId) {
        self.sources.remove(&face);
    }

    /// Whether announcements in Data are looked at.
    pub(crate) const fn learns_routes(&self) -> bool {
        self.trust.learns_routes
    }

    /// Whether the signer of an announcement may announce its prefix.
    pub(crate) fn check_announcement(
        &self,
        announcement: &Announcement<'_>,
        wall_ms: u64,
    ) -> Result<Accepted, Reject> {
        let policy = &self.trust.announcements;
        policy.verify_statement(&announcement.data, announcement.prefix.view(), wall_ms)
    }
}
