//! Which service a name belongs to: the prefixes that are not only forwarded.

use tachonym_dispatch::{NameShape, ServiceId};
use tachonym_packet::{Name, NameView};

/// Names under no prefix of another service are only forwarded.
pub(crate) const FORWARDING: ServiceId = ServiceId(0);

/// Services by the prefixes of their names. Every name belongs to one: that of the longest
/// prefix that it has, or the first, which is forwarding.
#[derive(Clone, Debug, Default)]
pub struct Services {
    /// The longest first.
    prefixes: Vec<(Name, ServiceId)>,
}

impl Services {
    /// Those of these prefixes, beside forwarding.
    #[must_use]
    pub fn new(mut prefixes: Vec<(Name, ServiceId)>) -> Self {
        prefixes.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
        Self { prefixes }
    }

    /// The service of a name, by what it is without implicit digests at its end: an Interest
    /// for a full name belongs where the Data does. Takes time linear in the prefixes.
    #[inline]
    pub(crate) fn of(&self, name: NameView<'_>) -> ServiceId {
        if self.prefixes.is_empty() {
            return FORWARDING;
        }
        self.find(name.prefix(NameShape::of(name).n_components))
    }

    fn find(&self, name: NameView<'_>) -> ServiceId {
        let mut prefixes = self.prefixes.iter();
        let found = prefixes.find(|(prefix, _)| name.starts_with(prefix.view()));
        found.map_or(FORWARDING, |&(_, service)| service)
    }

    /// Components that decide to which service a name belongs.
    pub(crate) fn n_components(&self) -> usize {
        self.prefixes.first().map_or(0, |(prefix, _)| prefix.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_decides_and_digests_do_not() {
        let name = |uri: &str| uri.parse::<Name>().expect("a literal name");
        let services = Services::new(vec![
            (name("/a"), ServiceId(1)),
            (name("/a/b/c"), ServiceId(2)),
            (name("/a/b"), FORWARDING),
        ]);
        assert_eq!(services.n_components(), 3);
        let digest = format!("sha256digest={}", "5a".repeat(32));
        for (uri, service) in [
            ("/", 0),
            ("/b", 0),
            ("/a", 1),
            ("/a/x", 1),
            ("/a/b/x", 0),
            ("/a/b/c", 2),
        ] {
            assert_eq!(services.of(name(uri).view()), ServiceId(service), "{uri}");
            let full = name(&format!("{}/{digest}", uri.trim_end_matches('/')));
            assert_eq!(services.of(full.view()), ServiceId(service), "{full}");
        }
        assert_eq!(Services::default().of(name("/a").view()), FORWARDING);
        assert_eq!(Services::default().n_components(), 0);
    }
}
