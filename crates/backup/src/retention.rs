//! The end of old points: their manifests first, then what no remaining manifest names.
//!
//! Chunks are deleted only after all manifests that remain have been read whole. A manifest that
//! can't be read ends the sweep, as its chunks are not known. A kill leaves chunks without a
//! manifest, which the next sweep deletes.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use crate::chunk::ChunkCodec;
use crate::error::BackupError;
use crate::key::ChunkDigest;
use crate::layout;
use crate::objects::VaultObjects;
use crate::owner::{self, LocationLease};
use crate::point::{self, PointId, PointManifest};

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
    let Some(found) = objects.get(&object).await? else {
        return Err(BackupError::Missing { location, object });
    };
    point::read(&location, id, &found.bytes, codec)
}

/// The points beyond the newest so many. `points` is newest first.
pub fn beyond(points: &[PointId], newest: usize) -> &[PointId] {
    points.get(newest..).unwrap_or_default()
}

/// Deletes the points beyond the newest so many, and what no other point names.
pub async fn retain(
    objects: &VaultObjects,
    codec: &ChunkCodec,
    lease: &LocationLease,
    newest: usize,
) -> Result<RetentionReport, BackupError> {
    if newest == 0 {
        return Err(BackupError::RetentionOfNone);
    }
    let points = points(objects).await?;
    let old = beyond(&points, newest);
    let remaining = &points[..points.len() - old.len()];
    let mut named = HashSet::new();
    for id in remaining {
        let manifest = manifest(objects, codec, id).await?;
        let chunks = manifest.files.iter().flat_map(|file| &file.chunks);
        named.extend(chunks.map(|chunk| chunk.digest));
    }
    // Another server may have taken the location during the reads.
    owner::check_lease(objects, lease).await?;
    let manifests: Vec<String> = old.iter().map(layout::manifest).collect();
    objects.delete(&manifests).await?;
    let unnamed = unnamed(objects, remaining, &named).await?;
    let (names, sizes): (Vec<String>, Vec<u64>) = unnamed.into_iter().unzip();
    owner::check_lease(objects, lease).await?;
    objects.delete(&names).await?;
    Ok(RetentionReport {
        deleted_points: old.to_vec(),
        remaining_points: remaining.len() as u64,
        deleted_objects: names.len() as u64,
        deleted_bytes: sizes.iter().sum(),
    })
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
