//! What Yuan 2015 computes of the sizes of tables: Table 5.1 (PIT) and section 6.1.1
//! (content store).

use tachonym_bench::{
    Column, Context, Cost, Experiment, Kind, Param, ParamKind, Record, Reference, Table, cells,
};

use super::fib::stated;

const RATES: Param = Param::new(
    "rates",
    "line rates in Gbit/s",
    ParamKind::Numbers,
    ["1,10,100"; 3],
);
const RTT: Param = Param::new(
    "rtt-ms",
    "round-trip time in ms",
    ParamKind::Number,
    ["80"; 3],
);

/// In the order of the thesis.
pub(super) const EXPERIMENTS: &[Experiment] = &[
    Experiment {
        id: "yuan/table-5.1",
        title: "Packets a second and memory that a PIT needs by line rate",
        source: "Yuan 2015, section 5.3",
        cost: Cost::minutes(0.1, 0.01),
        needs: &[],
        params: &[
            RATES,
            RTT,
            Param::count("interest-bytes", "bytes of an Interest", ["100"; 3]),
            Param::count("data-bytes-best", "bytes of a Data at best", ["1500"; 3]),
            Param::count("data-bytes-worst", "bytes of a Data at worst", ["100"; 3]),
        ],
        run: pit,
    },
    Experiment {
        id: "yuan/section-6.1.1",
        title: "Memory of a content store that keeps each Data for some round trips",
        source: "Yuan 2015, section 6.1.1",
        cost: Cost::minutes(0.1, 0.01),
        needs: &[],
        params: &[
            RATES,
            RTT,
            Param::new(
                "round-trips",
                "round trips for which a Data stays",
                ParamKind::Number,
                ["10"; 3],
            ),
        ],
        run: content_store,
    },
];

/// A link on which each Interest is answered by one Data.
#[derive(Clone, Copy, Debug)]
struct Balance {
    line_rate_bps: f64,
    interest_bytes: f64,
    data_bytes: f64,
}

impl Balance {
    /// Interests a second, and as many Data.
    fn exchanges_per_s(self) -> f64 {
        self.line_rate_bps / 8.0 / (self.interest_bytes + self.data_bytes)
    }

    /// Packets a second, each of which is an operation of the PIT.
    fn packets_per_s(self) -> f64 {
        2.0 * self.exchanges_per_s()
    }

    /// Interests that wait at one time.
    fn pending(self, rtt_s: f64) -> f64 {
        self.exchanges_per_s() * rtt_s
    }

    /// Bytes of those Interests.
    fn pending_bytes(self, rtt_s: f64) -> f64 {
        self.pending(rtt_s) * self.interest_bytes
    }
}

fn pit(context: &Context) -> anyhow::Result<Record> {
    let rtt_s = context.number("rtt-ms") / 1e3;
    let mut record = Record::new(Kind::Computed);
    let columns: [Column; 6] = [
        "line rate, Gbit/s".into(),
        "case".into(),
        "Data, bytes".into(),
        Column::fixed("million packets/s", 3),
        "pending Interests".into(),
        Column::fixed("memory, MB", 3),
    ];
    let mut table = Table::new("", columns);
    // By line rate: million packets a second and MB.
    let published = [
        (1.0, [(0.156, 0.625), (1.25, 5.0)]),
        (10.0, [(1.563, 6.25), (12.5, 50.0)]),
        (100.0, [(15.625, 62.5), (125.0, 500.0)]),
    ];
    let place = stated("Table 5.1");
    for rate_gbps in context.values.numbers("rates") {
        let published = published.iter().find(|(rate, _)| *rate == rate_gbps);
        for (idx, case) in ["best", "worst"].into_iter().enumerate() {
            let data_bytes = context.count(&format!("data-bytes-{case}")) as f64;
            let balance = Balance {
                line_rate_bps: rate_gbps * 1e9,
                interest_bytes: context.count("interest-bytes") as f64,
                data_bytes,
            };
            let (mpps, mb) = (
                balance.packets_per_s() / 1e6,
                balance.pending_bytes(rtt_s) / 1e6,
            );
            table.row(cells![
                rate_gbps,
                case,
                data_bytes,
                mpps,
                balance.pending(rtt_s),
                mb
            ]);
            if let Some((_, published)) = published {
                let of = |what| format!("{rate_gbps} Gbit/s, {case} case: {what}");
                let (published_mpps, published_mb) = published[idx];
                record.compare(
                    of("packets"),
                    published_mpps,
                    "million/s",
                    place,
                    Some(mpps),
                );
                record.compare(of("memory"), published_mb, "MB", place, Some(mb));
            }
        }
    }
    record.tables.push(table);
    record.note("Interest and Data are operations of the PIT, so packets count both. Memory is the Interests that wait for one round trip; an entry's own fields, and Interests that are never answered, are not counted.");
    Ok(record)
}

fn content_store(context: &Context) -> anyhow::Result<Record> {
    let (rtt_s, n_trips) = (
        context.number("rtt-ms") / 1e3,
        context.number("round-trips"),
    );
    let mut record = Record::new(Kind::Computed);
    let mut table = Table::new(
        "",
        [
            "line rate, Gbit/s",
            "packet buffer of one round trip, GB",
            "content store, GB",
        ],
    );
    for rate_gbps in context.values.numbers("rates") {
        let buffer_gb = rate_gbps / 8.0 * rtt_s;
        let store_gb = buffer_gb * n_trips;
        table.row(cells![rate_gbps, buffer_gb, store_gb]);
        for (published_rate, value, place) in [
            (1.0, 0.1, stated("section 6.1.2")),
            (10.0, 1.0, Reference::inferred("Yuan 2015", "section 6.1.2")),
            (100.0, 10.0, stated("section 6.1.1")),
        ] {
            if rate_gbps == published_rate {
                let what = format!("{rate_gbps} Gbit/s: content store");
                record.compare(what, value, "GB", place, Some(store_gb));
            }
        }
    }
    record.tables.push(table);
    record.note("In the thesis a Data stays for k = 10 round trips of 80 ms, so that an entry of a fingerprint PIT expires before; every Data is cached, and Interests, headers and the index are left out.");
    Ok(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gigabit_in_balance_is_a_tenth_of_ten() {
        let balance = |line_rate_bps| Balance {
            line_rate_bps,
            interest_bytes: 100.0,
            data_bytes: 1500.0,
        };
        assert_eq!(balance(1e9).packets_per_s(), 156_250.0);
        assert_eq!(balance(1e9).pending(0.08), 6_250.0);
        assert_eq!(balance(1e10).pending_bytes(0.08), 6_250_000.0);
    }
}
