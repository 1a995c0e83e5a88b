//! `[[verification]]`, `[management.localhop]` and `[management.announcements]`: whose
//! signatures count for which names.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tachonym_manage::LocalhopRule;

/// Which names a trusted signer speaks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Names {
    /// Those under the identity of its key.
    UnderSigner,
    /// All.
    Any,
}

/// What signature Data under a prefix must have.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Verification {
    /// Name prefix of the Data. Of several, the longest that a name has counts;
    /// certificates under it are Data, too.
    pub prefix: String,
    /// Whether Data have to be signed by their SHA-256 digest, instead of a key:
    /// that shows damage, but not who made them.
    #[serde(default)]
    pub digest_only: bool,
    /// Files of certificates that are trusted, and so are those that they have
    /// issued.
    #[serde(default)]
    pub anchors: Vec<PathBuf>,
    /// Files of certificates between an anchor and a signer, and those of
    /// signers.
    #[serde(default)]
    pub certificates: Vec<PathBuf>,
    /// Accept only signers whose key name has this prefix.
    #[serde(default)]
    pub signers_under: Option<String>,
    /// Which names a signer signs for: with `under-signer`, which is the default, only
    /// those under its identity (a key `/id/KEY/x` signs `/id` and what is below); with
    /// `any`, all under `prefix`.
    #[serde(default)]
    pub names: Option<Names>,
}

/// Whether neighbours may register routes to themselves, by commands under
/// `/localhop/nfd/rib`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Localhop {
    /// Whether they may.
    pub enabled: bool,
    /// Accept any signer; digests are verified, keys believed.
    pub any: bool,
    /// Files of certificates that are trusted, and so are those that they have
    /// issued.
    pub anchors: Vec<PathBuf>,
    /// Files of certificates between an anchor and a signer.
    pub certificates: Vec<PathBuf>,
    /// Accept only signers whose key name has this prefix.
    pub signers_under: Option<String>,
    /// Which names a signer registers: with `under-signer`, which is the default where
    /// there are `anchors`, only those under its identity (a key `/id/KEY/x` registers
    /// `/id` and what is below); with `any`, all. Signers that `any = true` accepts have
    /// no identity to go by, and register all names.
    pub names: Option<Names>,
    /// Least cost of a route that a neighbour registers; a lower one is raised to it. Keep
    /// it above the costs of `[[route]]` that no neighbour shall take over.
    pub min_cost: u64,
    /// Whether a route may keep routes of shorter prefixes from its names (the CAPTURE
    /// flag); if not, it is made without that flag.
    pub allow_capture: bool,
    /// Longest life of a route, in seconds, which one also has that asks for none;
    /// neighbours renew theirs meanwhile. 0: as long as they ask, or as their face.
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

/// Whose prefix announcements count, and whether routes are learnt from them.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Announcements {
    /// Whether routes are learnt from announcements in Data. Needs `any` or
    /// `anchors`.
    pub learn: bool,
    /// Accept any signer; digests are verified, keys believed.
    pub any: bool,
    /// Files of certificates that are trusted, and so are those that they have
    /// issued.
    pub anchors: Vec<PathBuf>,
    /// Files of certificates between an anchor and a signer.
    pub certificates: Vec<PathBuf>,
    /// Accept only signers whose key name has this prefix.
    pub signers_under: Option<String>,
    /// Which names a signer announces: with `under-signer`, which is the default where
    /// there are `anchors`, only those under its identity (a key `/id/KEY/x` announces
    /// `/id` and what is below); with `any`, all. Signers that `any = true` accepts have
    /// no identity to go by, and announce all names.
    pub names: Option<Names>,
}
