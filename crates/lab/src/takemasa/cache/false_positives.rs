//! Section 5.2.3: names that Filter takes for others, and its memory.

use tachonym_bench::{
    Column, Context, Cost, Experiment, Kind, Need, Param, ParamKind, Record, Table, cells,
};
use tachonym_memory::PagePreference;
use tachonym_policy::CountersKind;
use tachonym_policy::admission::Filter;

use super::published::{inferred, stated};
use tachonym_bench::random::Random;

/// Counters of the published table, which are those of [`CountersKind::Row`].
const N_COUNTERS: f64 = (1 << 24) as f64;
/// Requests of the published history.
const HISTORY_LEN: u64 = 10_000;
const MIB: f64 = (1 << 20) as f64;

/// Its experiments.
pub(crate) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "takemasa/false-positives",
    title: "False positives of Filter's counters, formula and measured, and their memory",
    source: "Takemasa 2019, section 5.2.3; Takemasa et al. 2019 (JIP), section 4.3",
    cost: Cost::minutes(0.1, 0.5),
    needs: &[Need::MemoryGib(0.2, 0.5)],
    params: &[
        Param::new(
            "histories",
            "requests of the history",
            ParamKind::Counts,
            ["10k,100k", "10k,100k,1M", "10k,100k,1M,10M"],
        ),
        Param::count(
            "names",
            "names outside the history that are looked up",
            ["200k", "10M", "100M"],
        ),
        Param::seed(),
    ],
    run,
}];

/// The probability that a name shares its counter with one of `history_len` others.
fn expected(history_len: u64) -> f64 {
    -(history_len as f64 * (-1.0 / N_COUNTERS).ln_1p()).exp_m1()
}

fn run(context: &Context) -> anyhow::Result<Record> {
    let mut record = Record::new(Kind::Measured);
    let columns: [Column; 6] = [
        "counters".into(),
        "history, requests".into(),
        Column::fixed("formula, %", 4),
        Column::fixed("names taken for others, %", 4),
        "names looked up".into(),
        "memory, MiB".into(),
    ];
    let mut table = Table::new("", columns);
    for counters in [CountersKind::Row, CountersKind::Lines] {
        for history_len in context.values.counts("histories") {
            let mut filter = Filter::new(history_len as usize, 2, counters, PagePreference::Auto)?;
            let mut random = Random::new(context.seed());
            for _ in 0..history_len {
                filter.handle_request(random.next_u64());
            }
            let n_names = context.count("names");
            let n_false = (0..n_names).filter(|_| filter.count(random.next_u64()) > 0);
            let measured = n_false.count() as f64 / n_names as f64;
            let is_row = counters == CountersKind::Row;
            let mib = filter.memory_bytes() as f64 / MIB;
            table.row(cells![
                counters.as_str(),
                history_len,
                is_row.then(|| 100.0 * expected(history_len)),
                100.0 * measured,
                n_names,
                mib
            ]);
            if is_row && history_len == HISTORY_LEN {
                let place = stated("section 5.2.3");
                let formula = Some(100.0 * expected(history_len));
                record.compare("false positives, formula", 0.0596, "%", place, formula);
                let here = Some(100.0 * measured);
                record.compare("false positives, measured", 0.0596, "%", place, here);
                record.compare("memory", 32.0, "MiB", inferred("section 5.2.3"), Some(mib));
            }
        }
    }
    record.tables.push(table);
    record.note(
        "Counters `row` are the published ones: 2^24 of 16 bits, one for each name. `lines`, the \
         router's default, keep 24 bits of a name's hash in each of eight cells of a group; they \
         grow with the history.",
    );
    Ok(record)
}
