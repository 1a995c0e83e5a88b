//! Routes that are learnt from prefix announcements in Data (NDNLPv2,
//! "Self-Learning").
//!
//! Owns which of them make a route, and for how long. The engine finds the
//! announcements and the Nacks that speak against learnt routes; no command waits for
//! an answer.

use std::time::Duration;

use tachonym_packet::{FaceId, MonoNs, NameView};
use tachonym_protocol::{route_flags, route_origin};
use tracing::debug;

use crate::announcement::Announcement;
use crate::control::ControlPlane;
use crate::counters::DropReason;
use crate::manager::{ANNOUNCED_COST, Manager, ReplySink, UnansweredRoute};
use crate::registration::is_announceable;
use crate::rib::RibRoute;

/// Longest life of a learnt route, whatever the announcement promises: then the
/// way is looked for again. The number is NFD's.
const MAX_LIFETIME: Duration = Duration::from_secs(600);

const ORIGIN: u64 = route_origin::PREFIX_ANNOUNCEMENT;

/// A prefix announcement that a Data has brought. It is not validated yet.
#[derive(Clone, Copy, Debug)]
pub struct Brought<'a> {
    /// The face that the Data came by.
    pub face: FaceId,
    /// Name of the Data.
    pub name: NameView<'a>,
    /// What is said to be an announcement.
    pub wire: &'a [u8],
}

impl<C: ControlPlane> Manager<C> {
    /// Takes note of an announcement: if it is of a prefix of its Data's name, and
    /// its signer is to be believed, the prefix gets a route to the face. `wall_ms`
    /// is the time in milliseconds since the Unix epoch. `out` gets the replies to
    /// commands that have waited for the FIB.
    pub fn handle_announcement(
        &mut self,
        now: MonoNs,
        wall_ms: u64,
        brought: Brought<'_>,
        out: ReplySink<'_>,
    ) {
        if !self.authorizer.learns_routes() {
            return self.counters.drop(DropReason::AnnouncementUnwanted);
        }
        let Brought { face, name, wire } = brought;
        let announcement = match Announcement::parse(wire, wall_ms) {
            Ok(announcement) => announcement,
            Err(error) => {
                debug!("announcement with {name} by face {face} refused: {error}");
                return self.counters.drop(DropReason::AnnouncementRefused);
            }
        };
        let prefix = &announcement.prefix;
        if self.rib.route(prefix.view(), face, ORIGIN).is_some() {
            // Several Data of one discovery bring the same; the first was enough.
            return;
        }
        // The root prefix is not announced. Checking a signature comes last, because it takes
        // longest.
        if !is_announceable(prefix) || !name.starts_with(prefix.view()) {
            debug!("announcement with {name} by face {face} refused: it announces {prefix}");
            return self.counters.drop(DropReason::AnnouncementRefused);
        }
        let verdict = self.authorizer.check_announcement(&announcement, wall_ms);
        if let Err(reject) = verdict {
            debug!("announcement of {prefix} by face {face} refused: {reject}");
            self.counters.n_announcements_rejected += 1;
            return self.counters.drop(DropReason::AnnouncementRefused);
        }
        self.learn(now, face, announcement);
        self.apply_routes(out);
    }

    fn learn(&mut self, now: MonoNs, face: FaceId, announcement: Announcement<'_>) {
        let prefix = announcement.prefix.view();
        let route = RibRoute {
            face,
            origin: ORIGIN,
            cost: announcement.cost.unwrap_or(ANNOUNCED_COST),
            flags: route_flags::CHILD_INHERIT,
            expires: now.plus_ms(announcement.lives_ms).min(now + MAX_LIFETIME),
        };
        if let Err(error) = self.rib.insert(prefix, route, &mut self.fib_changes) {
            debug!("route {prefix} by face {face} not learnt: {error}");
            return self.counters.drop(DropReason::AnnouncementBeyondLimit);
        }
        if !self.keep_announcement(&announcement) {
            // What bounds the announcements bounds the routes that are learnt.
            self.rib.remove(prefix, face, ORIGIN, &mut self.fib_changes);
            return;
        }
        debug!("route {prefix} by face {face} learnt");
        self.counters.n_learnt_routes += 1;
        self.unanswered.push(UnansweredRoute {
            command: None,
            prefix: announcement.prefix,
            face,
            origin: ORIGIN,
            adds: true,
        });
    }

    /// Takes note that the neighbour behind `face` has no route for `name`:
    /// removes the announced route to it that serves the name.
    pub fn handle_unreachable(&mut self, face: FaceId, name: NameView<'_>, out: ReplySink<'_>) {
        let Some(prefix) = self.rib.longest_with_route(name, face, ORIGIN) else {
            return;
        };
        debug!("learnt route {prefix} by face {face} removed: it brought no Data");
        self.rib
            .remove(prefix.view(), face, ORIGIN, &mut self.fib_changes);
        self.counters.n_unlearnt_routes += 1;
        self.apply_routes(out);
    }

    /// Lets the engine hand an announcement on, as long as its prefix has an
    /// announced route; false if it has no room.
    pub(crate) fn keep_announcement(&mut self, announcement: &Announcement<'_>) -> bool {
        let kept = self.control.keep_announcement(
            &announcement.prefix,
            announcement.version,
            announcement.data.wire(),
        );
        if kept.is_err() {
            self.counters.drop(DropReason::AnnouncementBeyondLimit);
        }
        kept.is_ok()
    }

    /// Announcements whose last route has gone are handed on no more.
    pub(crate) fn forget_withdrawn(&mut self) {
        let mut prefixes = self.rib.take_withdrawn();
        prefixes.retain(|prefix| !self.rib.has_origin(prefix.view(), ORIGIN));
        if !prefixes.is_empty() {
            // A router that has gone hands nothing on.
            let _ = self.control.forget_announcements(prefixes);
        }
    }
}
