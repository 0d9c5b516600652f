//! 20,000 handwritten digits of 28 x 28 pixels as a data set.

use annulus_bench::data::VectorRows;
use contender::Metric;

use super::{Made, files, one_kind};

/// Reads the pixels of the digits and of the queries.
pub fn pixels() -> anyhow::Result<(VectorRows, VectorRows)> {
    let base = files::vectors("mnist20k_base.parquet", "pixels")?;
    let queries = files::vectors("mnist20k_queries.parquet", "pixels")?;
    Ok((base, queries))
}

/// Makes a set of the digits.
pub(super) fn make() -> anyhow::Result<Made> {
    let (base, queries) = pixels()?;
    Ok(Made {
        dimensions: base.dimensions,
        metric: Metric::Euclidean,
        base: base.values,
        kinds: one_kind(queries.len()),
        queries: queries.values,
        remark: "real images".into(),
    })
}
