//! Points and their manifests.
//!
//! The manifest of a location without a key is the JSON object `{"format":1,"check":DIGEST,
//! "manifest":{...}}`, whose `check` is the SHA-256 of the text of `manifest`. With a key those
//! bytes are the content of an object with a header ([`crate::chunk`]).

use std::fmt;
use std::path::{Component, Path};
use std::str::FromStr;

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::chunk::{CHUNK_BYTES, ChunkCodec};
use crate::error::BackupError;
use crate::key::{ChunkDigest, sha256};
use crate::layout;
use crate::location::LocationTextError;

/// The format of manifests.
pub const FORMAT: u64 = 1;

/// Bytes of the longest manifest: that of ten million chunks, which are 80 TiB.
pub const MANIFEST_BYTES_MAX: u64 = 1 << 30;

/// The form of the time in an id.
const ID_TIME: &str = "%Y%m%dT%H%M%SZ";

/// The id of a point, `YYYYMMDDTHHMMSSZ-uuuuurrr`: the time in UTC, its microseconds in five hex
/// digits, and three random ones. Ids sort by time.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PointId(String);

impl PointId {
    /// Makes the id of a point of that time, in microseconds since the epoch.
    pub(crate) fn at(micros: i64, random: u32) -> PointId {
        let time = Timestamp::from_microsecond(micros).unwrap_or(Timestamp::UNIX_EPOCH);
        let within = micros.rem_euclid(1_000_000);
        let random = random & 0xfff;
        PointId(format!(
            "{}-{within:05x}{random:03x}",
            time.strftime(ID_TIME)
        ))
    }

    /// Makes the id of a point of that time, or of the microsecond after the newest point's if that
    /// one is later: a clock may have been ahead.
    pub(crate) fn after(newest: Option<&PointId>, micros: i64, random: u32) -> PointId {
        let id = PointId::at(micros, random);
        let Some(newest) = newest.filter(|newest| **newest >= id) else {
            return id;
        };
        let next = newest.micros().and_then(|micros| micros.checked_add(1));
        let next = next.map(|micros| PointId::at(micros, random));
        // Time ends with the year 9999.
        next.filter(|next| next > newest).unwrap_or(id)
    }

    /// The time in microseconds since the epoch. `None` if there is no such day.
    fn micros(&self) -> Option<i64> {
        let (second, rest) = self.0.split_once('-')?;
        let second = DateTime::strptime(ID_TIME, second).ok()?;
        let second = TimeZone::UTC.to_timestamp(second).ok()?.as_second();
        let within = i64::from_str_radix(rest.get(..5)?, 16).ok()?;
        second.checked_mul(1_000_000)?.checked_add(within)
    }
}

impl FromStr for PointId {
    type Err = LocationTextError;

    fn from_str(text: &str) -> Result<PointId, LocationTextError> {
        let form = "dddddddd.dddddd.-hhhhhhhh";
        let is_right = text.len() == form.len()
            && text
                .bytes()
                .zip(form.bytes())
                .enumerate()
                .all(|(at, (byte, form))| match (form, at) {
                    (b'd', _) => byte.is_ascii_digit(),
                    (b'h', _) => byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte),
                    (b'-', _) => byte == b'-',
                    (_, 8) => byte == b'T',
                    _ => byte == b'Z',
                });
        if !is_right {
            let problem = "a point is named as in 20261129T031500Z-0a1b2c3d";
            return Err(LocationTextError::new(text, problem));
        }
        Ok(PointId(text.to_owned()))
    }
}

impl fmt::Display for PointId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for PointId {
    type Error = LocationTextError;

    fn try_from(text: String) -> Result<PointId, LocationTextError> {
        text.parse()
    }
}

impl From<PointId> for String {
    fn from(id: PointId) -> String {
        id.0
    }
}

/// The server that makes a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerIdentity {
    /// The id of the server, which its data directory holds.
    pub id: Uuid,
    /// A name for people.
    pub name: String,
}

/// The kind of files that a point has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PointKind {
    /// A data directory.
    Database,
    /// The state of a gateway, whose rows are in the cluster.
    GatewayState,
}

impl fmt::Display for PointKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PointKind::Database => "database",
            PointKind::GatewayState => "gateway-state",
        })
    }
}

/// A table in a point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PointTable {
    /// Its keyspace.
    pub keyspace: String,
    /// Its name.
    pub table: String,
    /// Its id.
    pub id: String,
    /// Its number of rows, if counted.
    pub rows: Option<u64>,
    /// The digest of its rows, if computed.
    pub digest: Option<String>,
    /// The folders of its files, relative to the root.
    pub folders: Vec<String>,
}

/// A piece of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ChunkRef {
    /// The digest of its content.
    pub digest: ChunkDigest,
    /// The bytes of its content.
    pub bytes: u64,
}

/// A file of a point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PointFile {
    /// Its path, relative to the root, with `/` between names.
    pub path: String,
    /// Its length.
    pub bytes: u64,
    /// Its pieces, in order.
    pub chunks: Vec<ChunkRef>,
}

/// The schema of a keyspace in a point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PointSchema {
    /// The keyspace.
    pub keyspace: String,
    /// The object of its text.
    pub object: String,
    /// Bytes of the text.
    pub bytes: u64,
    /// The digest of the text.
    pub digest: ChunkDigest,
}

/// All that a point has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PointManifest {
    /// The point.
    pub id: PointId,
    /// The kind of its files.
    pub kind: PointKind,
    /// The version of Annulus that made it.
    pub version: String,
    /// The time of the checkpoint, in microseconds since the epoch.
    pub taken_at_micros: i64,
    /// The server that made it.
    pub server: ServerIdentity,
    /// Its tables.
    #[serde(default)]
    pub tables: Vec<PointTable>,
    /// All folders, relative to the root, so that empty ones come back.
    #[serde(default)]
    pub folders: Vec<String>,
    /// Its files.
    pub files: Vec<PointFile>,
    /// The schemas of its keyspaces.
    #[serde(default)]
    pub schema: Vec<PointSchema>,
    /// Bytes that the backup sent, as stored, without the manifest.
    #[serde(default)]
    pub sent_bytes: u64,
    /// Objects that the backup sent, without the manifest.
    #[serde(default)]
    pub sent_objects: u64,
}

impl PointManifest {
    /// The bytes of all files.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// The point in short.
    #[must_use]
    pub fn summary(&self) -> PointSummary {
        PointSummary {
            id: self.id.clone(),
            kind: self.kind,
            version: self.version.clone(),
            taken_at_micros: self.taken_at_micros,
            server: self.server.clone(),
            bytes: self.bytes(),
            files: self.files.len() as u64,
            sent_bytes: self.sent_bytes,
            sent_objects: self.sent_objects,
            tables: self.tables.clone(),
            problem: None,
        }
    }

    /// How the manifest contradicts itself, or would write outside of a target.
    fn fault(&self) -> Option<String> {
        let paths = self.files.iter().map(|file| &file.path);
        let outside = paths.chain(&self.folders).find(|path| !is_inside(path));
        if let Some(path) = outside {
            return Some(format!("its path `{path}` leads outside"));
        }
        let is_whole = |file: &&PointFile| {
            let sum: u64 = file.chunks.iter().map(|chunk| chunk.bytes).sum();
            let is_piece = |chunk: &ChunkRef| chunk.bytes <= CHUNK_BYTES;
            sum == file.bytes && file.chunks.iter().all(is_piece)
        };
        let file = self.files.iter().find(|file| !is_whole(file))?;
        Some(format!(
            "pieces of its file `{}` are not its length",
            file.path
        ))
    }
}

/// A point in short, as lists show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PointSummary {
    /// The point.
    pub id: PointId,
    /// The kind of its files.
    pub kind: PointKind,
    /// The version of Annulus that made it.
    pub version: String,
    /// The time of the checkpoint, in microseconds since the epoch.
    pub taken_at_micros: i64,
    /// The server that made it.
    pub server: ServerIdentity,
    /// Bytes of its files.
    pub bytes: u64,
    /// Its files.
    pub files: u64,
    /// Bytes that the backup sent, as stored.
    pub sent_bytes: u64,
    /// Objects that the backup sent.
    pub sent_objects: u64,
    /// Its tables.
    pub tables: Vec<PointTable>,
    /// The damage of its manifest. All else is empty then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl PointSummary {
    /// A point whose manifest can't be read.
    pub(crate) fn damaged(id: PointId, problem: String) -> PointSummary {
        PointSummary {
            id,
            kind: PointKind::Database,
            version: String::new(),
            taken_at_micros: 0,
            server: ServerIdentity {
                id: Uuid::nil(),
                name: String::new(),
            },
            bytes: 0,
            files: 0,
            sent_bytes: 0,
            sent_objects: 0,
            tables: Vec::new(),
            problem: Some(problem),
        }
    }
}

/// Whether a relative path stays inside of its root.
fn is_inside(path: &str) -> bool {
    let is_name = |part: Component<'_>| matches!(part, Component::Normal(_));
    !path.is_empty() && !path.contains('\0') && Path::new(path).components().all(is_name)
}

#[derive(Serialize, Deserialize)]
struct ManifestEnvelope {
    format: u64,
    check: String,
    manifest: Box<RawValue>,
}

/// The format alone, which later versions have in the same place.
#[derive(Deserialize)]
pub struct ManifestFormat {
    /// The number of the format.
    pub format: u64,
}

/// Makes the object of a manifest.
pub fn write(manifest: &PointManifest, codec: &ChunkCodec) -> Result<Vec<u8>, BackupError> {
    let text = serde_json::value::to_raw_value(manifest);
    let envelope = text.map(|text| ManifestEnvelope {
        format: FORMAT,
        check: sha256(text.get().as_bytes()).to_string(),
        manifest: text,
    });
    let bytes = envelope.and_then(|envelope| serde_json::to_vec(&envelope));
    let bytes = bytes.map_err(|error| BackupError::Thread(error.to_string()))?;
    if bytes.len() as u64 > MANIFEST_BYTES_MAX {
        return Err(BackupError::ManifestLength {
            bytes: bytes.len() as u64,
            most: MANIFEST_BYTES_MAX,
        });
    }
    match codec.key() {
        Some(_) => codec.encode(&layout::manifest(&manifest.id), bytes),
        None => Ok(bytes),
    }
}

/// Reads the object of a manifest.
pub fn read(
    location: &str,
    id: &PointId,
    object: &[u8],
    codec: &ChunkCodec,
) -> Result<PointManifest, BackupError> {
    let name = layout::manifest(id);
    let damaged = |problem: String| BackupError::Damaged {
        location: location.to_owned(),
        object: name.clone(),
        problem,
    };
    let opened;
    let bytes: &[u8] = if codec.key().is_some() {
        let decoded = codec.decode(&name, object, MANIFEST_BYTES_MAX);
        opened = decoded.map_err(damaged)?;
        &opened[..]
    } else {
        object
    };
    let format: ManifestFormat =
        serde_json::from_slice(bytes).map_err(|error| damaged(error.to_string()))?;
    if format.format != FORMAT {
        return Err(BackupError::LaterFormat {
            location: location.to_owned(),
            object: name.clone(),
            format: format.format,
        });
    }
    let envelope: ManifestEnvelope =
        serde_json::from_slice(bytes).map_err(|error| damaged(error.to_string()))?;
    let text = envelope.manifest.get();
    if sha256(text.as_bytes()).to_string() != envelope.check {
        return Err(damaged("its checksum is wrong".to_owned()));
    }
    let manifest: PointManifest =
        serde_json::from_str(text).map_err(|error| damaged(error.to_string()))?;
    if manifest.id != *id {
        return Err(damaged(format!("it is the manifest of {}", manifest.id)));
    }
    match manifest.fault() {
        Some(fault) => Err(damaged(fault)),
        None => Ok(manifest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::VaultKey;
    use crate::location::ChunkCompression;

    fn manifest() -> PointManifest {
        PointManifest {
            id: PointId::at(1_795_000_000_000_000, 7),
            kind: PointKind::Database,
            version: "0.1.0".to_owned(),
            taken_at_micros: 1_795_000_000_000_000,
            server: ServerIdentity {
                id: Uuid::nil(),
                name: "one".to_owned(),
            },
            tables: Vec::new(),
            folders: vec!["db".to_owned()],
            files: vec![PointFile {
                path: "db/a".to_owned(),
                bytes: 3,
                chunks: vec![ChunkRef {
                    digest: sha256(b"abc"),
                    bytes: 3,
                }],
            }],
            schema: Vec::new(),
            sent_bytes: 3,
            sent_objects: 1,
        }
    }

    #[test]
    fn ids_sort_by_time_and_are_read_back() {
        let id = PointId::at(1_795_000_000_000_000, 0xab);
        assert_eq!(id.to_string(), "20261118T110640Z-000000ab");
        assert_eq!(id.to_string().parse::<PointId>().unwrap(), id);
        assert!(PointId::at(1_795_000_001_000_000, 0) > id);
        assert!(PointId::at(1_795_000_000_000_001, 0) > id);
        for wrong in [
            "",
            "20261118T110640Z",
            "20261118T110640Z-000000AB",
            "../../../etc/passwd_00000",
        ] {
            assert!(wrong.parse::<PointId>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_id_is_later_than_that_of_the_newest_point() {
        let micros = 1_795_000_000_999_999;
        let ahead = PointId::at(micros, 0xfff);
        assert_eq!(ahead.micros(), Some(micros));
        let now = micros - 3_600_000_000;
        let next = PointId::after(Some(&ahead), now, 0);
        assert_eq!(next, PointId::at(micros + 1, 0));
        assert!(next > ahead);
        let later = PointId::at(micros + 2, 0);
        assert_eq!(PointId::after(Some(&ahead), micros + 2, 0), later);
        assert_eq!(PointId::after(None, now, 0), PointId::at(now, 0));
        for no_time in ["20261399T000000Z-00000000", "99991231T235959Z-00000000"] {
            let newest: PointId = no_time.parse().unwrap();
            let id = PointId::after(Some(&newest), now, 0);
            assert_eq!(id, PointId::at(now, 0));
        }
    }

    #[test]
    fn manifests_come_back_and_flipped_bytes_are_damage() {
        for key in [None, Some(VaultKey::of_secret(&[1; 32]).unwrap())] {
            let codec = ChunkCodec::new(key, ChunkCompression::Zstd);
            let manifest = manifest();
            let object = write(&manifest, &codec).unwrap();
            assert_eq!(read("x", &manifest.id, &object, &codec).unwrap(), manifest);
            for at in 0..object.len() {
                let mut flipped = object.clone();
                flipped[at] ^= 1;
                assert!(read("x", &manifest.id, &flipped, &codec).is_err(), "{at}");
            }
        }
    }

    #[test]
    fn manifests_that_lead_outside_or_contradict_themselves_are_damaged() {
        let codec = ChunkCodec::new(None, ChunkCompression::None);
        for path in ["/etc/passwd", "../a", "a/../../b", "", "a\0b"] {
            let mut outside = manifest();
            outside.files[0].path = path.to_owned();
            let object = write(&outside, &codec).unwrap();
            let error = read("x", &outside.id, &object, &codec).unwrap_err();
            assert!(error.to_string().contains("leads outside"), "{error}");
        }
        let mut short = manifest();
        short.files[0].bytes = 4;
        let object = write(&short, &codec).unwrap();
        assert!(read("x", &short.id, &object, &codec).is_err());
    }

    #[test]
    fn later_formats_are_named() {
        let codec = ChunkCodec::new(None, ChunkCompression::None);
        let id = manifest().id;
        let error = read("x", &id, b"{\"format\":2,\"more\":[]}", &codec).unwrap_err();
        assert!(
            matches!(error, BackupError::LaterFormat { format: 2, .. }),
            "{error}"
        );
    }
}
