//! What only routers of this kind tell.

use tachonym_client::CommandError;

/// What a router of this kind calls itself begins so.
const OWN_VERSION: &str = "tachonym-";

/// Whether a forwarder with this version is a router of this kind.
pub(super) fn is_own(version: &str) -> bool {
    version.starts_with(OWN_VERSION)
}

/// What `ask` learns; `None` if the forwarder, whose version is `version`, does not
/// tell. Others are not asked: NFD leaves the question unanswered.
pub(super) fn tell<T>(
    version: &str,
    ask: impl FnOnce() -> Result<T, CommandError>,
) -> Result<Option<T>, CommandError> {
    if !is_own(version) {
        return Ok(None);
    }
    match ask() {
        Ok(told) => Ok(Some(told)),
        Err(CommandError::Refused { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
