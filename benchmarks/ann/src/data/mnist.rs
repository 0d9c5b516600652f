//! 20,000 handwritten digits of 28 x 28 pixels as a data set.

use contender::Metric;

use super::parquet_file::ParquetFile;
use super::{Made, one_kind};

const DIMENSIONS: usize = 784;

/// Reads the pixels of the digits and of the queries.
pub fn make() -> anyhow::Result<Made> {
    let pixels = |name: &str| -> anyhow::Result<Vec<f32>> {
        let pixels = ParquetFile::open(name)?.integers("pixels")?;
        Ok(pixels.into_iter().map(|x| x as f32).collect())
    };
    let queries = pixels("mnist20k_queries.parquet")?;
    Ok(Made {
        dimensions: DIMENSIONS,
        metric: Metric::Euclidean,
        base: pixels("mnist20k_base.parquet")?,
        kinds: one_kind(queries.len() / DIMENSIONS),
        queries,
        remark: "real images".into(),
    })
}
