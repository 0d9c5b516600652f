//! A file of a data set, named as `FILE` or as `FILE:PART` for a column of a parquet file or a
//! dataset of an HDF5 file. The format follows from the file's extension.

use std::fmt;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Context, bail};

use super::array::NumberArray;
use super::{bin, hdf5, npy, parquet, vecs};

/// The use of an array. It decides which part of a file is read unless one is named.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ArrayRole {
    /// The vectors to be searched.
    Base,
    /// The queries.
    Queries,
    /// The true neighbours of the queries.
    Neighbours,
}

impl ArrayRole {
    /// The usual names of the part of a file for this use.
    fn names(self) -> &'static [&'static str] {
        match self {
            ArrayRole::Base => &["train", "emb", "embedding", "vector", "base"],
            ArrayRole::Queries => &["test", "emb", "embedding", "vector", "queries"],
            ArrayRole::Neighbours => &["neighbors", "neighbors_id", "neighbours", "gt_ids"],
        }
    }
}

/// A file, with the part of it in formats that hold several arrays.
#[derive(Clone, Debug, PartialEq)]
pub struct ArraySource {
    /// The path of the file.
    pub path: PathBuf,
    /// The column or dataset to read.
    pub part: Option<String>,
}

impl FromStr for ArraySource {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<ArraySource, Self::Err> {
        let (path, part) = match text.rsplit_once(':') {
            Some((path, part)) if !part.is_empty() && !Path::new(text).exists() => {
                (path, Some(part.to_owned()))
            }
            _ => (text, None),
        };
        Ok(ArraySource {
            path: path.into(),
            part,
        })
    }
}

impl fmt::Display for ArraySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        match &self.part {
            Some(part) => write!(f, ":{part}"),
            None => Ok(()),
        }
    }
}

impl ArraySource {
    /// Reads the array.
    pub fn read(&self, role: ArrayRole) -> anyhow::Result<NumberArray> {
        self.read_first(role, usize::MAX)
    }

    /// Reads the array. Of a large one it may read no more than the first `rows_max` rows need.
    pub fn read_first(&self, role: ArrayRole, rows_max: usize) -> anyhow::Result<NumberArray> {
        self.read_any(role, rows_max)
            .with_context(|| self.to_string())
    }

    fn read_any(&self, role: ArrayRole, rows_max: usize) -> anyhow::Result<NumberArray> {
        let path = &self.path;
        let open = || File::open(path).map(BufReader::new);
        let extension = extension(path);
        if !holds_parts(&extension) && self.part.is_some() {
            bail!("a .{extension} file is one array and has no parts");
        }
        match extension.as_str() {
            "parquet" => parquet::read(path, &self.part_for(role, parquet::names)?, rows_max),
            "hdf5" | "h5" => hdf5::read(path, &self.part_for(role, hdf5::names)?),
            "npy" => npy::read(open()?),
            "fvecs" => vecs::read(open()?, vecs::TexmexElement::F32),
            "ivecs" => vecs::read(open()?, vecs::TexmexElement::I32),
            "bvecs" => vecs::read(open()?, vecs::TexmexElement::U8),
            "fbin" => bin::read(open()?, bin::BigAnnElement::F32),
            "ibin" => bin::read(open()?, bin::BigAnnElement::I32),
            "u8bin" => bin::read(open()?, bin::BigAnnElement::U8),
            other => bail!(
                "the format .{other} is not known; known are parquet, hdf5, npy, fvecs, ivecs, bvecs, fbin, \
                 ibin and u8bin"
            ),
        }
    }

    /// The part that was named, or else the one with a usual name, or else the only one.
    fn part_for(
        &self,
        role: ArrayRole,
        names: impl Fn(&Path) -> anyhow::Result<Vec<String>>,
    ) -> anyhow::Result<String> {
        if let Some(part) = &self.part {
            return Ok(part.clone());
        }
        let there = names(&self.path)?;
        let usual = role
            .names()
            .iter()
            .find(|&&usual| there.iter().any(|name| name == usual));
        let mut vectors = there.iter().filter(|name| !is_truth(name));
        match (usual, vectors.next(), vectors.next()) {
            (Some(usual), _, _) => Ok((*usual).to_owned()),
            (None, Some(only), None) if role != ArrayRole::Neighbours => Ok(only.clone()),
            _ => bail!(
                "which part holds the {role:?}? Name it as {}:PART; there are {}",
                self.path.display(),
                there.join(", ")
            ),
        }
    }

    /// The parts of the file. In most formats a file has one part, without a name.
    pub fn parts(&self) -> anyhow::Result<Vec<ArraySource>> {
        let names = match extension(&self.path).as_str() {
            _ if self.part.is_some() => return Ok(vec![self.clone()]),
            "parquet" => parquet::names(&self.path),
            "hdf5" | "h5" => hdf5::names(&self.path),
            _ => return Ok(vec![self.clone()]),
        };
        let names = names.with_context(|| self.to_string())?;
        let part = |name| ArraySource {
            path: self.path.clone(),
            part: Some(name),
        };
        Ok(names.into_iter().map(part).collect())
    }
}

/// Whether a part of this name holds true neighbours or their distances, and no vectors.
fn is_truth(name: &str) -> bool {
    name.starts_with("gt_") || name == "distances" || ArrayRole::Neighbours.names().contains(&name)
}

/// Whether files with this extension hold several arrays.
fn holds_parts(extension: &str) -> bool {
    matches!(extension, "parquet" | "hdf5" | "h5")
}

/// The extension of a path in lower case, or an empty text.
pub fn extension(path: &Path) -> String {
    path.extension()
        .map(|extension| extension.to_string_lossy().to_lowercase())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_comes_after_a_colon() {
        let source: ArraySource = "a/b.parquet:emb".parse().unwrap();
        assert_eq!(source.path, Path::new("a/b.parquet"));
        assert_eq!(source.part.as_deref(), Some("emb"));
        assert_eq!(source.to_string(), "a/b.parquet:emb");
        let source: ArraySource = "b.npy".parse().unwrap();
        assert_eq!(source.part, None);
    }

    #[test]
    fn a_file_whose_name_has_a_colon_is_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a:b");
        std::fs::write(&path, "").unwrap();
        let source: ArraySource = path.to_str().unwrap().parse().unwrap();
        assert_eq!(source.path, path);
    }

    #[test]
    fn errors_name_the_file_and_what_can_be_read() {
        let source: ArraySource = "vectors.csv".parse().unwrap();
        let error = format!("{:#}", source.read(ArrayRole::Base).unwrap_err());
        assert!(
            error.contains("vectors.csv") && error.contains("parquet"),
            "{error}"
        );
        let source: ArraySource = "vectors.npy:x".parse().unwrap();
        let error = format!("{:#}", source.read(ArrayRole::Base).unwrap_err());
        assert!(error.contains("no parts"), "{error}");
    }

    #[test]
    fn the_only_part_without_true_neighbours_is_the_vectors() {
        let source: ArraySource = "queries.parquet".parse().unwrap();
        let part = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
            source.part_for(ArrayRole::Queries, |_| Ok(names.clone()))
        };
        assert_eq!(part(&["pixels", "gt_ids", "gt_l2"]).unwrap(), "pixels");
        assert_eq!(part(&["other", "emb"]).unwrap(), "emb");
        assert!(part(&["title", "plot"]).is_err());
        assert!(part(&["gt_ids"]).is_err());
    }

    #[test]
    fn files_of_ann_benchmarks_as_h5py_writes_them() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/ann-benchmarks.hdf5");
        let source = ArraySource { path, part: None };
        let base = source.read(ArrayRole::Base).unwrap();
        assert_eq!((base.rows(), base.columns), (20, 3));
        let base = base.into_vectors();
        assert_eq!(base.row(19), [19.0, 19.5, 20.0]);
        let queries = source.read(ArrayRole::Queries).unwrap();
        assert_eq!((queries.rows(), queries.columns), (2, 3));
        let neighbours = source.read(ArrayRole::Neighbours).unwrap();
        let neighbours = neighbours.into_neighbours().unwrap();
        assert_eq!(neighbours.of(1), [19, 18]);
        let metric = hdf5::metric(&source.path).unwrap();
        assert_eq!(metric, Some(crate::data::SimilarityMetric::Euclidean));
        assert_eq!(source.parts().unwrap().len(), 4);
    }
}
