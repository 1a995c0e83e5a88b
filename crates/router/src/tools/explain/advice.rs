//! The next step to try, in one line.
//!
//! Owns the order in which findings count: what keeps an Interest from being answered comes
//! first, in the order in which the Interest meets it.

use tachonym_packet::{FaceId, Name, types};
use tachonym_protocol::{ExplainedNextHop, NextHopUse, PendingInterest, SsdFinding};

use super::Report;
use super::report::{asks_all, is_eligible, strategy, time};
use super::sending::{Outcome, Sent};

/// What to try when no Interest was sent.
pub(super) fn before(report: &Report) -> String {
    let advice = first_finding(report);
    match &report.explanation.cached {
        Some(stale) if !stale.answers => format!(
            "{advice}; {} takes the stale copy",
            peek_with(report, false)
        ),
        _ => advice,
    }
}

/// What the first finding that counts asks for.
fn first_finding(report: &Report) -> String {
    let name = &report.query.name;
    let it = &report.explanation;
    if it.is_out_of_scope {
        return "ask from a program on the router's machine, over its Unix socket".into();
    }
    if it.cached.as_ref().is_some_and(|data| data.answers) {
        return format!("the content store answers: {}", peek(report));
    }
    if it.on_ssd == SsdFinding::Probable {
        return format!("the SSD level probably answers: {}", peek(report));
    }
    if let Some(advice) = pending(report) {
        return advice;
    }
    let Some(prefix) = &it.route_prefix else {
        return no_route(report);
    };
    match decisive_hop(report) {
        Some(hop) if hop.usage == NextHopUse::FaceDown => down(report, hop),
        Some(hop) if FaceId(hop.face_id) == FaceId::NULL => format!(
            "the route drops every Interest; `tachonym route remove {prefix} null://` removes it"
        ),
        Some(_) => match report.drops.iter().find(|drop| drop.name == *name) {
            Some(drop) => format!(
                "nothing is in the way now, but {} ago this router dropped {} for {}: \
                 `tachonym explain --send {name}` tries again",
                time(drop.age_ms),
                drop.kind,
                drop.reason
            ),
            None => format!(
                "nothing is in the way: {}, or `tachonym explain --send {name}`",
                peek(report)
            ),
        },
        None => no_usable(report, prefix),
    }
}

/// The next hop on which an Interest depends: the first that the strategy may choose. It does
/// not know whether a face is down; but a strategy that asks all needs only one that is up.
fn decisive_hop(report: &Report) -> Option<&ExplainedNextHop> {
    let it = &report.explanation;
    let first = it.next_hops.iter().find(|hop| is_eligible(hop));
    match asks_all(&strategy(&it.strategy)) {
        true => {
            let mut hops = it.next_hops.iter();
            hops.find(|hop| hop.usage == NextHopUse::Usable).or(first)
        }
        false => first,
    }
}

/// What to try after an Interest was sent.
pub(super) fn after(report: &Report, sent: &Sent) -> String {
    let name = &report.query.name;
    match (&sent.outcome, sent.face) {
        (Outcome::Data { .. }, _) => format!("the name has an answer: {}", peek(report)),
        (Outcome::Nack(_), Some(id)) if !sent.is_by_this_router() => {
            format!(
                "run `tachonym explain {name}` on the router behind {}",
                sent.faces.show(id.0)
            )
        }
        (Outcome::Nack(_), _) => before(report),
        (Outcome::Nothing, _) => {
            let silent = sent.pending.iter().flat_map(|pending| &pending.asked);
            let mut silent = silent.filter(|asked| asked.nack.is_none());
            match silent.next() {
                Some(asked) => silence(name, &sent.faces.show(asked.face_id)),
                None => before(report),
            }
        }
    }
}

fn peek(report: &Report) -> String {
    peek_with(report, report.query.must_be_fresh)
}

fn peek_with(report: &Report, must_be_fresh: bool) -> String {
    let query = &report.query;
    let prefix = if query.can_be_prefix { "--prefix " } else { "" };
    let fresh = if must_be_fresh { "--fresh " } else { "" };
    format!("`tachonym peek {prefix}{fresh}{}`", query.name)
}

fn silence(name: &Name, face: &str) -> String {
    format!(
        "{face} does not answer: check that a producer of {name} runs there, or run \
         `tachonym explain {name}` on that router"
    )
}

/// What to do about the same Interest that is pending.
fn pending(report: &Report) -> Option<String> {
    let query = &report.query;
    let is_same = |it: &&PendingInterest| {
        it.can_be_prefix == query.can_be_prefix && it.must_be_fresh == query.must_be_fresh
    };
    let mut pending = report.explanation.pending.iter();
    let pending = pending.find(|it| is_same(it) && !it.is_satisfied)?;
    let silent = pending.asked.iter().find(|asked| asked.nack.is_none())?;
    Some(format!(
        "{} has not answered for {}: check the producer there; \
         `tachonym explain --send {}` asks again",
        report.faces.show(silent.face_id),
        time(silent.since_ms),
        query.name
    ))
}

fn no_route(report: &Report) -> String {
    let name = &report.query.name;
    if strategy(&report.explanation.strategy) == "self-learning" {
        return format!(
            "self-learning asks every neighbour for a name without a route: \
             `tachonym explain --send {name}`"
        );
    }
    format!(
        "`tachonym route add {} FACEURI`, or start a producer on this machine",
        prefix_of(name)
    )
}

/// The prefix that a producer of a name may have: without segment and version, and without
/// the last component of what is left.
fn prefix_of(name: &Name) -> Name {
    let is_generic = |n: usize| {
        let last = name.get(n - 1);
        last.is_some_and(|last| last.typ() == types::component::GENERIC)
    };
    let mut n_components = name.len();
    while n_components > 1 && !is_generic(n_components) {
        n_components -= 1;
    }
    name.prefix(n_components.saturating_sub(1).max(1)).to_name()
}

fn down(report: &Report, hop: &ExplainedNextHop) -> String {
    let id = hop.face_id;
    let mut others = report.explanation.next_hops.iter();
    let has_other = others.any(|it| it.usage == NextHopUse::Usable);
    let retry = match (has_other, &*strategy(&report.explanation.strategy)) {
        (false, _) => "",
        (true, "best-route") => {
            "; until it is up, the first Interest is lost and only a repeated one takes another \
             next hop"
        }
        (true, _) => "; until it is up, Interests that the strategy sends there are lost",
    };
    format!(
        "{} is down: `tachonym face show {id}`, and check the peer{retry}",
        report.faces.show(id)
    )
}

/// No next hop may be used.
fn no_usable(report: &Report, prefix: &Name) -> String {
    let hops = &report.explanation.next_hops;
    let has = |usage: NextHopUse| hops.iter().any(|hop| hop.usage == usage);
    if has(NextHopUse::OutOfScope) {
        format!("no program on this machine has registered {prefix}: start one")
    } else if has(NextHopUse::Incoming) {
        format!(
            "the route leads back to the face that asks: `tachonym route add {prefix} FACEURI` \
             adds another next hop"
        )
    } else {
        no_route(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_is_advised_for_the_prefix_of_an_object() {
        let prefix = |uri: &str| prefix_of(&uri.parse().expect("a name")).to_string();
        assert_eq!(prefix("/example/hello"), "/example");
        assert_eq!(prefix("/example"), "/example");
        assert_eq!(prefix("/a/b/file/v=7/seg=0"), "/a/b");
        assert_eq!(prefix("/seg=0"), "/seg=0");
    }
}
