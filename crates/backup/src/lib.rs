//! Points of backup: files of a checkpoint, in an object store or in a directory.
//!
//! A location (`location`) has this layout, which `layout` names:
//!
//! ```text
//! annulus-backup.json          the owner of the location, and its encryption
//! meta/POINT.json              the manifest of a complete point, written last
//! schema/POINT/KEYSPACE.cql    the schema of each keyspace, as CQL
//! data/xx/DIGEST               a chunk: a piece of a file, of 8 MiB at most
//! ```
//!
//! A chunk is named by the digest of its content, so that a piece of a file that the location has
//! is never sent again, by this backup or by one that goes on after a kill. Without its manifest a
//! point doesn't exist. Chunks are removed only after all manifests that remain have been read
//! whole.
//!
//! The crate knows objects and files, and nothing of CQL or of what the files mean.
//!
//! From the bottom up: `error`, `location` and `hooks` are what callers see. `key`, `chunk` and
//! `point` know bytes of objects. `exchange`, `provider` and `objects` reach the store, with
//! retries. `owner` lets one server write. `upload`, `download`, `verify` and `retention` are the
//! operations, `confirm` the end of an upload, and `vault` their one entrance.

#![warn(clippy::unwrap_used)]

mod chunk;
mod confirm;
mod download;
mod error;
mod exchange;
mod files;
mod hooks;
mod key;
mod known;
mod layout;
mod location;
mod objects;
mod owner;
mod point;
mod provider;
mod retention;
mod retry;
mod settings;
mod upload;
mod vault;
mod verify;

pub use chunk::CHUNK_BYTES;
pub use download::{DownloadReport, FileSelection};
pub use error::BackupError;
pub use hooks::{FullPace, NoProgress, TransferPace, TransferProgress};
pub use key::ChunkDigest;
pub use location::{
    ChunkCompression, LocationAccess, LocationOptions, LocationText, LocationTextError,
};
pub use point::{
    ChunkRef, PointFile, PointId, PointKind, PointManifest, PointSchema, PointSummary, PointTable,
    ServerIdentity,
};
pub use retention::RetentionReport;
pub use retry::RetryPolicy;
pub use upload::{BackupPlan, BackupSource};
pub use vault::BackupLocation;
pub use verify::{ObjectProblem, ProblemKind, VerifyReport};
