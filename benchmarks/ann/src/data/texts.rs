//! 50,000 dictionary senses in 384 dimensions as a data set. Its queries are of two kinds:
//! definitions, which are of the same kind as the base, and example sentences, which are not.

use anyhow::ensure;
use contender::{Kind, Metric};

use super::{Made, files};

/// Elements of a vector.
pub const DIMENSIONS: usize = 384;

const QUERIES: &str = "texts50k_queries.parquet";

/// The kinds of queries in the file, one after the other.
const KINDS: [&str; 2] = ["definition", "example"];
const QUERIES_OF_A_KIND: usize = 1_000;

/// Reads the vectors to be indexed.
pub fn base() -> anyhow::Result<Vec<f32>> {
    Ok(files::vectors("texts50k_base.parquet", "embedding")?.values)
}

/// Reads the queries: definitions, then examples. The second value has the number of each kind.
pub fn queries() -> anyhow::Result<(Vec<f32>, Vec<Kind>)> {
    let queries = files::vectors(QUERIES, "embedding")?;
    let expected = KINDS.len() * QUERIES_OF_A_KIND;
    ensure!(
        queries.len() == expected,
        "{} queries instead of {expected}",
        queries.len()
    );
    let kind = |name: &str| Kind {
        name: name.into(),
        queries: QUERIES_OF_A_KIND,
    };
    Ok((queries.values, KINDS.map(kind).into()))
}

/// Reads base and queries.
pub(super) fn make() -> anyhow::Result<Made> {
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
    use annulus_bench::data::{self, ArrayRole, VectorRows};
    use indicatif::ProgressBar;

    use super::*;

    #[test]
    fn neighbours_are_those_published_with_the_vectors() {
        const QUERIES_CHECKED: usize = 8;
        let vectors = |values| VectorRows {
            dimensions: DIMENSIONS,
            values,
            ids: None,
        };
        let mut queries = vectors(queries().unwrap().0);
        queries.truncate(QUERIES_CHECKED);
        let published = files::source(QUERIES, "gt_ids");
        let published = published.read(ArrayRole::Neighbours).unwrap();
        let published = published.into_neighbours().unwrap();
        let hidden = ProgressBar::hidden();
        let base = vectors(base().unwrap());
        let found = data::nearest(&base, &queries, data::SimilarityMetric::Cosine, 100, &hidden);
        // Neighbours that are nearly equally far may be ordered differently.
        let pairs = found.iter().zip(&published.ids);
        let same = pairs.filter(|(a, b)| i64::from(**a) == **b).count();
        assert!(same >= found.len() * 99 / 100, "{same} of {}", found.len());
    }
}
