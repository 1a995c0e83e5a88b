//! `tachonym cs`: the content store.

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tachonym_client::Controller;
use tachonym_packet::Name;
use tachonym_protocol::{
    ControlParameters, CsInfo, CsStats, SecondLevelBalance, SecondLevelStats, cs_flags,
};

use super::hit_ratio::{HitRatio, percent, share};
use super::{Management, Switch, advise, asked, name, text};

const EXAMPLES: &str = "\
Examples:
  tachonym cs info
  tachonym cs config --capacity 1000000
  tachonym cs config --policy admission=filter,eviction=fifo
  tachonym cs erase /example/video";

/// Show, configure and erase the content store.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    management: Management,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show capacity, use and hit ratio.
    Info,
    /// Change the store until the router ends.
    Config {
        /// Most packets that the DRAM level holds.
        #[arg(long, value_name = "PACKETS")]
        capacity: Option<u64>,
        /// Whether new Data is inserted.
        #[arg(long, value_name = "SWITCH")]
        admit: Option<Switch>,
        /// Whether Interests are answered.
        #[arg(long, value_name = "SWITCH")]
        serve: Option<Switch>,
        /// Policies of admission and eviction, as KEY=VALUE of `[content_store]` in the
        /// configuration, separated by commas: admission=filter,eviction=fifo.
        #[arg(long, value_name = "KEY=VALUE,...")]
        policy: Option<String>,
    },
    /// Show every counter of both levels, and the policies.
    Stats,
    /// Show the hit ratios to expect of other sizes and policies, by recent requests.
    Advise(advise::Arguments),
    /// Erase packets under a prefix, from both levels.
    Erase {
        /// The prefix.
        #[arg(value_parser = name::parse)]
        prefix: Name,
        /// Erase at most this many packets, from the DRAM level only.
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
        count: Option<u64>,
    },
}

/// Runs it.
///
/// # Errors
/// If the router refuses or does not answer.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let management = &arguments.management;
    management.with(|controller| match &arguments.command {
        Command::Info => show(controller, management),
        Command::Config {
            capacity,
            admit,
            serve,
            policy,
        } => {
            let mut parameters = ControlParameters {
                capacity: *capacity,
                cs_policy: policy.clone(),
                ..ControlParameters::default()
            };
            for (bit, switch) in [
                (cs_flags::ENABLE_ADMIT, admit),
                (cs_flags::ENABLE_SERVE, serve),
            ] {
                if let Some(switch) = switch {
                    parameters.set_flag(bit, switch.is_on());
                }
            }
            asked::for_a_change(&parameters)?;
            controller.command("cs", "config", &parameters)?;
            let info = controller.content_store()?;
            asked::compare("--capacity", *capacity, Some(info.capacity));
            for (option, bit, switch) in [
                ("--admit", cs_flags::ENABLE_ADMIT, admit),
                ("--serve", cs_flags::ENABLE_SERVE, serve),
            ] {
                let taken = Switch::of(info.flags & bit != 0);
                asked::compare(option, *switch, Some(taken));
            }
            show(controller, management)
        }
        Command::Stats => {
            let stats = controller.content_store_stats()?;
            management.print(&stats_json(&stats), || stats_text(&stats))
        }
        Command::Advise(arguments) => advise::run(arguments, controller, management),
        Command::Erase { prefix, count } => {
            let n_erased = erase(controller, prefix, *count)?;
            let value = json!({ "prefix": prefix.to_string(), "erased": n_erased });
            management.print(&value, || format!("{n_erased} packets erased\n"))
        }
    })
}

/// Erases in several commands: the router does a bounded part of the work in each.
fn erase(
    controller: &mut Controller<'_>,
    prefix: &Name,
    limit: Option<u64>,
) -> anyhow::Result<u64> {
    let mut n_erased = 0;
    loop {
        let parameters = ControlParameters {
            name: Some(prefix.clone()),
            count: limit.map(|limit| limit - n_erased),
            ..ControlParameters::default()
        };
        let done = controller.command("cs", "erase", &parameters)?;
        n_erased += done.count.unwrap_or(0);
        // A capacity in the answer says that there may be more.
        let is_finished = done.capacity.is_none() || done.count.unwrap_or(0) == 0;
        if is_finished || limit.is_some_and(|limit| n_erased >= limit) {
            return Ok(n_erased);
        }
    }
}

fn show(controller: &mut Controller<'_>, management: &Management) -> anyhow::Result<()> {
    let version = controller.general_status()?.nfd_version;
    let info = controller.content_store()?;
    let hit_ratio = HitRatio::ask(controller, &version, &info)?;
    let CsInfo {
        capacity,
        flags,
        n_cs_entries,
        n_hits,
        n_misses,
    } = info;
    let admit = flags & cs_flags::ENABLE_ADMIT != 0;
    let serve = flags & cs_flags::ENABLE_SERVE != 0;
    let value = json!({
        "capacity": capacity,
        "entries": n_cs_entries,
        "hits": n_hits,
        "misses": n_misses,
        "hit_ratio": hit_ratio.ratio(),
        "second_level": hit_ratio.ssd_json(),
        "admit": admit,
        "serve": serve,
    });
    management.print(&value, || {
        let on_off = |on| if on { "on" } else { "off" }.to_owned();
        let mut rows = vec![
            row("packets", format!("{n_cs_entries} of {capacity}")),
            row("hit ratio", hit_ratio.text()),
            row("  DRAM level", hit_ratio.dram().text()),
        ];
        rows.extend(hit_ratio.ssd().map(|ssd| row("  SSD level", ssd.text())));
        rows.extend([row("admit", on_off(admit)), row("serve", on_off(serve))]);
        text::columns(&rows)
    })
}

fn stats_json(stats: &CsStats) -> Value {
    json!({
        "policy": stats.policy,
        "entries": stats.n_cs_entries,
        "capacity": stats.capacity,
        "bytes": stats.n_bytes,
        "capacity_bytes": stats.capacity_bytes,
        "policy_bytes": stats.n_policy_bytes,
        "hits": stats.n_hits,
        "misses": stats.n_misses,
        "hit_ratio": share(stats.n_hits, stats.n_misses),
        "inserts": stats.n_inserts,
        "not_admitted": stats.n_not_admitted,
        "insert_ratio": share(stats.n_inserts, stats.n_not_admitted),
        "evictions": stats.n_evictions,
        "second_level": stats.second_level.as_ref().map(second_level_json),
    })
}

fn second_level_json(stats: &SecondLevelStats) -> Value {
    let balance = |n: fn(&SecondLevelBalance) -> u64| stats.balance.as_ref().map(n);
    json!({
        "hits": stats.n_hits,
        "misses": stats.n_misses,
        "reads": stats.n_reads,
        "reads_ahead": stats.n_reads_ahead,
        "read_bytes": stats.n_read_bytes,
        "offered": balance(|it| it.n_offered),
        "written": stats.n_inserts,
        "known": balance(|it| it.n_known),
        "not_admitted": stats.n_not_admitted,
        "unsuited": balance(|it| it.n_unsuited),
        "no_room": balance(|it| it.n_no_room),
        "replaced": balance(|it| it.n_replaced),
        "erased_unwritten": balance(|it| it.n_erased),
        "lost": stats.n_lost,
        "waiting": balance(|it| it.n_waiting),
        "data_bytes": stats.n_data_bytes,
        "written_bytes": stats.n_written_bytes,
        "written_bytes_per_day": stats.n_written_bytes_per_day,
        "write_amplification": amplification(stats),
        "indexed": stats.n_indexed,
        "index_capacity": stats.max_indexed,
        "batches_not_indexed": balance(|it| it.n_not_indexed),
        "batches_crowded_out": balance(|it| it.n_crowded_out),
        "prefixes_not_indexed": balance(|it| it.n_prefixes_not_indexed),
        "regions_emptied_early": balance(|it| it.n_emptied_early),
        "device_errors": stats.n_device_errors,
        "damaged": stats.n_damaged,
        "volumes_out_of_service": stats.n_lost_volumes,
        "recovered": stats.n_recovered,
        "recovering": stats.is_recovering,
        "erasures_merged": stats.n_erasures_merged,
        "refused_to_workers": stats.n_sought_refused,
        "reads_refused": stats.n_reads_refused,
    })
}

/// Bytes written per byte of Data; `None` before the first write.
fn amplification(stats: &SecondLevelStats) -> Option<f64> {
    let n_data_bytes = stats.n_data_bytes;
    (n_data_bytes > 0).then(|| stats.n_written_bytes as f64 / n_data_bytes as f64)
}

fn stats_text(stats: &CsStats) -> String {
    let mib = |bytes: u64| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
    let (n_hits, n_misses) = (stats.n_hits, stats.n_misses);
    let inserted = percent(stats.n_inserts, stats.n_not_admitted);
    let mut rows = vec![
        row("hit ratio", HitRatio::of(stats).text()),
        row("DRAM level", String::new()),
        row("  policy", stats.policy.replace(',', ", ")),
        row(
            "  packets",
            format!("{} of {}", stats.n_cs_entries, stats.capacity),
        ),
        row(
            "  memory of packets",
            format!("{} of {}", mib(stats.n_bytes), mib(stats.capacity_bytes)),
        ),
        row("  memory of policy", mib(stats.n_policy_bytes)),
        row("  hits", format!("{n_hits}{}", percent(n_hits, n_misses))),
        row("  misses", n_misses.to_string()),
        row("  inserted", format!("{}{inserted}", stats.n_inserts)),
        row("  not admitted", stats.n_not_admitted.to_string()),
        row("  evicted", stats.n_evictions.to_string()),
    ];
    if let Some(second) = &stats.second_level {
        rows.extend(second_level_rows(second));
    }
    text::columns(&rows)
}

fn second_level_rows(second: &SecondLevelStats) -> Vec<Vec<String>> {
    let gib = |bytes: u64| format!("{:.2} GiB", bytes as f64 / f64::from(1 << 30));
    let (n_hits, n_misses) = (second.n_hits, second.n_misses);
    let written = amplification(second).map_or(String::new(), |ratio| {
        format!(" ({ratio:.3} per byte of Data)")
    });
    // A counter that a router of another version does not report has no row.
    let balance = |label: &str, n: fn(&SecondLevelBalance) -> u64| {
        second
            .balance
            .as_ref()
            .map(|balance| row(label, n(balance).to_string()))
    };
    let count = |label: &str, n: u64| Some(row(label, n.to_string()));
    let rows = [
        Some(row(
            "SSD level",
            match (second.is_recovering, second.n_lost_volumes) {
                (_, 1..) => format!("{} volumes out of service", second.n_lost_volumes),
                (true, _) => "recovery: reading what was stored before the start".into(),
                (false, _) => "in service".into(),
            },
        )),
        Some(row(
            "  hits",
            format!("{n_hits}{}", percent(n_hits, n_misses)),
        )),
        count("  misses", n_misses),
        Some(row(
            "  reads",
            format!("{}, {} of them ahead", second.n_reads, second.n_reads_ahead),
        )),
        Some(row("  bytes read", gib(second.n_read_bytes))),
        balance("  offered", |it| it.n_offered),
        count("  written", second.n_inserts),
        balance("  already stored", |it| it.n_known),
        count("  not admitted", second.n_not_admitted),
        balance("  not storable", |it| it.n_unsuited),
        balance("  no room", |it| it.n_no_room),
        balance("  replaced", |it| it.n_replaced),
        balance("  erased before writing", |it| it.n_erased),
        count("  lost", second.n_lost),
        balance("  waiting", |it| it.n_waiting),
        Some(row(
            "  bytes written",
            format!("{}{written}", gib(second.n_written_bytes)),
        )),
        Some(row(
            "  bytes written per day",
            gib(second.n_written_bytes_per_day),
        )),
        Some(row(
            "  index",
            format!("{} of {}", second.n_indexed, second.max_indexed),
        )),
        balance("  batches not indexed", |it| it.n_not_indexed),
        balance("  batches forgotten early", |it| it.n_crowded_out),
        balance("  prefixes not indexed", |it| it.n_prefixes_not_indexed),
        balance("  regions emptied early", |it| it.n_emptied_early),
        count("  device errors", second.n_device_errors),
        count("  damaged batches", second.n_damaged),
        count("  batches recovered", second.n_recovered),
        second
            .n_erasures_merged
            .map(|n| row("  erasures merged", n.to_string())),
        second
            .n_sought_refused
            .map(|n| row("  lookups refused", n.to_string())),
        second
            .n_reads_refused
            .map(|n| row("  reads refused", n.to_string())),
    ];
    rows.into_iter().flatten().collect()
}

fn row(label: &str, value: String) -> Vec<String> {
    vec![label.to_owned(), value]
}
