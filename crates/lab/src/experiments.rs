//! All experiments, and the catalogue of what the documents contain.

use tachonym_bench::{Catalogue, Registry};

use crate::{iqbal, mansilha, own, takemasa, yuan};

/// All experiments, by document.
///
/// # Errors
/// If two have the same id or a default is wrong, which tests exclude.
pub fn registry() -> anyhow::Result<Registry> {
    let documents = [
        takemasa::EXPERIMENTS,
        yuan::EXPERIMENTS,
        mansilha::EXPERIMENTS,
        iqbal::EXPERIMENTS,
        own::EXPERIMENTS,
    ];
    let chapters = documents.into_iter().flatten();
    Registry::new(
        chapters
            .flat_map(|chapter| chapter.iter().copied())
            .collect(),
    )
}

/// Every figure, table, equation and algorithm of the documents.
///
/// # Errors
/// If the file cannot be read, which tests exclude.
pub fn catalogue() -> anyhow::Result<Catalogue> {
    Catalogue::parse(include_str!("../catalogue.toml"))
}
