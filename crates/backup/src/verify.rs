//! Verification: every object that a point needs is read whole, and each that is damaged or missing
//! is named.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use crate::chunk::{ChunkCodec, object_bytes_max};
use crate::download;
use crate::error::BackupError;
use crate::hooks::TransferProgress;
use crate::layout::{self, MARKER};
use crate::objects::VaultObjects;
use crate::owner;
use crate::point::{ChunkRef, PointId, PointManifest, PointSchema};
use crate::retention;

/// Chunks that are read at the same time.
const IN_FLIGHT: usize = 8;

/// The findings of a verification.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerifyReport {
    /// Points that were verified.
    pub points: u64,
    /// Objects that were read.
    pub objects: u64,
    /// Their bytes, as stored.
    pub bytes: u64,
    /// The objects that are damaged or missing.
    pub problems: Vec<ObjectProblem>,
}

impl VerifyReport {
    /// Whether every object is as it was written.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.problems.is_empty()
    }

    fn read(&mut self, bytes: u64) {
        self.objects += 1;
        self.bytes += bytes;
    }
}

/// An object that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectProblem {
    /// Its name in the location.
    pub object: String,
    /// The kind of damage.
    pub kind: ProblemKind,
    /// The points that can't be restored whole.
    pub points: Vec<PointId>,
    /// The damage in words.
    pub text: String,
}

impl fmt::Display for ObjectProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            ProblemKind::Missing => "missing",
            ProblemKind::Damaged => "damaged",
        };
        write!(f, "{} is {kind}", self.object)?;
        if !self.text.is_empty() {
            write!(f, " ({})", self.text)?;
        }
        if !self.points.is_empty() {
            let points: Vec<String> = self.points.iter().map(ToString::to_string).collect();
            write!(f, ", needed by {}", points.join(", "))?;
        }
        Ok(())
    }
}

/// The kind of damage of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProblemKind {
    /// There is no such object.
    Missing,
    /// The object has other bytes than were written.
    Damaged,
}

/// Verifies points.
pub async fn verify(
    objects: &Arc<VaultObjects>,
    codec: &Arc<ChunkCodec>,
    points: &[PointId],
    progress: &dyn TransferProgress,
) -> Result<VerifyReport, BackupError> {
    let mut report = VerifyReport {
        points: points.len() as u64,
        ..VerifyReport::default()
    };
    let marker = owner::marker(objects).await;
    note(&mut report, marker.map(|_| 0), &[], MARKER)?;
    let mut chunks: BTreeMap<ChunkRef, Vec<PointId>> = BTreeMap::new();
    for id in points {
        let manifest = retention::manifest(objects, codec, id).await;
        let ids = std::slice::from_ref(id);
        let manifest = match manifest {
            Ok(manifest) => manifest,
            Err(error) => {
                note(&mut report, Err(error), ids, &layout::manifest(id))?;
                continue;
            }
        };
        report.read(0);
        for schema in &manifest.schema {
            let read = schema_text(objects, codec, schema).await;
            let bytes = read.map(|text| text.len() as u64);
            note(&mut report, bytes, ids, &schema.object)?;
        }
        name_chunks(&mut chunks, &manifest);
    }
    progress.set_total(chunks.keys().map(|chunk| chunk.bytes).sum());
    let mut reading: JoinSet<(ChunkRef, Result<u64, BackupError>)> = JoinSet::new();
    let mut waiting = chunks.keys().copied();
    loop {
        while reading.len() < IN_FLIGHT
            && let Some(chunk) = waiting.next()
        {
            let (objects, codec) = (Arc::clone(objects), Arc::clone(codec));
            reading.spawn(async move {
                let read = download::content(&objects, &codec, chunk).await;
                (chunk, read.map(|(_, stored)| stored))
            });
        }
        if !progress.is_wanted() {
            return Err(BackupError::Stopped);
        }
        let Some(read) = reading.join_next().await else {
            return Ok(report);
        };
        let (chunk, read) = read.map_err(BackupError::thread)?;
        progress.done(chunk.bytes, *read.as_ref().unwrap_or(&0));
        let points = chunks.get(&chunk).map_or(&[][..], Vec::as_slice);
        let object = layout::chunk(&chunk.digest.to_string());
        note(&mut report, read, points, &object)?;
    }
}

fn name_chunks(chunks: &mut BTreeMap<ChunkRef, Vec<PointId>>, manifest: &PointManifest) {
    for chunk in manifest.files.iter().flat_map(|file| &file.chunks) {
        let points = chunks.entry(*chunk).or_default();
        if points.last() != Some(&manifest.id) {
            points.push(manifest.id.clone());
        }
    }
}

/// Takes the reading of an object into the report. Errors that are none of the object end the
/// verification.
fn note(
    report: &mut VerifyReport,
    read: Result<u64, BackupError>,
    points: &[PointId],
    object: &str,
) -> Result<(), BackupError> {
    let (kind, text) = match read {
        Ok(bytes) => {
            report.read(bytes);
            return Ok(());
        }
        Err(BackupError::Missing { .. }) => (ProblemKind::Missing, String::new()),
        Err(BackupError::Damaged { problem, .. }) => (ProblemKind::Damaged, problem),
        Err(BackupError::LaterFormat { format, .. }) => {
            (ProblemKind::Damaged, format!("its format is {format}"))
        }
        Err(error) => return Err(error),
    };
    report.problems.push(ObjectProblem {
        object: object.to_owned(),
        kind,
        points: points.to_vec(),
        text,
    });
    Ok(())
}

/// Reads the schema of a keyspace, and verifies it.
pub async fn schema_text(
    objects: &VaultObjects,
    codec: &ChunkCodec,
    schema: &PointSchema,
) -> Result<String, BackupError> {
    let location = || objects.location().to_string();
    let most = object_bytes_max(schema.bytes);
    let Some(found) = objects.get(&schema.object, most).await? else {
        return Err(BackupError::Missing {
            location: location(),
            object: schema.object.clone(),
        });
    };
    let content = match codec.key() {
        Some(_) => codec.decode(&schema.object, &found.bytes, schema.bytes),
        None => Ok(found.bytes.to_vec()),
    };
    let text = content.and_then(|content| {
        if codec.digest(&content) != schema.digest {
            return Err("its content is not that of the manifest".to_owned());
        }
        String::from_utf8(content).map_err(|error| error.to_string())
    });
    text.map_err(|problem| BackupError::Damaged {
        location: location(),
        object: schema.object.clone(),
        problem,
    })
}
