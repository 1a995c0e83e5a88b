//! Runs experiments at scale tiny.

// Each test program uses a part of these.
#![allow(dead_code, unreachable_pub)]

use std::path::Path;

use tachonym_bench::{Context, Record, Scale};
use tachonym_lab::experiments;

/// The record of an experiment at scale tiny, with parameters changed by `set`.
pub fn run(id: &str, set: &[&str]) -> Record {
    run_with(None, id, set)
}

/// The same with a program that is the router's.
pub fn run_with(router: Option<&Path>, id: &str, set: &[&str]) -> Record {
    let registry = experiments::registry().expect("experiments are well declared");
    let experiment = registry.get(id).expect(id);
    let set: Vec<_> = set.iter().map(|it| (*it).to_owned()).collect();
    let program = Path::new(env!("CARGO_BIN_EXE_tachonym-lab"));
    let mut context = Context::new(experiment, Scale::Tiny, &set, program).expect(id);
    if let Some(router) = router {
        context.router = Some(router.to_owned());
    }
    match experiment.run(&context) {
        Ok(record) => record,
        Err(error) => panic!("{id}: {error:#}"),
    }
}

/// Runs each experiment of a document and gives its record to `check`.
pub fn run_all(document: &str, check: impl Fn(&str, &Record)) {
    let registry = experiments::registry().expect("experiments are well declared");
    let mut n_run = 0;
    for experiment in registry.all() {
        if experiment.id.split('/').next() == Some(document) {
            check(experiment.id, &run(experiment.id, &[]));
            n_run += 1;
        }
    }
    assert!(n_run > 0, "{document} has experiments");
}
