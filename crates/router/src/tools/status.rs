//! `tachonym status`: uptime, tables, packets and drops of a router.

use std::time::Duration;

use clap::Args;
use serde_json::json;
use tachonym_client::CommandError;
use tachonym_protocol::cs_flags;

use super::hit_ratio::HitRatio;
use super::{Management, drops, memory, own, text};

const EXAMPLES: &str = "\
Examples:
  tachonym status
  tachonym status --json | jq .cs.hit_ratio
  tachonym status --transport tcp4://192.0.2.1:6363";

/// Show uptime, listeners, tables, hit ratio, packets and drops of the router.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    management: Management,
}

/// Runs it.
///
/// # Errors
/// If the router does not answer.
pub fn run(arguments: &Arguments) -> anyhow::Result<()> {
    arguments.management.with(|controller| {
        let status = controller.general_status()?;
        let faces = controller.faces()?;
        // Not every forwarder has this dataset.
        let channels = match controller.channels() {
            Err(CommandError::Refused { .. }) => Vec::new(),
            other => other?,
        };
        let store = controller.content_store()?;
        let hit_ratio = HitRatio::ask(controller, &status.nfd_version, &store)?;
        let drops = own::dataset(&status.nfd_version, || controller.drops())?;
        let memory = own::dataset(&status.nfd_version, || controller.table_memory())?;
        let uptime_ms = status
            .current_timestamp_ms
            .saturating_sub(status.start_timestamp_ms);
        let listening: Vec<_> = channels.iter().map(|c| c.local_uri.clone()).collect();
        let mut value = json!({
            "version": status.nfd_version,
            "start_ms": status.start_timestamp_ms,
            "uptime_ms": uptime_ms,
            "listening": listening,
            "faces": faces.len(),
            "fib_entries": status.n_fib_entries,
            "pit_entries": status.n_pit_entries,
            "name_tree_entries": status.n_name_tree_entries,
            "measurements_entries": status.n_measurements_entries,
            "cs": {
                "entries": store.n_cs_entries,
                "capacity": store.capacity,
                "hits": store.n_hits,
                "misses": store.n_misses,
                "hit_ratio": hit_ratio.ratio(),
                "second_level": hit_ratio.ssd_json(),
                "admit": store.flags & cs_flags::ENABLE_ADMIT != 0,
                "serve": store.flags & cs_flags::ENABLE_SERVE != 0,
            },
            "in": {
                "interests": status.n_in_interests,
                "data": status.n_in_data,
                "nacks": status.n_in_nacks,
            },
            "out": {
                "interests": status.n_out_interests,
                "data": status.n_out_data,
                "nacks": status.n_out_nacks,
            },
            "satisfied_interests": status.n_satisfied_interests,
            "unsatisfied_interests": status.n_unsatisfied_interests,
        });
        if let Some(drops) = &drops {
            value["drops"] = drops::to_json(drops, None);
        }
        if let Some(memory) = &memory {
            value["memory"] = memory::to_json(memory);
        }
        arguments.management.print(&value, || {
            let row = |label: &str, value: String| vec![label.to_owned(), value];
            let mut rows = vec![
                row("version", status.nfd_version.clone()),
                row(
                    "running",
                    format!(
                        "{}, since {}",
                        text::duration(Duration::from_millis(uptime_ms)),
                        text::date(status.start_timestamp_ms)
                    ),
                ),
            ];
            for (i, uri) in listening.iter().enumerate() {
                rows.push(row(if i == 0 { "listening" } else { "" }, uri.clone()));
            }
            let packets = |interests, data, nacks| {
                format!("{interests} Interests, {data} Data, {nacks} Nacks")
            };
            rows.extend([
                row("faces", faces.len().to_string()),
                row("FIB", format!("{} entries", status.n_fib_entries)),
                row("PIT", format!("{} entries", status.n_pit_entries)),
                row(
                    "content store",
                    format!("{} of {} packets", store.n_cs_entries, store.capacity),
                ),
                row("  hit ratio", hit_ratio.text()),
                row("  DRAM level", hit_ratio.dram().text()),
            ]);
            rows.extend(hit_ratio.ssd().map(|ssd| row("  SSD level", ssd.text())));
            rows.extend([
                row(
                    "received",
                    packets(status.n_in_interests, status.n_in_data, status.n_in_nacks),
                ),
                row(
                    "sent",
                    packets(
                        status.n_out_interests,
                        status.n_out_data,
                        status.n_out_nacks,
                    ),
                ),
                row(
                    "Interests",
                    format!(
                        "{} satisfied, {} unsatisfied",
                        status.n_satisfied_interests, status.n_unsatisfied_interests
                    ),
                ),
            ]);
            rows.extend(memory.iter().map(|m| row("table memory", memory::line(m))));
            rows.extend(drops.iter().flat_map(|drops| drops::rows(drops, None)));
            text::columns(&rows)
        })
    })
}
