//! The end of old points: their manifests first, then what no remaining manifest names.
//!
//! Chunks are deleted only after all manifests that remain have been read whole. A manifest that
//! can't be read ends the sweep, as its chunks are not known. A kill leaves chunks without a
//! manifest, which the next sweep deletes.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::chunk::{ChunkCodec, object_bytes_max};
use crate::error::BackupError;
use crate::key::ChunkDigest;
use crate::layout;
use crate::objects::{DELETED_AT_ONCE, VaultObjects};
use crate::owner::{self, LocationLease};
use crate::point::{self, MANIFEST_BYTES_MAX, PointId, PointManifest};

/// The points and objects that retention deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetentionReport {
    /// The points.
    pub deleted_points: Vec<PointId>,
    /// Points that remain.
    pub remaining_points: u64,
    /// Chunks and schemas that no point named.
    pub deleted_objects: u64,
    /// Their bytes, as stored.
    pub deleted_bytes: u64,
}

/// The ids of all complete points, newest first.
pub async fn points(objects: &VaultObjects) -> Result<Vec<PointId>, BackupError> {
    let listed = objects.list(layout::META).await?;
    let ids = listed.iter().filter_map(|(object, _)| {
        let id = layout::point_of(object)?;
        id.parse().ok()
    });
    let mut ids: Vec<PointId> = ids.collect();
    ids.sort_unstable();
    ids.reverse();
    Ok(ids)
}

/// Reads the manifest of a point.
pub async fn manifest(
    objects: &VaultObjects,
    codec: &ChunkCodec,
    id: &PointId,
) -> Result<PointManifest, BackupError> {
    let location = objects.location().to_string();
    let object = layout::manifest(id);
    let most = object_bytes_max(MANIFEST_BYTES_MAX);
    let Some(found) = objects.get(&object, most).await? else {
        return Err(BackupError::Missing { location, object });
    };
    point::read(&location, id, &found.bytes, codec)
}

/// The points beyond the newest so many. `points` is newest first.
pub fn beyond(points: &[PointId], newest: usize) -> &[PointId] {
    points.get(newest..).unwrap_or_default()
}

/// Deletes the points beyond the newest so many, and what no other point names. `own` is the point
/// of the lease, which remains even if others have later ids.
pub async fn retain(
    objects: &VaultObjects,
    codec: &ChunkCodec,
    lease: &LocationLease,
    own: &PointId,
    newest: usize,
) -> Result<RetentionReport, BackupError> {
    if newest == 0 {
        return Err(BackupError::RetentionOfNone);
    }
    let mut remaining = points(objects).await?;
    let mut old = beyond(&remaining, newest).to_vec();
    old.retain(|id| id != own);
    remaining.retain(|id| !old.contains(id));
    let mut named = HashSet::new();
    for id in &remaining {
        let manifest = manifest(objects, codec, id).await?;
        let chunks = manifest.files.iter().flat_map(|file| &file.chunks);
        named.extend(chunks.map(|chunk| chunk.digest));
    }
    let manifests: Vec<String> = old.iter().map(layout::manifest).collect();
    delete(objects, lease, &manifests).await?;
    let unnamed = unnamed(objects, &remaining, &named).await?;
    let (names, sizes): (Vec<String>, Vec<u64>) = unnamed.into_iter().unzip();
    delete(objects, lease, &names).await?;
    Ok(RetentionReport {
        deleted_points: old,
        remaining_points: remaining.len() as u64,
        deleted_objects: names.len() as u64,
        deleted_bytes: sizes.iter().sum(),
    })
}

/// Deletes objects in batches. Before each one the lease is checked: another server may have taken
/// the location, and its points may name them.
async fn delete(
    objects: &VaultObjects,
    lease: &LocationLease,
    names: &[String],
) -> Result<(), BackupError> {
    for batch in names.chunks(DELETED_AT_ONCE) {
        owner::check_lease(objects, lease).await?;
        objects.delete(batch).await?;
    }
    Ok(())
}

/// Schemas and chunks that no remaining point names, with their sizes.
async fn unnamed(
    objects: &VaultObjects,
    remaining: &[PointId],
    named: &HashSet<ChunkDigest>,
) -> Result<Vec<(String, u64)>, BackupError> {
    let folders: HashSet<String> = remaining.iter().map(ToString::to_string).collect();
    let mut unnamed = objects.list(layout::SCHEMA).await?;
    unnamed.retain(|(object, _)| {
        let point = object.split('/').nth(1).unwrap_or_default();
        !folders.contains(point)
    });
    let mut chunks = objects.list(layout::DATA).await?;
    // An object of another name is not ours to delete.
    chunks.retain(|(object, _)| {
        let digest = layout::digest_of(object).and_then(|digest| digest.parse().ok());
        digest.is_some_and(|digest: ChunkDigest| !named.contains(&digest))
    });
    unnamed.extend(chunks);
    Ok(unnamed)
}
