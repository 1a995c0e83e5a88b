//! What the FIB says of an Interest, and how far its name lets it go.

use tachonym_packet::{HashKey, InterestView, NameHash, NameHashes, NameScope, NameView};
use tachonym_tables::{FibMatch, FibProbe, FibView};

use crate::faces::Scope;
use crate::state::Settings;
use crate::strategy::Reach;

/// Delegations of a forwarding hint that are looked up: an Interest has room for more than a
/// thousand, each of which takes a search of the FIB.
pub const MAX_DELEGATIONS: usize = 16;

/// How far an Interest for `name` may go; `is_from_here`: a local face sent it.
#[inline]
pub(crate) fn reach_of(name: NameView<'_>, is_from_here: impl FnOnce() -> bool) -> Reach {
    match name.scope() {
        NameScope::Localhost => Reach::LocalOnly,
        NameScope::Localhop if !is_from_here() => Reach::LocalOnly,
        NameScope::Localhop | NameScope::Global => Reach::Anywhere,
    }
}

/// The delegations of a forwarding hint that are looked up.
pub(crate) fn delegations<'a>(interest: &InterestView<'a>) -> impl Iterator<Item = NameView<'a>> {
    interest.forwarding_hint().take(MAX_DELEGATIONS)
}

/// Whether a forwarding hint has led the Interest to its producer's region: a delegation is
/// a prefix of a name that this router's region has.
pub(crate) fn is_in_producer_region(settings: &Settings, interest: &InterestView<'_>) -> bool {
    interest.has_forwarding_hint()
        && delegations(interest).any(|delegation| {
            let mut regions = settings.producer_regions.iter();
            regions.any(|region| region.starts_with(delegation))
        })
}

/// A lookup of the FIB for one Interest.
pub(crate) struct RouteLookup<'a> {
    pub(crate) fib: &'a FibView<'a>,
    pub(crate) key: &'a HashKey,
    /// Hashes of the Interest's name.
    pub(crate) hashes: &'a [NameHash],
    /// The FIB's candidates for the name, if they were looked up ahead.
    pub(crate) probe: Option<&'a FibProbe>,
    /// A hint must not lead where a name would not: only a local face's Interest finds
    /// delegations under `/localhost`.
    pub(crate) ingress: Scope,
}

impl<'a> RouteLookup<'a> {
    /// The longest prefix of the Interest's name, or of the first delegation of its
    /// forwarding hint that has one.
    pub(crate) fn find(
        &self,
        interest: &InterestView<'a>,
        hint_hashes: &mut NameHashes,
    ) -> Option<FibMatch<'a>> {
        if !interest.has_forwarding_hint() {
            let probe = self.probe.copied();
            let probe = probe.unwrap_or_else(|| self.fib.probe(self.hashes));
            return self.fib.confirm(interest.name(), self.hashes, probe);
        }
        delegations(interest).find_map(|delegation| {
            if self.ingress == Scope::NonLocal && delegation.scope() == NameScope::Localhost {
                return None;
            }
            hint_hashes.clear();
            let span = hint_hashes.push_name(self.key, delegation);
            self.fib.find_longest(delegation, hint_hashes.slice(span))
        })
    }

    /// As [`Self::find`]; an Interest with CanBePrefix that has no route of its own, and whose
    /// name is a prefix of the management prefix, takes the route of management, which has
    /// Data for it.
    pub(crate) fn find_with_management(
        &self,
        interest: &InterestView<'a>,
        management: Option<NameView<'a>>,
        hint_hashes: &mut NameHashes,
    ) -> Option<FibMatch<'a>> {
        let route = self.find(interest, hint_hashes);
        match management {
            Some(managed)
                if interest.can_be_prefix()
                    && managed.starts_with(interest.name())
                    && route.is_none_or(|route| route.n_components() == 0) =>
            {
                self.find_management(managed, hint_hashes)
            }
            _ => route,
        }
    }

    #[cold]
    fn find_management(
        &self,
        managed: NameView<'a>,
        hashes: &mut NameHashes,
    ) -> Option<FibMatch<'a>> {
        hashes.clear();
        let span = hashes.push_name(self.key, managed);
        self.fib.find_longest(managed, hashes.slice(span))
    }
}
