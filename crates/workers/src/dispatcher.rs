//! Where a name is at home.

use std::sync::Arc;

use tachonym_dispatch::{
    DispatchBy, Homes, Key, NameShape, Reach, Reader, ServiceId, WorkerId, WorkerSet,
};
use tachonym_packet::types::component::{IMPLICIT_SHA256_DIGEST, SEGMENT};
use tachonym_packet::{
    ComponentView, HashKey, HashedNames, InterestView, NameHash, NameHashes, NameScope, NameView,
    PitToken,
};

use crate::services::Services;
use crate::tokens::{TokenMaker, Tokens};
use crate::waiting::bit_of;

/// Names of this host, and of its neighbours' management: the first worker serves them.
const OWN_WORKER: WorkerId = WorkerId(0);
const OWN_PREFIX_COMPONENTS: usize = 1;

/// Finds homes for one thread. Allocates nothing in the long run, takes no lock and writes
/// nothing that others read, but for [`refresh`](Self::refresh) when homes have changed.
#[derive(Debug)]
pub struct Dispatcher {
    by: DispatchBy,
    key: HashKey,
    services: Arc<Services>,
    tokens: Option<Tokens>,
    homes: Reader,
    /// Whether names have no former homes.
    is_settled: bool,
    hashes: NameHashes,
}

impl Dispatcher {
    /// `key` is that of the engines. All names are only forwarded, unless
    /// [services](Self::with_services) are told.
    #[must_use]
    pub fn new(by: DispatchBy, key: HashKey, homes: Reader) -> Self {
        Self {
            by,
            key,
            services: Arc::default(),
            tokens: None,
            is_settled: is_settled(homes.homes()),
            homes,
            hashes: NameHashes::new(),
        }
    }

    /// The same with these services, as many as there are maps of homes.
    #[must_use]
    pub fn with_services(self, services: Arc<Services>) -> Self {
        Self { services, ..self }
    }

    /// The same with tokens on Interests that leave, if any.
    #[must_use]
    pub fn with_tokens(self, tokens: Option<Tokens>) -> Self {
        Self { tokens, ..self }
    }

    /// What makes the tokens of a worker as long as homes are the same; `None` if none are to be
    /// made.
    #[must_use]
    pub fn token_maker(&self, worker: WorkerId) -> Option<TokenMaker> {
        let tokens = self.tokens?;
        let token = tokens.token(worker, self.homes().version())?;
        Some(TokenMaker {
            token,
            n_deciding: self.n_deciding(),
        })
    }

    /// Where an answer with this token goes, if that is one of ours and homes are still the
    /// same.
    #[inline]
    pub(crate) fn by_token(&self, token: Option<&PitToken>) -> Option<WorkerId> {
        let (tokens, token) = (self.tokens?, token?);
        let worker = tokens.worker(token, self.homes().version())?;
        self.homes().workers().contains(worker).then_some(worker)
    }

    /// Takes the latest homes: between two bursts, when all that was dispatched by the
    /// former ones is in a ring. Whether there are new ones.
    pub fn refresh(&mut self) -> bool {
        let has_changed = self.homes.refresh();
        if has_changed {
            self.is_settled = is_settled(self.homes());
        }
        has_changed
    }

    /// Where names are at home.
    #[must_use]
    pub fn homes(&self) -> &Homes {
        self.homes.homes()
    }

    /// Hashes the names of a burst, in the place of those that are in `names`.
    pub(crate) fn hash<'n>(
        &self,
        names: &mut HashedNames,
        burst: impl Iterator<Item = NameView<'n>>,
    ) {
        names.clear();
        names.push_burst(&self.key, burst);
    }

    /// The worker at which a name is at home.
    #[inline]
    pub fn home(&mut self, name: NameView<'_>) -> WorkerId {
        self.hash_and_place(name).1
    }

    /// The service of a name and what it is dispatched by; `None` if it is always at one
    /// worker.
    pub fn key(&mut self, name: NameView<'_>) -> Option<(ServiceId, Key)> {
        self.hash_and_place(name).0
    }

    fn hash_and_place(&mut self, name: NameView<'_>) -> (Option<(ServiceId, Key)>, WorkerId) {
        self.hashes.clear();
        let span = self.hashes.push_name(&self.key, name);
        self.place(name, self.hashes.slice(span))
    }

    /// Service and key of a name with these prefix hashes, and the worker where it is at home;
    /// no key if it is always there.
    #[inline]
    pub(crate) fn place(
        &self,
        name: NameView<'_>,
        hashes: &[NameHash],
    ) -> (Option<(ServiceId, Key)>, WorkerId) {
        if is_own(name) {
            return (None, OWN_WORKER);
        }
        let (service, key) = (self.services.of(name), self.by.key(name, hashes));
        (Some((service, key)), self.homes().home(service, key))
    }

    /// Whether Data for an Interest may be at home elsewhere than the Interest.
    #[inline]
    pub(crate) fn reaches_all(&self, interest: &InterestView<'_>) -> bool {
        if !interest.can_be_prefix() || self.homes().workers().len() == 1 || is_own(interest.name())
        {
            return false;
        }
        let NameShape { n_components, .. } = NameShape::of(interest.name());
        self.by
            .interest_reach(n_components, true, self.n_service_components())
            == Reach::All
    }

    /// Components from which on an Interest with CanBePrefix is at home where all Data for it
    /// are.
    fn n_deciding(&self) -> usize {
        match self.by {
            DispatchBy::Prefix { n_components } => {
                self.n_service_components().max(n_components.get().into())
            }
            DispatchBy::Name | DispatchBy::Batch { .. } => usize::MAX,
        }
    }

    /// Components that decide who serves a name.
    fn n_service_components(&self) -> usize {
        OWN_PREFIX_COMPONENTS.max(self.services.n_components())
    }

    /// Whether an Interest of a length at which one waits, elsewhere, may wait for Data of
    /// this name.
    #[inline]
    pub(crate) fn may_be_awaited(&self, name: NameView<'_>, waiting_lengths: u64) -> bool {
        if waiting_lengths == 0 {
            return false;
        }
        let n_deciding = match self.by {
            DispatchBy::Prefix { n_components } => {
                self.n_service_components().max(n_components.get().into())
            }
            DispatchBy::Name | DispatchBy::Batch { .. } => return true,
        };
        // A prefix of the name that ends in digests is at home where it is without them.
        let is_digest = |component: ComponentView<'_>| component.typ() == IMPLICIT_SHA256_DIGEST;
        waiting_lengths & (bit_of(n_deciding) - 1) != 0
            || name.get(n_deciding - 1).is_some_and(is_digest)
    }

    /// Whether a name concerns no other worker than `me` for having had another home. Takes
    /// constant time.
    #[inline]
    pub(crate) fn is_settled_for(
        &self,
        me: WorkerId,
        name: NameView<'_>,
        hashes: &[NameHash],
    ) -> bool {
        self.is_settled || self.other_holders(me, name, hashes).is_empty()
    }

    /// Other workers than `me` that have a name, or had it before and may have Interests
    /// pending for it.
    pub(crate) fn other_holders(
        &self,
        me: WorkerId,
        name: NameView<'_>,
        hashes: &[NameHash],
    ) -> WorkerSet {
        let mut holders = match is_own(name) {
            true => WorkerSet::only(OWN_WORKER),
            false => {
                let (service, key) = (self.services.of(name), self.by.key(name, hashes));
                self.homes().holders(service, key)
            }
        };
        holders.remove(me);
        holders
    }

    /// Other workers than `me` that Data of a name concerns: those where Interests with
    /// CanBePrefix may wait for it, and those that had the name before. `waiting_lengths` are
    /// those at which anybody waits, and `waits` tells a worker's. Takes time linear in the
    /// name's components and, at lengths that count, in workers.
    pub(crate) fn others_for(
        &self,
        me: WorkerId,
        name: NameView<'_>,
        hashes: &[NameHash],
        waiting_lengths: u64,
        waits: impl Fn(WorkerId, u64) -> bool,
    ) -> WorkerSet {
        let homes = self.homes.homes();
        let holders = |is_own, shape: NameShape| match is_own {
            true => WorkerSet::only(OWN_WORKER),
            false => {
                let key = self.by.key_of(shape, |n_components| hashes[n_components].0);
                homes.holders(self.services.of(name.prefix(shape.n_components)), key)
            }
        };
        let is_own = is_own(name);
        let mut others = WorkerSet::EMPTY;
        // That of the prefix of each length: what it is without digests at its end.
        let mut shape = NameShape {
            n_components: 0,
            segment: None,
        };
        let mut components = name.components();
        for length in 0..name.len() {
            let bit = bit_of(length);
            if waiting_lengths & bit != 0 {
                let waiting = holders(is_own && length > 0, shape).into_iter();
                others = others.union(waiting.filter(|&worker| waits(worker, bit)).collect());
            }
            let Some(component) = components.next() else {
                break;
            };
            if component.typ() != IMPLICIT_SHA256_DIGEST {
                shape = NameShape {
                    n_components: length + 1,
                    segment: (component.typ() == SEGMENT)
                        .then(|| component.as_number())
                        .flatten(),
                };
            }
        }
        others = others.union(holders(is_own, shape));
        others.remove(me);
        others
    }
}

/// Whether no name has former homes.
pub(crate) fn is_settled(homes: &Homes) -> bool {
    let mut migrations = homes.migrations().iter();
    let services = (0..homes.n_services()).map(|idx| ServiceId(idx as u8));
    services
        .into_iter()
        .all(|service| homes.map(service).n_unsettled() == 0)
        && migrations.all(|it| it.former.is_empty())
}

/// Whether a name is under `/localhost` or `/localhop`.
fn is_own(name: NameView<'_>) -> bool {
    name.scope() != NameScope::Global
}
