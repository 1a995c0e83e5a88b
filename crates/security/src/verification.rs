//! Data that are verified on their way: whose signatures count under which prefix.
//!
//! Owns the rules, the verdict on a Data and the reasons of bad ones. All keys come with
//! the rules: nothing is fetched, so a Data whose signer they do not know is as bad as a
//! forged one. Verdicts that were good are remembered, bad ones never are: who sends bad
//! Data displaces nothing, and a Data may be good later, when its certificate holds.
//!
//! What stands behind the signature of a Data (unknown elements that are not critical)
//! is covered by no signature, and so by no verdict either.

use std::fmt;
use std::sync::Arc;

use tachonym_packet::types::signature_type;
use tachonym_packet::{DataView, Name, NameView};

use crate::key::Hashed;
use crate::trust::TrustedKey;
use crate::verified::{Tag, Verified};
use crate::verifier::is_same_key;
use crate::{KeyKind, TrustPolicy, sha256};

macro_rules! poisons {
    ($($(#[$doc:meta])+ $variant:ident = $label:literal,)+) => {
        /// Why a Data is bad. Of several reasons the last one here counts, which says most.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Poison { $($(#[$doc])+ $variant,)+ }

        impl Poison {
            /// Every reason, in the order of [`VerificationCounters::poisoned`].
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The name operators see: lower case, words joined by hyphens.
            #[must_use]
            pub const fn label(self) -> &'static str {
                match self { $(Self::$variant => $label,)+ }
            }
        }
    };
}

poisons! {
    /// It is signed by no key: its signature is none, or a digest.
    Unsigned = "unsigned-data",
    /// It names no key that the rule knows.
    UnknownKey = "unknown-key",
    /// The rule knows the key, but not as one of those that may sign Data.
    NotAuthorized = "key-not-authorized",
    /// The key may sign Data only under its identity, and this one is elsewhere.
    ForeignName = "name-not-under-signer",
    /// The key's certificate, or one that it depends on, does not hold now.
    Expired = "key-expired",
    /// The signature type is not that of the key; or is no digest, where one is asked for.
    WrongType = "wrong-signature-type",
    /// The signature is wrong.
    BadSignature = "bad-signature",
}

impl fmt::Display for Poison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

/// What is to be thought of a Data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Its signature counts, or no rule concerns it.
    Good,
    /// It is not what its producer made, or nobody can tell that it is.
    Poisoned(Poison),
}

/// What signature Data must have.
#[derive(Clone, Debug)]
pub enum RequiredSignature {
    /// Their own SHA-256 digest: shows damage, not who made them.
    Digest,
    /// One by a key that the policy trusts and lets sign. That a policy accepts any signer
    /// is of no effect here: a key that nobody knows proves nothing.
    Key(Box<TrustPolicy>),
}

/// What is asked of Data under a prefix.
#[derive(Clone, Debug)]
pub struct VerificationRule {
    /// The prefix.
    pub prefix: Name,
    /// What their signature must be.
    pub signature: RequiredSignature,
}

/// Rules by prefix, of which the longest counts. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct VerificationRules {
    /// Longest prefixes first; each prefix once.
    rules: Arc<[VerificationRule]>,
}

impl VerificationRules {
    /// Puts rules together. Of two for one prefix the first counts.
    #[must_use]
    pub fn new(mut rules: Vec<VerificationRule>) -> Self {
        rules.sort_by_key(|rule| std::cmp::Reverse(rule.prefix.value_bytes().len()));
        Self {
            rules: rules.into(),
        }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The rule for a name. Linear in the rules, each of which costs a comparison.
    fn find(&self, name: NameView<'_>) -> Option<&VerificationRule> {
        let mut rules = self.rules.iter();
        rules.find(|rule| name.starts_with(rule.prefix.view()))
    }
}

/// How many Data were verified, and found bad for which reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerificationCounters {
    /// Data whose signature was computed and good.
    pub n_good: u64,
    /// Data that were known to be good, and not verified again.
    pub n_remembered: u64,
    poisoned: [u64; Poison::ALL.len()],
}

impl VerificationCounters {
    /// Every reason, with how many Data were bad for it.
    pub fn poisoned(&self) -> impl Iterator<Item = (Poison, u64)> + '_ {
        Poison::ALL
            .iter()
            .copied()
            .zip(self.poisoned.iter().copied())
    }

    /// How many Data were bad for any reason.
    #[must_use]
    pub fn n_poisoned(&self) -> u64 {
        self.poisoned.iter().sum()
    }
}

/// Verifies Data, one after the other. Each thread has its own, the rules are shared.
#[derive(Debug)]
pub struct DataVerification {
    rules: VerificationRules,
    verified: Verified,
    secret: [u8; 32],
    counters: VerificationCounters,
}

impl DataVerification {
    /// Verifies by `rules` and remembers up to `n_remembered` good Data (rounded up to a
    /// multiple of eight, 20 bytes each), so that the same Data is not verified twice; 0:
    /// none. `secret` must be random and new: from it comes what stands for a Data in that
    /// memory.
    #[must_use]
    pub fn new(rules: VerificationRules, n_remembered: usize, secret: [u8; 32]) -> Self {
        Self {
            rules,
            verified: Verified::new(n_remembered),
            secret,
            counters: VerificationCounters::default(),
        }
    }

    /// Whether a rule is for Data of this name. Linear in the rules.
    #[must_use]
    #[inline]
    pub fn is_concerned(&self, name: NameView<'_>) -> bool {
        self.rules.find(name).is_some()
    }

    /// What was found so far.
    #[must_use]
    pub const fn counters(&self) -> &VerificationCounters {
        &self.counters
    }

    /// Verifies `data` if a rule is for it, and counts it then. `wall_ms` is now, in
    /// milliseconds since the Unix epoch. What can be told without cryptography is told
    /// first; a Data that is remembered costs a SHA-256 of it.
    pub fn verify(&mut self, data: &DataView<'_>, wall_ms: u64) -> Verdict {
        let Some(rule) = self.rules.find(data.name()) else {
            return Verdict::Good;
        };
        let result = match &rule.signature {
            RequiredSignature::Digest => check_digest(data),
            RequiredSignature::Key(policy) => {
                let memory = Memory {
                    verified: &mut self.verified,
                    secret: &self.secret,
                };
                check_key(data, policy, memory, wall_ms)
            }
        };
        let counters = &mut self.counters;
        match result {
            Ok(Found::Verified) => counters.n_good += 1,
            Ok(Found::Remembered) => counters.n_remembered += 1,
            Err(poison) => {
                counters.poisoned[poison as usize] += 1;
                return Verdict::Poisoned(poison);
            }
        }
        Verdict::Good
    }
}

/// How a Data was found to be good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Verified,
    Remembered,
}

/// What is remembered, and under which secret.
struct Memory<'m> {
    verified: &'m mut Verified,
    secret: &'m [u8; 32],
}

fn check_digest(data: &DataView<'_>) -> Result<Found, Poison> {
    match data.signature_info().typ() {
        signature_type::DIGEST_SHA256 => {}
        signature_type::NULL => return Err(Poison::Unsigned),
        _ => return Err(Poison::WrongType),
    }
    // No secret is compared, so it may take less time where they differ.
    match sha256(&[data.signed_portion()]) == data.signature_value() {
        true => Ok(Found::Verified),
        false => Err(Poison::BadSignature),
    }
}

fn check_key(
    data: &DataView<'_>,
    policy: &TrustPolicy,
    memory: Memory<'_>,
    wall_ms: u64,
) -> Result<Found, Poison> {
    let info = data.signature_info();
    let typ = info.typ();
    if matches!(typ, signature_type::NULL | signature_type::DIGEST_SHA256) {
        return Err(Poison::Unsigned);
    }
    let locator = info.key_locator().ok_or(Poison::UnknownKey)?;
    let indices = policy.find_indices(locator);
    let doubt = |idx: usize| doubt(policy, policy.key(idx), data.name(), (typ, wall_ms));
    // Of a key without doubt; else the reason that says most.
    if indices.iter().all(|&idx| doubt(idx).is_some()) {
        let worst = indices.iter().filter_map(|&idx| doubt(idx)).max();
        return Err(worst.unwrap_or(Poison::UnknownKey));
    }

    let hashed = Hashed::new(data.signed_portion());
    let signature = data.signature_value();
    // To hash is all that an HMAC costs.
    let is_worth = memory.verified.is_in_use() && typ != KeyKind::Hmac.signature_type();
    let tag: Option<Tag> = is_worth.then(|| tag_of(&hashed, signature, memory.secret));
    if let Some(key_idx) = tag.and_then(|tag| memory.verified.find(&tag))
        && doubt(key_idx as usize).is_none()
    {
        return Ok(Found::Remembered);
    }
    for (n, &idx) in indices.iter().enumerate() {
        let key = policy.key(idx);
        // A key with several certificates is there several times.
        let is_tried =
            |&other: &usize| doubt(other).is_none() && is_same_key(policy.key(other), key);
        if doubt(idx).is_some() || indices[..n].iter().any(is_tried) {
            continue;
        }
        if key.key.verify_hashed(&hashed, signature).is_ok() {
            if let (Some(tag), Ok(key_idx)) = (tag, u32::try_from(idx)) {
                memory.verified.insert(tag, key_idx);
            }
            return Ok(Found::Verified);
        }
    }
    Err(Poison::BadSignature)
}

/// Why a signature of type `typ` by `key` on a Data called `name` does not count at
/// `wall_ms`, whatever it is.
fn doubt(
    policy: &TrustPolicy,
    key: &TrustedKey,
    name: NameView<'_>,
    (typ, wall_ms): (u64, u64),
) -> Option<Poison> {
    if !policy.may_sign(key) {
        Some(Poison::NotAuthorized)
    } else if !policy.may_sign_for(key, name) {
        Some(Poison::ForeignName)
    } else if !key.validity.contains(wall_ms) {
        Some(Poison::Expired)
    } else if key.key.kind().signature_type() != typ {
        Some(Poison::WrongType)
    } else {
        None
    }
}

/// What stands for a Data: all that is signed, which says by which key, and the signature.
/// Made from the hash that the verification needs, too.
fn tag_of(hashed: &Hashed<'_>, signature: &[u8], secret: &[u8; 32]) -> Tag {
    let digest = sha256(&[secret, hashed.sha256(), signature]);
    std::array::from_fn(|i| digest[i])
}

const _: () = {
    const fn is_send<T: Send>() {}
    const fn is_shared<T: Send + Sync>() {}
    is_send::<DataVerification>();
    is_shared::<VerificationRules>();
};
