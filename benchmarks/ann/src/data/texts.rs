//! 50,000 dictionary senses in 384 dimensions as a data set. Its queries are of two kinds:
//! definitions, which are of the same kind as the base, and example sentences, which are not.

use anyhow::ensure;
use contender::{Kind, Metric};

use super::Made;
use super::parquet_file::ParquetFile;

/// Elements of a vector.
pub const DIMENSIONS: usize = 384;

/// Reads the vectors to be indexed.
pub fn base() -> anyhow::Result<Vec<f32>> {
    ParquetFile::open("texts50k_base.parquet")?.halves("embedding")
}

/// Reads the queries: definitions, then examples. The second value has the number of each kind.
pub fn queries() -> anyhow::Result<(Vec<f32>, Vec<Kind>)> {
    let file = ParquetFile::open("texts50k_queries.parquet")?;
    let of_row = file.texts("kind")?;
    let kinds: Vec<Kind> = of_row
        .chunk_by(|a, b| a == b)
        .map(|rows| Kind {
            name: rows[0].clone(),
            queries: rows.len(),
        })
        .collect();
    let names: Vec<&str> = kinds.iter().map(|kind| kind.name.as_str()).collect();
    ensure!(
        names == ["definition", "example"],
        "kinds of queries: {names:?}"
    );
    Ok((file.floats("embedding")?, kinds))
}

/// Reads base and queries.
pub fn make() -> anyhow::Result<Made> {
    let (queries, kinds) = queries()?;
    Ok(Made {
        dimensions: DIMENSIONS,
        metric: Metric::Cosine,
        base: base()?,
        queries,
        kinds,
        remark: "real text embeddings".into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::exact::neighbours;
    use contender::Vectors;

    #[test]
    fn neighbours_are_those_published_with_the_vectors() {
        const QUERIES: usize = 8;
        let base = base().unwrap();
        let (queries, _) = queries().unwrap();
        let file = ParquetFile::open("texts50k_queries.parquet").unwrap();
        let published = file.integers("gt_ids").unwrap();
        let found = neighbours(
            Vectors::new(&base, DIMENSIONS),
            Vectors::new(&queries[..QUERIES * DIMENSIONS], DIMENSIONS),
            Metric::Cosine,
            100,
        );
        let found: Vec<i32> = found.into_iter().map(|id| id as i32).collect();
        // Neighbours that are nearly equally far may be ordered differently.
        let same = found.iter().zip(&published).filter(|(a, b)| a == b).count();
        assert!(same >= found.len() * 99 / 100, "{same} of {}", found.len());
    }
}
