//! `tachonym workers`: worker threads and the names of which each is home.

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tachonym_client::Controller;
use tachonym_packet::Name;
use tachonym_protocol::{
    ControlParameters, MovedName, ReceiverStatus, WaitingStatus, WorkerStatus, WorkersStatus,
};

use super::{Management, name, text};

const EXAMPLES: &str = "\
Examples:
  tachonym workers
  tachonym workers map
  tachonym workers pin /example/live 1
  tachonym workers add";

/// Show the router's worker threads, and change how names are divided among them.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    management: Management,
    /// What to do; without it, all workers are shown.
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Show the share of names of each worker, and the names that have migrated.
    Map,
    /// Stop migrating names and workers because of long queues.
    Freeze,
    /// Resume migrating after `freeze`.
    Thaw,
    /// Pin a name to a worker, whatever the length of its queue.
    Pin {
        /// The name; names that are dispatched together with it are pinned too.
        #[arg(value_parser = name::parse)]
        name: Name,
        /// Number of the worker.
        worker: u64,
    },
    /// Return a pinned name to its home worker.
    Unpin {
        /// The name.
        #[arg(value_parser = name::parse)]
        name: Name,
    },
    /// Start one more worker.
    Add,
    /// Remove a worker; the others take over its names.
    Remove {
        /// Number of the worker.
        worker: u64,
    },
}

/// What is shown.
#[derive(Clone, Copy)]
enum View {
    Workers,
    Map,
}

/// Runs it.
///
/// # Errors
/// If the router refuses or does not answer.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let management = &arguments.management;
    management.with(|controller| {
        let view = match &arguments.command {
            None => View::Workers,
            Some(Command::Map) => View::Map,
            Some(change) => send(controller, change)?,
        };
        let status = controller.workers()?;
        match view {
            View::Workers => management.print(&status_json(&status), || status_text(&status)),
            View::Map => management.print(&map_json(&status), || map_text(&status)),
        }
    })
}

/// Sends `command` to the router, and returns the view that shows the change.
fn send(controller: &mut Controller<'_>, command: &Command) -> anyhow::Result<View> {
    let none = ControlParameters::default();
    let numbered = |worker: u64| ControlParameters {
        worker: Some(worker),
        ..none.clone()
    };
    let (verb, parameters, view) = match command {
        Command::Map => return Ok(View::Map),
        Command::Freeze => ("freeze", none, View::Workers),
        Command::Thaw => ("thaw", none, View::Workers),
        Command::Pin { name, worker } => {
            let parameters = ControlParameters {
                name: Some(name.clone()),
                ..numbered(*worker)
            };
            ("pin", parameters, View::Map)
        }
        Command::Unpin { name } => {
            let parameters = ControlParameters {
                name: Some(name.clone()),
                ..none
            };
            ("unpin", parameters, View::Map)
        }
        Command::Add => ("add", none, View::Workers),
        Command::Remove { worker } => ("remove", numbered(*worker), View::Workers),
    };
    controller.command("workers", verb, &parameters)?;
    Ok(view)
}

fn status_json(status: &WorkersStatus) -> Value {
    let workers: Vec<_> = status.workers.iter().map(worker_json).collect();
    let receivers: Vec<_> = status.receivers.iter().map(receiver_json).collect();
    json!({
        "feed": status.feed,
        "dispatch": status.dispatch,
        "frozen": status.is_frozen,
        "map_version": status.map_version,
        "buckets": status.n_buckets,
        "names_moved": status.n_moved,
        "names_away": status.n_away,
        "moved": moved_json(status),
        "workers": workers,
        "receivers": receivers,
    })
}

fn worker_json(worker: &WorkerStatus) -> Value {
    json!({
        "worker": worker.worker,
        "state": worker.state.as_str(),
        "service": worker.service,
        "cpu": worker.cpu,
        "busy_permille": worker.busy_permille,
        "share_permille": worker.share_permille,
        "queued_pkts": worker.n_queued_pkts,
        "in_pkts": worker.n_in_pkts,
        "crossed_pkts": worker.n_crossed_pkts,
        "dropped_pkts": worker.n_dropped_pkts,
        "pit_entries": worker.n_pit_entries,
        "cs_entries": worker.n_cs_entries,
        "waiting": worker.waiting.as_ref().map(waiting_json),
    })
}

fn receiver_json(receiver: &ReceiverStatus) -> Value {
    json!({
        "thread": receiver.thread,
        "cpu": receiver.cpu,
        "busy_permille": receiver.busy_permille,
        "received_pkts": receiver.n_received_pkts,
        "waiting": receiver.waiting.as_ref().map(waiting_json),
    })
}

fn waiting_json(waiting: &WaitingStatus) -> Value {
    json!({
        "spin_ns": waiting.spin_ns,
        "gather_ns": waiting.gather_ns,
        "wake_cost_ns": waiting.wake_cost_ns,
        "wakeups": waiting.n_wakeups,
        "gathers": waiting.n_gathers,
        "monitor": waiting.monitor,
    })
}

fn moved_json(status: &WorkersStatus) -> Value {
    let moved = status.moved_names.iter().map(|moved| {
        json!({
            // Not every reader of JSON has integers of 64 bits.
            "key": key(moved),
            "worker": moved.worker,
            "pinned": moved.is_pinned,
            "name": moved.name.as_ref().map(Name::to_string),
        })
    });
    moved.collect()
}

fn map_json(status: &WorkersStatus) -> Value {
    let shares = status.workers.iter().map(|worker| {
        json!({
            "worker": worker.worker,
            "state": worker.state.as_str(),
            "share_permille": worker.share_permille,
        })
    });
    let shares: Vec<_> = shares.collect();
    json!({
        "dispatch": status.dispatch,
        "frozen": status.is_frozen,
        "map_version": status.map_version,
        "buckets": status.n_buckets,
        "shares": shares,
        "names_moved": status.n_moved,
        "names_away": status.n_away,
        "moved": moved_json(status),
    })
}

fn status_text(status: &WorkersStatus) -> String {
    let mut all = vec![vec!["feed".into(), status.feed.clone()]];
    all.extend(map_rows(status));
    let heads = [
        "WORKER", "STATE", "SERVICE", "CPU", "BUSY", "SHARE", "QUEUED", "IN", "CROSSED", "DROPPED",
        "PIT", "CS",
    ];
    let mut workers = vec![heads.map(String::from).to_vec()];
    workers.extend(status.workers.iter().map(|worker| {
        vec![
            worker.worker.to_string(),
            worker.state.to_string(),
            worker.service.clone(),
            cpu(worker.cpu),
            busy(worker.busy_permille),
            percent(worker.share_permille),
            worker.n_queued_pkts.to_string(),
            worker.n_in_pkts.to_string(),
            worker.n_crossed_pkts.to_string(),
            worker.n_dropped_pkts.to_string(),
            worker.n_pit_entries.to_string(),
            worker.n_cs_entries.to_string(),
        ]
    }));
    let mut out = text::columns(&all);
    out.push('\n');
    out.push_str(&text::columns(&workers));
    if !status.receivers.is_empty() {
        let heads = ["THREAD", "CPU", "BUSY", "RECEIVED"];
        let mut receivers = vec![heads.map(String::from).to_vec()];
        receivers.extend(status.receivers.iter().map(|receiver| {
            vec![
                receiver.thread.to_string(),
                cpu(receiver.cpu),
                busy(receiver.busy_permille),
                receiver.n_received_pkts.to_string(),
            ]
        }));
        out.push('\n');
        out.push_str(&text::columns(&receivers));
    }
    out
}

fn map_text(status: &WorkersStatus) -> String {
    let mut shares = vec![["WORKER", "STATE", "SHARE"].map(String::from).to_vec()];
    shares.extend(status.workers.iter().map(|worker| {
        vec![
            worker.worker.to_string(),
            worker.state.to_string(),
            percent(worker.share_permille),
        ]
    }));
    let mut out = text::columns(&map_rows(status));
    out.push('\n');
    out.push_str(&text::columns(&shares));
    if !status.moved_names.is_empty() {
        let heads = ["KEY", "WORKER", "WHY", "NAME"];
        let mut moved_names = vec![heads.map(String::from).to_vec()];
        moved_names.extend(status.moved_names.iter().map(|moved| {
            let why = if moved.is_pinned {
                "pinned"
            } else {
                "long queue"
            };
            vec![
                key(moved),
                moved.worker.to_string(),
                why.to_owned(),
                moved.name.as_ref().map_or("-".into(), Name::to_string),
            ]
        }));
        out.push('\n');
        out.push_str(&text::columns(&moved_names));
    }
    let n_more = (status.n_away).saturating_sub(status.moved_names.len() as u64);
    if n_more > 0 {
        out.push_str(&format!("and {n_more} more\n"));
    }
    out
}

/// How names are divided.
fn map_rows(status: &WorkersStatus) -> Vec<Vec<String>> {
    let row = |label: &str, value: String| vec![label.to_owned(), value];
    let map = match status.n_buckets {
        0 => "none".to_owned(),
        n_buckets => format!("{n_buckets} buckets, version {}", status.map_version),
    };
    let names = format!(
        "{} away from their home worker, {} migrations so far",
        status.n_away, status.n_moved
    );
    let frozen = if status.is_frozen { "yes" } else { "no" };
    vec![
        row("dispatch", status.dispatch.clone()),
        row("map", map),
        row("names", names),
        row("frozen", frozen.to_owned()),
    ]
}

fn key(moved: &MovedName) -> String {
    format!("{:016x}", moved.key)
}

fn cpu(cpu: Option<u64>) -> String {
    cpu.map_or("any".into(), |cpu| cpu.to_string())
}

fn busy(permille: Option<u64>) -> String {
    permille.map_or("-".into(), percent)
}

fn percent(permille: u64) -> String {
    format!("{}.{} %", permille / 10, permille % 10)
}

#[cfg(test)]
mod tests {
    use tachonym_protocol::WorkerState;

    use super::*;

    fn status() -> WorkersStatus {
        let worker = |worker, state, cpu, share_permille| WorkerStatus {
            worker,
            state,
            service: "forwarding".into(),
            cpu,
            busy_permille: cpu.map(|cpu| 70 * cpu + 5),
            n_queued_pkts: 1,
            share_permille,
            n_in_pkts: 1_234_567,
            n_crossed_pkts: 600_000,
            n_dropped_pkts: 0,
            n_pit_entries: 10,
            n_cs_entries: 65_536,
            waiting: None,
        };
        WorkersStatus {
            feed: "io-threads".into(),
            dispatch: "prefix 2".into(),
            is_frozen: true,
            map_version: 12,
            n_buckets: 256,
            n_moved: 17,
            n_away: 4,
            moved_names: vec![
                MovedName {
                    key: 0xabc,
                    worker: 1,
                    is_pinned: true,
                    name: Some("/a/b".parse().expect("a name")),
                },
                MovedName {
                    key: u64::MAX,
                    worker: 0,
                    is_pinned: false,
                    name: None,
                },
            ],
            workers: vec![
                worker(0, WorkerState::Running, Some(2), 502),
                worker(1, WorkerState::Spare, None, 0),
            ],
            receivers: vec![ReceiverStatus {
                thread: 0,
                cpu: None,
                busy_permille: Some(999),
                n_received_pkts: 7,
                waiting: None,
            }],
        }
    }

    #[test]
    fn workers_and_receivers_stand_in_columns() {
        let shown = "\
feed      io-threads
dispatch  prefix 2
map       256 buckets, version 12
names     4 away from their home worker, 17 migrations so far
frozen    yes

WORKER  STATE    SERVICE     CPU  BUSY    SHARE   QUEUED  IN       CROSSED  DROPPED  PIT  CS
0       running  forwarding  2    14.5 %  50.2 %  1       1234567  600000   0        10   65536
1       spare    forwarding  any  -       0.0 %   1       1234567  600000   0        10   65536

THREAD  CPU  BUSY    RECEIVED
0       any  99.9 %  7
";
        assert_eq!(status_text(&status()), shown);
        let mut no_receivers = status();
        no_receivers.receivers.clear();
        assert!(!status_text(&no_receivers).contains("THREAD"));
    }

    #[test]
    fn the_map_lists_migrated_names_and_counts_the_rest() {
        let shown = "\
dispatch  prefix 2
map       256 buckets, version 12
names     4 away from their home worker, 17 migrations so far
frozen    yes

WORKER  STATE    SHARE
0       running  50.2 %
1       spare    0.0 %

KEY               WORKER  WHY         NAME
0000000000000abc  1       pinned      /a/b
ffffffffffffffff  0       long queue  -
and 2 more
";
        assert_eq!(map_text(&status()), shown);
        let json = map_json(&status());
        assert_eq!(json["moved"][0]["name"], "/a/b");
        assert_eq!(json["moved"][1]["key"], "ffffffffffffffff");
        assert_eq!(json["moved"][1]["name"], Value::Null);
        assert_eq!(json["shares"][0]["share_permille"], 502);
        assert_eq!(status_json(&status())["moved"], json["moved"]);
    }
}
