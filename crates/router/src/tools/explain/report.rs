//! How an explanation looks, as text and as JSON.

use std::time::Duration;

use serde_json::{Value, json};
use tachonym_packet::{FaceId, NackReason, Name, NameScope};
use tachonym_protocol::{
    AskedFace, CachedData, ExplainedNextHop, NextHopUse, PendingInterest, RecentDrop, SsdFinding,
    WaitingFace, route_origin,
};

use super::super::hops::Hops;
use super::super::strategy::STRATEGY_PREFIX;
use super::super::text;
use super::Report;
use super::sending::{Outcome, Sent};

/// Most drops that are shown as text.
const MAX_DROPS: usize = 4;

/// The width of the labels: what is printed before and after an answer has one layout.
const LABEL_WIDTH: usize = "content store".len();

pub(super) fn row(label: &str, value: impl Into<String>) -> Vec<String> {
    vec![format!("{label:<LABEL_WIDTH$}"), value.into()]
}

/// Milliseconds, rounded: `340 ms`, `2.1 s`, `4 s`, `5 min 6 s`.
pub(super) fn time(ms: u64) -> String {
    match ms {
        ..1_000 => format!("{ms} ms"),
        1_000..59_950 => match (ms + 50) / 100 {
            tenths if tenths % 10 == 0 => format!("{} s", tenths / 10),
            tenths => format!("{}.{} s", tenths / 10, tenths % 10),
        },
        _ => text::duration(Duration::from_secs(ms.saturating_add(500) / 1_000)),
    }
}

/// A strategy by its short name, if it has one.
pub(super) fn strategy(strategy: &Name) -> String {
    let full = strategy.to_string();
    let rest = full.strip_prefix(STRATEGY_PREFIX);
    let rest = rest.and_then(|rest| rest.strip_prefix('/'));
    let short = rest.and_then(|rest| rest.split('/').next());
    short.unwrap_or(&full).to_owned()
}

/// The rows of an explanation, but the next step.
pub(super) fn rows(report: &Report) -> Vec<Vec<String>> {
    let mut rows = rows_before_drops(report);
    if report.is_whole {
        let drops = report.drops.iter().take(MAX_DROPS);
        let mut lines: Vec<_> = drops.map(|it| drop_line(it, &report.query.name)).collect();
        match report.drops.len().saturating_sub(MAX_DROPS) {
            0 if lines.is_empty() => lines.push("none".into()),
            0 => {}
            n => lines.push(format!("and {n} more")),
        }
        let labels = std::iter::once("recent drops").chain(std::iter::repeat(""));
        rows.extend(labels.zip(lines).map(|(label, line)| row(label, line)));
    }
    rows
}

/// One drop, or several alike; with the name unless it is `asked`.
fn drop_line(drop: &RecentDrop, asked: &Name) -> String {
    let RecentDrop { kind, reason, .. } = drop;
    let times = match drop.n_drops {
        0 | 1 => String::new(),
        n => format!("{n} times, last "),
    };
    let cut = if drop.is_name_cut { "/..." } else { "" };
    let of = match drop.name == *asked && !drop.is_name_cut {
        true => String::new(),
        false => format!(" of {}{cut}", drop.name),
    };
    let age = time(drop.age_ms);
    format!(
        "{reason}: {kind}{of} from face {}, {times}{age} ago",
        drop.face_id
    )
}

fn rows_before_drops(report: &Report) -> Vec<Vec<String>> {
    let it = &report.explanation;
    let mut rows = vec![row("name", asked(report)), row("scope", scope(report))];
    if report.is_whole {
        rows.push(row("content store", dram(report)));
        if it.store_serves {
            rows.push(row("", format!("SSD level: {}", ssd(it.on_ssd))));
        }
        if it.pending.is_empty() {
            rows.push(row("pending", "no"));
        }
        for (i, pending) in it.pending.iter().enumerate() {
            let label = if i == 0 { "pending" } else { "" };
            let [head, rest @ ..] = &pending_lines(pending, &report.faces)[..] else {
                continue;
            };
            rows.push(row(label, head));
            rows.extend(rest.iter().map(|line| row("", format!("  {line}"))));
        }
    } else {
        let unknown = format!("unknown: {} does not answer `explain`", report.version);
        rows.push(row("content store", unknown.clone()));
        rows.push(row("pending", unknown));
    }
    let Some(prefix) = &it.route_prefix else {
        rows.push(row("route", "none: no prefix of the name has a route"));
        rows.push(row("strategy", strategy_line(report)));
        return rows;
    };
    rows.push(row("route", prefix.to_string()));
    let mut is_first = true;
    for (i, hop) in it.next_hops.iter().enumerate() {
        let label = if i == 0 { "next hops" } else { "" };
        let order = order(&strategy(&it.strategy), is_first);
        is_first &= !is_eligible(hop);
        rows.push(row(label, hop_line(hop, order, &report.faces)));
    }
    rows.push(row("strategy", strategy_line(report)));
    rows
}

/// The Interest that was asked about.
fn asked(report: &Report) -> String {
    let query = &report.query;
    let selectors = selectors(query.can_be_prefix, query.must_be_fresh);
    let from = query.face_id.map_or_else(String::new, |id| {
        format!(", from {}", report.faces.show(id))
    });
    format!("{}{selectors}{from}", query.name)
}

fn selectors(can_be_prefix: bool, must_be_fresh: bool) -> String {
    let words = [
        (can_be_prefix, ", CanBePrefix"),
        (must_be_fresh, ", MustBeFresh"),
    ];
    let words = words
        .iter()
        .filter_map(|&(is_set, word)| is_set.then_some(word));
    words.collect()
}

fn scope(report: &Report) -> &'static str {
    let it = &report.explanation;
    let is_localhop = report.query.name.view().scope() == NameScope::Localhop;
    if it.is_out_of_scope {
        "refused: names under /localhost are for programs on the router's machine alone"
    } else if it.is_for_local_faces && is_localhop {
        "only programs on this machine may answer: a neighbour sent it, and /localhop is one hop"
    } else if it.is_for_local_faces {
        "only programs on this machine may ask and answer"
    } else if is_localhop {
        "programs on this machine, and neighbours one hop away"
    } else {
        "any face may ask, and any next hop may answer"
    }
}

fn dram(report: &Report) -> String {
    let it = &report.explanation;
    if !it.store_serves {
        return "off: it answers no Interests".into();
    }
    let Some(data) = &it.cached else {
        return "DRAM level: nothing".into();
    };
    let CachedData { name, n_bytes, .. } = data;
    let n_bytes = text::bytes(*n_bytes);
    match (data.answers, data.fresh_for_ms) {
        (true, 0) => format!("DRAM level: hit, stale: {name}, {n_bytes}"),
        (true, ms) => format!("DRAM level: hit, fresh for {}: {name}, {n_bytes}", time(ms)),
        (false, _) => {
            format!("DRAM level: miss: {name} is stale, and the Interest has MustBeFresh")
        }
    }
}

const fn ssd(finding: SsdFinding) -> &'static str {
    match finding {
        SsdFinding::NotConfigured => "none configured",
        SsdFinding::Nothing => "nothing",
        SsdFinding::Probable => "probably there; the Interest waits for a read",
        SsdFinding::OnlyStale => "not asked: it has no fresh Data",
        SsdFinding::Recovering => "not ready: it reads its index after the start",
    }
}

fn pending_lines(pending: &PendingInterest, faces: &Hops) -> Vec<String> {
    let state = match (pending.is_satisfied, pending.awaits_store) {
        (true, _) => "answered, kept for slower next hops",
        (_, true) => "waits for a read of the SSD level",
        _ => "yes",
    };
    let selectors = selectors(pending.can_be_prefix, pending.must_be_fresh);
    let hint = if pending.has_hint {
        ", forwarding hint"
    } else {
        ""
    };
    let expires = time(pending.expires_in_ms);
    let mut lines = vec![format!("{state}, expires in {expires}{selectors}{hint}")];
    lines.extend(pending.waiting.iter().map(|it: &WaitingFace| {
        format!(
            "{} asked {} ago and waits {} more",
            faces.show(it.face_id),
            time(it.since_ms),
            time(it.expires_in_ms)
        )
    }));
    lines.extend(pending.asked.iter().map(|it| asked_line(it, faces)));
    lines
}

/// A next hop that an Interest went to.
fn asked_line(asked: &AskedFace, faces: &Hops) -> String {
    let answer = match asked.nack.map(NackReason::from_code) {
        Some(reason) => format!("it sent a Nack: {reason}"),
        None => "no answer yet".into(),
    };
    format!(
        "sent to {} {} ago: {answer}",
        faces.show(asked.face_id),
        time(asked.since_ms)
    )
}

/// Whether the strategy may choose a next hop.
pub(super) const fn is_eligible(hop: &ExplainedNextHop) -> bool {
    matches!(hop.usage, NextHopUse::Usable | NextHopUse::FaceDown)
}

/// Whether a strategy asks every next hop that it may choose.
pub(super) fn asks_all(strategy: &str) -> bool {
    matches!(strategy, "multicast" | "self-learning")
}

/// When a strategy asks a next hop that it may choose; `is_first`: it is the best of these.
fn order(strategy: &str, is_first: bool) -> &'static str {
    match (strategy, is_first) {
        ("best-route", true) => "asked first",
        ("best-route", false) => "asked if the Interest is repeated",
        (all, _) if asks_all(all) => "asked",
        _ => "may be asked",
    }
}

fn hop_line(hop: &ExplainedNextHop, order: &str, faces: &Hops) -> String {
    let usage = match hop.usage {
        NextHopUse::Usable if FaceId(hop.face_id) == FaceId::NULL => {
            format!("{order}, drops everything")
        }
        NextHopUse::Usable => match faces.reported_state(hop.face_id) {
            Some(state) => format!("{state}, {order}"),
            None => order.into(),
        },
        NextHopUse::FaceDown => format!("down, {order}: what is sent there is lost"),
        NextHopUse::FaceGone => "gone: the route goes with it".into(),
        NextHopUse::Incoming => "not used: the Interest comes from it".into(),
        NextHopUse::OutOfScope => "not used: it leads to another machine".into(),
    };
    let mut line = format!("{}, cost {}", faces.show(hop.face_id), hop.cost);
    if let Some(origin) = hop.origin {
        let name = route_origin::name(origin);
        let name = name.map_or_else(|| format!("origin {origin}"), Into::into);
        line.push_str(&format!(", {name}"));
    }
    line.push_str(&format!(", {usage}"));
    line
}

fn strategy_line(report: &Report) -> String {
    let it = &report.explanation;
    let short = strategy(&it.strategy);
    format!("{short}, set at {}", it.strategy_prefix)
}

/// The rows of an Interest that was sent, but the next step.
pub(super) fn rows_of_sent(sent: &Sent) -> Vec<Vec<String>> {
    let after = time_of(sent.after);
    let mut rows = Vec::new();
    match &sent.outcome {
        Outcome::Data {
            name,
            n_bytes,
            freshness_ms,
            signature_type,
        } => {
            rows.push(row("sent", format!("Data came after {after}: {name}")));
            let fresh = match freshness_ms {
                0 => "never fresh".into(),
                &ms => format!("fresh for {}", time(ms)),
            };
            let signature = text::signature_type(*signature_type);
            let n_bytes = text::bytes(*n_bytes as u64);
            rows.push(row("", format!("{n_bytes}, {fresh}, {signature}")));
            rows.push(row("from", source(sent)));
        }
        Outcome::Nack(reason) => {
            rows.push(row("sent", format!("a Nack came after {after}: {reason}")));
            rows.push(row("from", source(sent)));
            rows.extend(dropped(sent));
        }
        Outcome::Nothing => {
            rows.push(row("sent", format!("nothing came within {after}")));
            if let Some(pending) = &sent.pending {
                let asked = pending.asked.iter();
                let lines = asked.map(|it| row("", asked_line(it, &sent.faces)));
                rows.extend(lines);
                if pending.asked.is_empty() {
                    rows.push(row("", "it was sent to no next hop"));
                }
            }
            rows.extend(dropped(sent));
        }
    }
    rows
}

/// The drop of an Interest that was sent, if there was one.
fn dropped(sent: &Sent) -> Option<Vec<String>> {
    let drop = sent.drop.as_ref()?;
    Some(row("dropped", drop_line(drop, &drop.name)))
}

/// Where an answer came from.
fn source(sent: &Sent) -> String {
    let is_nack = matches!(sent.outcome, Outcome::Nack(_));
    match sent.face {
        Some(FaceId::CONTENT_STORE) => "this router's content store".into(),
        Some(FaceId::INTERNAL) => "this router".into(),
        Some(id) => {
            let face = sent.faces.show(id.0);
            match is_nack {
                true => format!("behind {face}"),
                false => face,
            }
        }
        None => "unknown: the router says that only to programs on its machine".into(),
    }
}

fn time_of(duration: Duration) -> String {
    match duration.as_micros() {
        us @ ..1_000 => format!("{:.2} ms", us as f64 / 1e3),
        us @ 1_000..10_000 => format!("{:.1} ms", us as f64 / 1e3),
        us => time(u64::try_from(us / 1_000).unwrap_or(u64::MAX)),
    }
}

pub(super) fn to_json(report: &Report) -> Value {
    let it = &report.explanation;
    let hops = it.next_hops.iter().map(|hop| {
        let mut value = json!({
            "face_id": hop.face_id,
            "cost": hop.cost,
            "origin": hop.origin.and_then(route_origin::name),
            "use": hop.usage.as_str(),
        });
        report.faces.describe(&mut value, hop.face_id);
        value
    });
    let mut value = json!({
        "name": report.query.name.to_string(),
        "can_be_prefix": report.query.can_be_prefix,
        "must_be_fresh": report.query.must_be_fresh,
        "from_face": report.query.face_id,
        "router": report.version,
        "scope": {
            "refused": it.is_out_of_scope,
            "local_faces_only": it.is_for_local_faces,
        },
        "content_store": null,
        "pending": null,
        "recent_drops": null,
        "route": it.route_prefix.as_ref().map(|prefix| json!({
            "prefix": prefix.to_string(),
            "next_hops": hops.collect::<Vec<_>>(),
        })),
        "strategy": {
            "name": it.strategy.to_string(),
            "prefix": it.strategy_prefix.to_string(),
        },
    });
    if report.is_whole {
        value["worker"] = it.worker.into();
        value["content_store"] = json!({
            "serves": it.store_serves,
            "dram": it.cached.as_ref().map(|data| json!({
                "name": data.name.to_string(),
                "bytes": data.n_bytes,
                "fresh_for_ms": data.fresh_for_ms,
                "answers": data.answers,
            })),
            "ssd": it.on_ssd.as_str(),
        });
        value["pending"] = it.pending.iter().map(pending_to_json).collect();
        value["recent_drops"] = report.drops.iter().map(drop_to_json).collect();
    }
    value
}

fn drop_to_json(drop: &RecentDrop) -> Value {
    json!({
        "name": drop.name.to_string(),
        "name_cut": drop.is_name_cut,
        "kind": drop.kind,
        "face_id": drop.face_id,
        "reason": drop.reason,
        "drops": drop.n_drops,
        "age_ms": drop.age_ms,
    })
}

fn pending_to_json(pending: &PendingInterest) -> Value {
    let waiting = pending.waiting.iter().map(|it| {
        json!({
            "face_id": it.face_id,
            "since_ms": it.since_ms,
            "expires_in_ms": it.expires_in_ms,
        })
    });
    json!({
        "can_be_prefix": pending.can_be_prefix,
        "must_be_fresh": pending.must_be_fresh,
        "forwarding_hint": pending.has_hint,
        "satisfied": pending.is_satisfied,
        "awaits_store": pending.awaits_store,
        "expires_in_ms": pending.expires_in_ms,
        "waiting": waiting.collect::<Vec<_>>(),
        "asked": pending.asked.iter().map(asked_to_json).collect::<Vec<_>>(),
    })
}

fn asked_to_json(asked: &AskedFace) -> Value {
    let nack = asked.nack.map(NackReason::from_code);
    json!({
        "face_id": asked.face_id,
        "since_ms": asked.since_ms,
        "nack": nack.map(|reason| reason.to_string()),
    })
}

pub(super) fn sent_to_json(sent: &Sent) -> Value {
    let from = match sent.face {
        Some(FaceId::CONTENT_STORE) => "content-store",
        Some(FaceId::INTERNAL) => "this-router",
        Some(_) => "face",
        None => "unknown",
    };
    let mut value = json!({
        "after_ms": sent.after.as_secs_f64() * 1e3,
        "from": from,
        "from_face": sent.face.map(|face| face.0),
        "dropped": sent.drop.as_ref().map(drop_to_json),
    });
    if let Some(face) = sent.face.filter(|_| !sent.is_by_this_router()) {
        sent.faces.describe(&mut value, face.0);
    }
    match &sent.outcome {
        Outcome::Data {
            name,
            n_bytes,
            freshness_ms,
            signature_type,
        } => {
            value["outcome"] = "data".into();
            value["name"] = name.to_string().into();
            value["bytes"] = (*n_bytes).into();
            value["freshness_ms"] = (*freshness_ms).into();
            value["signature_type"] = (*signature_type).into();
        }
        Outcome::Nack(reason) => {
            value["outcome"] = "nack".into();
            value["reason"] = reason.to_string().into();
        }
        Outcome::Nothing => {
            value["outcome"] = "nothing".into();
            value["pending"] = sent.pending.as_ref().map(pending_to_json).into();
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_to_what_an_operator_reads() {
        let times = [0, 999, 1_000, 1_049, 2_150, 59_949, 59_950, 306_000].map(time);
        let expected = [
            "0 ms",
            "999 ms",
            "1 s",
            "1 s",
            "2.2 s",
            "59.9 s",
            "1 min 0 s",
            "5 min 6 s",
        ];
        assert_eq!(times, expected);
        assert_eq!(time_of(Duration::from_micros(44)), "0.04 ms");
        assert_eq!(time_of(Duration::from_micros(9_960)), "10.0 ms");
        assert_eq!(time_of(Duration::from_millis(4_012)), "4 s");
    }

    #[test]
    fn a_drop_of_a_longer_name_is_shown_with_that_name() {
        let name = |uri: &str| -> Name { uri.parse().expect("a name") };
        let mut drop = RecentDrop {
            name: name("/example"),
            is_name_cut: false,
            kind: "Interest".into(),
            face_id: 256,
            reason: "no-route".into(),
            n_drops: 2,
            age_ms: 8,
        };
        let line = |drop: &RecentDrop| drop_line(drop, &name("/example"));
        assert_eq!(
            line(&drop),
            "no-route: Interest from face 256, 2 times, last 8 ms ago"
        );
        drop.name = name("/example/x/y");
        drop.n_drops = 1;
        assert_eq!(
            line(&drop),
            "no-route: Interest of /example/x/y from face 256, 8 ms ago"
        );
        assert_eq!(drop_to_json(&drop)["name_cut"], false);
        drop.name = name("/example");
        drop.is_name_cut = true;
        assert_eq!(
            line(&drop),
            "no-route: Interest of /example/... from face 256, 8 ms ago"
        );
        assert_eq!(drop_to_json(&drop)["name_cut"], true);
    }

    #[test]
    fn next_hops_are_shown_with_the_turn_that_the_strategy_gives_them() {
        let hop = |usage| ExplainedNextHop {
            face_id: 300,
            cost: 7,
            usage,
            origin: Some(255),
        };
        let line = |usage, strategy, is_first| {
            hop_line(&hop(usage), order(strategy, is_first), &Hops::default())
        };
        assert_eq!(
            line(NextHopUse::FaceDown, "best-route", true),
            "face 300, cost 7, static, down, asked first: what is sent there is lost"
        );
        assert_eq!(
            line(NextHopUse::Usable, "best-route", false),
            "face 300, cost 7, static, asked if the Interest is repeated"
        );
        assert_eq!(
            line(NextHopUse::Usable, "asf", true),
            "face 300, cost 7, static, may be asked"
        );
        assert_eq!(
            line(NextHopUse::Incoming, "multicast", true),
            "face 300, cost 7, static, not used: the Interest comes from it"
        );
    }
}
