//! A store in memory that fails as a plan says, and counts what it was sent.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use object_store::client::{HttpError, HttpErrorKind};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use parking_lot::Mutex;

/// The faults of a store. Each number counts operations from 1.
#[derive(Clone, Debug, Default)]
pub struct FaultPlan {
    /// Operations after this number fail for good, as if the client had been killed.
    pub killed_after: Option<u64>,
    /// Each operation whose number is a multiple fails for now.
    pub broken_every: Option<u64>,
    /// Each read whose number is a multiple gives only half of its object.
    pub torn_every: Option<u64>,
    /// Each operation whose number is a multiple gets no answer.
    pub stuck_every: Option<u64>,
    /// Whether the credentials are refused.
    pub is_denied: bool,
    /// The change that someone else makes to an object meanwhile.
    pub meddling: Option<Meddling>,
}

/// Just before an operation someone else writes an object, or removes it.
#[derive(Clone, Debug)]
pub struct Meddling {
    /// The number of the operation.
    pub at: u64,
    /// The name of the object.
    pub object: String,
    /// Its new bytes. `None`: it is removed.
    pub bytes: Option<Vec<u8>>,
}

#[derive(Debug, Default)]
struct FaultState {
    plan: Mutex<FaultPlan>,
    operations: Mutex<u64>,
    puts: Mutex<Vec<String>>,
}

impl FaultState {
    /// Begins an operation. Returns whether its body is to be torn.
    async fn enter(&self, path: &str) -> Result<bool> {
        let number = {
            let mut operations = self.operations.lock();
            *operations += 1;
            *operations
        };
        let plan = self.plan.lock().clone();
        let hits = |every: Option<u64>| every.is_some_and(|every| number.is_multiple_of(every));
        if hits(plan.stuck_every) {
            std::future::pending::<()>().await;
        }
        if plan.is_denied {
            return Err(Error::PermissionDenied {
                path: path.to_owned(),
                source: "AccessDenied".into(),
            });
        }
        if plan.killed_after.is_some_and(|last| number > last) {
            return Err(Error::Generic {
                store: "killed",
                source: "killed".into(),
            });
        }
        if hits(plan.broken_every) {
            let reset = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
            return Err(Error::Generic {
                store: "broken",
                source: Box::new(HttpError::new(HttpErrorKind::Interrupted, reset)),
            });
        }
        Ok(hits(plan.torn_every))
    }
}

/// A store that fails.
#[derive(Clone, Debug, Default)]
pub struct FaultyStore {
    /// The store without faults.
    pub inner: Arc<InMemory>,
    state: Arc<FaultState>,
}

impl FaultyStore {
    /// Sets the faults, and counts operations from the beginning.
    pub fn fail(&self, plan: FaultPlan) {
        *self.state.operations.lock() = 0;
        *self.state.plan.lock() = plan;
    }

    /// Begins an operation. Returns whether its body is to be torn.
    async fn enter(&self, path: &str) -> Result<bool> {
        let entered = self.state.enter(path).await;
        let meddling = self.state.plan.lock().meddling.clone();
        if let Some(meddling) = meddling.filter(|meddling| meddling.at == self.operations()) {
            match meddling.bytes {
                Some(bytes) => self.replace(&meddling.object, bytes).await,
                None => self.remove(&meddling.object).await,
            }
        }
        entered
    }

    /// Operations since the faults were set.
    pub fn operations(&self) -> u64 {
        *self.state.operations.lock()
    }

    /// The chunks that were written since the last call.
    pub fn sent_chunks(&self) -> Vec<String> {
        let puts = std::mem::take(&mut *self.state.puts.lock());
        puts.into_iter()
            .filter(|path| path.starts_with("data/"))
            .collect()
    }

    /// Names of all objects, sorted.
    pub async fn names(&self) -> Vec<String> {
        let listed = self.inner.list(None);
        let names = listed.map(|object| object.unwrap().location.to_string());
        let mut names: Vec<String> = names.collect().await;
        names.sort();
        names
    }

    /// The bytes of an object.
    pub async fn bytes(&self, name: &str) -> Vec<u8> {
        let path = Path::from(name);
        let found = self.inner.get_opts(&path, GetOptions::default());
        found.await.unwrap().bytes().await.unwrap().to_vec()
    }

    /// Replaces an object.
    pub async fn replace(&self, name: &str, bytes: Vec<u8>) {
        let path = Path::from(name);
        let put = self
            .inner
            .put_opts(&path, bytes.into(), PutOptions::default());
        put.await.unwrap();
    }

    /// Removes an object.
    pub async fn remove(&self, name: &str) {
        let path = Path::from(name);
        let mut removed = self.inner.delete_stream(stream::iter([Ok(path)]).boxed());
        removed.next().await.unwrap().unwrap();
    }
}

impl fmt::Display for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FaultyStore")
    }
}

#[async_trait]
impl ObjectStore for FaultyStore {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.enter(location.as_ref()).await?;
        let stored = self.inner.put_opts(location, payload, options).await?;
        self.state.puts.lock().push(location.to_string());
        Ok(stored)
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let is_torn = self.enter(location.as_ref()).await?;
        let found = self.inner.get_opts(location, options).await?;
        if !is_torn {
            return Ok(found);
        }
        let (meta, range) = (found.meta.clone(), found.range.clone());
        let (attributes, extensions) = (found.attributes.clone(), found.extensions.clone());
        let bytes = found.bytes().await?;
        let half = bytes.slice(..bytes.len() / 2);
        Ok(GetResult {
            payload: GetResultPayload::Stream(stream::iter([Ok(half)]).boxed()),
            meta,
            range,
            attributes,
            extensions,
        })
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        let store = self.clone();
        let deleted = locations.then(move |path| {
            let store = store.clone();
            async move {
                let path = path?;
                store.enter(path.as_ref()).await?;
                let one = stream::iter([Ok(path.clone())]).boxed();
                let mut deleted = store.inner.delete_stream(one);
                deleted.next().await.unwrap_or(Ok(path))
            }
        });
        deleted.boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let store = self.clone();
        let prefix = prefix.cloned();
        let listed = stream::once(async move {
            match store.enter("list").await {
                Ok(_) => store.inner.list(prefix.as_ref()),
                Err(error) => stream::iter([Err(error)]).boxed(),
            }
        });
        listed.flatten().boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
