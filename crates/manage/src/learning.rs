//! Routes that are learnt from prefix announcements in Data (NDNLPv2,
//! "Self-Learning").
//!
//! Owns which of them make a route, and for how long. The engine finds the
//! announcements and the Nacks that speak against learnt routes; nobody waits for
//! an answer.

use std::time::Duration;

use tachonym_packet::{FaceId, MonoNs, NameView};
use tachonym_protocol::{route_flags, route_origin};
use tracing::debug;

use crate::announcement::Announcement;
use crate::control::ControlPlane;
use crate::counters::DropReason;
use crate::manager::{ANNOUNCED_COST, Manager, ReplySink, UnansweredRoute, is_local};
use crate::rib::RibRoute;

/// Longest life of a learnt route, whatever the announcement promises: then the
/// way is looked for again. The number is NFD's.
const MAX_LIFETIME: Duration = Duration::from_secs(600);

impl<C: ControlPlane> Manager<C> {
    /// Takes note of `wire`, a prefix announcement that has come by `face` with a
    /// Data called `name`: if its signer is to be believed, its prefix gets a
    /// route to that face. `wall_ms` is the time in milliseconds since the Unix
    /// epoch. `out` gets the replies to commands that have waited for the FIB.
    pub fn handle_announcement(
        &mut self,
        now: MonoNs,
        wall_ms: u64,
        face: FaceId,
        (name, wire): (NameView<'_>, &[u8]),
        out: ReplySink<'_>,
    ) {
        if !self.authorizer.learns_routes() {
            return self.counters.drop(DropReason::AnnouncementUnwanted);
        }
        let announcement = match Announcement::parse(wire, wall_ms) {
            Ok(announcement) => announcement,
            Err(error) => {
                debug!(%name, face = face.0, %error, "announcement refused");
                return self.counters.drop(DropReason::AnnouncementRefused);
            }
        };
        let prefix = &announcement.prefix;
        let origin = route_origin::PREFIX_ANNOUNCEMENT;
        if self.rib.route(prefix.view(), face, origin).is_some() {
            // Several Data of one discovery bring the same; the first was enough.
            return;
        }
        // Checking a signature comes last, because it takes longest.
        let is_of_name = name.starts_with(prefix.view());
        if !is_of_name || is_local(prefix) {
            debug!(%name, %prefix, face = face.0, "announcement of something else");
            return self.counters.drop(DropReason::AnnouncementRefused);
        }
        let verdict = self
            .authorizer
            .check_announcement(&announcement.data, wall_ms);
        if let Err(reject) = verdict {
            debug!(%prefix, face = face.0, %reject, "announcement refused");
            self.counters.n_announcements_rejected += 1;
            return self.counters.drop(DropReason::AnnouncementRefused);
        }
        if !self.keep_announcement(now, &announcement) {
            return;
        }
        let expires = now.plus_ms(announcement.lives_ms).min(now + MAX_LIFETIME);
        let route = RibRoute {
            face,
            origin,
            cost: ANNOUNCED_COST,
            flags: route_flags::CHILD_INHERIT,
            expires,
        };
        match self.rib.insert(prefix.view(), route, &mut self.fib_changes) {
            Ok(_) => {
                debug!(%prefix, face = face.0, "route learnt");
                self.counters.n_learnt_routes += 1;
                self.unanswered.push(UnansweredRoute {
                    command: None,
                    prefix: announcement.prefix,
                    face,
                    origin,
                    adds: true,
                });
            }
            Err(error) => {
                debug!(%prefix, face = face.0, %error, "route not learnt");
                self.counters.drop(DropReason::AnnouncementBeyondLimit);
            }
        }
        self.apply_routes(out);
    }

    /// Takes note that the neighbour behind `face` has no route for `name`:
    /// removes the learnt route to it that serves the name.
    pub fn handle_unreachable(&mut self, face: FaceId, name: NameView<'_>, out: ReplySink<'_>) {
        let origin = route_origin::PREFIX_ANNOUNCEMENT;
        let prefixes = (0..=name.len()).rev().map(|length| name.prefix(length));
        let learnt = { prefixes }.find(|&prefix| self.rib.route(prefix, face, origin).is_some());
        let Some(prefix) = learnt else {
            return;
        };
        debug!(%prefix, face = face.0, "learnt route is wrong");
        self.rib.remove(prefix, face, origin, &mut self.fib_changes);
        self.counters.n_unlearnt_routes += 1;
        self.apply_routes(out);
    }

    /// Lets the engine hand an announcement on; false if it has no room.
    pub(crate) fn keep_announcement(
        &mut self,
        now: MonoNs,
        announcement: &Announcement<'_>,
    ) -> bool {
        let until = now.plus_ms(announcement.lives_ms);
        let wire = announcement.data.wire();
        let kept = self
            .control
            .keep_announcement(&announcement.prefix, wire, until);
        if kept.is_err() {
            self.counters.drop(DropReason::AnnouncementBeyondLimit);
        }
        kept.is_ok()
    }
}
