//! Commands on the workers, by what they answer and what they change.

mod support;

use support::*;
use tachonym_manage::{
    AuthorizeRule, ControlError, DropReason, LocalhopRule, ManagementTrust, ManagerConfig, Module,
};
use tachonym_protocol::*;
use tachonym_security::{Certificate, TrustPolicy};

const VERBS: [&str; 6] = ["freeze", "thaw", "pin", "unpin", "add", "remove"];

fn site() -> Site {
    Site::new(ManagerConfig::default())
}

fn numbered(worker: u64) -> ControlParameters {
    ControlParameters {
        worker: Some(worker),
        ..p()
    }
}

fn pin(uri: &str, worker: u64) -> ControlParameters {
    ControlParameters {
        name: Some(name(uri)),
        ..numbered(worker)
    }
}

/// What each verb takes.
fn right(verb: &str) -> ControlParameters {
    match verb {
        "pin" => pin("/a", 1),
        "unpin" => named("/a"),
        "remove" => numbered(1),
        _ => p(),
    }
}

fn told(site: &mut Site) -> WorkersStatus {
    WorkersStatus::decode(&site.dataset("workers", "list")).unwrap()
}

/// Number and state of each worker, and its share.
fn states(site: &mut Site) -> Vec<(u64, WorkerState, u64)> {
    let workers = told(site).workers.into_iter();
    workers
        .map(|it| (it.worker, it.state, it.share_permille))
        .collect()
}

/// Gives a command that succeeds, and is answered by what it asked for.
fn obeyed(site: &mut Site, verb: &str, parameters: &ControlParameters) {
    let outcome = site.outcome("workers", verb, parameters);
    assert_eq!(outcome, (200, parameters.clone()), "{verb}");
}

fn refused(site: &mut Site, verb: &str, parameters: &ControlParameters) -> (u64, String) {
    let before = told(site);
    let response = site.command("workers", verb, parameters);
    assert_eq!(told(site), before, "{verb}: nothing has changed");
    (response.code, response.text)
}

#[test]
fn names_stand_still_between_freeze_and_thaw() {
    let mut site = site();
    assert!(!told(&mut site).is_frozen);
    for (verb, is_frozen) in [
        ("thaw", false),
        ("freeze", true),
        ("freeze", true),
        ("thaw", false),
    ] {
        obeyed(&mut site, verb, &p());
        assert_eq!(told(&mut site).is_frozen, is_frozen, "{verb}");
    }
}

#[test]
fn a_name_stays_where_it_is_pinned_until_it_is_unpinned() {
    let mut site = site();
    let pins = |site: &mut Site| {
        let status = told(site);
        assert_eq!(status.n_away, status.moved_names.len() as u64);
        let names = status.moved_names.into_iter();
        names
            .map(|it| (it.name.unwrap().to_string(), it.worker, it.is_pinned))
            .collect::<Vec<_>>()
    };
    let of = |uri: &str, worker| (uri.to_owned(), worker, true);
    obeyed(&mut site, "pin", &pin("/a/b", 0));
    obeyed(&mut site, "pin", &pin("/", 1));
    assert_eq!(pins(&mut site), [of("/a/b", 0), of("/", 1)]);
    obeyed(&mut site, "pin", &pin("/a/b", 1));
    assert_eq!(pins(&mut site), [of("/", 1), of("/a/b", 1)]);
    assert_eq!(told(&mut site).n_moved, 3);
    obeyed(&mut site, "unpin", &named("/"));
    assert_eq!(pins(&mut site), [of("/a/b", 1)]);
    let (code, text) = refused(&mut site, "unpin", &named("/"));
    assert_eq!(code, 409);
    assert!(text.contains("not pinned"), "{text}");
}

#[test]
fn a_worker_is_added_and_taken_away() {
    use WorkerState::{Removed, Running};
    let mut site = site();
    obeyed(&mut site, "pin", &pin("/a", 1));
    obeyed(&mut site, "add", &p());
    let expected = [(0, Running, 333), (1, Running, 333), (2, Running, 333)];
    assert_eq!(states(&mut site), expected);
    let (code, text) = refused(&mut site, "add", &p());
    assert_eq!((code, &*text), (409, "all workers run: configure more"));
    obeyed(&mut site, "remove", &numbered(1));
    let expected = [(0, Running, 500), (1, Removed, 0), (2, Running, 500)];
    assert_eq!(states(&mut site), expected);
    assert!(told(&mut site).moved_names.is_empty(), "a pin ends so, too");
    obeyed(&mut site, "remove", &numbered(0));
    let (code, text) = refused(&mut site, "remove", &numbered(2));
    assert_eq!(code, 409);
    assert!(text.contains("add another first"), "{text}");
}

#[test]
fn workers_that_do_not_run_are_refused_whatever_their_number() {
    let mut site = site();
    for worker in [2, 3, 128, 65_536, u64::MAX] {
        for (verb, parameters) in [("remove", numbered(worker)), ("pin", pin("/a", worker))] {
            let (code, text) = refused(&mut site, verb, &parameters);
            assert_eq!(code, 409, "{verb} {worker}");
            assert_eq!(
                text,
                format!("worker {worker} does not run: name one that does")
            );
        }
    }
}

#[test]
fn each_verb_takes_its_own_parameters_and_no_others() {
    let mut site = site();
    for verb in VERBS {
        let right = right(verb);
        let has = (right.name.is_some(), right.worker.is_some());
        for (has_name, has_worker) in [(false, false), (false, true), (true, false), (true, true)] {
            let mut given = p();
            given.name = has_name.then(|| name("/a"));
            given.worker = has_worker.then_some(1);
            if (has_name, has_worker) == has {
                continue;
            }
            let (code, text) = refused(&mut site, verb, &given);
            assert_eq!(code, 400, "{verb}: {text}");
            assert!(text.contains("Name is") || text.contains("Worker is"));
        }
        let with_cost = ControlParameters {
            cost: Some(1),
            ..right
        };
        let (code, text) = refused(&mut site, verb, &with_cost);
        assert_eq!((code, &*text), (400, "Cost is forbidden but present"));
    }
    let response = site.command("cs", "config", &numbered(1));
    let expected = (400, "Worker is forbidden but present");
    assert_eq!((response.code, &*response.text), expected);
    assert_eq!(site.outcome("workers", "dance", &p()).0, 501);
}

#[test]
fn a_router_that_is_not_there_changes_no_workers() {
    let mut site = site();
    site.router().failure = Some(ControlError::Unavailable);
    for verb in VERBS {
        assert_eq!(site.outcome("workers", verb, &right(verb)).0, 503, "{verb}");
    }
}

/// The certificate's owner alone may do what `modules` say, as an operator here and as a
/// neighbour.
fn trusting(certificate: &Certificate, modules: Vec<Module>) -> Site {
    let mut signers = TrustPolicy::new();
    signers.add_anchor(certificate).unwrap();
    Site::new(ManagerConfig {
        trust: ManagementTrust {
            localhop: Some(LocalhopRule::new(signers.clone())),
            local: vec![AuthorizeRule { signers, modules }],
            ..ManagementTrust::default()
        },
        ..ManagerConfig::default()
    })
}

#[test]
fn who_commands_the_workers_needs_a_rule_that_says_so() {
    let (certificate, operator) = certified("/operator");
    let others = Module::ALL.into_iter().filter(|&it| it != Module::Workers);
    for (modules, code) in [(vec![Module::Workers], 200), (others.collect(), 403)] {
        let mut site = trusting(&certificate, modules);
        let client = site.client;
        for verb in VERBS {
            let command = CommandName::local("workers", verb);
            let signed = command_by(&operator, command, &right(verb));
            assert_eq!(site.command_from(client, &signed).code, code, "{verb}");
            // Nobody else may in any case.
            let by_digest = signed_command(command, &right(verb));
            assert_eq!(site.command_from(client, &by_digest).code, 403, "{verb}");
        }
    }
}

#[test]
fn neighbours_never_command_the_workers() {
    let (certificate, operator) = certified("/operator");
    let mut site = trusting(&certificate, Module::ALL.to_vec());
    let neighbour = site.router().accept("udp4://192.0.2.1:6363");
    let before = site.router().workers.clone();
    for verb in VERBS.into_iter().chain(["list"]) {
        let command = CommandName {
            scope: Scope::Localhop,
            module: "workers",
            verb,
        };
        let wire = command_by(&operator, command, &right(verb));
        assert!(site.send_from(neighbour, &wire).is_empty(), "{verb}");
    }
    let n_dropped = site
        .manager
        .counters()
        .n_dropped(DropReason::LocalhopDisabled);
    assert_eq!(n_dropped, VERBS.len() as u64 + 1);
    assert_eq!(site.router().workers, before);
}
