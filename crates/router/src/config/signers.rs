//! `[[verification]]`, `[management.localhop]` and `[management.announcements]`: whose
//! signatures count for which names.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tachonym_manage::LocalhopRule;

/// Which names a trusted signer may sign, register or announce.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Names {
    /// Names under the identity of its key.
    UnderSigner,
    /// All names.
    Any,
}

/// The signature that Data under a prefix must have.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Verification {
    /// Name prefix of the Data. If a name has several of the prefixes, the longest one
    /// counts. Certificates under the prefix are Data too.
    #[schemars(example = &"/example")]
    pub prefix: String,
    /// Whether Data must be signed by a SHA-256 digest instead of a key. A digest shows
    /// damage, but not who produced the Data.
    #[serde(default)]
    pub digest_only: bool,
    /// Files with trusted certificates: signers with such a certificate, or with one that
    /// it issued, are accepted.
    #[serde(default)]
    #[schemars(example = ["/etc/tachonym/anchor.cert"])]
    pub anchors: Vec<PathBuf>,
    /// Files with the certificates of signers, and those between an anchor and a signer.
    #[serde(default)]
    #[schemars(example = ["/etc/tachonym/signer.cert"])]
    pub certificates: Vec<PathBuf>,
    /// Accept only signers whose key name has this prefix.
    #[schemars(example = &"/example/operator")]
    #[serde(default)]
    pub signers_under: Option<String>,
    /// Which names a signer may sign. With `under-signer`, the default, those under its
    /// identity: a key `/id/KEY/x` signs `/id` and names below it. With `any`, all names
    /// under `prefix`.
    #[serde(default)]
    pub names: Option<Names>,
}

/// Whether neighbours may register routes to themselves with commands under
/// `/localhop/nfd/rib`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Localhop {
    /// Whether neighbours may register routes. Needs `any` or `anchors`.
    pub enabled: bool,
    /// Accept every signer. Digests are verified; signatures by keys are not, because no
    /// certificate is known.
    pub any: bool,
    /// Files with trusted certificates: signers with such a certificate, or with one that
    /// it issued, are accepted.
    #[schemars(example = ["/etc/tachonym/anchor.cert"])]
    pub anchors: Vec<PathBuf>,
    /// Files with the certificates between an anchor and a signer.
    #[schemars(example = ["/etc/tachonym/signer.cert"])]
    pub certificates: Vec<PathBuf>,
    /// Accept only signers whose key name has this prefix.
    #[schemars(example = &"/example/operator")]
    pub signers_under: Option<String>,
    /// Which names a signer may register. With `under-signer`, the default with `anchors`,
    /// those under its identity: a key `/id/KEY/x` registers `/id` and names below it. With
    /// `any`, all names. With `any = true` a signer has no known identity and may register
    /// all names.
    pub names: Option<Names>,
    /// Lowest cost of a route that a neighbour registers; lower costs are raised to it.
    /// Write a number above the costs of `[[route]]`, so that no neighbour can take them
    /// over.
    pub min_cost: u64,
    /// Whether a registered route may stop routes of shorter prefixes from being used for
    /// its names (the CAPTURE flag). If not, the route is created without the flag.
    pub allow_capture: bool,
    /// Longest lifetime of a registered route, in seconds, 0 to 31622400; a route without
    /// an expiry gets it too. Neighbours register again before it ends. 0: a route lives as
    /// long as its neighbour wants, or as long as its face.
    pub max_expiry_s: u64,
}

impl Default for Localhop {
    fn default() -> Self {
        Self {
            enabled: false,
            any: false,
            anchors: Vec::new(),
            certificates: Vec::new(),
            signers_under: None,
            names: None,
            min_cost: 0,
            allow_capture: false,
            max_expiry_s: LocalhopRule::DEFAULT_MAX_EXPIRY_MS / 1000,
        }
    }
}

/// Whose prefix announcements are accepted, and whether routes are learnt from them.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Announcements {
    /// Whether routes are learnt from announcements in Data packets, for names whose
    /// strategy is `self-learning`. Needs `any` or `anchors`.
    pub learn: bool,
    /// Accept every signer. Digests are verified; signatures by keys are not, because no
    /// certificate is known.
    pub any: bool,
    /// Files with trusted certificates: signers with such a certificate, or with one that
    /// it issued, are accepted.
    #[schemars(example = ["/etc/tachonym/anchor.cert"])]
    pub anchors: Vec<PathBuf>,
    /// Files with the certificates between an anchor and a signer.
    #[schemars(example = ["/etc/tachonym/signer.cert"])]
    pub certificates: Vec<PathBuf>,
    /// Accept only signers whose key name has this prefix.
    #[schemars(example = &"/example/operator")]
    pub signers_under: Option<String>,
    /// Which names a signer may announce. With `under-signer`, the default with `anchors`,
    /// those under its identity: a key `/id/KEY/x` announces `/id` and names below it. With
    /// `any`, all names. With `any = true` a signer has no known identity and may announce
    /// all names.
    pub names: Option<Names>,
}
