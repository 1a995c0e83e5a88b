//! What the types of the configuration cannot express: ranges, addresses, names,
//! keys that contradict each other and keys without effect.
//!
//! Each table is checked by its own file. Every check is linear in the length of the
//! file: a router may have a hundred thousand routes.

use super::faults::{Fault, Faults};
use super::{
    Config, content_store, faces, forwarding, management, power, routes, second_level, tables,
    trust, workers,
};

/// Words that are a log level by themselves.
const LOG_LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// Everything wrong with `config`.
pub(super) fn faults(config: &Config) -> Vec<Fault> {
    let mut found = Faults::default();
    faces::check(config, &mut found);
    tables::check(config, &mut found);
    workers::check(&config.workers, &mut found);
    power::check(config, &mut found);
    content_store::check(config, &mut found);
    second_level::check(&config.second_level, config.workers.most(), &mut found);
    forwarding::check(config, &mut found);
    routes::check(config, &mut found);
    trust::check(config, &mut found);
    management::check(config, &mut found);
    if let Some(message) = level_fault(&config.log.level) {
        found.push(
            "log.level",
            message,
            "write off, error, warn, info, debug or trace, or parts of the form target=level, \
             as in level = \"info,tachonym_router=debug\"",
        );
    }
    found.into_vec()
}

/// What is wrong with a filter of the log. Without this check a word that is no level
/// would be taken for a target, and everything else would be silent.
fn level_fault(filter: &str) -> Option<String> {
    let is_level = |word: &str| LOG_LEVELS.iter().any(|l| l.eq_ignore_ascii_case(word));
    for part in filter.split(',') {
        let good = match part.rsplit_once('=') {
            Some((target, level)) => !target.is_empty() && is_level(level),
            None => is_level(part),
        };
        if !good || part.contains(char::is_whitespace) {
            return Some(format!("`{part}` is not a log level"));
        }
    }
    let parsed = filter.parse::<tracing_subscriber::EnvFilter>();
    parsed.err().map(|e| e.to_string())
}
