//! Experiments of Takemasa 2019, chapters 3 and 4, at scale tiny.

mod support;

use support::run;

#[test]
fn bottleneck_has_each_block_beside_the_published_one() {
    let record = run("takemasa/bottleneck", &["policy=tinylfu/fifo"]);
    let blocks = &record.tables[1];
    for (block, published) in [("B6 FIB look-up", 413.0), ("B10 store insertion", 329.0)] {
        let column = "published cycles (Table 5.1)";
        assert_eq!(blocks.number(&[block], column), Some(published));
    }
    let ticks = |block: &str, kind: &str| blocks.number(&[block], kind);
    for (block, kinds) in [
        ("B2 history update", [true, true, false]),
        ("B4 store fetch", [false, true, false]),
        ("B6 FIB look-up", [true, false, false]),
        ("B10 store insertion", [false, false, true]),
        ("B13 admission", [false, false, true]),
    ] {
        let entered = ["I-miss", "I-hit", "Data"].map(|kind| ticks(block, kind).is_some());
        assert_eq!(entered, kinds, "{block}");
    }
    for kind in ["I-miss", "I-hit", "Data"] {
        let whole = record.tables[0].column("published cycles").map(|_| ());
        assert!(whole.is_some());
        let parts: f64 = (blocks.rows.iter().rev().skip(1))
            .filter_map(|row| row[blocks.column(kind).expect(kind)].number())
            .sum();
        let all = ticks("all, with borders", kind).expect(kind);
        assert!((0.5..2.0).contains(&(parts / all)), "{kind}: {parts} {all}");
    }
}
