//! Trust policies out of the configuration.
//!
//! Owns reading certificate files and what can be wrong with them: the check of
//! a configuration and the start of the router go the same way, so that what
//! passes the one does not fail the other.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use tachonym_manage::{AuthorizeRule, LocalhopRule, ManagementTrust, Module};
use tachonym_security::{Certificate, Endorsement, NameRule, RequiredSignature, TrustPolicy};
use tachonym_tables::MAX_PREFIX_COMPONENTS;

use super::faults::{Faults, NAME_REMEDY, TrustFault, parse_name};
use super::management::{Authorize, Management};
use super::signers::{Announcements, Localhop, Names, Verification};
use super::{Config, Tables};

/// Most prefixes whose Data is verified: each Data name is compared with all of them.
const MAX_VERIFICATION_RULES: usize = 256;

/// Whose signatures count, as the configuration says it.
struct Signers<'c> {
    any: bool,
    anchors: &'c [PathBuf],
    certificates: &'c [PathBuf],
    under: Option<&'c str>,
    names: Option<Names>,
}

/// Checks `[[verification]]` and what goes with it, and the signers that `[management]` names.
pub(super) fn check(config: &Config, found: &mut Faults) {
    let (rules, t) = (&config.verification, &config.tables);
    let remembered = "tables.verified_data";
    found.range(remembered, t.verified_data, 0, 1 << 24);
    if rules.is_empty() && t.verified_data != Tables::default().verified_data {
        found.idle(remembered, "there is no [[verification]]");
    }
    let mut known = HashSet::new();
    for (i, rule) in rules.iter().enumerate() {
        let key = format!("verification[{i}].prefix");
        let prefix = found.name(&key, &rule.prefix, MAX_PREFIX_COMPONENTS);
        if prefix.is_some_and(|prefix| !known.insert(prefix)) {
            found.conflict(
                key.as_str(),
                format!("Data under {} is already verified", rule.prefix),
                "keep one [[verification]] for each prefix; it may list several anchors",
            );
        }
        if i == MAX_VERIFICATION_RULES {
            found.conflict(
                key,
                format!("the file has more than {MAX_VERIFICATION_RULES} [[verification]]"),
                "put prefixes with the same signers under a shorter prefix: each Data name is \
                 compared with all of them",
            );
        }
        if let Err(fault) = required_signature(rule) {
            found.trust(&format!("verification[{i}]"), fault);
        }
    }
    let m = &config.management;
    for (i, rule) in m.authorize.iter().enumerate() {
        if let Err(fault) = authorize_rule(rule) {
            found.trust(&format!("management.authorize[{i}]"), fault);
        }
    }
    if let Err(fault) = announcements_policy(&m.announcements) {
        found.trust("management.announcements", fault);
    }
    if let Err(fault) = localhop_rule(&m.localhop) {
        found.trust("management.localhop", fault);
    }
}

/// The modules and signers of a rule.
pub(crate) fn authorize_rule(rule: &Authorize) -> Result<AuthorizeRule, TrustFault> {
    let modules = rule.modules.iter().enumerate().map(|(i, name)| {
        Module::from_name(name).ok_or_else(|| TrustFault {
            key: format!("modules[{i}]"),
            message: format!("unknown module `{name}`"),
            remedy: "use faces, fib, rib, cs, strategy-choice or workers",
        })
    });
    let modules = modules.collect::<Result<Vec<_>, _>>()?;
    if modules.is_empty() {
        return Err(TrustFault {
            key: "modules".into(),
            message: "the rule names no module".into(),
            remedy: "name a module, or remove the rule",
        });
    }
    let signers = policy(&Signers {
        any: rule.any,
        anchors: &rule.anchors,
        certificates: &rule.certificates,
        under: rule.signers_under.as_deref(),
        // Who commands a module commands all of it.
        names: Some(Names::Any),
    })?;
    Ok(AuthorizeRule { signers, modules })
}

/// Which neighbours may register what; `None`: none.
pub(crate) fn localhop_rule(localhop: &Localhop) -> Result<Option<LocalhopRule>, TrustFault> {
    if !localhop.enabled {
        return Ok(None);
    }
    let signers = policy(&Signers {
        any: localhop.any,
        anchors: &localhop.anchors,
        certificates: &localhop.certificates,
        under: localhop.signers_under.as_deref(),
        names: localhop.names,
    })?;
    Ok(Some(LocalhopRule {
        min_cost: localhop.min_cost,
        allows_capture: localhop.allow_capture,
        max_expiry_ms: (localhop.max_expiry_s > 0).then(|| localhop.max_expiry_s * 1000),
        ..LocalhopRule::new(signers)
    }))
}

/// Whose prefix announcements count: those of any signer, if no signer is named and no route
/// is learnt from them.
pub(crate) fn announcements_policy(
    announcements: &Announcements,
) -> Result<TrustPolicy, TrustFault> {
    let signers = Signers {
        any: announcements.any,
        anchors: &announcements.anchors,
        certificates: &announcements.certificates,
        under: announcements.signers_under.as_deref(),
        names: announcements.names,
    };
    let is_default = Announcements {
        names: None,
        ..announcements.clone()
    } == Announcements::default();
    if is_default {
        check_names(announcements.names)?;
        Ok(TrustPolicy::any())
    } else {
        policy(&signers)
    }
}

/// Everything that the manager has to know. `Err` is the first fault, with its
/// whole key.
pub(crate) fn management_trust(management: &Management) -> Result<ManagementTrust, TrustFault> {
    let mut trust = ManagementTrust::default();
    if !management.authorize.is_empty() {
        trust.local.clear();
    }
    for rule in &management.authorize {
        trust.local.push(authorize_rule(rule)?);
    }
    trust.localhop = localhop_rule(&management.localhop)?;
    trust.announcements = announcements_policy(&management.announcements)?;
    let transports = management.transports.iter().copied();
    trust.transports = Some(transports.map(Into::into).collect());
    trust.learns_routes = management.announcements.learn;
    Ok(trust)
}

/// What signature Data must have. Other than elsewhere, each file has to be of use: who is
/// not told of a missing one would lose all Data of a producer.
pub(crate) fn required_signature(rule: &Verification) -> Result<RequiredSignature, TrustFault> {
    let fault = |key: &str, message: String, remedy: &'static str| {
        let key = key.into();
        Err(TrustFault {
            key,
            message,
            remedy,
        })
    };
    if rule.digest_only {
        let set = [
            ("anchors", !rule.anchors.is_empty()),
            ("certificates", !rule.certificates.is_empty()),
            ("signers_under", rule.signers_under.is_some()),
            ("names", rule.names == Some(Names::UnderSigner)),
        ];
        return match set.iter().find(|(_, is_set)| *is_set) {
            None => Ok(RequiredSignature::Digest),
            Some((key, _)) => fault(
                key,
                "a digest is no signature, so this key has no effect".into(),
                "remove either `digest_only` or this key",
            ),
        };
    }
    if rule.anchors.is_empty() {
        return fault(
            "anchors",
            "no certificate is trusted, so all Data would be dropped".into(),
            "name a certificate file, or accept digests with `digest_only = true`",
        );
    }
    let mut policy = policy(&Signers {
        any: false,
        anchors: &rule.anchors,
        certificates: &rule.certificates,
        under: rule.signers_under.as_deref(),
        names: rule.names,
    })?;
    for (i, file) in rule.certificates.iter().enumerate() {
        let certificate = read_certificate(file).ok();
        let endorsement = certificate.and_then(|it| policy.add_certificate(&it).ok());
        if endorsement != Some(Endorsement::Trusted) {
            return fault(
                &format!("certificates[{i}]"),
                format!("{}: no anchor has issued this certificate", file.display()),
                "name the certificates between it and an anchor, too, or remove it",
            );
        }
    }
    if policy.signers().next().is_none() {
        return fault(
            "signers_under",
            "no certificate here is of a key with this prefix, so all Data would be dropped".into(),
            "name the certificates of the signers in `certificates`; the router fetches none",
        );
    }
    // The check of the prefix itself reports a malformed one.
    if let Ok(prefix) = parse_name(&rule.prefix)
        && !policy.signs_under(prefix.view())
    {
        return fault(
            "names",
            format!(
                "no certificate here is of a key whose identity is above or below {prefix}, so \
                 all Data would be dropped"
            ),
            "name the certificates of the signers, or allow them all names with `names = \"any\"`",
        );
    }
    Ok(RequiredSignature::Key(policy.into()))
}

/// Whether names may be bound so where any signer is accepted.
fn check_names(names: Option<Names>) -> Result<(), TrustFault> {
    match names {
        Some(Names::UnderSigner) => Err(TrustFault {
            key: "names".into(),
            message:
                "a signer without a known certificate has no identity that names could be under"
                    .into(),
            remedy: "name certificates in `anchors` and accept no other signer, or remove this key",
        }),
        Some(Names::Any) | None => Ok(()),
    }
}

fn policy(signers: &Signers<'_>) -> Result<TrustPolicy, TrustFault> {
    if signers.any && !(signers.anchors.is_empty() && signers.certificates.is_empty()) {
        return Err(TrustFault {
            key: "any".into(),
            message: "certificates change nothing where any signer is accepted".into(),
            remedy: "remove either `any` or the certificates",
        });
    }
    if signers.any && signers.under.is_some() {
        return Err(TrustFault {
            key: "signers_under".into(),
            message: "without certificates any key can sign under this prefix".into(),
            remedy: "name certificates in `anchors` instead of `any`, or remove the prefix",
        });
    }
    if signers.any {
        check_names(signers.names)?;
    }
    if !signers.any && signers.anchors.is_empty() {
        return Err(TrustFault {
            key: "anchors".into(),
            message: "no certificate is trusted, so all commands would be refused".into(),
            remedy: "name a certificate file, or accept any signer with `any = true`",
        });
    }
    let mut policy = match signers.any {
        true => TrustPolicy::any(),
        false => TrustPolicy::new(),
    };
    policy = policy.with_name_rule(match signers.names {
        Some(Names::UnderSigner) | None => NameRule::UnderSigner,
        Some(Names::Any) => NameRule::Any,
    });
    let unusable = |key: &str, i: usize, file: &Path, what: String| TrustFault {
        key: format!("{key}[{i}]"),
        message: format!("{}: {what}", file.display()),
        remedy: "name a file with one certificate in base64, as `ndnsec cert-dump` writes it",
    };
    for (i, file) in signers.anchors.iter().enumerate() {
        read_certificate(file)
            .and_then(|certificate| policy.add_anchor(&certificate).map_err(whole))
            .map_err(|what| unusable("anchors", i, file, what))?;
    }
    for (i, file) in signers.certificates.iter().enumerate() {
        read_certificate(file)
            .and_then(|certificate| {
                let added = policy.add_certificate(&certificate);
                added.map(|_| ()).map_err(whole)
            })
            .map_err(|what| unusable("certificates", i, file, what))?;
    }
    if let Some(prefix) = signers.under {
        let prefix = parse_name(prefix).map_err(|message| TrustFault {
            key: "signers_under".into(),
            message,
            remedy: NAME_REMEDY,
        })?;
        policy = policy.with_signers_under(prefix);
    }
    Ok(policy)
}

fn read_certificate(file: &Path) -> Result<Certificate, String> {
    let text = std::fs::read_to_string(file).map_err(whole)?;
    Certificate::from_base64(&text).map_err(whole)
}

/// An error with its causes, in one line.
fn whole(error: impl std::error::Error + Send + Sync + 'static) -> String {
    format!("{:#}", anyhow::Error::new(error))
}
