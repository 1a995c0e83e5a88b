//! Traces of packets and the dataset of recent drops, by what they answer.

mod support;

use support::*;
use tachonym_manage::{AuthorizeRule, ManagementTrust, ManagerConfig, Module, TraceRequest};
use tachonym_packet::{Component, Interest, Name, types};
use tachonym_protocol::*;
use tachonym_security::TrustPolicy;

fn site() -> Site {
    Site::new(ManagerConfig::default())
}

fn started(site: &mut Site, parameters: &ControlParameters) -> (u64, ControlParameters) {
    site.outcome("trace", "start", parameters)
}

/// The first segment of a dataset, or the refusal.
fn query(site: &mut Site, name: &Name) -> Result<Vec<u8>, ControlResponse> {
    let client = site.client;
    let discovery = Interest {
        can_be_prefix: true,
        must_be_fresh: true,
        ..Interest::new(name.clone())
    };
    let mut replies = site.send_from(client, &discovery.encode());
    let reply = replies.pop().expect("a reply");
    match reply.content_type {
        types::content_type::NACK => {
            Err(ControlResponse::decode(&reply.content).expect("a response"))
        }
        _ => Ok(reply.content),
    }
}

fn asked(uri: &str, suffix: Option<&Component>) -> Name {
    match suffix {
        Some(suffix) => name(uri).with(suffix),
        None => name(uri),
    }
}

#[test]
fn a_trace_is_started_with_defaults_read_and_stopped() {
    let mut site = site();
    let (code, effective) = started(&mut site, &named("/a"));
    assert_eq!(code, 200);
    assert_eq!(effective.expiration_period_ms, Some(TRACE_DEFAULT_MS));
    let trace_id = effective.trace_id.expect("its number");
    let request = TraceRequest {
        prefix: name("/a"),
        max_records: None,
        duration_ms: TRACE_DEFAULT_MS,
        sample: 1,
    };
    assert_eq!(site.router().traces.get(&trace_id), Some(&request));
    let of = TraceQuery { trace_id, read: 7 };
    let read = |site: &mut Site, of: TraceQuery| {
        let suffix = of.to_component();
        query(site, &asked("/localhost/nfd/trace/records", Some(&suffix)))
    };
    let content = read(&mut site, of.clone()).expect("a dataset");
    let batch = TraceBatch::decode(&content).expect("a batch");
    assert_eq!(batch.n_not_shown, 7);
    let stop = ControlParameters {
        trace_id: Some(trace_id),
        ..p()
    };
    assert_eq!(site.outcome("trace", "stop", &stop).0, 200);
    assert!(site.router().traces.is_empty());
    assert_eq!(read(&mut site, of).expect_err("it has ended").code, 404);
}

#[test]
fn traces_beyond_the_limit_and_bad_parameters_are_refused() {
    let mut site = site();
    for (parameters, code) in [
        (p(), 400),
        (
            ControlParameters {
                count: Some(0),
                ..named("/a")
            },
            400,
        ),
        (
            ControlParameters {
                sample: Some(0),
                ..named("/a")
            },
            400,
        ),
        (
            ControlParameters {
                expiration_period_ms: Some(TRACE_MAX_MS + 1),
                ..named("/a")
            },
            400,
        ),
    ] {
        assert_eq!(started(&mut site, &parameters).0, code, "{parameters:?}");
    }
    for _ in 0..MAX_TRACES {
        assert_eq!(started(&mut site, &named("/a")).0, 200);
    }
    assert_eq!(started(&mut site, &named("/a")).0, 503);
    let refused = query(&mut site, &name("/localhost/nfd/trace/records"));
    assert_eq!(refused.expect_err("no query").code, 400);
}

#[test]
fn only_signers_that_may_trace_start_a_trace() {
    for (modules, code) in [(vec![Module::Trace], 200), (vec![Module::Faces], 403)] {
        let mut site = Site::new(ManagerConfig {
            trust: ManagementTrust {
                local: vec![AuthorizeRule {
                    signers: TrustPolicy::any(),
                    modules,
                }],
                ..ManagementTrust::default()
            },
            ..ManagerConfig::default()
        });
        assert_eq!(started(&mut site, &named("/a")).0, code);
    }
}

#[test]
fn recent_drops_are_those_under_the_prefix_that_is_asked_for() {
    let mut site = site();
    let dropped = |uri: &str| RecentDrop {
        name: name(uri),
        is_name_cut: false,
        kind: "Interest".into(),
        face_id: 262,
        reason: "no-route".into(),
        n_drops: 1,
        age_ms: 5,
    };
    site.router().recent_drops = vec![dropped("/a/1"), dropped("/b"), dropped("/a/2")];
    let suffix = RecentDrop::query(&name("/a"));
    let asked = asked("/localhost/nfd/status/recent-drops", Some(&suffix));
    let content = query(&mut site, &asked).expect("a dataset");
    let drops = RecentDrop::decode_list(&content).expect("a list");
    assert_eq!(drops, [dropped("/a/1"), dropped("/a/2")]);
    let refused = query(&mut site, &name("/localhost/nfd/status/recent-drops"));
    assert_eq!(refused.expect_err("no prefix").code, 400);
}
