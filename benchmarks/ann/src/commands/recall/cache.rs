//! Keeps what does not change with our engine: true neighbours, and the results of rivals.
//!
//! A file's name has a hash of the vectors, changes and queries, so that another seed, another
//! number of rows or another recipe is another file.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Serialize;
use serde::de::DeserializeOwned;
use vector_sets::{VectorChange, GeneratedSet, NeighbourMetric};

/// The cache of one set.
pub struct Cache {
    folder: PathBuf,
    /// The beginning of the names of its files.
    set: String,
}

impl Cache {
    /// The cache of a set in `folder`, which is made if it is not there.
    pub fn new(folder: &Path, name: &str, metric: NeighbourMetric, made: &GeneratedSet) -> anyhow::Result<Cache> {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        let mut hash = Hash(0xcbf2_9ce4_8422_2325);
        hash.add(metric as u64);
        hash.floats(&made.base);
        hash.floats(&made.queries);
        for change in &made.changes {
            match change {
                VectorChange::Remove(id) => hash.add(u64::from(*id)),
                VectorChange::Replace(_, vector) => hash.floats(vector),
            }
        }
        Ok(Cache {
            folder: folder.to_owned(),
            set: format!("{name}-{:016x}", hash.0),
        })
    }

    /// Reads what was kept under a name; `None` if there is nothing.
    pub fn get<T: DeserializeOwned>(&self, what: &str) -> Option<T> {
        let text = fs::read(self.path(what)).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Keeps a value under a name.
    pub fn put<T: Serialize>(&self, what: &str, value: &T) -> anyhow::Result<()> {
        // Under another name first, so that a file is whole or not there.
        let path = self.path(what);
        let unfinished = path.with_extension("unfinished");
        fs::write(&unfinished, serde_json::to_vec(value)?)
            .and_then(|()| fs::rename(&unfinished, &path))
            .with_context(|| path.display().to_string())
    }

    fn path(&self, what: &str) -> PathBuf {
        let what = what.replace(' ', "-");
        self.folder.join(format!("{}-{what}.json", self.set))
    }
}

/// A hash that is the same in every version and on every machine.
struct Hash(u64);

impl Hash {
    fn add(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 ^= self.0 >> 29;
    }

    fn floats(&mut self, floats: &[f32]) {
        self.add(floats.len() as u64);
        floats.iter().for_each(|x| self.add(u64::from(x.to_bits())));
    }
}
