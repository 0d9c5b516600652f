//! Reads the files that come with the benchmark.

use std::path::Path;

use annulus_bench::data::{Role, Source, Vectors};

/// Reads a column of vectors of a file. `file` is its path from the benchmark's folder `data`.
pub fn vectors(file: &str, column: &str) -> anyhow::Result<Vectors> {
    let source = source(file, column);
    Ok(source.read(Role::Base)?.into_vectors())
}

/// A column of a file. `file` is its path from the benchmark's folder `data`.
pub fn source(file: &str, column: &str) -> Source {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
    Source {
        path: folder.join(file),
        part: Some(column.to_owned()),
    }
}
