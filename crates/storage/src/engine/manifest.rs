//! Checks manifests before fjall opens a database, as fjall doesn't check them.
//!
//! fjall trusts the manifest of a space and deletes every table and blob file that it does not
//! name. The blocks of a table and the values of a blob file have checksums that fjall checks when
//! it reads them. The manifest's own checksum is in `current`, and fjall does not look at it. The
//! manifest names a checksum of each whole file, which [`check_file`] compares with the file.
//!
//! ```text
//! db/version                   marks a finished database
//! db/keyspaces/N/current       number of the manifest (8), its xxh3 (16), kind of checksum (1: 0)
//! db/keyspaces/N/vM            manifest: sections, contents, trailer
//!   section "tables"           levels (1), for each runs (1), for each tables (4), for each
//!                              number (8), kind of checksum (1: 0), xxh3 of the file (16),
//!                              sequence number (8)
//!   section "blob_files"       files (4), for each number (8), kind of checksum (1: 0),
//!                              xxh3 of the file (16)
//!   contents                   "TOC!", sections (4), for each offset (8), length (8), length
//!                              of name (2), name
//!   trailer                    "SFA!", 1 (1), 0 (1), xxh3 of the contents (16), their offset
//!                              (8), their length (8)
//! db/keyspaces/N/tables/T, blobs/B
//! ```
//!
//! All numbers are little-endian. Space 0 is fjall's own table of spaces and their settings; its
//! files are read whole at every start.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3;

pub(super) const VERSION: &str = "version";
pub(super) const SPACES: &str = "keyspaces";
pub(super) const CURRENT: &str = "current";
const TRAILER_BYTES: usize = 38;
const READ_BYTES: usize = 1 << 18;

/// A file that a manifest names.
#[derive(Clone, Debug)]
pub(crate) struct ReferencedFile {
    pub path: PathBuf,
    checksum: u128,
}

/// A file that is not as it was written.
#[derive(Debug)]
pub(crate) enum FileDamage {
    Io(PathBuf, io::Error),
    Missing(PathBuf),
    /// The text says what is wrong.
    Damaged(PathBuf, String),
}

/// Checks all manifests of a database, and every byte of the table of spaces. It does not look for
/// missing files of other spaces, as fjall finds them before it deletes any.
pub(crate) fn verify(database: &Path) -> Result<(), FileDamage> {
    let folders = spaces(database)?;
    let version = database.join(VERSION);
    if !folders.is_empty() && !version.exists() {
        return Err(FileDamage::Missing(version));
    }
    for folder in folders {
        let is_table_of_spaces = folder.ends_with("0");
        if !is_table_of_spaces && !folder.join(CURRENT).exists() {
            // The space was being made when the process ended. fjall removes it.
            continue;
        }
        match named(&folder) {
            Ok(files) if is_table_of_spaces => {
                for named in files {
                    check_file(&named, &mut |_| {})?;
                }
            }
            Ok(_) => {}
            // fjall refuses this itself, except for a space that it was about to remove.
            Err(FileDamage::Missing(_)) if !is_table_of_spaces => {}
            Err(fault) => return Err(fault),
        }
    }
    Ok(())
}

/// The folders of all spaces, in any order.
pub(crate) fn spaces(database: &Path) -> Result<Vec<PathBuf>, FileDamage> {
    let folder = database.join(SPACES);
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(|error| FileDamage::Io(folder.clone(), error))?,
    };
    let mut folders = Vec::new();
    for entry in entries {
        let path = entry
            .map_err(|error| FileDamage::Io(folder.clone(), error))?
            .path();
        if path.is_dir() {
            folders.push(path);
        }
    }
    Ok(folders)
}

/// The manifest of a space that counts, with the files that it names.
#[derive(Debug)]
pub(super) struct SpaceManifest {
    /// The name of its file.
    pub name: String,
    /// The bytes of `current`, which names the manifest.
    pub current: Vec<u8>,
    /// The bytes of the manifest.
    pub bytes: Vec<u8>,
    pub files: Vec<ReferencedFile>,
}

/// Checks a space's manifest, and returns the files that it names.
pub(crate) fn named(folder: &Path) -> Result<Vec<ReferencedFile>, FileDamage> {
    read_space(folder).map(|manifest| manifest.files)
}

/// Reads and checks a space's manifest.
pub(super) fn read_space(folder: &Path) -> Result<SpaceManifest, FileDamage> {
    let path = folder.join(CURRENT);
    let current = read(&path)?;
    let Some((number, checksum)) = parse_current(&current) else {
        return Err(FileDamage::Damaged(
            path,
            "is not as it was written".to_owned(),
        ));
    };
    let name = format!("v{number}");
    let path = folder.join(&name);
    let manifest = read(&path)?;
    let damaged = |what: &str| FileDamage::Damaged(path.clone(), what.to_owned());
    if xxhash_rust::xxh3::xxh3_128(&manifest) != checksum {
        return Err(damaged("does not have the checksum that `current` names"));
    }
    let files = files(folder, &manifest).ok_or_else(|| damaged("can't be understood"))?;
    Ok(SpaceManifest {
        name,
        current,
        bytes: manifest,
        files,
    })
}

/// Reads a file whole and compares its checksum. `pass` gets the number of bytes after each read.
/// Returns the bytes of the file.
pub(crate) fn check_file(
    named: &ReferencedFile,
    pass: &mut dyn FnMut(u64),
) -> Result<u64, FileDamage> {
    let failed = |error| failed(&named.path, error);
    let mut file = File::open(&named.path).map_err(failed)?;
    let mut hash = Xxh3::new();
    let mut buffer = vec![0; READ_BYTES];
    let mut total = 0;
    loop {
        let count = file.read(&mut buffer).map_err(failed)?;
        if count == 0 {
            break;
        }
        hash.update(&buffer[..count]);
        total += count as u64;
        pass(count as u64);
    }
    if hash.digest128() == named.checksum {
        Ok(total)
    } else {
        Err(FileDamage::Damaged(
            named.path.clone(),
            "does not have the checksum that its manifest names".to_owned(),
        ))
    }
}

fn read(path: &Path) -> Result<Vec<u8>, FileDamage> {
    fs::read(path).map_err(|error| failed(path, error))
}

fn failed(path: &Path, error: io::Error) -> FileDamage {
    match error.kind() {
        io::ErrorKind::NotFound => FileDamage::Missing(path.to_path_buf()),
        _ => FileDamage::Io(path.to_path_buf(), error),
    }
}

fn parse_current(bytes: &[u8]) -> Option<(u64, u128)> {
    let (number, rest) = bytes.split_first_chunk::<8>()?;
    let (checksum, rest) = rest.split_first_chunk::<16>()?;
    (rest == [0]).then(|| (u64::from_le_bytes(*number), u128::from_le_bytes(*checksum)))
}

fn files(folder: &Path, manifest: &[u8]) -> Option<Vec<ReferencedFile>> {
    let mut found = Vec::new();
    let mut tables = FieldDecoder(section(manifest, b"tables")?);
    for _ in 0..tables.take::<1>()?[0] {
        for _ in 0..tables.take::<1>()?[0] {
            for _ in 0..u32::from_le_bytes(tables.take()?) {
                found.push(tables.file(&folder.join("tables"))?);
                tables.take::<8>()?;
            }
        }
    }
    let mut blobs = FieldDecoder(section(manifest, b"blob_files")?);
    for _ in 0..u32::from_le_bytes(blobs.take()?) {
        found.push(blobs.file(&folder.join("blobs"))?);
    }
    Some(found)
}

fn section<'a>(manifest: &'a [u8], wanted: &[u8]) -> Option<&'a [u8]> {
    let trailer = manifest.len().checked_sub(TRAILER_BYTES)?;
    let mut fields = FieldDecoder(manifest.get(trailer + 22..)?);
    let contents = fields.number()?;
    let mut fields = FieldDecoder(manifest.get(contents..trailer)?);
    fields.take::<4>()?;
    for _ in 0..u32::from_le_bytes(fields.take()?) {
        let (offset, length) = (fields.number()?, fields.number()?);
        let name_bytes = usize::from(u16::from_le_bytes(fields.take()?));
        if fields.bytes(name_bytes)? == wanted {
            return manifest.get(offset..offset.checked_add(length)?);
        }
    }
    None
}

struct FieldDecoder<'a>(&'a [u8]);

impl<'a> FieldDecoder<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    fn number(&mut self) -> Option<usize> {
        usize::try_from(u64::from_le_bytes(self.take()?)).ok()
    }

    fn file(&mut self, folder: &Path) -> Option<ReferencedFile> {
        let number = u64::from_le_bytes(self.take()?);
        let [0] = self.take::<1>()? else {
            return None;
        };
        Some(ReferencedFile {
            path: folder.join(number.to_string()),
            checksum: u128::from_le_bytes(self.take()?),
        })
    }
}
