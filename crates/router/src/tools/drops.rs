//! Drops by reason, as the tools show them.

use serde_json::Value;
use tachonym_protocol::DropCount;

/// Drops of `face`, or of the whole router.
fn of(drops: &[DropCount], face: Option<u64>) -> impl Iterator<Item = &DropCount> {
    drops.iter().filter(move |drop| drop.face_id == face)
}

/// An object by reason.
pub(super) fn to_json(drops: &[DropCount], face: Option<u64>) -> Value {
    let counts = of(drops, face).map(|drop| (drop.reason.clone(), drop.n_dropped.into()));
    Value::Object(counts.collect())
}

/// A row for each reason.
pub(super) fn rows(drops: &[DropCount], face: Option<u64>) -> Vec<Vec<String>> {
    let texts = of(drops, face).map(|drop| format!("{} {}", drop.n_dropped, drop.reason));
    let mut texts: Vec<_> = texts.collect();
    if texts.is_empty() {
        texts.push("nothing".into());
    }
    let labels = std::iter::once("dropped").chain(std::iter::repeat(""));
    let rows = labels.zip(texts);
    rows.map(|(label, text)| vec![label.into(), text]).collect()
}
