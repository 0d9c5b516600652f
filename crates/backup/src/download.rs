//! Files of a point, brought back: each piece is verified before it is written.
//!
//! A target that is not whole has the file `.annulus-download`, which names the point. A download
//! that goes on reads what is there, and fetches only pieces that are missing or damaged.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use platform::aside;
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use crate::chunk::{ChunkCodec, object_bytes_max};
use crate::error::BackupError;
use crate::files;
use crate::hooks::{TransferPace, TransferProgress};
use crate::layout;
use crate::objects::VaultObjects;
use crate::point::{ChunkRef, PointFile, PointId, PointManifest};

/// Pieces that are on their way at the same time.
const IN_FLIGHT: usize = 8;

/// The file of a target that is not whole.
const UNFINISHED: &str = ".annulus-download";

/// The files of a point that are wanted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileSelection {
    /// All.
    All,
    /// Files with these paths, and all files below folders with these paths.
    Below(Vec<String>),
}

impl FileSelection {
    /// The bytes of the files of a point that are selected.
    #[must_use]
    pub fn bytes_of(&self, point: &PointManifest) -> u64 {
        let files = point.files.iter().filter(|file| self.has(&file.path));
        files.map(|file| file.bytes).sum()
    }

    fn has(&self, path: &str) -> bool {
        match self {
            FileSelection::All => true,
            FileSelection::Below(paths) => paths.iter().any(|wanted| {
                let rest = path.strip_prefix(wanted.trim_end_matches('/'));
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            }),
        }
    }
}

/// A download's work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DownloadReport {
    /// Files that are there now.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Chunks that were fetched.
    pub fetched_objects: u64,
    /// Their bytes, as stored.
    pub fetched_bytes: u64,
    /// Bytes of files that an earlier download had brought.
    pub reused_bytes: u64,
}

/// The note in a target that is not whole.
#[derive(PartialEq, Eq, Serialize, Deserialize)]
struct UnfinishedDownload {
    point: PointId,
    what: FileSelection,
}

/// Brings files of a point into a directory that is missing, empty, or of the same download.
pub async fn download(
    objects: &Arc<VaultObjects>,
    codec: &Arc<ChunkCodec>,
    point: &PointManifest,
    what: &FileSelection,
    target: &Path,
    hooks: (&dyn TransferProgress, &dyn TransferPace),
) -> Result<DownloadReport, BackupError> {
    let wanted: Vec<&PointFile> = point
        .files
        .iter()
        .filter(|file| what.has(&file.path))
        .collect();
    let bytes = wanted.iter().map(|file| file.bytes).sum();
    hooks.0.set_total(bytes);
    let note = UnfinishedDownload {
        point: point.id.clone(),
        what: what.clone(),
    };
    let folders = folders(point, what, &wanted);
    let place = target.to_owned();
    let begun = aside(move || begin(&place, &note, &folders)).await;
    begun.map_err(BackupError::thread)??;
    let mut transfer = FileTransfer {
        objects,
        codec,
        progress: hooks.0,
        pace: hooks.1,
        fetching: JoinSet::new(),
        report: DownloadReport {
            files: wanted.len() as u64,
            bytes,
            ..DownloadReport::default()
        },
    };
    for file in &wanted {
        transfer.file(file, &target.join(&file.path)).await?;
    }
    transfer.wait_below(1).await?;
    let report = transfer.report;
    let lengths = wanted
        .iter()
        .map(|file| (target.join(&file.path), file.bytes));
    let (lengths, place) = (lengths.collect::<Vec<_>>(), target.to_owned());
    let ended = aside(move || end(&place, &lengths)).await;
    ended.map_err(BackupError::thread)??;
    Ok(report)
}

/// The folders that a target gets: those of wanted files, and empty ones that are wanted.
fn folders(
    point: &PointManifest,
    what: &FileSelection,
    wanted: &[&PointFile],
) -> BTreeSet<PathBuf> {
    let empty = point.folders.iter().filter(|folder| what.has(folder));
    let of_files = wanted
        .iter()
        .filter_map(|file| Path::new(&file.path).parent());
    let all = empty.map(Path::new).chain(of_files);
    all.map(Path::to_owned).collect()
}

/// Checks the target, and makes its folders.
fn begin(
    target: &Path,
    note: &UnfinishedDownload,
    folders: &BTreeSet<PathBuf>,
) -> Result<(), BackupError> {
    files::make_private(target)?;
    let noted = target.join(UNFINISHED);
    let in_use = || BackupError::TargetInUse {
        path: target.to_owned(),
    };
    if let Some(text) = files::read(&noted)? {
        let found: Option<UnfinishedDownload> = serde_json::from_slice(&text).ok();
        if found.as_ref() != Some(note) {
            // The note says that all of it is of a download that never ended.
            fs::remove_dir_all(target).map_err(BackupError::file(target))?;
            return begin(target, note, folders);
        }
    } else {
        let mut entries = fs::read_dir(target).map_err(BackupError::file(target))?;
        if entries.next().is_some() {
            return Err(in_use());
        }
        let text = serde_json::to_vec(note);
        let text = text.map_err(|error| BackupError::Thread(error.to_string()))?;
        files::replace(&noted, &text)?;
    }
    for folder in folders {
        files::make_private(&target.join(folder))?;
    }
    Ok(())
}

/// Gives files their lengths, waits until all is on the disk, and removes the note.
fn end(target: &Path, lengths: &[(PathBuf, u64)]) -> Result<(), BackupError> {
    let mut folders = BTreeSet::from([target]);
    for (path, length) in lengths {
        let synced = files::open_private(path).and_then(|file| {
            file.set_len(*length)?;
            file.sync_all()
        });
        synced.map_err(BackupError::file(path))?;
        let above = path.ancestors().skip(1);
        folders.extend(above.take_while(|folder| *folder != target));
    }
    for folder in folders {
        files::sync_folder(folder)?;
    }
    let noted = target.join(UNFINISHED);
    fs::remove_file(&noted).map_err(BackupError::file(&noted))?;
    files::sync_folder(target)
}

/// The state of a download that runs.
struct FileTransfer<'a> {
    objects: &'a Arc<VaultObjects>,
    codec: &'a Arc<ChunkCodec>,
    progress: &'a dyn TransferProgress,
    pace: &'a dyn TransferPace,
    fetching: JoinSet<Result<FetchedPiece, BackupError>>,
    report: DownloadReport,
}

/// A piece that was written.
struct FetchedPiece {
    bytes: u64,
    stored: u64,
}

impl FileTransfer<'_> {
    /// Begins to fetch the pieces of a file that are not there.
    async fn file(&mut self, file: &PointFile, path: &Path) -> Result<(), BackupError> {
        let there = match fs::metadata(path) {
            Ok(metadata) => metadata.len(),
            Err(_) => 0,
        };
        let mut start = 0;
        for chunk in &file.chunks {
            if !self.progress.is_wanted() {
                return Err(BackupError::Stopped);
            }
            self.pace.before(chunk.bytes).await;
            let end = start + chunk.bytes;
            let (objects, codec) = (Arc::clone(self.objects), Arc::clone(self.codec));
            let (chunk, path) = (*chunk, path.to_owned());
            if end <= there && is_there(Arc::clone(&codec), chunk, path.clone(), start).await? {
                self.report.reused_bytes += chunk.bytes;
                self.progress.done(chunk.bytes, 0);
            } else {
                self.wait_below(IN_FLIGHT).await?;
                self.fetching
                    .spawn(async move { write_piece(&objects, codec, chunk, path, start).await });
            }
            start = end;
        }
        Ok(())
    }

    async fn wait_below(&mut self, number: usize) -> Result<(), BackupError> {
        while self.fetching.len() >= number
            && let Some(fetched) = self.fetching.join_next().await
        {
            let piece = fetched.map_err(BackupError::thread)??;
            self.report.fetched_objects += 1;
            self.report.fetched_bytes += piece.stored;
            self.progress.done(piece.bytes, piece.stored);
        }
        Ok(())
    }
}

/// Whether a file has a piece already, undamaged.
async fn is_there(
    codec: Arc<ChunkCodec>,
    chunk: ChunkRef,
    path: PathBuf,
    start: u64,
) -> Result<bool, BackupError> {
    let length = usize::try_from(chunk.bytes).unwrap_or(usize::MAX);
    let compared = aside(move || {
        let mut content = vec![0; length];
        let read = File::open(&path).and_then(|file| file.read_exact_at(&mut content, start));
        read.is_ok() && codec.digest(&content) == chunk.digest
    });
    compared.await.map_err(BackupError::thread)
}

/// Fetches a chunk, verifies it and writes it to its place in a file.
async fn write_piece(
    objects: &VaultObjects,
    codec: Arc<ChunkCodec>,
    chunk: ChunkRef,
    path: PathBuf,
    start: u64,
) -> Result<FetchedPiece, BackupError> {
    let (content, stored) = content(objects, &codec, chunk).await?;
    let written = aside(move || {
        let written =
            files::open_private(&path).and_then(|file| file.write_all_at(&content, start));
        written.map_err(BackupError::file(&path))
    });
    written.await.map_err(BackupError::thread)??;
    Ok(FetchedPiece {
        bytes: chunk.bytes,
        stored,
    })
}

/// Fetches a chunk and verifies it. A damaged one is fetched once more, as the way may have damaged
/// it. Returns its content, and its bytes as stored.
pub async fn content(
    objects: &VaultObjects,
    codec: &Arc<ChunkCodec>,
    chunk: ChunkRef,
) -> Result<(Vec<u8>, u64), BackupError> {
    let name = chunk.digest.to_string();
    let object = layout::chunk(&name);
    let location = || objects.location().to_string();
    let most = object_bytes_max(chunk.bytes);
    let mut problem = String::new();
    for _ in 0..2 {
        let Some(found) = objects.get(&object, most).await? else {
            let location = location();
            return Err(BackupError::Missing { location, object });
        };
        let stored = found.bytes.len() as u64;
        let (codec, name) = (Arc::clone(codec), name.clone());
        let decoded = aside(move || {
            let content = codec.decode(&name, &found.bytes, chunk.bytes)?;
            let is_right =
                content.len() as u64 == chunk.bytes && codec.digest(&content) == chunk.digest;
            match is_right {
                true => Ok(content),
                false => Err("its content is not that of its name".to_owned()),
            }
        });
        match decoded.await.map_err(BackupError::thread)? {
            Ok(content) => return Ok((content, stored)),
            Err(damage) => problem = damage,
        }
    }
    Err(BackupError::Damaged {
        location: location(),
        object,
        problem,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selection_has_folders_and_files_but_no_others_that_begin_so() {
        let what = FileSelection::Below(vec!["db/7".to_owned(), "db/8/".to_owned()]);
        for path in ["db/7", "db/7/a", "db/8/tables/1"] {
            assert!(what.has(path), "{path}");
        }
        for path in ["db/77", "db", "db/80/a"] {
            assert!(!what.has(path), "{path}");
        }
        assert!(FileSelection::All.has("db/77"));
    }
}
