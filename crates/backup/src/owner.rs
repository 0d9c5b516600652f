//! The owner of a location: one server, by a lease that each backup renews.
//!
//! The lease is a random token in the marker of the location, and in the state of the server. A
//! server whose state has another token than the marker is not the one that made the last backup:
//! its data directory is a copy. The next token is in the state before it is in the marker, so that
//! a crash between the two leaves the server its owner.
//!
//! The marker is replaced under the condition that it hasn't changed. Where a store knows no such
//! condition, as a directory, it is read again after it was written.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use object_store::UpdateVersion;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::error::BackupError;
use crate::files;
use crate::key::{VaultKey, sha256};
use crate::layout::{self, MARKER};
use crate::location::LocationText;
use crate::objects::{ObjectPut, PutOutcome, VaultObjects};
use crate::point::{ManifestFormat, ServerIdentity};

const FORMAT: u64 = 1;

/// How often the marker is read and replaced before another writer counts as the reason.
const ATTEMPTS: u32 = 5;

/// Bytes of the longest marker that is read.
const MARKER_BYTES_MAX: u64 = 64 << 10;

const CIPHER: &str = "aes-256-gcm";

/// The file of a location's state that has its tokens.
const STATE: &str = "owner.json";

/// The owner of a location, and the token of its last backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocationOwner {
    server: Uuid,
    name: String,
    token: Uuid,
}

impl LocationOwner {
    fn shown(&self) -> String {
        format!("`{}` ({})", self.name, self.server)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct LocationEncryption {
    cipher: String,
    key_id: String,
}

/// The marker of a location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocationMarker {
    owner: LocationOwner,
    encryption: Option<LocationEncryption>,
}

/// The text of a marker. `check` is the digest of the texts of the other two.
#[derive(Serialize, Deserialize)]
struct MarkerText {
    format: u64,
    owner: Box<RawValue>,
    encryption: Box<RawValue>,
    check: String,
}

impl MarkerText {
    fn check_of(owner: &RawValue, encryption: &RawValue) -> String {
        sha256(format!("{}\n{}", owner.get(), encryption.get()).as_bytes()).to_string()
    }
}

impl LocationMarker {
    fn new(server: &ServerIdentity, token: Uuid, key: Option<&VaultKey>) -> LocationMarker {
        LocationMarker {
            owner: LocationOwner {
                server: server.id,
                name: server.name.clone(),
                token,
            },
            encryption: key.map(|key| LocationEncryption {
                cipher: CIPHER.to_owned(),
                key_id: key.id.clone(),
            }),
        }
    }

    fn to_bytes(&self) -> Result<Bytes, serde_json::Error> {
        let owner = serde_json::value::to_raw_value(&self.owner)?;
        let encryption = serde_json::value::to_raw_value(&self.encryption)?;
        let text = MarkerText {
            format: FORMAT,
            check: MarkerText::check_of(&owner, &encryption),
            owner,
            encryption,
        };
        Ok(serde_json::to_vec(&text)?.into())
    }

    fn of_bytes(location: &LocationText, bytes: &[u8]) -> Result<LocationMarker, BackupError> {
        let of_json = |error: serde_json::Error| damaged_marker(location, &error.to_string());
        let format: ManifestFormat = serde_json::from_slice(bytes).map_err(of_json)?;
        if format.format != FORMAT {
            return Err(BackupError::LaterFormat {
                location: location.to_string(),
                object: MARKER.to_owned(),
                format: format.format,
            });
        }
        let text: MarkerText = serde_json::from_slice(bytes).map_err(of_json)?;
        if MarkerText::check_of(&text.owner, &text.encryption) != text.check {
            return Err(damaged_marker(location, "its checksum is wrong"));
        }
        Ok(LocationMarker {
            owner: serde_json::from_str(text.owner.get()).map_err(of_json)?,
            encryption: serde_json::from_str(text.encryption.get()).map_err(of_json)?,
        })
    }

    /// Checks that the key is that of the location.
    pub fn check_key(
        &self,
        location: &LocationText,
        key: Option<&VaultKey>,
    ) -> Result<(), BackupError> {
        let problem = match (&self.encryption, key) {
            (None, None) => return Ok(()),
            (Some(of_marker), Some(key)) => {
                if of_marker.cipher != CIPHER {
                    "its cipher is not known to this version: use the version that wrote it"
                } else if of_marker.key_id != key.id {
                    "it is encrypted with another key: name its key with --key-file"
                } else {
                    return Ok(());
                }
            }
            (Some(_), None) => "it is encrypted: name its key with --key-file",
            (None, Some(_)) => "it is not encrypted: use another prefix, or leave --key-file out",
        };
        Err(BackupError::Encryption {
            location: location.to_string(),
            problem,
        })
    }
}

fn damaged_marker(location: &LocationText, problem: &str) -> BackupError {
    BackupError::Damaged {
        location: location.to_string(),
        object: MARKER.to_owned(),
        problem: format!("{problem}; a backup with --take-over writes it again"),
    }
}

/// Reads the marker of a location.
pub async fn marker(
    objects: &VaultObjects,
) -> Result<Option<(LocationMarker, UpdateVersion)>, BackupError> {
    let found = match objects.get(MARKER, MARKER_BYTES_MAX).await {
        Err(BackupError::Damaged { problem, .. }) => {
            return Err(damaged_marker(objects.location(), &problem));
        }
        found => found?,
    };
    let Some(found) = found else {
        return Ok(None);
    };
    let marker = LocationMarker::of_bytes(objects.location(), &found.bytes)?;
    Ok(Some((marker, found.version)))
}

/// The tokens in the state of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct OwnerState {
    token: Option<Uuid>,
    next: Option<Uuid>,
}

impl OwnerState {
    fn read(state: &Path) -> Result<OwnerState, BackupError> {
        let text = files::read(&state.join(STATE))?;
        // A state that can't be read proves nothing, as one that is missing.
        let read = text.and_then(|text| serde_json::from_slice(&text).ok());
        Ok(read.unwrap_or_default())
    }

    fn write(&self, state: &Path) -> Result<(), BackupError> {
        let text = serde_json::to_vec(self);
        let text = text.map_err(|error| BackupError::Thread(error.to_string()))?;
        files::replace(&state.join(STATE), &text)
    }

    fn has(&self, token: Uuid) -> bool {
        [self.token, self.next].contains(&Some(token))
    }
}

/// The folder of a location's state in a server's folder of states.
pub fn state_of(location: &LocationText, states: &Path) -> PathBuf {
    let digest = sha256(location.to_string().as_bytes()).to_string();
    states.join(digest.get(..16).unwrap_or_default())
}

/// The server that is about to make a backup.
#[derive(Clone, Copy, Debug)]
pub struct LeaseClaim<'a> {
    /// The server.
    pub server: &'a ServerIdentity,
    /// The folder of the location's state.
    pub state: &'a Path,
    /// Whether the location is taken from its owner.
    pub take_over: bool,
}

/// The right to write to a location, until the next backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocationLease {
    token: Uuid,
}

/// The marker of a location that may be taken.
#[derive(Clone, Debug)]
pub struct FreeMarker {
    token: Uuid,
    version: UpdateVersion,
}

/// Checks that the location may be taken, and takes nothing. Returns its marker, if it has one.
pub async fn check(
    objects: &VaultObjects,
    key: Option<&VaultKey>,
    claim: LeaseClaim<'_>,
) -> Result<Option<FreeMarker>, BackupError> {
    let location = objects.location();
    let found = match marker(objects).await {
        Err(BackupError::Damaged { .. }) if claim.take_over => return damaged(objects).await,
        found => found?,
    };
    let Some((marker, version)) = found else {
        return check_without_marker(objects, claim).await.map(|()| None);
    };
    marker.check_key(location, key)?;
    let token = marker.owner.token;
    let free = FreeMarker { token, version };
    if claim.take_over {
        return Ok(Some(free));
    }
    if marker.owner.server != claim.server.id {
        return Err(BackupError::OtherOwner {
            location: location.to_string(),
            owner: marker.owner.shown(),
        });
    }
    if !OwnerState::read(claim.state)?.has(token) {
        return Err(BackupError::CopiedState {
            location: location.to_string(),
            owner: marker.owner.shown(),
        });
    }
    Ok(Some(free))
}

/// A marker that can't be read is replaced by a server that takes the location over.
async fn damaged(objects: &VaultObjects) -> Result<Option<FreeMarker>, BackupError> {
    let version = objects.version(MARKER).await?;
    Ok(version.map(|version| FreeMarker {
        token: Uuid::nil(),
        version,
    }))
}

/// A location without a marker is free if it has no points.
async fn check_without_marker(
    objects: &VaultObjects,
    claim: LeaseClaim<'_>,
) -> Result<(), BackupError> {
    // The server that made the last backup may make the next, if only the marker was deleted.
    let is_ours = OwnerState::read(claim.state)?.token.is_some();
    if claim.take_over || is_ours || objects.list(layout::META).await?.is_empty() {
        return Ok(());
    }
    Err(BackupError::OtherOwner {
        location: objects.location().to_string(),
        owner: format!("that is not known, as {MARKER} is missing"),
    })
}

/// Takes the lease of a location.
pub async fn take(
    objects: &VaultObjects,
    key: Option<&VaultKey>,
    claim: LeaseClaim<'_>,
) -> Result<LocationLease, BackupError> {
    let lease = LocationLease {
        token: Uuid::new_v4(),
    };
    let marker = LocationMarker::new(claim.server, lease.token, key);
    let bytes = marker.to_bytes();
    let bytes = bytes.map_err(|error| BackupError::Thread(error.to_string()))?;
    for attempt in 0..ATTEMPTS {
        // An answer that was lost may have been that of a success.
        if attempt > 0 && has_lease(objects, &lease).await? {
            return confirmed(claim.state, lease);
        }
        let free = check(objects, key, claim).await?;
        let mut state = OwnerState::read(claim.state)?;
        state.next = Some(lease.token);
        // It may be the next one of a backup that was killed.
        if let Some(free) = &free {
            state.token = Some(free.token);
        }
        state.write(claim.state)?;
        let condition = match free {
            None => ObjectPut::Create,
            Some(free) => ObjectPut::Update(free.version),
        };
        match objects.put(MARKER, bytes.clone(), condition).await? {
            PutOutcome::Stored => return confirmed(claim.state, lease),
            PutOutcome::Conflict => {}
            PutOutcome::Lacking => {
                objects
                    .put(MARKER, bytes.clone(), ObjectPut::Replace)
                    .await?;
                if has_lease(objects, &lease).await? {
                    return confirmed(claim.state, lease);
                }
            }
        }
    }
    Err(BackupError::TakenOver {
        location: objects.location().to_string(),
    })
}

fn confirmed(state: &Path, lease: LocationLease) -> Result<LocationLease, BackupError> {
    let tokens = OwnerState {
        token: Some(lease.token),
        next: None,
    };
    tokens.write(state)?;
    Ok(lease)
}

async fn has_lease(objects: &VaultObjects, lease: &LocationLease) -> Result<bool, BackupError> {
    let marker = marker(objects).await?;
    Ok(marker.is_some_and(|(marker, _)| marker.owner.token == lease.token))
}

/// Checks that no one has taken the location since the lease was taken.
pub async fn check_lease(objects: &VaultObjects, lease: &LocationLease) -> Result<(), BackupError> {
    match has_lease(objects, lease).await? {
        true => Ok(()),
        false => Err(BackupError::TakenOver {
            location: objects.location().to_string(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marker() -> LocationMarker {
        let server = ServerIdentity {
            id: Uuid::from_u128(7),
            name: "one".to_owned(),
        };
        let key = VaultKey::of_secret(&[1; 32]).unwrap();
        LocationMarker::new(&server, Uuid::from_u128(8), Some(&key))
    }

    #[test]
    fn markers_come_back_and_flipped_bytes_are_damage() {
        let location: LocationText = "s3:bucket".parse().unwrap();
        let bytes = marker().to_bytes().unwrap();
        let read = LocationMarker::of_bytes(&location, &bytes).unwrap();
        assert_eq!(read, marker());
        for at in 0..bytes.len() {
            let mut flipped = bytes.to_vec();
            flipped[at] ^= 1;
            assert!(
                LocationMarker::of_bytes(&location, &flipped).is_err(),
                "{at}"
            );
        }
    }

    #[test]
    fn a_key_is_that_of_the_location_or_refused() {
        let location: LocationText = "s3:bucket".parse().unwrap();
        let check = |key| marker().check_key(&location, key);
        let right = VaultKey::of_secret(&[1; 32]).unwrap();
        let wrong = VaultKey::of_secret(&[2; 32]).unwrap();
        check(Some(&right)).unwrap();
        for error in [check(None), check(Some(&wrong))] {
            let error = error.unwrap_err();
            assert!(error.to_string().contains("--key-file"), "{error}");
        }
    }

    #[test]
    fn states_have_a_token_before_and_after_the_marker() {
        let folder = tempfile::tempdir().unwrap();
        let (old, next) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let state = OwnerState {
            token: Some(old),
            next: Some(next),
        };
        state.write(folder.path()).unwrap();
        let state = OwnerState::read(folder.path()).unwrap();
        assert!(state.has(old) && state.has(next));
        confirmed(folder.path(), LocationLease { token: next }).unwrap();
        let state = OwnerState::read(folder.path()).unwrap();
        assert!(!state.has(old) && state.has(next));
    }
}
