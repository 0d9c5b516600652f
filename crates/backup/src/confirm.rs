//! The last look at a new point: its objects are listed once more, after its manifest is written.
//!
//! Another server that takes the location over deletes what no manifest names that it has seen. It
//! may have done so while this one was slow. Once the manifest is there and the lease is still this
//! server's, a later owner sees the manifest.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::chunk::ChunkCodec;
use crate::download;
use crate::error::BackupError;
use crate::key::ChunkDigest;
use crate::known::KnownFiles;
use crate::layout;
use crate::objects::VaultObjects;
use crate::owner::{self, LocationLease};
use crate::point::{ChunkRef, PointManifest};
use crate::verify;

/// Checks that the location has all that a point names, and that it is still leased. If not, the
/// manifest is deleted, so that no such point is shown.
pub async fn confirm(
    objects: &Arc<VaultObjects>,
    codec: &Arc<ChunkCodec>,
    manifest: &PointManifest,
    lease: &LocationLease,
    known: &KnownFiles,
) -> Result<(), BackupError> {
    let mut confirmed = look(objects, codec, manifest, known).await;
    if confirmed.is_ok() {
        confirmed = owner::check_lease(objects, lease).await;
    }
    if let Err(
        BackupError::Missing { .. } | BackupError::Damaged { .. } | BackupError::TakenOver { .. },
    ) = &confirmed
    {
        let object = layout::manifest(&manifest.id);
        if let Err(error) = objects.delete(&[object]).await {
            tracing::warn!(
                "the point {}, which is not whole, is left: {error}",
                manifest.id
            );
        }
    }
    confirmed
}

/// Looks for chunks and schemas in lists. What is not there as it was stored is read: a list may
/// be late.
async fn look(
    objects: &Arc<VaultObjects>,
    codec: &Arc<ChunkCodec>,
    manifest: &PointManifest,
    known: &KnownFiles,
) -> Result<(), BackupError> {
    let chunks = manifest.files.iter().flat_map(|file| &file.chunks);
    let chunks = chunks.map(|chunk| (chunk.digest, *chunk));
    let mut unseen: HashMap<ChunkDigest, ChunkRef> = chunks.collect();
    for (object, bytes) in objects.list(layout::DATA).await? {
        let digest = layout::digest_of(&object).and_then(|digest| digest.parse().ok());
        if let Some(digest) = digest
            && known.may_be_whole(&digest, bytes)
        {
            unseen.remove(&digest);
        }
    }
    for chunk in unseen.into_values() {
        download::content(objects, codec, chunk).await?;
    }
    let listed = objects.list(&layout::schemas(&manifest.id)).await?;
    let listed: HashSet<String> = listed.into_iter().map(|(object, _)| object).collect();
    let schemas = manifest.schema.iter();
    for schema in schemas.filter(|schema| !listed.contains(&schema.object)) {
        verify::schema_text(objects, codec, schema).await?;
    }
    Ok(())
}
