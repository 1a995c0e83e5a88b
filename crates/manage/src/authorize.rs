//! Who may do what.
//!
//! Owns the rules by which modules are open to signers, and asks
//! `tachonym-security` whether a command's signature is one of theirs. A module
//! that no rule opens is closed. What a permitted command does is `manager`'s.

use tachonym_packet::{DataView, FaceId, InterestView, MonoNs};
use tachonym_protocol::Scope;
use tachonym_security::{
    Accepted, CommandVerifier, Reject, ReplayCounters, TrustPolicy, VerifierConfig,
    VerifierCounters,
};

use crate::verbs::Module;

/// Opens some modules to some signers.
#[derive(Clone, Debug)]
pub struct AuthorizeRule {
    /// Whose commands are obeyed.
    pub signers: TrustPolicy,
    /// In which modules.
    pub modules: Vec<Module>,
}

/// Who may do what.
#[derive(Clone, Debug)]
pub struct ManagementTrust {
    /// Rules for `/localhost/nfd`. A command is obeyed if any of them allows it.
    pub local: Vec<AuthorizeRule>,
    /// Which neighbours may register routes to themselves by `/localhop/nfd/rib`;
    /// `None`: it is not served.
    pub localhop: Option<TrustPolicy>,
    /// Whose prefix announcements count; the command that bears one has to be
    /// allowed as well.
    pub announcements: TrustPolicy,
    /// Whether those count that Data bring from neighbours, and make routes.
    pub learns_routes: bool,
    /// Limits of replay protection and of refused commands.
    pub verifier: VerifierConfig,
}

impl Default for ManagementTrust {
    /// What NFD's sample configuration allows: whoever reaches the router over a
    /// local face may do anything, if the command is signed. Digests are checked,
    /// and keys that nobody here knows are believed. Neighbours may do nothing.
    fn default() -> Self {
        Self {
            local: vec![AuthorizeRule {
                signers: TrustPolicy::any(),
                modules: Module::ALL.to_vec(),
            }],
            localhop: None,
            announcements: TrustPolicy::any(),
            learns_routes: false,
            verifier: verifier_config(),
        }
    }
}

/// Some clients sign commands by digest without time and nonce, and give the same
/// one again: whoever accepts any signer accepts those. The holder of a trusted
/// key has to tell the time.
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
}

impl Authorizer {
    pub(crate) fn new(trust: ManagementTrust) -> Self {
        Self {
            verifier: CommandVerifier::new(trust.verifier),
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

    /// Whether the signer of `interest`, which came in by `face`, may command
    /// `module`. The internal face is the router's own: what it asks for was
    /// configured, and only the signature has to be in order.
    pub(crate) fn check(
        &mut self,
        interest: &InterestView<'_>,
        (scope, module): (Scope, Module),
        face: FaceId,
        now: MonoNs,
        wall_ms: u64,
    ) -> Result<Accepted, Reject> {
        let policies: Vec<&TrustPolicy> = match scope {
            Scope::Localhost if face == FaceId::INTERNAL => vec![&self.own],
            Scope::Localhop => self.trust.localhop.iter().collect(),
            Scope::Localhost => {
                let rules = self.trust.local.iter();
                rules
                    .filter(|rule| rule.modules.contains(&module))
                    .map(|rule| &rule.signers)
                    .collect()
            }
        };
        self.verifier
            .verify(interest, &policies, face, now, wall_ms)
    }

    /// Whether announcements in Data are looked at.
    pub(crate) const fn learns_routes(&self) -> bool {
        self.trust.learns_routes
    }

    /// Whether the announcement `data` is to be believed.
    pub(crate) fn check_announcement(
        &self,
        data: &DataView<'_>,
        wall_ms: u64,
    ) -> Result<Accepted, Reject> {
        self.trust.announcements.verify_data(data, wall_ms)
    }
}
