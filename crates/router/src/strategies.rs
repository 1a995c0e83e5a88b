//! Strategies as an operator writes them: by a short name or in full.

use tachonym_forward::{StrategyError, registered_strategies, resolve_strategy};
use tachonym_packet::Name;

/// Components of `/localhost/nfd/strategy`, before the kind.
const N_PREFIX_COMPONENTS: usize = 3;

/// Full name of the strategy that `text` means: `multicast`, or a whole name
/// with version and parameters.
pub(crate) fn find(text: &str) -> Result<Name, StrategyError> {
    if text.starts_with('/') {
        let name: Name = text.parse().map_err(|_| StrategyError::NotRegistered)?;
        return resolve_strategy(name.view());
    }
    registered_strategies()
        .into_iter()
        .find(|name| kind(name) == text)
        .ok_or(StrategyError::NotRegistered)
}

/// Whether the strategy of this full name learns routes.
pub(crate) fn learns_routes(name: &Name) -> bool {
    kind(name) == "self-learning"
}

/// Every short name.
pub(crate) fn short_names() -> Vec<String> {
    registered_strategies().iter().map(kind).collect()
}

fn kind(name: &Name) -> String {
    name.get(N_PREFIX_COMPONENTS)
        .map(|kind| kind.to_string())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strategies_are_found_by_short_and_by_full_name() {
        assert!(short_names().contains(&"best-route".to_string()));
        let full = find("multicast").expect("registered");
        assert_eq!(find(&full.to_string()), Ok(full));
        let refused = [
            "no-such-strategy",
            "/localhost/nfd/strategy/no-such/v=1",
            "/localhost/nfd/strategy/multicast/v=99",
            "/localhost/nfd/strategy/multicast/v=5/no-such-parameter~1",
        ];
        for text in refused {
            assert!(find(text).is_err(), "{text}");
        }
    }
}
