//! What each choice of TAP costs, and what the model of power does to the comparison.

use tachonym_bench::turns::in_parallel;
use tachonym_bench::{Context, Cost, Experiment, Kind, Param, ParamKind, Record, Table, cells};
use tachonym_dispatch::power::des::DesConstants;
use tachonym_dispatch::power::governors::GovernorKind;
use tachonym_dispatch::power::states::P_STATES;
use tachonym_dispatch::power::tap::{FrequencyLever, Gain, TapConfig, WakeRule};
use tachonym_sim::power::{PowerConfig, PowerOutcome};

use super::{Application, EQUAL_LOSS, SECONDS, TRACE, Traffic};

pub(super) const EXPERIMENTS: &[Experiment] = &[Experiment {
    id: "iqbal/tap-choices",
    title: "Power under TAP with one choice at a time changed",
    source: "Iqbal 2013, section 6.3",
    cost: Cost::minutes(0.4, 4.0),
    needs: &[],
    params: &[
        Param::new(
            "applications",
            "applications of Table 6.2, separated by commas",
            ParamKind::Text,
            [
                "FRAG,IPSEC",
                "FRAG,IPV4T,IPV4R,IPSEC,MPLS,SSLD,WFQ",
                "FRAG,IPV4T,IPV4R,IPSEC,MPLS,SSLD,WFQ",
            ],
        ),
        SECONDS,
        TRACE,
        Param::seed(),
    ],
    run,
}];

/// Policies that TAP is compared with.
const OTHERS: [(&str, GovernorKind); 4] = [
    ("Base", GovernorKind::Ladder),
    ("Greedy", GovernorKind::GreedyEpi),
    ("IdleT", GovernorKind::IdleThread),
    ("ondemand", GovernorKind::Ondemand),
];

/// What is changed of TAP.
type Change = fn(&mut TapConfig);

/// The first is TAP as it is.
const CHOICES: [(&str, Change); 17] = [
    ("as it is", |_| {}),
    ("wakes a core at each step", |it| {
        it.wake_rule = WakeRule::EachStep;
    }),
    ("measures what a core adds", |it| it.gain = Gain::Measured),
    ("equation 6.6 to the nearest", |it| it.rounds_down = 0.5),
    ("cores counted at P3", |it| {
        it.rated_frequency = P_STATES[3].frequency;
    }),
    ("holds woken cores 4 intervals", |it| it.hold_intervals = 4),
    ("room of 20 packets", |it| it.wake_room_pkts = 20.0),
    ("room of 60 packets", |it| it.wake_room_pkts = 60.0),
    ("filter of 0.01", |it| it.filter = 0.01),
    ("filter of 0.1", |it| it.filter = 0.1),
    ("no light sleep", |it| it.light_intervals = 0),
    ("8 intervals of light sleep", |it| it.light_intervals = 8),
    ("forecast not trained", |it| {
        it.forecast = DesConstants::default();
    }),
    ("last value as forecast", |it| {
        it.forecast = DesConstants {
            alpha: 1.0,
            gamma: 0.0,
        };
    }),
    ("one frequency for all", |it| {
        it.frequency = FrequencyLever::Global;
    }),
    ("no frequency", |it| it.frequency = FrequencyLever::None),
    ("by equation 2.1 alone", |_| {}),
];
const DYNAMIC: usize = CHOICES.len() - 1;

fn run(context: &Context) -> anyhow::Result<Record> {
    let traffic = Traffic::of(context, 0)?;
    let names = context.text("applications").split(',');
    let applications = names.map(|name| Application::named(name.trim()));
    let applications = applications.collect::<anyhow::Result<Vec<_>>>()?;
    // The others by either model of power, then TAP.
    let n_others = 2 * OTHERS.len();
    let n = n_others + CHOICES.len();
    let found = in_parallel(applications.len() * n, |case| {
        let nth = case % n;
        let (kind, is_dynamic) = match nth.checked_sub(n_others) {
            None => (OTHERS[nth % OTHERS.len()].1, nth >= OTHERS.len()),
            Some(choice) => (GovernorKind::Tap, choice == DYNAMIC),
        };
        let mut tap = traffic.tap();
        if let Some(choice) = nth.checked_sub(n_others) {
            CHOICES[choice].1(&mut tap);
        }
        let published = applications[case / n].config();
        let config = PowerConfig {
            static_share: match is_dynamic {
                true => 0.0,
                false => published.static_share,
            },
            ..published
        };
        Ok(traffic.run(&config, kind, tap))
    })?;
    let mut record = Record::new(Kind::Simulated);
    let columns = "application | TAP | W | active | mean P-state | dropped, % | least other | its W | \
                   TAP by it";
    let mut table = Table::new("", columns.split(" | "));
    for (application, found) in applications.iter().zip(found.chunks(n)) {
        let (others, choices) = found.split_at(n_others);
        let (total, dynamic) = others.split_at(OTHERS.len());
        for (nth, ((what, _), tap)) in CHOICES.iter().zip(choices).enumerate() {
            let others = match nth {
                DYNAMIC => dynamic,
                _ => total,
            };
            let (name, other) = least_of_equal_loss(others, tap).unzip();
            table.row(cells![
                application.name,
                *what,
                tap.power_w(),
                tap.mean_active,
                mean_p_state(tap),
                tap.dropped_pct(),
                name.unwrap_or("none"),
                other.map(PowerOutcome::power_w),
                other.map(|other| tap.energy_j / other.energy_j),
            ]);
        }
    }
    record.tables.push(table);
    record.note(format!(
        "The least other is that of Base, Greedy, IdleT and ondemand that takes least among those \
         that drop at most {EQUAL_LOSS} points more than TAP, with a static part of power or, in \
         the last row, without. Traffic and watts: iqbal/table-6.2."
    ));
    record.note(
        "To wake a core at each step is listing 6.2 to the letter: while the first one wakes, and \
         while the queue drains, further ones wake that the next interval sends to sleep. What a \
         core adds is measured in a router, whose workers share a machine; cores here share \
         nothing.",
    );
    record.note(
        "By equation 2.1 alone a core at P4 does half of the work for 0.32 of the power, so that \
         many slow cores take less than TAP's fewest that suffice, where cores are spare. Energy \
         per instruction then has no least within the P-states, which the published greedy search \
         relies on. With the static part it has one at P3. Equation 6.5 counts cores at the highest \
         frequency; counted at P3, more run, and each packet takes less.",
    );
    Ok(record)
}

fn least_of_equal_loss<'a>(
    others: &'a [PowerOutcome],
    tap: &PowerOutcome,
) -> Option<(&'static str, &'a PowerOutcome)> {
    let others = OTHERS.iter().map(|it| it.0).zip(others);
    let equal = others.filter(|(_, it)| it.dropped_pct() <= tap.dropped_pct() + EQUAL_LOSS);
    equal.min_by(|a, b| a.1.energy_j.total_cmp(&b.1.energy_j))
}

fn mean_p_state(outcome: &PowerOutcome) -> f64 {
    let awake = outcome.intervals.iter().filter(|it| it.0 > 0);
    let (n, sum) = awake.fold((0_u32, 0.0), |(n, sum), it| (n + 1, sum + it.1));
    sum / f64::from(n.max(1))
}
