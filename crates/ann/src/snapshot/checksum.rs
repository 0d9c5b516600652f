//! Checksums of pieces: each MiB that is written gets one, and is compared with it when it is read.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use super::SnapshotError;

/// Bytes under one checksum. They are few enough to tell where a file is damaged and to be hashed
/// while they are in the cache, and many enough to keep the list of checksums small.
pub(super) const PIECE_BYTES: usize = 1 << 20;

/// A checksum: XXH3-128 with seed 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Checksum(u128);

impl Checksum {
    /// Number of bytes of a checksum in a file.
    pub(super) const BYTES: usize = 16;

    pub(super) fn of(bytes: &[u8]) -> Checksum {
        Checksum(xxh3_128(bytes))
    }

    pub(super) fn from_bytes(bytes: [u8; Self::BYTES]) -> Checksum {
        Checksum(u128::from_le_bytes(bytes))
    }

    pub(super) fn to_bytes(self) -> [u8; Self::BYTES] {
        self.0.to_le_bytes()
    }
}

/// Number of checksums that a stretch of `bytes` bytes has.
pub(super) fn pieces(bytes: u64) -> u64 {
    bytes.div_ceil(PIECE_BYTES as u64)
}

/// Cuts what is written into pieces, and takes their checksums.
pub(super) struct PieceChecksums {
    done: Vec<Checksum>,
    open: Xxh3,
    /// Number of bytes in the open piece, which is closed when it is full.
    open_bytes: usize,
}

impl PieceChecksums {
    pub(super) fn new() -> PieceChecksums {
        PieceChecksums {
            done: Vec::new(),
            open: Xxh3::new(),
            open_bytes: 0,
        }
    }

    /// Adds `bytes`, which come in portions of any length.
    pub(super) fn update(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let room = PIECE_BYTES - self.open_bytes;
            let (part, rest) = bytes.split_at(room.min(bytes.len()));
            self.open.update(part);
            self.open_bytes += part.len();
            bytes = rest;
            if self.open_bytes == PIECE_BYTES {
                self.close();
            }
        }
    }

    pub(super) fn finish(mut self) -> Vec<Checksum> {
        if self.open_bytes > 0 {
            self.close();
        }
        self.done
    }

    fn close(&mut self) {
        self.done.push(Checksum(self.open.digest128()));
        self.open.reset();
        self.open_bytes = 0;
    }
}

/// Reads a stretch of a file piece by piece, and gives each piece with its offset in the file to
/// `visit` if its checksum is right. The file is read by calls and not through a map, so that a
/// defective disk is an error and not the end of the process.
pub(super) fn verify(
    file: &File,
    path: &Path,
    start: u64,
    len: u64,
    checksums: &[Checksum],
    mut visit: impl FnMut(u64, &[u8]) -> Result<(), SnapshotError>,
) -> Result<(), SnapshotError> {
    assert_eq!(pieces(len), checksums.len() as u64);
    let mut buffer = vec![0; PIECE_BYTES.min(len as usize)];
    let mut offset = start;
    for checksum in checksums {
        let piece_bytes = (start + len - offset).min(PIECE_BYTES as u64);
        let piece = &mut buffer[..piece_bytes as usize];
        read_exact(file, path, offset, piece)?;
        verify_piece(piece, path, offset, *checksum)?;
        visit(offset, piece)?;
        offset += piece_bytes;
    }
    Ok(())
}

/// Compares a piece that is at `offset` of a file with its checksum.
pub(super) fn verify_piece(
    piece: &[u8],
    path: &Path,
    offset: u64,
    checksum: Checksum,
) -> Result<(), SnapshotError> {
    if Checksum::of(piece) == checksum {
        return Ok(());
    }
    let what = "its bytes have another checksum than when they were written";
    Err(SnapshotError::damaged(path, offset, what))
}

/// Fills `bytes` from a file; an early end is damage.
pub(super) fn read_exact(
    file: &File,
    path: &Path,
    offset: u64,
    bytes: &mut [u8],
) -> Result<(), SnapshotError> {
    file.read_exact_at(bytes, offset)
        .map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => SnapshotError::damaged(path, offset, "the file ends"),
            _ => SnapshotError::io("read", path)(error),
        })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]

        #[test]
        fn portions_make_no_difference(
            len in 0usize..3 * PIECE_BYTES,
            portions in prop::collection::vec(1usize..PIECE_BYTES * 2, 1..20),
        ) {
            let bytes: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
            let mut in_portions = PieceChecksums::new();
            let mut rest = &bytes[..];
            for portion in portions {
                let (part, behind) = rest.split_at(portion.min(rest.len()));
                in_portions.update(part);
                rest = behind;
            }
            in_portions.update(rest);
            let expected: Vec<_> = bytes.chunks(PIECE_BYTES).map(Checksum::of).collect();
            prop_assert_eq!(pieces(len as u64), expected.len() as u64);
            prop_assert_eq!(in_portions.finish(), expected);
        }
    }

    #[test]
    fn a_checksum_is_written_low_half_first() {
        // The XXH3-128 of no bytes is 99aa06d3014798d8 6001c324468d497f.
        let bytes = Checksum::of(&[]).to_bytes();
        assert_eq!(bytes[..8], 0x6001_c324_468d_497f_u64.to_le_bytes());
        assert_eq!(bytes[8..], 0x99aa_06d3_0147_98d8_u64.to_le_bytes());
        assert_eq!(Checksum::from_bytes(bytes), Checksum::of(&[]));
    }
}
