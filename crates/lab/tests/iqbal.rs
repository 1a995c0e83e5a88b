//! Experiments of Iqbal 2013 at scale tiny: seeded simulations come to exact numbers.

mod support;

use support::{run, run_all};
use tachonym_bench::{Record, Table};

#[test]
fn every_experiment_runs() {
    run_all("iqbal", |id, record| {
        println!("== {id}");
        for table in &record.tables {
            println!("{}", table.title);
            for row in table.rows.iter().take(40) {
                println!("{row:?}");
            }
        }
        for p in &record.published {
            println!("{} {} {:?}", p.what, p.value, p.here);
        }
        for p in &record.notes {
            println!("{}", p);
        }
    });
}
