//! Commands on the RIB: register, unregister, announce.
//!
//! Owns what these commands do to the RIB and what neighbours may not ask for. The FIB
//! follows, and the commands are answered, when `manager` applies the changes.

use tachonym_packet::{FaceId, MonoNs, Name, NameScope, NameView};
use tachonym_protocol::{
    ControlParameters, ControlResponse, Scope, route_flags, route_origin, status_code,
};

use crate::announcement::Announcement;
use crate::authorize::LocalhopRule;
use crate::commands::{self, meant_face};
use crate::control::ControlPlane;
use crate::manager::{
    ANNOUNCED_COST, Manager, ReplySink, Request, RouteCommand, UnansweredRoute, command_parameters,
    with_body,
};
use crate::rib::{RibError, RibRoute};
use crate::verbs::Verb;

impl<C: ControlPlane> Manager<C> {
    /// The prefix that a command of a neighbour registers, unregisters or announces, and
    /// for which its signer has to answer. `None` if the signer of an announcement does, or
    /// if the parameters are malformed: those are refused later.
    pub(crate) fn registered_by_neighbour(
        &self,
        request: &Request<'_>,
        verb: Verb,
        rest: NameView<'_>,
    ) -> Option<Name> {
        match verb {
            Verb::RibRegister | Verb::RibUnregister => command_parameters(rest, verb).ok()?.name,
            Verb::RibAnnounce if self.authorizer.believes_any_announcement() => {
                let parameters = request.interest.application_parameters();
                let announcement = Announcement::find(parameters, request.wall_ms);
                announcement.ok().map(|it| it.prefix)
            }
            _ => None,
        }
    }

    pub(crate) fn register(
        &mut self,
        request: &Request<'_>,
        parameters: &ControlParameters,
        out: ReplySink<'_>,
    ) {
        let prefix = commands::command_name(parameters);
        // NFD's clients say "never" by the largest period that fits them.
        let wanted_ms = parameters
            .expiration_period_ms
            .filter(|&period_ms| period_ms != u64::MAX);
        let mut terms = RouteTerms {
            cost: parameters.cost.unwrap_or(0),
            flags: parameters.flags.unwrap_or(route_flags::CHILD_INHERIT),
            expiry_ms: wanted_ms,
        };
        if let Some(rule) = self.authorizer.bounds(request.scope) {
            terms.bound(rule);
        }
        let route = RibRoute {
            face: meant_face(parameters, request.incoming),
            origin: parameters.origin.unwrap_or(route_origin::APP),
            cost: terms.cost,
            flags: terms.flags,
            expires: terms
                .expiry_ms
                .map_or(MonoNs::NEVER, |period_ms| request.now.plus_ms(period_ms)),
        };
        let effective = ControlParameters {
            name: Some(prefix.clone()),
            face_id: Some(route.face.0),
            origin: Some(route.origin),
            cost: Some(route.cost),
            flags: Some(route.flags),
            expiration_period_ms: terms.expiry_ms.or(parameters.expiration_period_ms),
            ..ControlParameters::default()
        };
        self.insert_route(request, prefix, route, effective, out);
    }

    /// Changes the RIB, or responds why not; false then.
    fn insert_route(
        &mut self,
        request: &Request<'_>,
        prefix: Name,
        route: RibRoute,
        effective: ControlParameters,
        out: ReplySink<'_>,
    ) -> bool {
        let name = request.interest.name();
        if let Some(response) = forbidden_to_neighbours(request, &prefix, route.face) {
            self.respond(name, response, out);
            return false;
        }
        let inserted = self.rib.insert(prefix.view(), route, &mut self.fib_changes);
        if let Err(error) = inserted {
            let counters = &mut self.counters;
            let code = match error {
                RibError::NameTooLong => status_code::NAME_TOO_LONG,
                RibError::Full => {
                    counters.n_routes_beyond_limit += 1;
                    status_code::UNAVAILABLE
                }
                RibError::TooManyNameBytes => {
                    counters.n_routes_beyond_name_bytes += 1;
                    status_code::UNAVAILABLE
                }
                RibError::TooManyOrigins => {
                    counters.n_routes_beyond_origins += 1;
                    status_code::UNAVAILABLE
                }
            };
            let response = ControlResponse::new(code, error.to_string());
            self.respond(name, with_body(response, &effective), out);
            return false;
        }
        if route.expires <= request.now {
            let n_expired = self.rib.expire(request.now, &mut self.fib_changes);
            self.counters.n_expired_routes += n_expired as u64;
        }
        self.unanswered.push(UnansweredRoute {
            command: Some(RouteCommand {
                name: name.to_name(),
                effective,
            }),
            prefix,
            face: route.face,
            origin: route.origin,
            adds: true,
        });
        true
    }

    pub(crate) fn unregister(
        &mut self,
        request: &Request<'_>,
        parameters: &ControlParameters,
        out: ReplySink<'_>,
    ) {
        let prefix = commands::command_name(parameters);
        let face = meant_face(parameters, request.incoming);
        let origin = parameters.origin.unwrap_or(route_origin::APP);
        let name = request.interest.name();
        if let Some(response) = forbidden_to_neighbours(request, &prefix, face) {
            return self.respond(name, response, out);
        }
        self.rib
            .remove(prefix.view(), face, origin, &mut self.fib_changes);
        self.unanswered.push(UnansweredRoute {
            command: Some(RouteCommand {
                name: name.to_name(),
                effective: ControlParameters {
                    name: Some(prefix.clone()),
                    face_id: Some(face.0),
                    origin: Some(origin),
                    ..ControlParameters::default()
                },
            }),
            prefix,
            face,
            origin,
            adds: false,
        });
    }

    pub(crate) fn announce(&mut self, request: &Request<'_>, out: ReplySink<'_>) {
        let name = request.interest.name();
        let parameters = request.interest.application_parameters();
        let announcement = match Announcement::find(parameters, request.wall_ms) {
            Ok(announcement) => announcement,
            Err(error) => {
                let response = ControlResponse::new(status_code::BAD_REQUEST, error.to_string());
                return self.respond(name, response, out);
            }
        };
        if !is_announceable(&announcement.prefix) {
            let text = "/, /localhost and /localhop are not announced; announce a longer prefix";
            let response = ControlResponse::new(status_code::FORBIDDEN, text);
            return self.respond(name, response, out);
        }
        let verdict = self
            .authorizer
            .check_announcement(&announcement, request.wall_ms);
        if let Err(reject) = verdict {
            self.counters.n_announcements_rejected += 1;
            let text = format!("prefix announcement: {reject}");
            let response = ControlResponse::new(status_code::FORBIDDEN, text);
            return self.respond(name, response, out);
        }
        let mut terms = RouteTerms {
            cost: announcement.cost.unwrap_or(ANNOUNCED_COST),
            flags: route_flags::CHILD_INHERIT,
            expiry_ms: Some(announcement.lives_ms),
        };
        if let Some(rule) = self.authorizer.bounds(request.scope) {
            terms.bound(rule);
        }
        let lives_ms = terms.expiry_ms.unwrap_or(announcement.lives_ms);
        let route = RibRoute {
            face: request.incoming,
            origin: route_origin::PREFIX_ANNOUNCEMENT,
            cost: terms.cost,
            flags: terms.flags,
            expires: request.now.plus_ms(lives_ms),
        };
        let effective = ControlParameters {
            name: Some(announcement.prefix.clone()),
            face_id: Some(route.face.0),
            origin: Some(route.origin),
            cost: Some(route.cost),
            flags: Some(route.flags),
            expiration_period_ms: Some(lives_ms),
            ..ControlParameters::default()
        };
        if self.insert_route(request, announcement.prefix.clone(), route, effective, out) {
            // Without room for it neighbours learn no route; this one is made anyway.
            self.keep_announcement(&announcement);
        }
    }
}

/// What a route is to be like.
struct RouteTerms {
    cost: u64,
    flags: u64,
    /// `None`: it does not expire.
    expiry_ms: Option<u64>,
}

impl RouteTerms {
    /// Brings them within what `rule` grants to neighbours.
    fn bound(&mut self, rule: &LocalhopRule) {
        self.cost = self.cost.max(rule.min_cost);
        if !rule.allows_capture {
            self.flags &= !route_flags::CAPTURE;
        }
        self.expiry_ms = rule.granted_ms(self.expiry_ms);
    }
}

/// Whether a prefix may have a route by an announcement: not `/`, and not what is local.
pub(crate) fn is_announceable(prefix: &Name) -> bool {
    !prefix.is_empty() && !is_local(prefix)
}

/// A neighbour may change its own routes, and none of what is local here.
fn forbidden_to_neighbours(
    request: &Request<'_>,
    prefix: &Name,
    face: FaceId,
) -> Option<ControlResponse> {
    if request.scope == Scope::Localhost {
        return None;
    }
    let text = if face != request.incoming {
        "a neighbour may register only routes to itself"
    } else if is_local(prefix) {
        "a neighbour may not register prefixes under /localhost or /localhop"
    } else {
        return None;
    };
    Some(ControlResponse::new(status_code::FORBIDDEN, text))
}

/// Whether `prefix` is of this host or link alone.
fn is_local(prefix: &Name) -> bool {
    prefix.view().scope() != NameScope::Global
}
