//! An index of the exact tokens of texts: the second class, by which tests prove that nothing
//! around a structure knows what it holds. It looks at all texts for each search.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard};

use filter_columns::IdSet;
use index::score::DistanceAndScore;
use store_api::types::SearchPlan;
use xxhash_rust::xxh3::xxh3_64;

use crate::indexes::PreparedValue;
use crate::indexes::files::{FilesFault, FilesProgress, FilesState};
use crate::indexes::plan::ExecutedPlan;
use crate::indexes::ranked_rows::RankedRows;
use crate::indexes::request::{IndexSearch, StructureError};
use crate::indexes::selection::RowSelection;
use crate::indexes::structure_memory::StructureMemory;
use crate::indexes::surrounding_rows::SurroundingRows;

/// The one file of a snapshot: a checksum in the first line, then an id and its tokens in each.
const FILE: &str = "tokens";

/// The tokens of texts by the ids of their rows.
#[derive(Default)]
pub(crate) struct TokenIndex {
    texts: RwLock<BTreeMap<u32, PreparedTokens>>,
    /// The file that the index was opened from, and its state.
    file: Option<(PathBuf, Mutex<FilesState>)>,
}

/// The tokens of a text, each once.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PreparedTokens(BTreeSet<String>);

impl PreparedTokens {
    /// The tokens of a text, which has spaces between them.
    pub(crate) fn of(text: &str) -> PreparedTokens {
        PreparedTokens(text.split_whitespace().map(str::to_owned).collect())
    }

    /// The bytes of memory that the tokens take.
    pub(crate) fn memory_bytes(&self) -> usize {
        let tokens = self.0.iter();
        tokens.map(|token| size_of::<String>() + token.len()).sum()
    }

    fn joined(&self) -> String {
        let tokens: Vec<&str> = self.0.iter().map(String::as_str).collect();
        tokens.join(" ")
    }

    fn shared_with(&self, query: &PreparedTokens) -> usize {
        self.0.intersection(&query.0).count()
    }
}

impl TokenIndex {
    /// Opens the index that a directory has.
    pub(crate) fn open(directory: &Path) -> Result<TokenIndex, FilesFault> {
        let path = directory.join(FILE);
        let body = read(&path)?;
        let texts = body.lines().map(|line| {
            let (id, tokens) = line.split_once(' ').unwrap();
            (id.parse().unwrap(), PreparedTokens::of(tokens))
        });
        let state = FilesState::Verifying {
            done: 0,
            total: body.len() as u64,
        };
        Ok(TokenIndex {
            texts: RwLock::new(texts.collect()),
            file: Some((path, Mutex::new(state))),
        })
    }

    /// Writes the tokens into a directory.
    pub(crate) fn save(
        &self,
        directory: &Path,
        mut keep_going: impl FnMut(FilesProgress) -> bool,
    ) -> Result<(), FilesFault> {
        let lines = self
            .texts()
            .iter()
            .map(|(id, tokens)| format!("{id} {}\n", tokens.joined()))
            .collect::<Vec<_>>();
        let body = lines.concat();
        let total = body.len() as u64;
        if !keep_going(FilesProgress { done: 0, total }) {
            return Err(FilesFault::Unusable("it was stopped".to_owned()));
        }
        let path = directory.join(FILE);
        let written = fs::write(&path, format!("{:016x}\n{body}", xxh3_64(body.as_bytes())));
        written.map_err(|error| FilesFault::System(format!("{}: {error}", path.display())))?;
        keep_going(FilesProgress { done: total, total });
        Ok(())
    }

    /// Reads the file again that the index was opened from.
    pub(crate) fn verify(&self, mut keep_going: impl FnMut(&FilesState) -> bool) -> FilesState {
        if let Some((path, state)) = &self.file
            && keep_going(&self.files_state())
        {
            let found = match read(path) {
                Ok(_) => FilesState::Verified,
                Err(error) => FilesState::Damaged(error.to_string()),
            };
            *state.lock().unwrap_or_else(PoisonError::into_inner) = found;
        }
        self.files_state()
    }

    /// The state of the file.
    pub(crate) fn files_state(&self) -> FilesState {
        match &self.file {
            Some((_, state)) => state.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            None => FilesState::Verified,
        }
    }

    /// The ids that have tokens.
    pub(crate) fn ids(&self) -> IdSet {
        self.texts().keys().copied().collect()
    }

    /// The bytes held.
    pub(crate) fn memory(&self) -> StructureMemory {
        let texts = self.texts();
        let bytes = texts.values().map(PreparedTokens::memory_bytes).sum();
        StructureMemory {
            pinned: vec![("graph", bytes)],
            mapped: 0,
        }
    }

    /// Sets the tokens of an id, or removes them.
    pub(crate) fn change(&self, id: u32, tokens: Option<&PreparedTokens>) {
        let mut texts = self.texts.write().unwrap_or_else(PoisonError::into_inner);
        match tokens {
            Some(tokens) => texts.insert(id, tokens.clone()),
            None => texts.remove(&id),
        };
    }

    /// Finds the rows that have most of the tokens of a query, and one at least.
    pub(crate) fn search<'a>(
        &self,
        rows: &SurroundingRows<'a, PreparedValue>,
        query: &str,
        search: &IndexSearch<'a>,
    ) -> Result<RankedRows<'a>, StructureError> {
        let query = PreparedTokens::of(query);
        let selection = RowSelection::new(rows.keys, search.filter, search.now_s, false);
        selection.hold();
        let now = rows.fresh.now();
        let newest = now.newest();
        let mut texts = self.texts().clone();
        texts.retain(|id, _| !newest.ids.contains(*id));
        let fresh = newest.values.iter();
        texts.extend(fresh.filter_map(|(id, value)| Some((*id, value.as_tokens()?.clone()))));
        let answer = selection.at_once(|keys, admits| {
            let admitted = texts.iter().filter(|(id, _)| admits(**id));
            let counted = admitted.map(|(id, tokens)| (tokens.shared_with(&query), *id));
            let mut best: Vec<(usize, u32)> = counted.filter(|(shared, _)| *shared > 0).collect();
            best.sort_by_key(|(shared, id)| (Reverse(*shared), *id));
            best.truncate(search.limit);
            let scored = best.iter().map(|(shared, id)| Ok((*id, scored(*shared))));
            let indexed = |id: u32| {
                let tokens = texts.get(&id)?;
                Some(Cow::<[u8]>::Owned(tokens.joined().into_bytes()))
            };
            rows.answer(scored, keys, search, indexed)
        })?;
        Ok(answer.found_by(ExecutedPlan {
            kind: SearchPlan::Scan,
            admitted: None,
            fresh: newest.values.len(),
            walk_given_up: false,
        }))
    }

    fn texts(&self) -> RwLockReadGuard<'_, BTreeMap<u32, PreparedTokens>> {
        self.texts.read().unwrap_or_else(PoisonError::into_inner)
    }
}

fn scored(shared: usize) -> DistanceAndScore {
    let shared = shared as f32;
    DistanceAndScore {
        distance: 1.0 / shared,
        similarity: shared,
        measured: -shared,
    }
}

/// Reads the file of a snapshot and compares it with its checksum. Returns what is after that.
fn read(path: &Path) -> Result<String, FilesFault> {
    let text = fs::read_to_string(path);
    let text = text.map_err(|error| FilesFault::System(format!("{}: {error}", path.display())))?;
    let sound = text.split_once('\n').filter(|(checksum, body)| {
        let expected = format!("{:016x}", xxh3_64(body.as_bytes()));
        **checksum == expected
    });
    let damaged = || FilesFault::Unusable(format!("{} is damaged", path.display()));
    let (_, body) = sound.ok_or_else(damaged)?;
    Ok(body.to_owned())
}

/// Reads the file of a directory and compares it with its checksum.
pub(crate) fn check_files(
    directory: &Path,
    pass: &mut dyn FnMut(u64) -> bool,
) -> Result<u64, FilesFault> {
    let body = read(&directory.join(FILE))?;
    pass(body.len() as u64);
    Ok(1)
}
