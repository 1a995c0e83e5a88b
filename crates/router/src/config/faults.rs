//! Values that cannot be used, and the checks that several tables share.

use tachonym_face::{MAX_MTU_BYTES, MIN_MTU_BYTES};
use tachonym_packet::Name;
use tachonym_protocol::{FaceUri, FaceUriError};

/// How to write a name.
pub(crate) const NAME_REMEDY: &str = "write a name such as /example/prefix";

/// A value that cannot be used.
pub(super) struct Fault {
    pub(super) key: String,
    pub(super) message: String,
    pub(super) remedy: String,
    /// Whether the value is wrong only because of the values of other keys.
    pub(super) is_conflict: bool,
}

/// What is wrong with a rule.
pub(crate) struct TrustFault {
    /// Which key of the rule, such as `anchors[0]`.
    pub(crate) key: String,
    /// What is wrong.
    pub(crate) message: String,
    /// How to mend it.
    pub(crate) remedy: &'static str,
}

/// The faults found so far.
#[derive(Default)]
pub(super) struct Faults(Vec<Fault>);

impl Faults {
    pub(super) fn into_vec(self) -> Vec<Fault> {
        self.0
    }

    /// The value of `key` cannot be used, whatever the other keys say.
    pub(super) fn push(
        &mut self,
        key: impl Into<String>,
        message: impl Into<String>,
        remedy: &str,
    ) {
        self.add(key.into(), message.into(), remedy, false);
    }

    /// The value of `key` cannot be used together with those of other keys.
    pub(super) fn conflict(
        &mut self,
        key: impl Into<String>,
        message: impl Into<String>,
        remedy: &str,
    ) {
        self.add(key.into(), message.into(), remedy, true);
    }

    fn add(&mut self, key: String, message: String, remedy: &str, is_conflict: bool) {
        self.0.push(Fault {
            key,
            message,
            remedy: remedy.into(),
            is_conflict,
        });
    }

    /// `key` is set, but `reason` makes it have no effect.
    pub(super) fn idle(&mut self, key: &str, reason: &str) {
        self.conflict(
            key,
            format!("this key has no effect, because {reason}"),
            "remove the key, or change the other one",
        );
    }

    /// A fault in the rule at `path`.
    pub(super) fn trust(&mut self, path: &str, fault: TrustFault) {
        let key = format!("{path}.{}", fault.key);
        // A single file or module is wrong by itself, a whole key only beside others.
        match fault.key.contains('[') {
            true => self.push(key, fault.message, fault.remedy),
            false => self.conflict(key, fault.message, fault.remedy),
        }
    }

    /// The value of `key` must be from `min` to `max`.
    pub(super) fn range<T: PartialOrd + std::fmt::Display>(
        &mut self,
        key: &str,
        value: T,
        min: T,
        max: T,
    ) {
        if value < min || value > max {
            self.push(
                key,
                format!("{value} is out of range"),
                &format!("write a number from {min} to {max}"),
            );
        }
    }

    /// The value of `key` must be an MTU.
    pub(super) fn mtu(&mut self, key: &str, mtu_bytes: u64) {
        self.range(key, mtu_bytes, MIN_MTU_BYTES, MAX_MTU_BYTES);
    }

    /// The name at `key`, if it is one of at most `max_components` components.
    pub(super) fn name(&mut self, key: &str, uri: &str, max_components: usize) -> Option<Name> {
        match parse_name(uri) {
            Ok(name) if name.len() > max_components => {
                self.push(
                    key,
                    format!("`{uri}` has {} components", name.len()),
                    &format!("write a name of at most {max_components} components"),
                );
                None
            }
            Ok(name) => Some(name),
            Err(message) => {
                self.push(key, message, NAME_REMEDY);
                None
            }
        }
    }

    /// The FaceUri at `key`, if it is one and has an address rather than a host name:
    /// the start of a router must not depend on a name server.
    pub(super) fn face_uri(&mut self, key: &str, uri: &str) -> Option<FaceUri> {
        self.canonical(key, uri, uri.parse())
    }

    /// `uri` as what it was `parsed` to, if that needs no resolver.
    pub(super) fn canonical(
        &mut self,
        key: &str,
        uri: &str,
        parsed: Result<FaceUri, FaceUriError>,
    ) -> Option<FaceUri> {
        match parsed {
            Ok(FaceUri::Unresolved(_)) => {
                self.push(
                    key,
                    format!("`{uri}` has a host name, and names are not looked up at start"),
                    "write an IP address, as in udp4://192.0.2.1:6363",
                );
                None
            }
            Ok(uri) => Some(uri),
            Err(e) => {
                // The error has an example.
                let message = format!("`{uri}` is not a FaceUri: {e}");
                self.push(key, message, "correct this FaceUri");
                None
            }
        }
    }
}

/// Reads a name as the configuration writes it: it begins with a slash, so that no
/// other word passes for a name.
///
/// # Errors
/// What is wrong with it; [`NAME_REMEDY`] says how to correct it.
pub(crate) fn parse_name(uri: &str) -> Result<Name, String> {
    let fault = |why: &str| Err(format!("`{uri}` is not a name: {why}"));
    let path = uri.strip_prefix("ndn:").unwrap_or(uri);
    if !path.starts_with('/') {
        return fault("it does not begin with `/`");
    }
    if path.starts_with("//") {
        return fault("it begins with two slashes");
    }
    uri.parse().or_else(|e| fault(&format!("{e}")))
}
