//! Finds the files of a set that comes as several. Large sets of VectorDBBench come as
//! `train-00-of-10.parquet` to `train-09-of-10.parquet`. The path of the first file names all of
//! them.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

const EXTENSION: &str = ".parquet";

/// The most files of a set. None with more is published, and a number in a name is no reason to
/// look for thousands.
const FILES_MAX: usize = 1_000;

/// The files that `path` names, in their order: all of them if it is the first of several, or else
/// itself.
pub fn files(path: &Path) -> Vec<PathBuf> {
    let name = path.file_name().and_then(OsStr::to_str);
    match name.and_then(FirstFileName::of) {
        Some(first) => {
            let numbers = 0..first.count();
            numbers
                .map(|number| path.with_file_name(first.name(number)))
                .collect()
        }
        None => vec![path.to_owned()],
    }
}

/// The first of several files whose names begin with the path `stem`, such as `.../train`.
pub fn first(stem: &Path) -> Option<PathBuf> {
    let begin = stem.file_name()?.to_str()?;
    let directory = match stem.parent()? {
        here if here.as_os_str().is_empty() => Path::new("."),
        directory => directory,
    };
    let entries = std::fs::read_dir(directory).ok()?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let name = names
        .filter(|name| FirstFileName::of(name).is_some_and(|first| first.begin == begin))
        .min()?;
    Some(stem.with_file_name(name))
}

/// The name of the first of several files.
struct FirstFileName<'a> {
    /// The part of the name before the number.
    begin: &'a str,
    /// The number of digits of the number.
    digits: usize,
    /// The number of files, as it is in the name.
    of: &'a str,
}

impl FirstFileName<'_> {
    fn of(name: &str) -> Option<FirstFileName<'_>> {
        let (numbered, of) = name.strip_suffix(EXTENSION)?.rsplit_once("-of-")?;
        let (begin, number) = numbered.rsplit_once('-')?;
        let is_first = !number.is_empty() && number.bytes().all(|digit| digit == b'0');
        let first = FirstFileName {
            begin,
            digits: number.len(),
            of,
        };
        (is_first && (2..=FILES_MAX).contains(&first.count())).then_some(first)
    }

    fn count(&self) -> usize {
        self.of.parse().unwrap_or(0)
    }

    fn name(&self, number: usize) -> String {
        let FirstFileName { begin, digits, of } = self;
        format!("{begin}-{number:0digits$}-of-{of}{EXTENSION}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_several_stands_for_all() {
        let names: Vec<String> = files(Path::new("set/train-00-of-10.parquet"))
            .iter()
            .map(|path| path.to_str().unwrap().to_owned())
            .collect();
        assert_eq!(names.len(), 10);
        assert_eq!(names[0], "set/train-00-of-10.parquet");
        assert_eq!(names[9], "set/train-09-of-10.parquet");
        let two = ["a-0-of-02.parquet", "a-1-of-02.parquet"].map(PathBuf::from);
        assert_eq!(files(&two[0]), two);
        for alone in [
            "set/train-01-of-10.parquet",
            "train.parquet",
            "train-00-of-1.parquet",
            "train-00-of-10.npy",
            "a-of-3.parquet",
        ] {
            assert_eq!(files(Path::new(alone)), [Path::new(alone)], "{alone}");
        }
    }

    #[test]
    fn the_first_is_found_by_the_beginning_of_its_name() {
        let directory = tempfile::tempdir().unwrap();
        for name in [
            "train-01-of-02.parquet",
            "train-00-of-02.parquet",
            "shuffle_train-00-of-02.parquet",
        ] {
            std::fs::write(directory.path().join(name), "").unwrap();
        }
        let found = first(&directory.path().join("train"));
        assert_eq!(found, Some(directory.path().join("train-00-of-02.parquet")));
        assert_eq!(first(&directory.path().join("test")), None);
    }
}
