//! Reads the files that come with the benchmark.

use std::path::Path;

use annulus_bench::data::{ArrayRole, ArraySource, VectorRows};

/// Reads a column of vectors of a file. `file` is its path from the benchmark's folder `data`.
pub fn vectors(file: &str, column: &str) -> anyhow::Result<VectorRows> {
    let source = source(file, column);
    Ok(source.read(ArrayRole::Base)?.into_vectors())
}

/// A column of a file. `file` is its path from the benchmark's folder `data`.
pub fn source(file: &str, column: &str) -> ArraySource {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
    ArraySource {
        path: folder.join(file),
        part: Some(column.to_owned()),
    }
}
