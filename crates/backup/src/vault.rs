//! An opened location, and its operations.

use std::path::Path;
use std::sync::Arc;

use object_store::ObjectStore;
use parking_lot::Mutex;

use crate::chunk::ChunkCodec;
use crate::download::{self, DownloadReport, FileSelection};
use crate::error::BackupError;
use crate::hooks::{FullPace, NoProgress, TransferPace, TransferProgress};
use crate::key::VaultKey;
use crate::location::{LocationAccess, LocationOptions, LocationText};
use crate::objects::VaultObjects;
use crate::owner::{self, LocationLease};
use crate::point::{PointId, PointManifest, PointSummary};
use crate::provider::StoreProvider;
use crate::retention::{self, RetentionReport};
use crate::retry::RetryPolicy;
use crate::upload::{self, BackupPlan, BackupSource, UploadTarget};
use crate::verify::{self, VerifyReport};

/// Points that an error names.
const NAMED_POINTS: usize = 5;

/// An opened location. Clones share all.
///
/// Each operation reads the environment and the file of credentials again. Its requests are tried
/// again while that may help ([`RetryPolicy`]).
#[derive(Clone)]
pub struct BackupLocation {
    objects: Arc<VaultObjects>,
    codec: Arc<ChunkCodec>,
    /// That of the last backup by this value, and its point.
    lease: Arc<Mutex<Option<(LocationLease, PointId)>>>,
}

impl std::fmt::Debug for BackupLocation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let location = self.objects.location().to_string();
        f.debug_tuple("BackupLocation").field(&location).finish()
    }
}

impl BackupLocation {
    /// Opens a location, and checks that it can be reached and that the key is its own.
    ///
    /// # Errors
    /// If an option can't be used, the store refuses or can't be reached, or the location is none
    /// and is to be read.
    pub async fn open(
        options: &LocationOptions,
        access: LocationAccess,
    ) -> Result<BackupLocation, BackupError> {
        let of = options.clone();
        let provider = platform::aside(move || StoreProvider::new(&of, access)).await;
        let provider = provider.map_err(BackupError::thread)??;
        BackupLocation::of(provider, options, access, RetryPolicy::default()).await
    }

    /// Opens a location whose objects are in such a store, below its root. The place in `options`
    /// is a name only.
    ///
    /// # Errors
    /// As of [`open`](Self::open).
    pub async fn open_in(
        store: Arc<dyn ObjectStore>,
        options: &LocationOptions,
        access: LocationAccess,
        retries: RetryPolicy,
    ) -> Result<BackupLocation, BackupError> {
        BackupLocation::of(StoreProvider::Given(store), options, access, retries).await
    }

    async fn of(
        provider: StoreProvider,
        options: &LocationOptions,
        access: LocationAccess,
        retries: RetryPolicy,
    ) -> Result<BackupLocation, BackupError> {
        let key = match options.key_file.clone() {
            Some(file) => {
                let read = platform::aside(move || VaultKey::read(&file)).await;
                Some(read.map_err(BackupError::thread)??)
            }
            None => None,
        };
        let location = options.location.clone();
        let objects = VaultObjects::new(location, provider, retries).await?;
        match owner::marker(&objects).await {
            Ok(Some((marker, _))) => marker.check_key(&options.location, key.as_ref())?,
            Ok(None) if access == LocationAccess::Read => {
                return Err(BackupError::NotALocation {
                    location: options.location.to_string(),
                });
            }
            // Points can be read without it. A verification names it, and a backup refuses it.
            Ok(None) | Err(BackupError::Damaged { .. }) => {}
            Err(error) => return Err(error),
        }
        Ok(BackupLocation {
            objects: Arc::new(objects),
            codec: Arc::new(ChunkCodec::new(key, options.compression)),
            lease: Arc::default(),
        })
    }

    /// The location.
    #[must_use]
    pub fn location(&self) -> &LocationText {
        self.objects.location()
    }

    /// All complete points, newest first. Of a point whose manifest can't be read the problem is
    /// shown.
    ///
    /// # Errors
    /// If the store refuses or can't be reached.
    pub async fn list(&self) -> Result<Vec<PointSummary>, BackupError> {
        self.objects.renew().await?;
        let mut summaries = Vec::new();
        for id in retention::points(&self.objects).await? {
            let summary = match retention::manifest(&self.objects, &self.codec, &id).await {
                Ok(manifest) => manifest.summary(),
                Err(
                    error @ (BackupError::Damaged { .. }
                    | BackupError::LaterFormat { .. }
                    | BackupError::Missing { .. }),
                ) => PointSummary::damaged(id, error.to_string()),
                Err(error) => return Err(error),
            };
            summaries.push(summary);
        }
        Ok(summaries)
    }

    /// The manifest of a point; `None` for the newest.
    ///
    /// # Errors
    /// If there is no such point, its manifest is damaged, or the store refuses or can't be
    /// reached.
    pub async fn point(&self, id: Option<&PointId>) -> Result<PointManifest, BackupError> {
        self.objects.renew().await?;
        let id = self.chosen(id).await?;
        retention::manifest(&self.objects, &self.codec, &id).await
    }

    async fn chosen(&self, id: Option<&PointId>) -> Result<PointId, BackupError> {
        let points = retention::points(&self.objects).await?;
        let location = || self.location().to_string();
        let Some(newest) = points.first() else {
            return Err(BackupError::NoPoints {
                location: location(),
            });
        };
        match id {
            None => Ok(newest.clone()),
            Some(id) if points.contains(id) => Ok(id.clone()),
            Some(id) => {
                let named = points.iter().take(NAMED_POINTS).map(PointId::to_string);
                let named = named.collect::<Vec<_>>().join(", ");
                Err(BackupError::NoSuchPoint {
                    location: location(),
                    id: id.to_string(),
                    known: format!("the newest are {named}"),
                })
            }
        }
    }

    /// The schemas of a point: keyspaces and their CQL.
    ///
    /// # Errors
    /// If one is damaged, or the store refuses or can't be reached.
    pub async fn schema(
        &self,
        point: &PointManifest,
    ) -> Result<Vec<(String, String)>, BackupError> {
        self.objects.renew().await?;
        let mut texts = Vec::with_capacity(point.schema.len());
        for schema in &point.schema {
            let text = verify::schema_text(&self.objects, &self.codec, schema).await?;
            texts.push((schema.keyspace.clone(), text));
        }
        Ok(texts)
    }

    /// Makes a backup. Chunks that the location has are not sent. After an error or a kill the next
    /// one goes on from there; without its end there is no point.
    ///
    /// # Errors
    /// If the location belongs to another server, the source can't be read, the store refuses or
    /// can't be reached, or the caller stops it.
    pub async fn back_up(
        &self,
        source: BackupSource<'_>,
        progress: &dyn TransferProgress,
        pace: &dyn TransferPace,
    ) -> Result<PointSummary, BackupError> {
        self.objects.renew().await?;
        *self.lease.lock() = None;
        let (summary, lease) = upload::back_up(self.target(), source, progress, pace).await?;
        *self.lease.lock() = Some((lease, summary.id.clone()));
        Ok(summary)
    }

    fn target(&self) -> UploadTarget<'_> {
        UploadTarget {
            objects: &self.objects,
            codec: &self.codec,
        }
    }

    /// Says what a backup with such a retention would do. Nothing is written.
    ///
    /// # Errors
    /// As of [`back_up`](Self::back_up).
    pub async fn plan(
        &self,
        source: BackupSource<'_>,
        retention: Option<usize>,
    ) -> Result<BackupPlan, BackupError> {
        self.objects.renew().await?;
        let mut plan = upload::plan(self.target(), &source, &NoProgress, &FullPace).await?;
        let points = retention::points(&self.objects).await?;
        plan.points = points.len() as u64;
        if let Some(newest) = retention {
            // The backup itself will be one of the newest.
            let others = newest.saturating_sub(1);
            plan.would_delete = retention::beyond(&points, others).to_vec();
        }
        Ok(plan)
    }

    /// Brings files of a point into a directory that is missing, empty, or of an interrupted
    /// download. Of one of the same files it goes on with what is there. Each piece is verified
    /// before it is written, and what is there already before it is trusted.
    ///
    /// # Errors
    /// If an object is damaged or missing, the directory has other files or can't be written, the
    /// store refuses or can't be reached, or the caller stops it.
    pub async fn download(
        &self,
        point: &PointManifest,
        what: &FileSelection,
        target: &Path,
        progress: &dyn TransferProgress,
        pace: &dyn TransferPace,
    ) -> Result<DownloadReport, BackupError> {
        self.objects.renew().await?;
        let hooks = (progress, pace);
        download::download(&self.objects, &self.codec, point, what, target, hooks).await
    }

    /// Reads every object of one point or of all, and names each that is damaged or missing.
    ///
    /// # Errors
    /// If there is no such point, the store refuses or can't be reached, or the caller stops it.
    pub async fn verify(
        &self,
        id: Option<&PointId>,
        progress: &dyn TransferProgress,
    ) -> Result<VerifyReport, BackupError> {
        self.objects.renew().await?;
        let points = match id {
            Some(_) => vec![self.chosen(id).await?],
            None => retention::points(&self.objects).await?,
        };
        verify::verify(&self.objects, &self.codec, &points, progress).await
    }

    /// Deletes the points beyond the newest so many, and what no other point names. It follows a
    /// [`back_up`](Self::back_up) of this value or of a clone, whose point remains in any case.
    ///
    /// # Errors
    /// If no backup went before, another server has taken the location since, `newest` is 0, a
    /// manifest that remains can't be read, or the store refuses or can't be reached.
    pub async fn retain(&self, newest: usize) -> Result<RetentionReport, BackupError> {
        self.objects.renew().await?;
        let lease = self.lease.lock().clone();
        let (lease, own) = lease.ok_or_else(|| BackupError::NoLease {
            location: self.location().to_string(),
        })?;
        retention::retain(&self.objects, &self.codec, &lease, &own, newest).await
    }
}
