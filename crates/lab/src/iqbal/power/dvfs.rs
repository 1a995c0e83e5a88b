//! What frequencies add to sleep: Figures 6.4 and 6.5.

use tachonym_bench::turns::in_parallel;
use tachonym_bench::{Context, Cost, Experiment, Kind, Param, Record, Reference, Table, cells};
use tachonym_dispatch::power::governors::GovernorKind;
use tachonym_dispatch::power::tap::{FrequencyLever, SleepLever, TapConfig};

use super::super::simulation::IQBAL;
use super::{APPLICATIONS, SECONDS, TRACE, Traffic, saved_pct};

pub(super) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "iqbal/figure-6.4",
    title: "Frequency of each core, of all together, or none, with and without sleep",
    source: "Iqbal 2013, section 6.4.2, Figures 6.4 and 6.5",
    cost: Cost::minutes(0.3, 3.0),
    needs: &[],
    params: &[SECONDS, TRACE, Param::seed()],
    run,
}];

const LEVERS: [(&str, FrequencyLever, SleepLever); 4] = [
    ("sleep alone", FrequencyLever::None, SleepLever::OnOff),
    (
        "sleep, each core's frequency",
        FrequencyLever::PerWorker,
        SleepLever::OnOff,
    ),
    (
        "sleep, one frequency",
        FrequencyLever::Global,
        SleepLever::OnOff,
    ),
    (
        "frequency alone",
        FrequencyLever::PerWorker,
        SleepLever::AlwaysOn,
    ),
];

fn run(context: &Context) -> anyhow::Result<Record> {
    let traffic = Traffic::of(context, 0)?;
    let n = LEVERS.len();
    let found = in_parallel(APPLICATIONS.len() * n, |case| {
        let (_, frequency, sleep) = LEVERS[case % n];
        let tap = TapConfig {
            frequency,
            sleep,
            ..traffic.tap()
        };
        Ok(traffic.run(&APPLICATIONS[case / n].config(), GovernorKind::Tap, tap))
    })?;
    let mut record = Record::new(Kind::Simulated);
    let columns = "application | levers | W | below sleep alone, % | active | dropped, %";
    let mut table = Table::new("", columns.split(" | "));
    for (application, found) in APPLICATIONS.iter().zip(found.chunks(n)) {
        for ((levers, ..), outcome) in LEVERS.iter().zip(found) {
            table.row(cells![
                application.name,
                *levers,
                outcome.power_w(),
                saved_pct(outcome.power_w(), found[0].power_w()),
                outcome.mean_active,
                outcome.dropped_pct(),
            ]);
        }
        let published = match application.name {
            "FRAG" => 39.0,
            _ => 15.0,
        };
        let place = Reference::stated(IQBAL, "section 6.4.2");
        let what = format!("{}: frequencies save", application.name);
        let here = saved_pct(found[1].power_w(), found[0].power_w());
        record.compare(what, published, "%", place, Some(here));
    }
    record.tables.push(table);
    record.note("15 % is published for most applications. Traffic and watts: iqbal/table-6.2.");
    record.note(
        "Where frequencies cost power: the queue stays short until they are too low, fills before \
         they have risen again, and wakes a core that the traffic does not need.",
    );
    Ok(record)
}
