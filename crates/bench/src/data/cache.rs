//! Keeps computed true neighbours next to the base, as an `ivecs` file. Its name has a checksum of
//! all that they were computed from. After a change no file has the new name, so they are computed
//! again.

use std::fs::File;
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use xxhash_rust::xxh3::Xxh3;

use super::array::VectorRows;
use super::exact::SimilarityMetric;
use super::vecs;

/// The version of the computation. It is raised when the computation changes, so that files of
/// former versions are not used.
const VERSION: u32 = 1;

/// The path of the file for the neighbours that are computed from these arguments. The file may not
/// exist.
pub fn path(
    base_file: &Path,
    base: &VectorRows,
    queries: &VectorRows,
    metric: SimilarityMetric,
    k: usize,
) -> PathBuf {
    let mut hash = Xxh3::new();
    hash.update(&VERSION.to_le_bytes());
    hash.update(metric.name().as_bytes());
    for vectors in [base, queries] {
        hash.update(&(vectors.dimensions as u64).to_le_bytes());
        hash.update(&(vectors.len() as u64).to_le_bytes());
        for value in &vectors.values {
            hash.update(&value.to_le_bytes());
        }
    }
    let stem = base_file.file_stem().unwrap_or_default().to_string_lossy();
    let name = format!("{stem}.top{k}-{:016x}.ivecs", hash.digest());
    base_file.with_file_name(name)
}

/// Reads the positions stored at `path`. Returns `None` if there is no such file.
pub fn read(path: &Path, queries: usize, k: usize) -> anyhow::Result<Option<Vec<u32>>> {
    let Ok(file) = File::open(path) else {
        return Ok(None);
    };
    let remedy = || format!("{}: delete it, and it is computed anew", path.display());
    let array = vecs::read(BufReader::new(file), vecs::TexmexElement::I32).with_context(remedy)?;
    ensure!(
        array.rows() == queries && array.columns == k,
        "{} has {} rows of {}; delete it, and it is computed anew",
        path.display(),
        array.rows(),
        array.columns
    );
    let neighbours = array.into_neighbours()?.ids.into_iter();
    let positions = neighbours.map(|id| u32::try_from(id).map_err(anyhow::Error::from));
    let positions: anyhow::Result<Vec<u32>> = positions.collect();
    Ok(Some(positions.with_context(remedy)?))
}

/// Writes positions, `k` for each query. The file appears whole or not at all.
pub fn write(path: &Path, positions: &[u32], k: usize) -> anyhow::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut bytes = Vec::with_capacity((positions.len() + positions.len() / k) * 4);
    for row in positions.chunks_exact(k) {
        bytes.extend((k as u32).to_le_bytes());
        row.iter().for_each(|at| bytes.extend(at.to_le_bytes()));
    }
    let directory = if directory.as_os_str().is_empty() {
        Path::new(".")
    } else {
        directory
    };
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(&bytes)?;
    file.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vectors(values: &[f32]) -> VectorRows {
        VectorRows {
            dimensions: 2,
            values: values.to_vec(),
            ids: None,
        }
    }

    #[test]
    fn written_neighbours_are_read_and_changed_data_has_another_path() {
        let directory = tempfile::tempdir().unwrap();
        let base_file = directory.path().join("train.parquet");
        let (base, queries) = (vectors(&[1.0, 2.0, 3.0, 4.0]), vectors(&[1.0, 2.0]));
        let place = path(&base_file, &base, &queries, SimilarityMetric::Cosine, 2);
        assert_eq!(read(&place, 1, 2).unwrap(), None);
        write(&place, &[1, 0], 2).unwrap();
        assert_eq!(read(&place, 1, 2).unwrap(), Some(vec![1, 0]));
        assert!(read(&place, 2, 2).is_err());

        let changed = vectors(&[1.0, 2.0, 3.0, 4.5]);
        let others = [
            path(&base_file, &changed, &queries, SimilarityMetric::Cosine, 2),
            path(&base_file, &base, &base, SimilarityMetric::Cosine, 2),
            path(&base_file, &base, &queries, SimilarityMetric::Euclidean, 2),
            path(&base_file, &base, &queries, SimilarityMetric::Cosine, 1),
        ];
        assert!(!others.contains(&place));
    }
}
