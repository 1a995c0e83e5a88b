//! Data that are verified before the engine sees them.
//!
//! Owns what the configuration asks for and the reason for which a Data is dropped; the
//! verdict is that of `tachonym-security`. Each worker has a gate of its own.

use anyhow::anyhow;
use tachonym_client::wall_ms;
use tachonym_face::DropReason;
use tachonym_packet::DataView;
use tachonym_security::{
    DataVerification, Poison, RequiredSignature, Verdict, VerificationCounters, VerificationRule,
    VerificationRules,
};
use tracing::warn;

use crate::config::{Config, parse_name, trust};

/// Lets only such Data pass as are signed as their prefix asks.
pub(crate) struct DataGate {
    /// Absent if every Data may pass.
    verification: Option<Box<DataVerification>>,
}

impl DataGate {
    /// What `config` asks for, for one of so many workers.
    ///
    /// # Errors
    /// If a certificate cannot be used, or there is no randomness.
    pub(crate) fn new(config: &Config, n_gates: usize) -> anyhow::Result<Self> {
        let rules = rules(config)?;
        if rules.is_empty() {
            return Ok(Self { verification: None });
        }
        let mut secret = [0; 32];
        getrandom::fill(&mut secret)?;
        let n_remembered = config.tables.verified_data / n_gates.max(1);
        let verification = DataVerification::new(rules, n_remembered, secret);
        Ok(Self {
            verification: Some(Box::new(verification)),
        })
    }

    /// Why `data` is to be dropped, if it is. What no prefix concerns costs a comparison
    /// with each.
    #[inline]
    pub(crate) fn refusal(&mut self, data: &DataView<'_>) -> Option<DropReason> {
        let verification = self.verification.as_deref_mut()?;
        if !verification.is_concerned(data.name()) {
            return None;
        }
        match verification.verify(data, wall_ms()) {
            Verdict::Good => None,
            Verdict::Poisoned(poison) => Some(drop_reason(poison)),
        }
    }

    /// What was found so far.
    pub(crate) fn counters(&self) -> VerificationCounters {
        let verification = self.verification.as_deref();
        verification.map_or_else(VerificationCounters::default, |it| *it.counters())
    }
}

fn rules(config: &Config) -> anyhow::Result<VerificationRules> {
    let mut rules = Vec::new();
    for (i, rule) in config.verification.iter().enumerate() {
        let fault = |key: &str, message: &str| anyhow!("verification[{i}].{key}: {message}");
        let prefix = parse_name(&rule.prefix).map_err(|message| fault("prefix", &message))?;
        let signature =
            trust::required_signature(rule).map_err(|told| fault(&told.key, &told.message))?;
        if let RequiredSignature::Key(policy) = &signature {
            let now = wall_ms();
            if !policy.signers().any(|(_, validity)| validity.contains(now)) {
                warn!(
                    "verification[{i}]: no certificate is valid now, so all Data under {prefix} are \
                     dropped; renew the certificates, or set the clock of this machine"
                );
            }
        }
        rules.push(VerificationRule { prefix, signature });
    }
    Ok(VerificationRules::new(rules))
}

const fn drop_reason(poison: Poison) -> DropReason {
    match poison {
        Poison::Unsigned => DropReason::UnsignedData,
        Poison::UnknownKey => DropReason::UnknownKey,
        Poison::NotAuthorized => DropReason::KeyNotAuthorized,
        Poison::ForeignName => DropReason::NameNotUnderSigner,
        Poison::Expired => DropReason::KeyExpired,
        Poison::WrongType => DropReason::WrongSignatureType,
        // It was refused, so it must not pass whatever else is wrong with it.
        _ => DropReason::BadSignature,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faces_count_each_reason_under_its_own_name() {
        for &poison in Poison::ALL {
            assert_eq!(drop_reason(poison).as_str(), poison.label());
        }
    }

    #[test]
    fn without_prefixes_there_is_nothing_to_ask() {
        let gate = DataGate::new(&Config::default(), 1).expect("nothing to read");
        assert!(gate.verification.is_none());
        assert_eq!(gate.counters(), VerificationCounters::default());
    }
}
