//! Finds the arrays of a data set by the names that are usual for them.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::numbered;
use super::source::{ArraySource, extension};

/// The files of the arrays of a data set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ArrayFiles {
    /// The vectors to be searched.
    pub base: Option<ArraySource>,
    /// The queries.
    pub queries: Option<ArraySource>,
    /// The queries' true neighbours.
    pub neighbours: Option<ArraySource>,
}

const BASE: &[&str] = &["train", "shuffle_train", "base"];
const QUERIES: &[&str] = &["test", "query", "queries"];
const NEIGHBOURS: &[&str] = &["neighbors", "neighbours", "groundtruth", "gt"];
const EXTENSIONS: &[&str] = &[
    "parquet", "npy", "fvecs", "ivecs", "bvecs", "fbin", "ibin", "u8bin",
];

/// Finds the arrays of `set`, which is one of these:
///
/// - an HDF5 file, which has all arrays;
/// - another file, which is the base;
/// - a directory with `train.parquet` (or `train-00-of-10.parquet` and so on), `test.parquet` and
///   `neighbors.parquet`;
/// - the beginning of the names of three files (`sift` for `sift_base.fvecs`, `sift_query.fvecs`,
///   `sift_groundtruth.ivecs`).
pub fn locate(set: &Path) -> anyhow::Result<ArrayFiles> {
    let source = |path: PathBuf| ArraySource { path, part: None };
    if set.is_file() {
        let all = matches!(extension(set).as_str(), "hdf5" | "h5");
        let whole = Some(source(set.to_owned()));
        return Ok(ArrayFiles {
            queries: whole.clone().filter(|_| all),
            neighbours: whole.clone().filter(|_| all),
            base: whole,
        });
    }
    let stem = |name: &&str| -> PathBuf {
        if set.is_dir() {
            return set.join(name);
        }
        let mut stem = set.as_os_str().to_owned();
        stem.push(format!("_{name}"));
        stem.into()
    };
    let find = |names: &[&str]| -> Option<ArraySource> {
        let mut candidates = names.iter().map(stem).flat_map(|stem| {
            EXTENSIONS.iter().map(move |extension| {
                let mut path = stem.clone().into_os_string();
                path.push(format!(".{extension}"));
                PathBuf::from(path)
            })
        });
        let whole = candidates.find(|path| path.is_file());
        let found = whole.or_else(|| names.iter().find_map(|name| numbered::first(&stem(name))));
        found.map(source)
    };
    let base = find(BASE);
    if base.is_none() {
        bail!(
            "no data set at {}: it is neither a file, nor a directory with train.parquet, base.npy or the like, nor \
             the beginning of the names of such files",
            set.display()
        );
    }
    let queries = find(QUERIES);
    let neighbours = find(NEIGHBOURS).or_else(|| neighbours_beside(queries.as_ref()?));
    Ok(ArrayFiles {
        base,
        queries,
        neighbours,
    })
}

/// The column of true neighbours in the queries' own file, if it has one.
fn neighbours_beside(queries: &ArraySource) -> Option<ArraySource> {
    if extension(&queries.path) != "parquet" {
        return None;
    }
    let parts = queries.parts().ok()?;
    parts
        .into_iter()
        .find(|part| part.part.as_deref() == Some("gt_ids"))
}

/// Takes a source out of the `Option`. The error names the data that is missing, and the flag that
/// gives it.
pub fn required(
    source: Option<ArraySource>,
    what: &str,
    flag: &str,
) -> anyhow::Result<ArraySource> {
    source.with_context(|| {
        format!(
            "no {what}: name a data set with --data (a directory with train.parquet and test.parquet, an HDF5 file of \
             ann-benchmarks.com, or sift for sift_base.fvecs and sift_query.fvecs), or a file with {flag}. A file of \
             vectors alone is enough: --data vectors.npy --hold-out 1000 takes queries out of it"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(directory: &Path, names: &[&str]) {
        for name in names {
            std::fs::write(directory.join(name), "").unwrap();
        }
    }

    fn names(located: ArrayFiles) -> [Option<String>; 3] {
        [located.base, located.queries, located.neighbours].map(|source| {
            let path = source?.path;
            Some(path.file_name()?.to_str()?.to_owned())
        })
    }

    #[test]
    fn a_directory_of_vectordbbench() {
        let directory = tempfile::tempdir().unwrap();
        let files = ["train.parquet", "test.parquet", "neighbors.parquet"];
        touch(directory.path(), &files);
        let found = names(locate(directory.path()).unwrap());
        assert_eq!(found, files.map(|name| Some(name.to_owned())));
    }

    #[test]
    fn a_large_set_of_vectordbbench_comes_in_several_files() {
        let directory = tempfile::tempdir().unwrap();
        let parts = ["train-01-of-02.parquet", "train-00-of-02.parquet"];
        touch(directory.path(), &parts);
        let [base, ..] = names(locate(directory.path()).unwrap());
        assert_eq!(base.as_deref(), Some("train-00-of-02.parquet"));
    }

    #[test]
    fn the_beginning_of_three_names() {
        let directory = tempfile::tempdir().unwrap();
        let files = [
            "sift_base.fvecs",
            "sift_query.fvecs",
            "sift_groundtruth.ivecs",
        ];
        touch(directory.path(), &files);
        let found = names(locate(&directory.path().join("sift")).unwrap());
        assert_eq!(found, files.map(|name| Some(name.to_owned())));
        assert!(locate(&directory.path().join("gist")).is_err());
        // The set has vectors to train on (`learn`), which are not those that are searched.
        touch(directory.path(), &["gist_learn.fvecs"]);
        assert!(locate(&directory.path().join("gist")).is_err());
    }

    #[test]
    fn a_file_is_the_base_and_an_hdf5_file_is_all() {
        let directory = tempfile::tempdir().unwrap();
        touch(directory.path(), &["a.npy", "b.hdf5"]);
        let found = names(locate(&directory.path().join("a.npy")).unwrap());
        assert_eq!(found, [Some("a.npy".to_owned()), None, None]);
        let found = names(locate(&directory.path().join("b.hdf5")).unwrap());
        assert_eq!(found, [0; 3].map(|_| Some("b.hdf5".to_owned())));
    }
}
