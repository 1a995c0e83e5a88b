//! Datasets that only routers of this kind have.

use tachonym_client::CommandError;

/// Versions of routers of this kind begin so.
const OWN_VERSION: &str = "tachonym-";

/// Whether a forwarder with this version is a router of this kind.
pub(super) fn is_own(version: &str) -> bool {
    version.starts_with(OWN_VERSION)
}

/// The result of `ask`; `None` if the forwarder with this `version` does not have the
/// dataset. Other forwarders are not asked, since NFD would not answer at all.
pub(super) fn dataset<T>(
    version: &str,
    ask: impl FnOnce() -> Result<T, CommandError>,
) -> Result<Option<T>, CommandError> {
    if !is_own(version) {
        return Ok(None);
    }
    match ask() {
        Ok(content) => Ok(Some(content)),
        Err(CommandError::Refused { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
