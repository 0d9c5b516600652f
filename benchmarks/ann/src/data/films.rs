//! The product's film sample as a data set. It has no queries, so every twentieth film is held out
//! as one.

use contender::Metric;

use super::parquet_file::ParquetFile;
use super::{Made, one_kind};

const DIMENSIONS: usize = 384;
const HELD_OUT_EVERY: usize = 20;

/// Reads the films, and splits them into base and queries.
pub fn make() -> anyhow::Result<Made> {
    let file = ParquetFile::open("../../../samples/movies/movies.parquet")?;
    let (mut base, mut queries) = (Vec::new(), Vec::new());
    let films = file.floats("plot_embedding")?;
    for (film, vector) in films.chunks_exact(DIMENSIONS).enumerate() {
        let side = match film % HELD_OUT_EVERY {
            0 => &mut queries,
            _ => &mut base,
        };
        side.extend_from_slice(vector);
    }
    Ok(Made {
        dimensions: DIMENSIONS,
        metric: Metric::Cosine,
        base,
        kinds: one_kind(queries.len() / DIMENSIONS),
        queries,
        remark: "real text embeddings, queries held out".into(),
    })
}
