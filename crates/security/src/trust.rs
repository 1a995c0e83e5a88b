//! Whose signatures count: anchors, certificates, and the chains between them.
//!
//! Owns a set of trusted keys and the certificates supplied with them, and
//! finds the keys that a key locator refers to. All chains are checked when
//! certificates are added, so that a signed packet costs one verification
//! however long its chain is, and one lookup if its key is unknown. Refuses
//! chains that are too long and sets that are too large. Fetches nothing.

use std::collections::HashMap;

use tachonym_packet::{KeyLocator, KeyLocatorView, Name, NameView};

use crate::certificate::locates_key;
use crate::{Certificate, KeyError, Validity, VerifyingKey, identity_of_key, is_key_name};

/// Certificates and keys that one policy holds at most.
const MAX_CERTIFICATES: usize = 4096;
/// Chains that are kept for one certificate at most: it takes a key that is
/// certified several times to have more than one.
const MAX_CHAINS: usize = 4;
/// Components that a certificate's name has after that of its key, with the
/// implicit digest.
const N_AFTER_KEY: usize = 3;

/// Why a key or certificate cannot be added to a policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TrustError {
    /// The name is not that of a key.
    #[error("{0} is not the name of a key; it has the form /<identity>/KEY/<key-id>")]
    BadKeyName(Name),
    /// The key cannot be used.
    #[error("the key of {name} cannot be used: {error}")]
    BadKey {
        /// The certificate's name.
        name: Name,
        /// What is wrong with it.
        error: KeyError,
    },
    /// A digest is no key.
    #[error("a digest does not show who signed, so it cannot be a trust anchor; use a certificate")]
    Digest,
    /// The policy holds as much as it may.
    #[error("a trust policy has at most {MAX_CERTIFICATES} certificates")]
    TooMany,
}

/// Which keys may issue certificates for which identities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IssuerRule {
    /// A key issues only for its own identity and those below it.
    #[default]
    Hierarchical,
    /// A trusted key issues for any identity.
    Unrestricted,
}

/// Which names a trusted key may sign for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NameRule {
    /// Any name.
    #[default]
    Any,
    /// Only the key's identity and names below it: what `/id/KEY/x` signs is about
    /// `/id` or `/id/...`.
    UnderSigner,
}

/// What became of a certificate that was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Endorsement {
    /// A chain leads from it to an anchor.
    Trusted,
    /// No chain does, yet: the certificates between may still be added.
    Pending,
}

/// Whose signatures count.
#[derive(Clone, Debug)]
pub struct TrustPolicy {
    accepts_any: bool,
    issuer_rule: IssuerRule,
    max_depth: usize,
    signers_under: Option<Name>,
    name_rule: NameRule,
    anchors: Vec<TrustedKey>,
    certificates: Vec<Supplied>,
    trusted: Vec<TrustedKey>,
    by_key_name: HashMap<Name, Vec<usize>>,
    by_digest: HashMap<[u8; 32], Vec<usize>>,
}

/// A key that may sign.
#[derive(Clone, Debug)]
pub(crate) struct TrustedKey {
    pub(crate) key_name: Name,
    pub(crate) key: VerifyingKey,
    /// SHA-256 of its SubjectPublicKeyInfo; `None` for a shared secret.
    digest: Option<[u8; 32]>,
    /// When every certificate of the chain holds.
    pub(crate) validity: Validity,
    depth: usize,
}

#[derive(Clone, Debug)]
struct Supplied {
    certificate: Certificate,
    key: VerifyingKey,
    /// Whether the signature verifies with the key of this digest.
    verdicts: HashMap<[u8; 32], bool>,
    /// When the chains found hold; empty: it is not trusted.
    chains: Vec<Validity>,
}

impl TrustPolicy {
    /// Certificates between a signer and an anchor, unless set otherwise.
    pub const DEFAULT_MAX_DEPTH: usize = 5;

    /// Trusts nobody, until anchors are added.
    #[must_use]
    pub fn new() -> Self {
        Self {
            accepts_any: false,
            issuer_rule: IssuerRule::default(),
            max_depth: Self::DEFAULT_MAX_DEPTH,
            signers_under: None,
            name_rule: NameRule::default(),
            anchors: Vec::new(),
            certificates: Vec::new(),
            trusted: Vec::new(),
            by_key_name: HashMap::new(),
            by_digest: HashMap::new(),
        }
    }

    /// Accepts any signer: digests and keys that the policy knows are verified,
    /// other keys are believed unverified.
    #[must_use]
    pub fn any() -> Self {
        Self {
            accepts_any: true,
            ..Self::new()
        }
    }

    /// Whether it accepts any signer.
    #[must_use]
    pub const fn accepts_any(&self) -> bool {
        self.accepts_any
    }

    /// Sets which keys may issue certificates.
    #[must_use]
    pub fn with_issuer_rule(mut self, rule: IssuerRule) -> Self {
        self.issuer_rule = rule;
        self.settle();
        self
    }

    /// Sets how many certificates may stand between an anchor and a signer,
    /// the signer's own included; 0: only anchors sign.
    #[must_use]
    pub fn with_max_depth(mut self, max_depth: usize) -> Self {
        self.max_depth = max_depth;
        self.settle();
        self
    }

    /// Accepts only signers whose key name has this prefix.
    #[must_use]
    pub fn with_signers_under(mut self, prefix: Name) -> Self {
        self.signers_under = Some(prefix);
        self
    }

    /// Sets which names a key may sign for. Of no effect on digests and unknown keys,
    /// which a policy for any signer accepts: they have no identity.
    #[must_use]
    pub const fn with_name_rule(mut self, rule: NameRule) -> Self {
        self.name_rule = rule;
        self
    }

    /// Makes the key of `certificate` an anchor. Its signature is not looked
    /// at; its validity period is.
    ///
    /// # Errors
    /// If the key cannot be used, or the policy is full.
    pub fn add_anchor(&mut self, certificate: &Certificate) -> Result<(), TrustError> {
        let key = usable_key(certificate)?;
        self.push_anchor(
            certificate.key_name().to_name(),
            key,
            certificate.validity(),
        )
    }

    /// Makes `key`, named `key_name`, an anchor that never expires.
    ///
    /// # Errors
    /// If the name is not that of a key, the key is a digest, or the policy is
    /// full.
    pub fn add_anchor_key(&mut self, key_name: Name, key: VerifyingKey) -> Result<(), TrustError> {
        if !is_key_name(key_name.view()) {
            return Err(TrustError::BadKeyName(key_name));
        }
        if key.kind() == crate::KeyKind::Digest {
            return Err(TrustError::Digest);
        }
        self.push_anchor(key_name, key, Validity::FOREVER)
    }

    /// Adds a certificate that is trusted only if a chain leads from it to an
    /// anchor, now or once others are added.
    ///
    /// # Errors
    /// If its key cannot be used, or the policy is full.
    pub fn add_certificate(
        &mut self,
        certificate: &Certificate,
    ) -> Result<Endorsement, TrustError> {
        self.add_certificates([certificate])?;
        let is_trusted = |supplied: &Supplied| {
            !supplied.chains.is_empty() && supplied.certificate.wire() == certificate.wire()
        };
        Ok(match self.certificates.iter().any(is_trusted) {
            true => Endorsement::Trusted,
            false => Endorsement::Pending,
        })
    }

    /// Adds several certificates; cheaper than one after the other.
    ///
    /// # Errors
    /// If a key cannot be used, or the policy is full; those before it are
    /// added.
    pub fn add_certificates<'c>(
        &mut self,
        certificates: impl IntoIterator<Item = &'c Certificate>,
    ) -> Result<(), TrustError> {
        let result = certificates
            .into_iter()
            .try_for_each(|certificate| self.push_certificate(certificate));
        self.settle();
        result
    }

    /// Number of keys that may sign, anchors included.
    #[must_use]
    pub fn n_trusted_keys(&self) -> usize {
        self.by_key_name.len()
    }

    /// Keys that may sign packets, each by its name and by when a chain of it holds: as often
    /// as it has chains.
    pub fn signers(&self) -> impl Iterator<Item = (&Name, Validity)> {
        let signers = self.trusted.iter().filter(|key| self.may_sign(key));
        signers.map(|key| (&key.key_name, key.validity))
    }

    /// Whether any key that may sign packets may sign one under `prefix`, at some time.
    #[must_use]
    pub fn signs_under(&self, prefix: NameView<'_>) -> bool {
        let signers = self.trusted.iter().filter(|key| self.may_sign(key));
        signers.into_iter().any(|key| {
            let identity = identity_of_key(key.key_name.view());
            self.may_sign_for(key, prefix)
                || identity.is_some_and(|identity| identity.starts_with(prefix))
        })
    }

    /// The keys, with their chains valid at any time, that `locator` refers to.
    pub(crate) fn find<'p>(
        &'p self,
        locator: KeyLocatorView<'_>,
    ) -> impl Iterator<Item = &'p TrustedKey> {
        let indices = self.find_indices(locator);
        indices.iter().map(|&idx| &self.trusted[idx])
    }

    /// Where those keys are among the trusted ones; see [`key`](Self::key).
    pub(crate) fn find_indices(&self, locator: KeyLocatorView<'_>) -> &[usize] {
        match locator {
            KeyLocatorView::Name(name) => self.indices_by_name(name),
            KeyLocatorView::Digest(digest) => {
                let found = <&[u8; 32]>::try_from(digest).ok();
                found
                    .and_then(|digest| self.by_digest.get(digest))
                    .map_or(&[], Vec::as_slice)
            }
        }
    }

    /// The trusted key at `idx`, which [`find_indices`](Self::find_indices) told.
    pub(crate) fn key(&self, idx: usize) -> &TrustedKey {
        &self.trusted[idx]
    }

    /// Whether `key` may sign packets, not only certificates.
    pub(crate) fn may_sign(&self, key: &TrustedKey) -> bool {
        self.signers_under
            .as_ref()
            .is_none_or(|prefix| key.key_name.starts_with(prefix))
    }

    /// Whether `key` may sign what is about `name`.
    pub(crate) fn may_sign_for(&self, key: &TrustedKey, name: NameView<'_>) -> bool {
        match self.name_rule {
            NameRule::Any => true,
            NameRule::UnderSigner => identity_of_key(key.key_name.view())
                .is_some_and(|identity| name.starts_with(identity)),
        }
    }

    fn indices_by_name(&self, locator: NameView<'_>) -> &[usize] {
        // The locator is the key's name, or that of a certificate of it.
        (0..=N_AFTER_KEY.min(locator.len()))
            .map(|n| locator.prefix(locator.len() - n))
            .filter(|name| is_key_name(*name) && locates_key(locator, *name))
            .find_map(|name| self.by_key_name.get(name.value_bytes()))
            .map_or(&[], Vec::as_slice)
    }

    fn push_anchor(
        &mut self,
        key_name: Name,
        key: VerifyingKey,
        validity: Validity,
    ) -> Result<(), TrustError> {
        self.check_room()?;
        self.anchors.push(TrustedKey {
            digest: key.public_key_der().map(|der| crate::sha256(&[der])),
            key_name,
            key,
            validity,
            depth: 0,
        });
        self.settle();
        Ok(())
    }

    fn push_certificate(&mut self, certificate: &Certificate) -> Result<(), TrustError> {
        let known = |supplied: &Supplied| supplied.certificate.wire() == certificate.wire();
        if self.certificates.iter().any(known) {
            return Ok(());
        }
        self.check_room()?;
        self.certificates.push(Supplied {
            certificate: certificate.clone(),
            key: usable_key(certificate)?,
            verdicts: HashMap::new(),
            chains: Vec::new(),
        });
        Ok(())
    }

    fn check_room(&self) -> Result<(), TrustError> {
        match self.anchors.len() + self.certificates.len() < MAX_CERTIFICATES {
            true => Ok(()),
            false => Err(TrustError::TooMany),
        }
    }

    /// Finds anew what is trusted, level by level from the anchors: the result
    /// does not depend on the order in which certificates were added.
    fn settle(&mut self) {
        self.trusted = self.anchors.clone();
        for supplied in &mut self.certificates {
            supplied.chains.clear();
        }
        let mut n_settled = 0;
        for depth in 0..=self.max_depth {
            self.index_from(n_settled);
            n_settled = self.trusted.len();
            if depth == self.max_depth || !self.certify_level(depth) {
                break;
            }
        }
    }

    fn index_from(&mut self, first_idx: usize) {
        if first_idx == 0 {
            self.by_key_name.clear();
            self.by_digest.clear();
        }
        for (idx, key) in self.trusted.iter().enumerate().skip(first_idx) {
            let named = self.by_key_name.entry(key.key_name.clone());
            named.or_default().push(idx);
            if let Some(digest) = key.digest {
                self.by_digest.entry(digest).or_default().push(idx);
            }
        }
    }

    /// Trusts what keys at `depth` certify; false if that is nothing new.
    fn certify_level(&mut self, depth: usize) -> bool {
        let mut certified = Vec::new();
        for idx in 0..self.certificates.len() {
            let Some(locator) = self.certificates[idx].certificate.key_locator() else {
                continue;
            };
            let view = match locator {
                KeyLocator::Name(name) => KeyLocatorView::Name(name.view()),
                KeyLocator::Digest(digest) => KeyLocatorView::Digest(digest),
            };
            let issuers: Vec<TrustedKey> = self
                .find(view)
                .filter(|issuer| issuer.depth == depth)
                .cloned()
                .collect();
            for issuer in issuers {
                certified.extend(self.certify(idx, &issuer));
            }
        }
        let is_news = !certified.is_empty();
        self.trusted.extend(certified);
        is_news
    }

    /// The key of certificate `idx` as `issuer` certifies it, if that adds to
    /// what is known of it.
    fn certify(&mut self, idx: usize, issuer: &TrustedKey) -> Option<TrustedKey> {
        let rule = self.issuer_rule;
        let supplied = &mut self.certificates[idx];
        let identity = supplied.certificate.identity();
        let issues = match rule {
            IssuerRule::Unrestricted => true,
            IssuerRule::Hierarchical => identity_of_key(issuer.key_name.view())
                .is_some_and(|issuer_identity| identity.starts_with(issuer_identity)),
        };
        let validity = supplied.certificate.validity().intersect(&issuer.validity);
        let covers = |span: &Validity| span.intersect(&validity) == validity;
        let adds = supplied.chains.len() < MAX_CHAINS && !supplied.chains.iter().any(covers);
        if !issues || !adds {
            return None;
        }
        let certificate = &supplied.certificate;
        let verifies = || certificate.verify(&issuer.key).is_ok();
        let verified = match issuer.digest {
            Some(digest) => *supplied.verdicts.entry(digest).or_insert_with(verifies),
            None => verifies(),
        };
        if !verified {
            return None;
        }
        supplied.chains.push(validity);
        Some(TrustedKey {
            key_name: supplied.certificate.key_name().to_name(),
            key: supplied.key.clone(),
            digest: Some(supplied.certificate.public_key_digest()),
            validity,
            depth: issuer.depth + 1,
        })
    }
}

impl Default for TrustPolicy {
    fn default() -> Self {
        Self::new()
    }
}

fn usable_key(certificate: &Certificate) -> Result<VerifyingKey, TrustError> {
    certificate
        .verifying_key()
        .map_err(|error| TrustError::BadKey {
            name: certificate.name().clone(),
            error,
        })
}
