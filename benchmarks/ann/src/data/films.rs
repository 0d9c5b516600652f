//! The product's film sample as a data set. It has no queries, so every twentieth film is held out
//! as one.

use contender::Metric;

use super::{Made, files, one_kind};

const HELD_OUT_EVERY: usize = 20;

/// Reads the films, and splits them into base and queries.
pub fn make() -> anyhow::Result<Made> {
    let films = files::vectors("../../../samples/movies/movies.parquet", "plot_embedding")?;
    let (mut base, mut queries) = (Vec::new(), Vec::new());
    for (film, vector) in films.rows().enumerate() {
        let side = match film % HELD_OUT_EVERY {
            0 => &mut queries,
            _ => &mut base,
        };
        side.extend_from_slice(vector);
    }
    Ok(Made {
        dimensions: films.dimensions,
        metric: Metric::Cosine,
        base,
        kinds: one_kind(queries.len() / films.dimensions),
        queries,
        remark: "real text embeddings, queries held out".into(),
    })
}
