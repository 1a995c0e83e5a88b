//! Strategies as an operator writes them: by a short name or in full.

use tachonym_forward::registered_strategies;
use tachonym_packet::Name;

/// Components of `/localhost/nfd/strategy`, before the kind.
const N_PREFIX_COMPONENTS: usize = 3;

/// Full name of the strategy that `text` means: `multicast`, or a whole name
/// with version and parameters.
pub(crate) fn find(text: &str) -> Option<Name> {
    if text.starts_with('/') {
        let name: Name = text.parse().ok()?;
        let known = registered_strategies();
        return known.iter().any(|k| is_same_kind(k, &name)).then_some(name);
    }
    registered_strategies()
        .into_iter()
        .find(|name| kind(name) == text)
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

fn is_same_kind(known: &Name, name: &Name) -> bool {
    name.starts_with(known.prefix(N_PREFIX_COMPONENTS + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strategies_are_found_by_short_and_by_full_name() {
        assert!(short_names().contains(&"best-route".to_string()));
        let full = find("multicast").expect("registered");
        assert_eq!(find(&full.to_string()), Some(full));
        assert_eq!(find("no-such-strategy"), None);
        assert_eq!(find("/localhost/nfd/strategy/no-such/v=1"), None);
    }
}
