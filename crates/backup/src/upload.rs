//! A backup: the pieces of files that the location lacks, then the schema, then the manifest.
//!
//! Pieces are read and named one after another, and up to eight at a time are on their way. A name
//! that the location has is not sent. So a backup that was killed goes on where it was, and a later
//! one sends what is new. An object that has another size than was stored is sent again. A full
//! check fetches each one that is there, and sends it again if it is damaged.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use platform::aside;
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;
use tokio::time::{Duration, Instant};

use crate::chunk::{CHUNK_BYTES, ChunkCodec, object_bytes_max};
use crate::confirm;
use crate::download;
use crate::error::BackupError;
use crate::files::{self, SourceFile, SourceTree};
use crate::hooks::{TransferPace, TransferProgress};
use crate::key::ChunkDigest;
use crate::known::KnownFiles;
use crate::layout;
use crate::objects::{ObjectPut, PutOutcome, VaultObjects};
use crate::owner::{self, LeaseClaim, LocationLease};
use crate::point::{
    self, ChunkRef, MANIFEST_BYTES_MAX, PointFile, PointId, PointKind, PointManifest, PointSchema,
    PointSummary, PointTable, ServerIdentity,
};
use crate::retention;

/// Chunks that are on their way at the same time.
const IN_FLIGHT: usize = 8;

/// The pause between two writes of the memory of files.
const REMEMBER_EVERY: Duration = Duration::from_secs(30);

/// The files of a backup, and what to say about them.
#[derive(Clone, Debug)]
pub struct BackupSource<'a> {
    /// The server that makes the backup.
    pub server: ServerIdentity,
    /// A folder for the state of locations, which is made if it is missing. Locations share it.
    pub state_dir: &'a Path,
    /// The folder of the files, which don't change meanwhile: a checkpoint.
    pub root: &'a Path,
    /// The schema of each keyspace, as CQL.
    pub schema: Vec<(String, String)>,
    /// The tables.
    pub tables: Vec<PointTable>,
    /// The kind of the files.
    pub kind: PointKind,
    /// Whether the location is taken from its owner.
    pub take_over: bool,
    /// Whether files that haven't changed are read, too, and their chunks in the location, so that
    /// those that are damaged are sent again.
    pub full_check: bool,
    /// The version of Annulus.
    pub version: String,
    /// The time of the checkpoint, in microseconds since the epoch.
    pub taken_at_micros: i64,
}

/// A backup's work, before it is done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupPlan {
    /// Files of the point.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Chunks that the location lacks or has damaged.
    pub send_objects: u64,
    /// Their bytes, before compression.
    pub send_bytes: u64,
    /// Points that the location has now.
    pub points: u64,
    /// The points that retention would delete after the backup.
    pub would_delete: Vec<PointId>,
}

/// The parts of an open location that a backup needs.
#[derive(Clone, Copy)]
pub struct UploadTarget<'a> {
    /// Its objects.
    pub objects: &'a Arc<VaultObjects>,
    /// How contents become objects.
    pub codec: &'a Arc<ChunkCodec>,
}

/// Makes a backup, and returns its point with the lease that it took.
pub async fn back_up(
    target: UploadTarget<'_>,
    source: BackupSource<'_>,
    progress: &dyn TransferProgress,
    pace: &dyn TransferPace,
) -> Result<(PointSummary, LocationLease), BackupError> {
    let objects = target.objects;
    let state = owner::state_of(objects.location(), source.state_dir);
    let claim = LeaseClaim {
        server: &source.server,
        state: &state,
        take_over: source.take_over,
    };
    let lease = owner::take(objects, target.codec.key(), claim).await?;
    let points = retention::points(objects).await?;
    let id = PointId::after(points.first(), source.taken_at_micros, rand::random());
    let mut upload = Upload::new(target, &source, &state, progress, pace).await?;
    upload.is_sending = true;
    let tree = tree(source.root, progress).await?;
    let read = upload.all(&tree).await;
    // What was read is remembered even if the backup goes on another time.
    let remembered = upload.remember(read.is_ok()).await;
    let read = read?;
    remembered?;
    let schema = upload.schema(&id, &source.schema).await?;
    let manifest = PointManifest {
        id,
        kind: source.kind,
        version: source.version,
        taken_at_micros: source.taken_at_micros,
        server: source.server,
        tables: source.tables,
        folders: tree.folders,
        files: read,
        schema,
        sent_bytes: upload.sent_bytes,
        sent_objects: upload.sent_objects,
    };
    owner::check_lease(objects, &lease).await?;
    finish(target, &manifest).await?;
    confirm::confirm(objects, target.codec, &manifest, &lease, &upload.known).await?;
    Ok((manifest.summary(), lease))
}

/// Writes the manifest, which makes the point.
async fn finish(target: UploadTarget<'_>, manifest: &PointManifest) -> Result<(), BackupError> {
    let object = layout::manifest(&manifest.id);
    let bytes = Bytes::from(point::write(manifest, target.codec)?);
    let created = target
        .objects
        .put(&object, bytes.clone(), ObjectPut::Create);
    match created.await? {
        PutOutcome::Stored => return Ok(()),
        PutOutcome::Lacking => {
            let replaced = target
                .objects
                .put(&object, bytes.clone(), ObjectPut::Replace);
            replaced.await?;
        }
        PutOutcome::Conflict => {}
    }
    // An answer that was lost may have been that of a success.
    let most = object_bytes_max(MANIFEST_BYTES_MAX);
    let found = target.objects.get(&object, most).await?;
    match found {
        Some(found) if found.bytes == bytes => Ok(()),
        _ => Err(BackupError::Damaged {
            location: target.objects.location().to_string(),
            object,
            problem: "it is not what was just written: make the backup again".to_owned(),
        }),
    }
}

/// Says what a backup would do.
pub async fn plan(
    target: UploadTarget<'_>,
    source: &BackupSource<'_>,
    progress: &dyn TransferProgress,
    pace: &dyn TransferPace,
) -> Result<BackupPlan, BackupError> {
    let state = owner::state_of(target.objects.location(), source.state_dir);
    let claim = LeaseClaim {
        server: &source.server,
        state: &state,
        take_over: source.take_over,
    };
    owner::check(target.objects, target.codec.key(), claim).await?;
    let mut upload = Upload::new(target, source, &state, progress, pace).await?;
    let tree = tree(source.root, progress).await?;
    let files = upload.all(&tree).await?;
    Ok(BackupPlan {
        files: files.len() as u64,
        bytes: files.iter().map(|file| file.bytes).sum(),
        send_objects: upload.missing_objects,
        send_bytes: upload.missing_bytes,
        ..BackupPlan::default()
    })
}

/// A chunk after the location was looked at. `stored` are the bytes of its object.
enum PresentChunk {
    /// The location has it undamaged.
    Found { chunk: ChunkRef, stored: u64 },
    /// The location lacked it, or had it damaged. It was sent, unless nothing is.
    Lacking {
        chunk: ChunkRef,
        stored: Option<u64>,
    },
}

/// The state of a backup that runs.
struct Upload<'a> {
    target: UploadTarget<'a>,
    progress: &'a dyn TransferProgress,
    pace: &'a dyn TransferPace,
    known: KnownFiles,
    remembered: Instant,
    full_check: bool,
    is_sending: bool,
    /// Names that the location has, or that are on their way to it.
    present: HashSet<ChunkDigest>,
    /// Names that the location has, whose objects are still to be checked.
    unchecked: HashSet<ChunkDigest>,
    sending: JoinSet<Result<PresentChunk, BackupError>>,
    missing_objects: u64,
    missing_bytes: u64,
    sent_objects: u64,
    sent_bytes: u64,
}

impl<'a> Upload<'a> {
    async fn new(
        target: UploadTarget<'a>,
        source: &BackupSource<'_>,
        state: &Path,
        progress: &'a dyn TransferProgress,
        pace: &'a dyn TransferPace,
    ) -> Result<Upload<'a>, BackupError> {
        let key_id = target.codec.key().map(|key| key.id.as_str());
        let mut known = KnownFiles::read(state, key_id);
        let listed = target.objects.list(layout::DATA).await?;
        let listed = listed.into_iter().filter_map(|(object, bytes)| {
            let digest: ChunkDigest = layout::digest_of(&object)?.parse().ok()?;
            Some((digest, bytes))
        });
        let listed: HashMap<ChunkDigest, u64> = listed.collect();
        known.forget_stored_but(&listed);
        let whole = listed.into_iter();
        let whole = whole.filter(|(digest, bytes)| known.may_be_whole(digest, *bytes));
        let whole: HashSet<ChunkDigest> = whole.map(|(digest, _)| digest).collect();
        let (present, unchecked) = match source.full_check {
            true => (HashSet::new(), whole),
            false => (whole, HashSet::new()),
        };
        Ok(Upload {
            target,
            progress,
            pace,
            known,
            remembered: Instant::now(),
            full_check: source.full_check,
            is_sending: false,
            present,
            unchecked,
            sending: JoinSet::new(),
            missing_objects: 0,
            missing_bytes: 0,
            sent_objects: 0,
            sent_bytes: 0,
        })
    }

    /// Reads all files as far as needed, and sends the pieces that are missing.
    async fn all(&mut self, tree: &SourceTree) -> Result<Vec<PointFile>, BackupError> {
        let mut read = Vec::with_capacity(tree.files.len());
        for file in &tree.files {
            let chunks = self.file(file).await?;
            self.known.remember(file, &chunks);
            if self.remembered.elapsed() > REMEMBER_EVERY {
                self.remember(false).await?;
                self.remembered = Instant::now();
            }
            read.push(PointFile {
                path: file.path.clone(),
                bytes: file.stamp.bytes,
                chunks,
            });
        }
        self.wait_below(1).await?;
        Ok(read)
    }

    async fn remember(&mut self, are_all_seen: bool) -> Result<(), BackupError> {
        let (file, text) = self.known.text(are_all_seen)?;
        let written = aside(move || files::replace(&file, &text)).await;
        written.map_err(BackupError::thread)?
    }

    /// The pieces of a file, all of which are there or on their way.
    async fn file(&mut self, file: &SourceFile) -> Result<Vec<ChunkRef>, BackupError> {
        let known = self.known.chunks(file).filter(|_| !self.full_check);
        if let Some(known) = known
            && let Some(chunks) = self.pieces(file, Some(&known[..])).await?
        {
            return Ok(chunks);
        }
        let chunks = self.pieces(file, None).await?;
        chunks.ok_or_else(|| changed(file))
    }

    /// Goes over the pieces of a file. Those that are known and present are not read. `None` if one
    /// that was read is not as it is known.
    async fn pieces(
        &mut self,
        file: &SourceFile,
        known: Option<&[ChunkRef]>,
    ) -> Result<Option<Vec<ChunkRef>>, BackupError> {
        let mut opened: Option<Arc<File>> = None;
        let mut chunks = Vec::new();
        for (index, start) in (0..file.stamp.bytes).step_by(step()).enumerate() {
            if !self.progress.is_wanted() {
                return Err(BackupError::Stopped);
            }
            let expected = known.and_then(|known| known.get(index)).copied();
            let present = expected.filter(|chunk| self.present.contains(&chunk.digest));
            if let Some(chunk) = present {
                chunks.push(chunk);
                self.progress.done(chunk.bytes, 0);
                continue;
            }
            let bytes = CHUNK_BYTES.min(file.stamp.bytes - start);
            self.pace.before(bytes).await;
            let reader = match &opened {
                Some(reader) => Arc::clone(reader),
                None => {
                    let reader = File::open(&file.full).map_err(BackupError::file(&file.full))?;
                    Arc::clone(opened.insert(Arc::new(reader)))
                }
            };
            let codec = Arc::clone(self.target.codec);
            let (digest, content) = read_piece(codec, file, reader, start, bytes).await?;
            if expected.is_some_and(|expected| expected.digest != digest) {
                return Ok(None);
            }
            chunks.push(ChunkRef { digest, bytes });
            self.send(digest, content).await?;
        }
        if let Some(reader) = opened {
            let metadata = reader.metadata().map_err(BackupError::file(&file.full))?;
            if metadata.len() != file.stamp.bytes {
                return Err(changed(file));
            }
        }
        Ok(Some(chunks))
    }

    /// Sends a piece, if the location lacks it or has it damaged.
    async fn send(&mut self, digest: ChunkDigest, content: Vec<u8>) -> Result<(), BackupError> {
        let bytes = content.len() as u64;
        if !self.present.insert(digest) {
            self.progress.done(bytes, 0);
            return Ok(());
        }
        self.progress.done(bytes, 0);
        self.wait_below(IN_FLIGHT).await?;
        let is_there = self.unchecked.remove(&digest);
        if is_there {
            self.pace.before(bytes).await;
        }
        let objects = Arc::clone(self.target.objects);
        let codec = Arc::clone(self.target.codec);
        let (chunk, is_sending) = (ChunkRef { digest, bytes }, self.is_sending);
        self.sending.spawn(async move {
            if is_there && let Some(stored) = whole(&objects, &codec, chunk).await? {
                return Ok(PresentChunk::Found { chunk, stored });
            }
            let stored = match is_sending {
                true => Some(put(&objects, codec, digest, content).await?),
                false => None,
            };
            Ok(PresentChunk::Lacking { chunk, stored })
        });
        Ok(())
    }

    /// Waits until fewer chunks are on their way.
    async fn wait_below(&mut self, number: usize) -> Result<(), BackupError> {
        while self.sending.len() >= number
            && let Some(sent) = self.sending.join_next().await
        {
            match sent.map_err(BackupError::thread)?? {
                PresentChunk::Found { chunk, stored } => {
                    self.progress.done(0, stored);
                    self.known.remember_stored(chunk.digest, stored);
                }
                PresentChunk::Lacking { chunk, stored } => {
                    self.missing_objects += 1;
                    self.missing_bytes += chunk.bytes;
                    if let Some(stored) = stored {
                        self.sent(stored);
                        self.known.remember_stored(chunk.digest, stored);
                    }
                }
            }
        }
        Ok(())
    }

    fn sent(&mut self, bytes: u64) {
        self.sent_objects += 1;
        self.sent_bytes += bytes;
        self.progress.done(0, bytes);
    }

    async fn schema(
        &mut self,
        id: &PointId,
        texts: &[(String, String)],
    ) -> Result<Vec<PointSchema>, BackupError> {
        let mut schema = Vec::with_capacity(texts.len());
        for (keyspace, text) in texts {
            let codec = self.target.codec;
            let object = layout::schema(id, keyspace);
            let content = text.as_bytes().to_vec();
            schema.push(PointSchema {
                keyspace: keyspace.clone(),
                object: object.clone(),
                bytes: content.len() as u64,
                digest: codec.digest(&content),
            });
            let bytes = match codec.key() {
                Some(_) => codec.encode(&object, content)?,
                None => content,
            };
            let bytes = Bytes::from(bytes);
            let length = bytes.len() as u64;
            let put = self.target.objects.put(&object, bytes, ObjectPut::Replace);
            put.await?;
            self.sent(length);
        }
        Ok(schema)
    }
}

/// The bytes of a chunk's object, if it is there undamaged.
async fn whole(
    objects: &VaultObjects,
    codec: &Arc<ChunkCodec>,
    chunk: ChunkRef,
) -> Result<Option<u64>, BackupError> {
    match download::content(objects, codec, chunk).await {
        Ok((_, stored)) => Ok(Some(stored)),
        Err(BackupError::Missing { .. }) => Ok(None),
        Err(error @ BackupError::Damaged { .. }) => {
            tracing::warn!("{error}: it is made again of the file");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// Writes the object of a chunk, and returns its bytes.
async fn put(
    objects: &VaultObjects,
    codec: Arc<ChunkCodec>,
    digest: ChunkDigest,
    content: Vec<u8>,
) -> Result<u64, BackupError> {
    let name = digest.to_string();
    let object = layout::chunk(&name);
    let encoded = aside(move || codec.encode(&name, content)).await;
    let encoded = Bytes::from(encoded.map_err(BackupError::thread)??);
    let bytes = encoded.len() as u64;
    objects.put(&object, encoded, ObjectPut::Replace).await?;
    Ok(bytes)
}

/// Finds all files.
async fn tree(root: &Path, progress: &dyn TransferProgress) -> Result<SourceTree, BackupError> {
    let root = root.to_owned();
    let tree = aside(move || files::walk(&root)).await;
    let tree = tree.map_err(BackupError::thread)??;
    progress.set_total(tree.files.iter().map(|file| file.stamp.bytes).sum());
    Ok(tree)
}

/// Reads so many bytes of a file, and names them.
async fn read_piece(
    codec: Arc<ChunkCodec>,
    file: &SourceFile,
    reader: Arc<File>,
    start: u64,
    bytes: u64,
) -> Result<(ChunkDigest, Vec<u8>), BackupError> {
    let length = usize::try_from(bytes).unwrap_or(usize::MAX);
    let read = aside(move || {
        let mut content = vec![0; length];
        reader.read_exact_at(&mut content, start)?;
        Ok::<_, std::io::Error>((codec.digest(&content), content))
    });
    let read = read.await.map_err(BackupError::thread)?;
    read.map_err(|error| match error.kind() {
        std::io::ErrorKind::UnexpectedEof => changed(file),
        _ => BackupError::file(&file.full)(error),
    })
}

/// Bytes of a piece, as a step.
fn step() -> usize {
    usize::try_from(CHUNK_BYTES).unwrap_or(usize::MAX)
}

fn changed(file: &SourceFile) -> BackupError {
    BackupError::SourceFile {
        path: file.full.clone(),
        problem: "it has changed while it was read: make the backup of a checkpoint",
    }
}
