//! Signed Interests: checked against trust policies, each accepted once.
//!
//! Owns the order of the checks, cheapest first, so that rubbish is refused
//! before any cryptography: how many of the source's were refused lately, form,
//! time, the key, replay, and only then the signature. State is kept only for
//! good signatures and, bounded, for sources of which something was refused. Who may
//! do what is the caller's to decide: it passes the policies that would allow it.

use std::collections::HashMap;

use tachonym_packet::types::signature_type;
use tachonym_packet::{DataView, InterestView, KeyLocatorView, MonoNs, Name, NameView, SourceId};

use crate::reject::Reject;
use crate::replay::{Mark, ReplayGuard, Times};
use crate::trust::TrustedKey;
use crate::{
    ReplayConfig, ReplayCounters, SignedInterest, TrustPolicy, VerifyError, VerifyingKey,
    verify_data,
};

/// Sources of which refused commands are remembered; of more, the latest.
const MAX_SOURCES: usize = 1024;

/// Limits of a [`CommandVerifier`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifierConfig {
    /// Limits of replay protection.
    pub replay: ReplayConfig,
    /// Interests of one source that may be refused for any reason, and not be
    /// forgiven yet, before all of its Interests are refused unchecked; at least 1.
    pub max_refused: u32,
    /// Time after which one refused Interest of a source is forgiven, in
    /// milliseconds.
    pub forgive_after_ms: u64,
}

impl Default for VerifierConfig {
    /// A hundred refused Interests, one forgiven every 50 ms.
    fn default() -> Self {
        Self {
            replay: ReplayConfig::default(),
            max_refused: 100,
            forgive_after_ms: 50,
        }
    }
}

/// How many signed Interests were accepted, and refused for which reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerifierCounters {
    /// Accepted.
    pub n_accepted: u64,
    /// [`Reject::Unsigned`].
    pub n_unsigned: u64,
    /// [`Reject::Malformed`].
    pub n_malformed: u64,
    /// [`Reject::MissingTime`].
    pub n_missing_time: u64,
    /// [`Reject::OutsideGrace`].
    pub n_outside_grace: u64,
    /// [`Reject::Replayed`].
    pub n_replayed: u64,
    /// [`Reject::BeforeStart`].
    pub n_before_start: u64,
    /// [`Reject::Throttled`].
    pub n_throttled: u64,
    /// [`Reject::UnknownKey`].
    pub n_unknown_key: u64,
    /// [`Reject::Expired`].
    pub n_expired: u64,
    /// [`Reject::NotAuthorized`].
    pub n_not_authorized: u64,
    /// [`Reject::ForeignName`].
    pub n_foreign_name: u64,
    /// [`Reject::WrongType`].
    pub n_wrong_type: u64,
    /// [`Reject::BadParametersDigest`].
    pub n_bad_parameters_digest: u64,
    /// [`Reject::BadSignature`].
    pub n_bad_signature: u64,
    /// Faces whose refused Interests were forgiven early, to note those of others.
    pub n_faces_forgotten: u64,
}

impl VerifierCounters {
    /// How many were refused for each reason, by the reason's name.
    #[must_use]
    pub const fn refusals(&self) -> [(&'static str, u64); 14] {
        [
            ("unsigned", self.n_unsigned),
            ("malformed", self.n_malformed),
            ("missing-time", self.n_missing_time),
            ("outside-grace", self.n_outside_grace),
            ("replayed", self.n_replayed),
            ("before-start", self.n_before_start),
            ("throttled", self.n_throttled),
            ("unknown-key", self.n_unknown_key),
            ("expired", self.n_expired),
            ("not-authorized", self.n_not_authorized),
            ("foreign-name", self.n_foreign_name),
            ("wrong-type", self.n_wrong_type),
            ("bad-parameters-digest", self.n_bad_parameters_digest),
            ("bad-signature", self.n_bad_signature),
        ]
    }

    /// How many were refused for any reason.
    #[must_use]
    pub fn n_refused(&self) -> u64 {
        self.refusals().iter().map(|(_, n)| n).sum()
    }

    fn count(&mut self, reject: Reject) {
        *match reject {
            Reject::Unsigned => &mut self.n_unsigned,
            Reject::Malformed(_) => &mut self.n_malformed,
            Reject::MissingTime => &mut self.n_missing_time,
            Reject::OutsideGrace => &mut self.n_outside_grace,
            Reject::Replayed => &mut self.n_replayed,
            Reject::BeforeStart => &mut self.n_before_start,
            Reject::Throttled => &mut self.n_throttled,
            Reject::UnknownKey => &mut self.n_unknown_key,
            Reject::Expired => &mut self.n_expired,
            Reject::NotAuthorized => &mut self.n_not_authorized,
            Reject::ForeignName => &mut self.n_foreign_name,
            Reject::WrongType => &mut self.n_wrong_type,
            Reject::BadParametersDigest => &mut self.n_bad_parameters_digest,
            Reject::BadSignature => &mut self.n_bad_signature,
        } += 1;
    }
}

/// Who signed an accepted Interest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// The holder of this key: the signature was verified.
    Key(Name),
    /// Anybody: the signature is a digest, and it is right.
    Digest,
    /// Who claims to hold this key, or says nothing of it: the policy accepts
    /// any signer, and does not know the key.
    Unverified(Option<Name>),
}

/// Checks signed Interests.
#[derive(Debug)]
pub struct CommandVerifier {
    config: VerifierConfig,
    replay: ReplayGuard,
    refusals: Refusals,
    counters: VerifierCounters,
}

impl CommandVerifier {
    /// A verifier that remembers nothing yet. `started` is now: what was signed before
    /// is refused, for a former verifier with the same keys may have accepted it.
    #[must_use]
    pub fn new(config: VerifierConfig, started: MonoNs) -> Self {
        Self {
            config,
            replay: ReplayGuard::new(config.replay, started),
            refusals: Refusals::default(),
            counters: VerifierCounters::default(),
        }
    }

    /// What was accepted and refused so far.
    #[must_use]
    pub const fn counters(&self) -> &VerifierCounters {
        &self.counters
    }

    /// What replay protection had to forget so far.
    #[must_use]
    pub const fn replay_counters(&self) -> &ReplayCounters {
        &self.replay.counters
    }

    /// Accepts `interest`, which came from a face of `source`, if one of `policies` does
    /// and it was not accepted before. A face alone is a source of its own. `about` is the name
    /// that the command speaks of, if any: a policy may bind keys to names
    /// ([`NameRule`](crate::NameRule)). `wall_ms` is now, in milliseconds since the Unix epoch.
    /// Without policies no signer is authorised.
    ///
    /// # Errors
    /// Says why it is refused.
    pub fn verify(
        &mut self,
        interest: &InterestView<'_>,
        about: Option<NameView<'_>>,
        policies: &[&TrustPolicy],
        source: impl Into<SourceId>,
        now: MonoNs,
        wall_ms: u64,
    ) -> Result<Accepted, Reject> {
        let source = source.into();
        if self.refusals.is_over(source, now, &self.config) {
            self.counters.count(Reject::Throttled);
            return Err(Reject::Throttled);
        }
        let times = Times { now, wall_ms };
        let result = self.check(interest, about, policies, times);
        match &result {
            Ok(_) => self.counters.n_accepted += 1,
            Err(reject) => {
                self.counters.count(*reject);
                let has_forgotten = self.refusals.note(source, now, &self.config);
                self.counters.n_faces_forgotten += u64::from(has_forgotten);
            }
        }
        result
    }

    fn check(
        &mut self,
        interest: &InterestView<'_>,
        about: Option<NameView<'_>>,
        policies: &[&TrustPolicy],
        times: Times,
    ) -> Result<Accepted, Reject> {
        let signed = SignedInterest::find(interest).map_err(Reject::Malformed)?;
        let signed = signed.ok_or(Reject::Unsigned)?;
        if signed.info().typ() == signature_type::NULL {
            return Err(Reject::Unsigned);
        }
        let mark = self.replay.mark(&signed, times)?;
        if policies.is_empty() {
            return Err(Reject::NotAuthorized);
        }
        let accepted = match signed.info().typ() {
            signature_type::DIGEST_SHA256 => self.check_digest(&signed, policies, &mark)?,
            _ => self.check_key(&signed, about, policies, (&mark, times.wall_ms))?,
        };
        let key_name = match &accepted {
            Accepted::Key(name) => Some(name),
            _ => None,
        };
        self.replay.remember(key_name, &mark);
        Ok(accepted)
    }

    fn check_digest(
        &self,
        signed: &SignedInterest<'_>,
        policies: &[&TrustPolicy],
        mark: &Mark,
    ) -> Result<Accepted, Reject> {
        if !policies.iter().any(|policy| policy.accepts_any()) {
            return Err(Reject::NotAuthorized);
        }
        self.replay.check(None, mark)?;
        signed.verify(&VerifyingKey::digest())?;
        Ok(Accepted::Digest)
    }

    fn check_key(
        &self,
        signed: &SignedInterest<'_>,
        about: Option<NameView<'_>>,
        policies: &[&TrustPolicy],
        (mark, wall_ms): (&Mark, u64),
    ) -> Result<Accepted, Reject> {
        let locator = signed.info().key_locator();
        // Several policies may know the same key: it is tried once.
        let mut tried: Vec<&TrustedKey> = Vec::new();
        let mut failure = None;
        for policy in policies {
            let Some(locator) = locator else {
                break;
            };
            for key in policy.find(locator) {
                let is_foreign = |name| !policy.may_sign_for(key, name);
                let refusal = if !policy.may_sign(key) {
                    Reject::NotAuthorized
                } else if about.is_some_and(is_foreign) {
                    Reject::ForeignName
                } else if !key.validity.contains(wall_ms) {
                    Reject::Expired
                } else if tried.iter().any(|other| is_same_key(other, key)) {
                    continue;
                } else {
                    tried.push(key);
                    self.replay.check(Some(&key.key_name), mark)?;
                    match signed.verify(&key.key) {
                        Ok(()) => return Ok(Accepted::Key(key.key_name.clone())),
                        Err(error) => error.into(),
                    }
                };
                failure = Some(worse(failure, refusal));
            }
        }
        if let Some(failure) = failure {
            return Err(failure);
        }
        self.check_unknown(signed, policies, mark)
    }

    /// A key that no policy knows.
    fn check_unknown(
        &self,
        signed: &SignedInterest<'_>,
        policies: &[&TrustPolicy],
        mark: &Mark,
    ) -> Result<Accepted, Reject> {
        if !policies.iter().any(|policy| policy.accepts_any()) {
            return Err(Reject::UnknownKey);
        }
        if !matches!(
            signed.info().typ(),
            signature_type::SHA256_WITH_RSA
                | signature_type::SHA256_WITH_ECDSA
                | signature_type::HMAC_WITH_SHA256
                | signature_type::ED25519
        ) {
            return Err(Reject::WrongType);
        }
        if !signed.verifies_parameters_digest() {
            return Err(Reject::BadParametersDigest);
        }
        self.replay.check(None, mark)?;
        Ok(Accepted::Unverified(match signed.info().key_locator() {
            Some(KeyLocatorView::Name(name)) => Some(name.to_name()),
            _ => None,
        }))
    }
}

impl TrustPolicy {
    /// Accepts `data` if its signature is one that counts. `wall_ms` is now, in
    /// milliseconds since the Unix epoch. A Data may be accepted any number of
    /// times.
    ///
    /// # Errors
    /// Says why it is refused.
    pub fn verify_data(&self, data: &DataView<'_>, wall_ms: u64) -> Result<Accepted, Reject> {
        self.verify_statement(data, data.name(), wall_ms)
    }

    /// As [`verify_data`](Self::verify_data), for a Data that speaks of `about` rather than
    /// of its own name: of the prefix that it announces.
    ///
    /// # Errors
    /// Says why it is refused.
    pub fn verify_statement(
        &self,
        data: &DataView<'_>,
        about: NameView<'_>,
        wall_ms: u64,
    ) -> Result<Accepted, Reject> {
        let typ = data.signature_info().typ();
        let locator = data.signature_info().key_locator();
        if typ == signature_type::NULL {
            return Err(Reject::Unsigned);
        }
        if typ == signature_type::DIGEST_SHA256 {
            if !self.accepts_any() {
                return Err(Reject::NotAuthorized);
            }
            verify_data(data, &VerifyingKey::digest())?;
            return Ok(Accepted::Digest);
        }
        let mut failure = None;
        for key in locator.into_iter().flat_map(|locator| self.find(locator)) {
            let refusal = if !self.may_sign(key) {
                Reject::NotAuthorized
            } else if !self.may_sign_for(key, about) {
                Reject::ForeignName
            } else if !key.validity.contains(wall_ms) {
                Reject::Expired
            } else {
                match verify_data(data, &key.key) {
                    Ok(()) => return Ok(Accepted::Key(key.key_name.clone())),
                    Err(error) => error.into(),
                }
            };
            failure = Some(worse(failure, refusal));
        }
        match failure {
            Some(failure) => Err(failure),
            None if self.accepts_any() => Ok(Accepted::Unverified(match locator {
                Some(KeyLocatorView::Name(name)) => Some(name.to_name()),
                _ => None,
            })),
            None => Err(Reject::UnknownKey),
        }
    }
}

impl From<VerifyError> for Reject {
    fn from(error: VerifyError) -> Self {
        match error {
            VerifyError::WrongType { .. } => Self::WrongType,
            VerifyError::BadSignature => Self::BadSignature,
            VerifyError::Unsigned => Self::Unsigned,
            VerifyError::BadParametersDigest => Self::BadParametersDigest,
            VerifyError::Malformed(error) => Self::Malformed(error),
        }
    }
}

pub(crate) fn is_same_key(a: &TrustedKey, b: &TrustedKey) -> bool {
    a.key_name == b.key_name
        && a.key.public_key_der().is_some()
        && a.key.public_key_der() == b.key.public_key_der()
}

/// Of two refusals, the one that says more: a signature that was tried and
/// failed before a key that was not tried.
fn worse(first: Option<Reject>, second: Reject) -> Reject {
    let tried = |reject| matches!(reject, Reject::BadSignature | Reject::BadParametersDigest);
    match first {
        Some(first) if tried(first) || !tried(second) => first,
        _ => second,
    }
}

/// Of which sources Interests were refused lately: for each, the time at which the
/// last of them will be forgiven (the generic cell rate algorithm of ITU-T
/// I.371, annex A).
#[derive(Debug, Default)]
struct Refusals {
    forgiven_at: HashMap<SourceId, MonoNs>,
}

impl Refusals {
    fn is_over(&self, source: SourceId, now: MonoNs, config: &VerifierConfig) -> bool {
        let Some(at) = self.forgiven_at.get(&source) else {
            return false;
        };
        let owed_ms = at.saturating_since(now).as_millis();
        let limit_ms = u128::from(config.max_refused.max(1)) * u128::from(config.forgive_after_ms);
        owed_ms >= limit_ms && limit_ms > 0
    }

    /// Notes a refused Interest; true if another source had to be forgiven for it:
    /// the one that would have been soonest. Linear in the sources then.
    fn note(&mut self, source: SourceId, now: MonoNs, config: &VerifierConfig) -> bool {
        let mut has_forgotten = false;
        if self.forgiven_at.len() >= MAX_SOURCES && !self.forgiven_at.contains_key(&source) {
            self.forgiven_at.retain(|_, at| *at > now);
            if self.forgiven_at.len() >= MAX_SOURCES {
                let soonest = self.forgiven_at.iter().min_by_key(|(_, at)| **at);
                let soonest = soonest.map(|(&source, _)| source);
                has_forgotten = soonest.is_some_and(|it| self.forgiven_at.remove(&it).is_some());
            }
        }
        let at = self.forgiven_at.entry(source).or_insert(now);
        *at = (*at).max(now).plus_ms(config.forgive_after_ms);
        has_forgotten
    }
}

#[cfg(test)]
mod tests {
    use tachonym_packet::FaceId;

    use super::*;

    #[test]
    fn many_sources_are_remembered_the_worst_for_longest_and_no_honest_one_suffers() {
        let config = VerifierConfig::default();
        let mut refusals = Refusals::default();
        let now = MonoNs::ZERO.plus_ms(1);
        let worst = SourceId::from(FaceId(1));
        for _ in 0..config.max_refused {
            assert!(!refusals.note(worst, now, &config));
        }
        let n_others = 2 * MAX_SOURCES as u64;
        let others = (0..n_others).map(|i| SourceId::from(FaceId(1_000 + i)));
        let n_forgotten = others.filter(|&f| refusals.note(f, now, &config)).count();
        assert_eq!(n_forgotten, MAX_SOURCES + 1);
        assert_eq!(refusals.forgiven_at.len(), MAX_SOURCES);
        assert!(refusals.is_over(worst, now, &config));
        assert!(!refusals.is_over(FaceId(2).into(), now, &config));
        let later = now.plus_ms(config.forgive_after_ms);
        assert!(!refusals.is_over(worst, later, &config));
    }
}
