//! The file that says how many instructions packets may take.
//!
//! It holds what was counted when it was last written, and by how much that may
//! grow. Refuses to forget: a case or kind that the file lacks exceeds it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::Context;
use serde::{Deserialize, Serialize};

use super::{InstructionsReport, KindCount, title};

/// Growth that passes, in percent: a compiler lays out the same code a little
/// differently when something beside it changes.
const TOLERANCE_PCT: f64 = 3.0;

/// Growth of a block that passes beyond the percentage, in instructions per packet: on which
/// side of a border between blocks the compiler puts some twenty of them changes with code
/// elsewhere.
const BLOCK_TOLERANCE: f64 = 24.0;

/// Growth of a block that is worth naming, in instructions per packet.
const WORTH_NAMING: f64 = 0.5;

const PREAMBLE: &str = "\
# Instructions that packets take in the router's engine, between a receive buffer and a
# send buffer, on average: those of the program itself, without the C library's.
# `cargo xtask test` fails where one grows by more than the tolerance.
# Lower the numbers to what is counted now with: cargo xtask instructions --update
# Numbers that must rise, with the reason in the commit: cargo xtask instructions --raise
# The compiler of rust-toolchain.toml made the program that was counted.

";

/// Limits by case and kind.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Budget {
    tolerance_pct: f64,
    case: BTreeMap<String, BTreeMap<String, KindBudget>>,
}

/// What a packet of one kind took.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
struct KindBudget {
    total: f64,
    library_calls: f64,
    blocks: BTreeMap<String, f64>,
}

impl KindBudget {
    fn of(count: &KindCount) -> Self {
        let tenths = |x: f64| (x * 10.0).round() / 10.0;
        let blocks = count.blocks.iter();
        Self {
            total: tenths(count.total.own),
            library_calls: tenths(count.total.library_calls),
            blocks: blocks
                .map(|block| (title(block.block), tenths(block.count.own)))
                .collect(),
        }
    }

    /// Blocks that exceed what they may take, a line each. Code that moves between two blocks
    /// exceeds one of them.
    fn exceeded_blocks(&self, what: &str, count: &KindCount, tolerance_pct: f64) -> Vec<String> {
        let blocks = count.blocks.iter().filter_map(|block| {
            let (name, now) = (title(block.block), block.count.own);
            let before = self.blocks.get(&name).copied().unwrap_or(0.0);
            let most = before * (1.0 + tolerance_pct / 100.0) + BLOCK_TOLERANCE;
            (now > most).then(|| format!("{what}: {name} {now:.1} instead of {before:.1}"))
        });
        blocks.collect()
    }

    /// Each number becomes the lower one.
    fn lower_to(&mut self, before: &Self) {
        self.total = self.total.min(before.total);
        self.library_calls = self.library_calls.min(before.library_calls);
        for (name, own) in &mut self.blocks {
            if let Some(&before) = before.blocks.get(name) {
                *own = own.min(before);
            }
        }
    }

    /// Blocks that take more than they did, the one that grew most first.
    fn grown_blocks(&self, count: &KindCount) -> String {
        let mut grown: Vec<(String, f64, f64)> = count
            .blocks
            .iter()
            .map(|block| {
                let name = title(block.block);
                let before = self.blocks.get(&name).copied().unwrap_or(0.0);
                (name, before, block.count.own)
            })
            .filter(|(_, before, now)| now - before > WORTH_NAMING)
            .collect();
        grown.sort_by(|a, b| (b.2 - b.1).total_cmp(&(a.2 - a.1)));
        let told = grown
            .iter()
            .map(|(name, before, now)| format!("{name} {before:.1} -> {now:.1}"));
        told.collect::<Vec<_>>().join(", ")
    }
}

impl Budget {
    /// What was counted is the budget.
    pub(super) fn of(report: &InstructionsReport) -> Self {
        let cases = report.cases.iter().map(|case| {
            let kinds = case.kinds.iter();
            let kinds = kinds.map(|count| (count.kind.to_owned(), KindBudget::of(count)));
            (case.case.to_owned(), kinds.collect())
        });
        Self {
            tolerance_pct: TOLERANCE_PCT,
            case: cases.collect(),
        }
    }

    /// # Errors
    /// If the file cannot be read, or is no budget.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let text =
            fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        toml::from_str(&text).with_context(|| format!("cannot parse {}", path.display()))
    }

    /// # Errors
    /// If the file cannot be written.
    pub(super) fn write(&self, path: &Path) -> anyhow::Result<()> {
        let text = toml::to_string(self).context("cannot write the budget")?;
        fs::write(path, format!("{PREAMBLE}{text}"))
            .with_context(|| format!("cannot write {}", path.display()))
    }

    /// What exceeds the budget, a line each, with the blocks that grew.
    pub(super) fn compare(&self, report: &InstructionsReport) -> Vec<String> {
        let mut exceeded = Vec::new();
        for case in &report.cases {
            for count in &case.kinds {
                let what = format!("{}, {}", case.case, count.kind);
                let budget = self.case.get(case.case);
                let Some(budget) = budget.and_then(|kinds| kinds.get(count.kind)) else {
                    exceeded.push(format!("{what}: the budget has no such line"));
                    continue;
                };
                let pairs = [
                    ("instructions", budget.total, count.total.own),
                    (
                        "library calls",
                        budget.library_calls,
                        count.total.library_calls,
                    ),
                ];
                for (unit, before, now) in pairs {
                    // Half a tenth is what the file rounds off.
                    if now > before * (1.0 + self.tolerance_pct / 100.0) + 0.05 {
                        let pct = (now / before - 1.0) * 100.0;
                        exceeded.push(format!(
                            "{what}: {now:.1} {unit} a packet instead of {before:.1} \
                             (+{pct:.1} %); grown: {}",
                            budget.grown_blocks(count)
                        ));
                    }
                }
                exceeded.extend(budget.exceeded_blocks(&what, count, self.tolerance_pct));
            }
        }
        exceeded
    }

    /// The budget that a report lowers: each number is the lower of both.
    pub(super) fn lowered_by(&self, report: &InstructionsReport) -> Self {
        let mut now = Self::of(report);
        for (case, kinds) in &mut now.case {
            for (kind, count) in kinds {
                let before = self.case.get(case).and_then(|kinds| kinds.get(kind));
                if let Some(before) = before {
                    count.lower_to(before);
                }
            }
        }
        now
    }
}

#[cfg(test)]
mod tests {
    use tachonym_forward::Block;

    use super::*;
    use crate::instructions::{BlockCount, CaseCount, PerPacket};

    fn report(fib: f64, library_calls: f64) -> InstructionsReport {
        let per_packet = |own| PerPacket {
            own,
            library: 50.0,
            library_calls,
        };
        let block = |block, own| BlockCount {
            block,
            count: per_packet(own),
        };
        InstructionsReport {
            cases: vec![CaseCount {
                case: "burst-32",
                kinds: vec![KindCount {
                    kind: "I-miss",
                    total: per_packet(900.0 + fib),
                    blocks: vec![block(Block::FibLookup, fib), block(Block::Strategy, 100.0)],
                }],
            }],
        }
    }

    #[test]
    fn growth_beyond_the_tolerance_is_told_with_the_block_that_grew() {
        let budget = Budget::of(&report(100.0, 4.0));
        assert!(budget.compare(&report(100.0, 4.0)).is_empty());
        assert!(budget.compare(&report(110.0, 4.0)).is_empty());
        assert!(
            budget.compare(&report(50.0, 4.0)).is_empty(),
            "less is fine"
        );
        let exceeded = budget.compare(&report(131.0, 4.0));
        assert_eq!(exceeded.len(), 2, "{exceeded:?}");
        assert_eq!(
            exceeded[1],
            "burst-32, I-miss: B6 FIB look-up 131.0 instead of 100.0"
        );
        assert!(
            exceeded[0].starts_with("burst-32, I-miss: 1031.0 instructions")
                && exceeded[0].ends_with("grown: B6 FIB look-up 100.0 -> 131.0"),
            "{exceeded:?}"
        );
    }

    #[test]
    fn a_block_exceeds_by_itself() {
        let budget = Budget::of(&report(100.0, 4.0));
        let mut moved = report(100.0, 4.0);
        let blocks = &mut moved.cases[0].kinds[0].blocks;
        blocks[0].count.own = 70.0;
        blocks[1].count.own = 130.0;
        let exceeded = budget.compare(&moved);
        assert_eq!(
            exceeded,
            ["burst-32, I-miss: strategy 130.0 instead of 100.0"]
        );
        moved.cases[0].kinds[0].blocks[1].count.own = 127.0;
        assert!(budget.compare(&moved).is_empty(), "3 % and 24 instructions");
    }

    #[test]
    fn an_update_only_lowers() {
        let budget = Budget::of(&report(100.0, 4.0));
        let lowered = budget.lowered_by(&report(60.0, 5.0));
        assert_eq!(lowered, Budget::of(&report(60.0, 4.0)));
        assert_eq!(budget.lowered_by(&report(102.0, 4.0)), budget);
    }

    #[test]
    fn one_more_call_into_the_library_exceeds() {
        let exceeded = Budget::of(&report(100.0, 4.0)).compare(&report(100.0, 5.0));
        assert_eq!(exceeded.len(), 1, "{exceeded:?}");
        assert!(exceeded[0].contains("5.0 library calls"), "{exceeded:?}");
    }

    #[test]
    fn a_case_without_a_line_exceeds() {
        let budget = Budget {
            tolerance_pct: 3.0,
            case: BTreeMap::new(),
        };
        assert_eq!(budget.compare(&report(100.0, 4.0)).len(), 1);
    }

    #[test]
    fn a_file_gives_back_the_budget_that_was_written() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("budget.toml");
        let budget = Budget::of(&report(123.4, 4.0));
        budget.write(&path).expect("the folder is writable");
        assert_eq!(Budget::read(&path).expect("just written"), budget);
        let text = fs::read_to_string(&path).expect("just written");
        assert!(text.contains("cargo xtask instructions --update"), "{text}");
        fs::write(&path, "tolerance_pct = 3\nother = 1\n").expect("writable");
        Budget::read(&path).expect_err("it is no budget");
    }
}
