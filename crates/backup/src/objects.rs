//! Operations on objects, each with a bound on its time, and tried again while that may help.

use std::collections::BTreeSet;
use std::error::Error;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{StreamExt, TryStreamExt, stream};
use object_store::client::{HttpError, HttpErrorKind};
use object_store::path::Path as ObjectPath;
use object_store::{GetOptions, ObjectStore, PutMode, PutOptions, PutPayload, UpdateVersion};
use parking_lot::Mutex;
use platform::aside;
use tokio::time::{Instant, sleep, timeout};

use crate::error::BackupError;
use crate::exchange::{ExchangeFault, fault_in};
use crate::location::{LocationPlace, LocationText};
use crate::provider::StoreProvider;
use crate::retry::RetryPolicy;
use crate::settings::ProviderSettings;

/// Objects that one request deletes at most.
pub const DELETED_AT_ONCE: usize = 1_000;

/// Characters of a store's answer that an error shows.
const SHOWN_CHARS: usize = 500;

/// An object with its version.
#[derive(Clone, Debug)]
pub struct FoundObject {
    /// Its bytes.
    pub bytes: Bytes,
    /// Its version, for [`ObjectPut::Update`].
    pub version: UpdateVersion,
}

/// The condition of writing an object.
#[derive(Clone, Debug)]
pub enum ObjectPut {
    /// None: an object of that name is replaced.
    Replace,
    /// There is no object of that name.
    Create,
    /// The object of that name has still this version.
    Update(UpdateVersion),
}

/// How writing an object ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutOutcome {
    /// The object is written.
    Stored,
    /// The condition doesn't hold. That may also be the own attempt whose answer was lost.
    Conflict,
    /// The store knows no such condition.
    Lacking,
}

/// The judgement of a store's error.
#[derive(Debug)]
enum StoreVerdict {
    Missing,
    NoBucket,
    Conflict,
    Lacking(String),
    Denied(String),
    Transient(String),
    Permanent(String),
}

/// The end of an operation that didn't succeed.
enum StoreAnswer {
    Missing,
    Conflict,
    Lacking(String),
    Failed(BackupError),
}

/// Objects that are still to be deleted, by one attempt after another.
type ObjectsLeft = Arc<Mutex<BTreeSet<ObjectPath>>>;

struct OpenedStore {
    settings: ProviderSettings,
    store: Arc<dyn ObjectStore>,
}

/// Makes a store of the present settings; `None` if they are still these.
async fn opened(
    provider: &Arc<StoreProvider>,
    last: Option<ProviderSettings>,
) -> Result<Option<OpenedStore>, BackupError> {
    let provider = Arc::clone(provider);
    let opened = aside(move || -> Result<Option<OpenedStore>, BackupError> {
        let settings = provider.settings()?;
        if last.as_ref() == Some(&settings) {
            return Ok(None);
        }
        let store = provider.open(&settings)?;
        Ok(Some(OpenedStore { settings, store }))
    });
    opened.await.map_err(BackupError::thread)?
}

/// The objects of a location.
pub struct VaultObjects {
    location: LocationText,
    provider: Arc<StoreProvider>,
    opened: Mutex<OpenedStore>,
    retries: RetryPolicy,
    /// Whether the store has answered anything.
    has_answered: AtomicBool,
}

impl VaultObjects {
    /// Opens the store; no request is made yet.
    pub async fn new(
        location: LocationText,
        provider: StoreProvider,
        retries: RetryPolicy,
    ) -> Result<VaultObjects, BackupError> {
        let provider = Arc::new(provider);
        let store = opened(&provider, None).await?;
        let store = store.ok_or_else(|| BackupError::Thread("it opened no store".to_owned()))?;
        Ok(VaultObjects {
            location,
            provider,
            opened: Mutex::new(store),
            retries,
            has_answered: AtomicBool::new(false),
        })
    }

    /// The location.
    pub fn location(&self) -> &LocationText {
        &self.location
    }

    /// Reads the settings again. Returns whether they have changed, and the store with them.
    pub async fn renew(&self) -> Result<bool, BackupError> {
        let last = self.opened.lock().settings.clone();
        let renewed = opened(&self.provider, Some(last)).await?;
        let is_renewed = renewed.is_some();
        if let Some(renewed) = renewed {
            *self.opened.lock() = renewed;
        }
        Ok(is_renewed)
    }

    /// Reads an object of `most` bytes at most. `None` if there is none of that name. A longer one
    /// is damaged, and none of its bytes are read.
    pub async fn get(&self, object: &str, most: u64) -> Result<Option<FoundObject>, BackupError> {
        let path = ObjectPath::from(object);
        let retries = self.retries;
        let found = self.tried(object, Duration::MAX, |store| {
            let path = path.clone();
            Box::pin(async move { get_whole(&*store, &path, most, retries).await })
        });
        match found.await {
            Ok(FetchedObject::Whole(found)) => Ok(Some(found)),
            Ok(FetchedObject::TooLong(bytes)) => Err(BackupError::Damaged {
                location: self.location.to_string(),
                object: object.to_owned(),
                problem: format!("it has {bytes} bytes, and such an object {most} at most"),
            }),
            Err(StoreAnswer::Missing) => Ok(None),
            Err(answer) => Err(self.failed(object, answer)),
        }
    }

    /// The version of an object, whose bytes are not read. `None` if there is none of that name.
    pub async fn version(&self, object: &str) -> Result<Option<UpdateVersion>, BackupError> {
        let path = ObjectPath::from(object);
        let limit = self.retries.attempt;
        let found = self.tried(object, limit, |store| {
            let (path, options) = (path.clone(), GetOptions::new().with_head(true));
            Box::pin(async move { store.get_opts(&path, options).await })
        });
        match found.await {
            Ok(found) => Ok(Some(UpdateVersion {
                e_tag: found.meta.e_tag,
                version: found.meta.version,
            })),
            Err(StoreAnswer::Missing) => Ok(None),
            Err(answer) => Err(self.failed(object, answer)),
        }
    }

    /// Writes an object.
    pub async fn put(
        &self,
        object: &str,
        bytes: Bytes,
        condition: ObjectPut,
    ) -> Result<PutOutcome, BackupError> {
        let path = ObjectPath::from(object);
        let mode = match condition {
            ObjectPut::Replace => PutMode::Overwrite,
            ObjectPut::Create => PutMode::Create,
            ObjectPut::Update(version) => PutMode::Update(version),
        };
        let limit = self.retries.attempt_of(bytes.len() as u64);
        let put = self.tried(object, limit, |store| {
            let (path, options) = (path.clone(), PutOptions::from(mode.clone()));
            let payload = PutPayload::from(bytes.clone());
            Box::pin(async move { store.put_opts(&path, payload, options).await })
        });
        match put.await {
            Ok(_) => Ok(PutOutcome::Stored),
            Err(StoreAnswer::Conflict) => Ok(PutOutcome::Conflict),
            Err(StoreAnswer::Lacking(_)) if mode != PutMode::Overwrite => Ok(PutOutcome::Lacking),
            // An object can't be missing where it is written: the bucket is.
            Err(StoreAnswer::Missing) => Err(self.no_bucket()),
            Err(answer) => Err(self.failed(object, answer)),
        }
    }

    /// Names and sizes of all objects in a folder.
    pub async fn list(&self, folder: &str) -> Result<Vec<(String, u64)>, BackupError> {
        let path = ObjectPath::from(folder);
        let limit = self.retries.attempt;
        let listed = self.tried(folder, Duration::MAX, |store| {
            let path = path.clone();
            Box::pin(async move { list_whole(&*store, &path, limit).await })
        });
        match listed.await {
            Ok(objects) => Ok(objects),
            Err(StoreAnswer::Missing) => Err(self.no_bucket()),
            Err(answer) => Err(self.failed(folder, answer)),
        }
    }

    /// Deletes objects. Those that are missing already count as deleted.
    pub async fn delete(&self, objects: &[String]) -> Result<(), BackupError> {
        for objects in objects.chunks(DELETED_AT_ONCE) {
            let first = objects.first().map_or("", String::as_str);
            let paths = objects
                .iter()
                .map(|object| ObjectPath::from(object.as_str()));
            let left: ObjectsLeft = Arc::new(Mutex::new(paths.collect()));
            let limit = self.retries.attempt;
            let deleted = self.tried(first, Duration::MAX, |store| {
                let left = Arc::clone(&left);
                Box::pin(async move { delete_all(&*store, &left, limit).await })
            });
            match deleted.await {
                Ok(()) | Err(StoreAnswer::Missing) => {}
                Err(answer) => return Err(self.failed(first, answer)),
            }
        }
        Ok(())
    }

    async fn tried<T: Send>(
        &self,
        object: &str,
        limit: Duration,
        mut attempt: impl FnMut(Arc<dyn ObjectStore>) -> BoxFuture<'static, object_store::Result<T>>
        + Send,
    ) -> Result<T, StoreAnswer> {
        let begun = Instant::now();
        let (mut attempts, mut is_renewed) = (0_u32, false);
        loop {
            let store = self.opened.lock().store.clone();
            let has_answered = self.has_answered.load(Ordering::Relaxed);
            let deadline = self.retries.deadline_of(has_answered);
            let limit = if has_answered {
                limit
            } else {
                limit.min(deadline)
            };
            let verdict = match timeout(limit, attempt(store)).await {
                Ok(Ok(done)) => {
                    self.has_answered.store(true, Ordering::Relaxed);
                    return Ok(done);
                }
                Ok(Err(error)) => judge(&error),
                Err(_) => {
                    StoreVerdict::Transient(format!("no answer within {} s", limit.as_secs()))
                }
            };
            attempts += 1;
            match verdict {
                StoreVerdict::Missing => {
                    self.has_answered.store(true, Ordering::Relaxed);
                    return Err(StoreAnswer::Missing);
                }
                StoreVerdict::Conflict => return Err(StoreAnswer::Conflict),
                StoreVerdict::Lacking(text) => return Err(StoreAnswer::Lacking(text)),
                StoreVerdict::NoBucket => return Err(StoreAnswer::Failed(self.no_bucket())),
                StoreVerdict::Denied(text) => {
                    // Credentials may have been renewed since the operation began.
                    let renewed = match is_renewed {
                        true => Ok(false),
                        false => self.renew().await,
                    };
                    is_renewed = true;
                    match renewed {
                        Ok(true) => {}
                        Ok(false) => return Err(StoreAnswer::Failed(self.denied(&text))),
                        Err(error) => return Err(StoreAnswer::Failed(error)),
                    }
                }
                StoreVerdict::Permanent(problem) => {
                    return Err(StoreAnswer::Failed(self.failure(object, problem, false)));
                }
                StoreVerdict::Transient(text) => {
                    let pause = self.retries.pause_after(attempts);
                    if begun.elapsed() + pause > deadline {
                        let seconds = begun.elapsed().as_secs();
                        let problem = format!("{text} ({attempts} attempts in {seconds} s)");
                        return Err(StoreAnswer::Failed(self.failure(object, problem, true)));
                    }
                    tracing::debug!("{}: {object}: {text}: again in {pause:?}", self.location);
                    sleep(pause).await;
                }
            }
        }
    }

    fn failure(&self, object: &str, problem: String, is_transient: bool) -> BackupError {
        BackupError::Store {
            location: self.location.to_string(),
            object: object.to_owned(),
            problem,
            is_transient,
        }
    }

    fn failed(&self, object: &str, answer: StoreAnswer) -> BackupError {
        match answer {
            StoreAnswer::Failed(error) => error,
            StoreAnswer::Lacking(text) => self.failure(object, text, false),
            StoreAnswer::Missing => BackupError::Missing {
                location: self.location.to_string(),
                object: object.to_owned(),
            },
            StoreAnswer::Conflict => {
                let problem = "another writer changed it meanwhile: try again".to_owned();
                self.failure(object, problem, true)
            }
        }
    }

    fn refused(&self, problem: String) -> BackupError {
        BackupError::Refused {
            location: self.location.to_string(),
            problem,
        }
    }

    fn no_bucket(&self) -> BackupError {
        let thing = match self.location.place() {
            LocationPlace::Azure { .. } => "container",
            LocationPlace::Directory(_) => "directory",
            _ => "bucket",
        };
        self.refused(format!(
            "there is no such {thing}: make it, or correct the location"
        ))
    }

    fn denied(&self, text: &str) -> BackupError {
        let names = match self.location.place() {
            LocationPlace::S3 { .. } => {
                "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_REGION and \
                 AWS_ENDPOINT_URL"
            }
            LocationPlace::Gcs { .. } => "GOOGLE_APPLICATION_CREDENTIALS or GOOGLE_SERVICE_ACCOUNT",
            LocationPlace::Azure { .. } => {
                "AZURE_STORAGE_ACCOUNT_NAME with AZURE_STORAGE_ACCOUNT_KEY or \
                 AZURE_STORAGE_SAS_TOKEN"
            }
            LocationPlace::Directory(_) => {
                return self.refused(format!("{text}: check the permissions of the directory"));
            }
        };
        self.refused(format!(
            "access is refused: check {names} in the environment of this process or in the file of \
             --credentials, and their rights ({text})"
        ))
    }
}

/// The answer to a request for an object.
enum FetchedObject {
    /// All of it.
    Whole(FoundObject),
    /// Its bytes, which are more than were wanted.
    TooLong(u64),
}

async fn get_whole(
    store: &dyn ObjectStore,
    path: &ObjectPath,
    most: u64,
    retries: RetryPolicy,
) -> object_store::Result<FetchedObject> {
    let answer = within(retries.attempt, store.get_opts(path, GetOptions::default())).await?;
    let version = UpdateVersion {
        e_tag: answer.meta.e_tag.clone(),
        version: answer.meta.version.clone(),
    };
    let size = answer.meta.size;
    if size > most {
        return Ok(FetchedObject::TooLong(size));
    }
    let bytes = within(retries.attempt_of(size), answer.bytes()).await?;
    if bytes.len() as u64 != size {
        let text = format!("{} of {size} bytes came", bytes.len());
        return Err(broken(HttpErrorKind::Interrupted, text));
    }
    Ok(FetchedObject::Whole(FoundObject { bytes, version }))
}

async fn list_whole(
    store: &dyn ObjectStore,
    folder: &ObjectPath,
    limit: Duration,
) -> object_store::Result<Vec<(String, u64)>> {
    let mut listed = store.list(Some(folder));
    let mut objects = Vec::new();
    while let Some(object) = within(limit, listed.try_next()).await? {
        objects.push((object.location.to_string(), object.size));
    }
    Ok(objects)
}

async fn delete_all(
    store: &dyn ObjectStore,
    left: &ObjectsLeft,
    limit: Duration,
) -> object_store::Result<()> {
    let paths: Vec<ObjectPath> = left.lock().iter().cloned().collect();
    let mut deleted = store.delete_stream(stream::iter(paths.into_iter().map(Ok)).boxed());
    loop {
        match within(limit, deleted.try_next()).await {
            Ok(Some(path)) => {
                left.lock().remove(&path);
            }
            Err(object_store::Error::NotFound { .. }) => {}
            Ok(None) => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

async fn within<T>(
    limit: Duration,
    step: impl Future<Output = object_store::Result<T>>,
) -> object_store::Result<T> {
    let done = timeout(limit, step).await;
    done.unwrap_or_else(|_| {
        let text = format!("no answer within {} s", limit.as_secs());
        Err(broken(HttpErrorKind::Timeout, text))
    })
}

fn broken(kind: HttpErrorKind, text: String) -> object_store::Error {
    object_store::Error::Generic {
        store: "transfer",
        source: Box::new(HttpError::new(kind, io::Error::other(text))),
    }
}

/// An error's text in one line of bounded length.
fn shown(error: &object_store::Error) -> String {
    let text = error.to_string();
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().take(SHOWN_CHARS).collect()
}

fn judge(error: &object_store::Error) -> StoreVerdict {
    let text = shown(error);
    match error {
        object_store::Error::NotFound { .. } if names_bucket(&text) => StoreVerdict::NoBucket,
        object_store::Error::NotFound { .. } => StoreVerdict::Missing,
        object_store::Error::AlreadyExists { .. }
        | object_store::Error::Precondition { .. }
        | object_store::Error::NotModified { .. } => StoreVerdict::Conflict,
        object_store::Error::PermissionDenied { .. }
        | object_store::Error::Unauthenticated { .. } => StoreVerdict::Denied(text),
        object_store::Error::NotImplemented { .. } | object_store::Error::NotSupported { .. } => {
            StoreVerdict::Lacking(text)
        }
        _ => judge_inside(error, text),
    }
}

/// Judges by the fault inside of an error that says nothing by itself.
fn judge_inside(error: &object_store::Error, text: String) -> StoreVerdict {
    let Some(fault) = fault_in(error) else {
        if is_of_transfer(error) {
            return StoreVerdict::Transient(text);
        }
        return match names_credentials(&text) {
            true => StoreVerdict::Denied(text),
            false => StoreVerdict::Permanent(text),
        };
    };
    let text = fault.to_string();
    match fault {
        ExchangeFault::Lacking { .. } => StoreVerdict::Lacking(text),
        ExchangeFault::NoCredentials { .. } => StoreVerdict::Denied(text),
        _ if fault.is_transient() => StoreVerdict::Transient(text),
        _ => StoreVerdict::Permanent(text),
    }
}

/// Whether the transfer itself failed: the request, its answer, or a file that was interrupted.
fn is_of_transfer(error: &object_store::Error) -> bool {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if error.is::<HttpError>() {
            return true;
        }
        let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
        if matches!(
            kind,
            Some(
                io::ErrorKind::Interrupted | io::ErrorKind::TimedOut | io::ErrorKind::ResourceBusy
            )
        ) {
            return true;
        }
        cause = error.source();
    }
    false
}

fn names_bucket(text: &str) -> bool {
    let codes = [
        "NoSuchBucket",
        "ContainerNotFound",
        "The specified bucket does not exist",
    ];
    codes.iter().any(|code| text.contains(code))
}

/// Whether an answer to a request that is wrong says that its credentials are.
fn names_credentials(text: &str) -> bool {
    let codes = [
        "AuthorizationHeaderMalformed",
        "ExpiredToken",
        "InvalidToken",
        "TokenRefreshRequired",
        "invalid_grant",
    ];
    codes.iter().any(|code| text.contains(code))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generic(source: impl Error + Send + Sync + 'static) -> object_store::Error {
        object_store::Error::Generic {
            store: "S3",
            source: Box::new(source),
        }
    }

    #[test]
    fn errors_are_judged_by_whether_a_retry_may_help() {
        let busy = ExchangeFault::Connection {
            text: "reset".to_owned(),
        };
        let busy = HttpError::new(HttpErrorKind::Unknown, busy);
        assert!(matches!(judge(&generic(busy)), StoreVerdict::Transient(_)));
        let torn = broken(HttpErrorKind::Interrupted, "torn".to_owned());
        assert!(matches!(judge(&torn), StoreVerdict::Transient(_)));
        let clear = ExchangeFault::InClear {
            host: "host".to_owned(),
        };
        let clear = HttpError::new(HttpErrorKind::Unknown, clear);
        assert!(matches!(judge(&generic(clear)), StoreVerdict::Permanent(_)));
        let expired = generic(io::Error::other("status 400: <Code>ExpiredToken</Code>"));
        assert!(matches!(judge(&expired), StoreVerdict::Denied(_)));
        let full = generic(io::Error::from(io::ErrorKind::StorageFull));
        assert!(matches!(judge(&full), StoreVerdict::Permanent(_)));
        let missing = |text: &str| object_store::Error::NotFound {
            path: "a".to_owned(),
            source: text.to_owned().into(),
        };
        assert!(matches!(
            judge(&missing("NoSuchKey")),
            StoreVerdict::Missing
        ));
        assert!(matches!(
            judge(&missing("NoSuchBucket")),
            StoreVerdict::NoBucket
        ));
    }
}
