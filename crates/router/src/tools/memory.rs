//! The page sizes of the tables, as the tools show them.

use serde_json::{Value, json};
use tachonym_protocol::TableMemory;

use super::text;

/// An object by size of pages.
pub(super) fn to_json(memory: &TableMemory) -> Value {
    json!({
        "asked_for": memory.asked_for,
        "base_bytes": memory.n_base_bytes,
        "transparent_bytes": memory.n_transparent_bytes,
        "huge_2m_bytes": memory.n_huge_2m_bytes,
        "huge_1g_bytes": memory.n_huge_1g_bytes,
    })
}

/// One line of text.
pub(super) fn line(memory: &TableMemory) -> String {
    let kinds = [
        (memory.n_huge_1g_bytes, "1 GiB pages"),
        (memory.n_huge_2m_bytes, "2 MiB pages"),
        (memory.n_transparent_bytes, "transparent huge pages"),
        (memory.n_base_bytes, "base pages"),
    ];
    let kinds = kinds.into_iter().filter(|&(n_bytes, _)| n_bytes > 0);
    let kinds = kinds.map(|(n_bytes, kind)| format!("{} in {kind}", text::bytes(n_bytes)));
    let kinds: Vec<_> = kinds.collect();
    let got = match kinds.is_empty() {
        true => "all tables use the allocator".to_owned(),
        false => kinds.join(", "),
    };
    format!("{got} (configured: {})", memory.asked_for)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_names_only_page_sizes_in_use() {
        let none = TableMemory {
            asked_for: "auto".into(),
            ..TableMemory::default()
        };
        assert_eq!(
            line(&none),
            "all tables use the allocator (configured: auto)"
        );
        let some = TableMemory {
            asked_for: "2m".into(),
            n_base_bytes: 4096,
            n_huge_2m_bytes: 6_000_000_000,
            ..TableMemory::default()
        };
        assert_eq!(
            line(&some),
            "6.0 GB in 2 MiB pages, 4.1 kB in base pages (configured: 2m)"
        );
    }
}
