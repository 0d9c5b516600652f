//! Fingerprints of rows, and digests of the rows of a range.

use std::hash::{BuildHasher, Hasher, RandomState};

use crate::items::ValueHasher;
use crate::keys::PrimaryKey;
use crate::observed::ReadCell;

/// The part of a row that is compared in addition to its key. The write time shows writes that
/// leave the vector as it is but change when it expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RowFingerprint {
    /// A hash of the value. Hashes are comparable only if both were made with the same
    /// [`ValueHasher`].
    pub value_hash: u64,
    /// The cell's write timestamp, microseconds since the epoch.
    pub written_us: i64,
}

impl RowFingerprint {
    /// The fingerprint of a cell. `None` if the index is to hold nothing for the cell.
    pub(super) fn of(cell: &ReadCell, hashing: &ValueHasher) -> Option<RowFingerprint> {
        match cell {
            ReadCell::Value(cell) => Some(RowFingerprint {
                value_hash: hashing.of(cell),
                written_us: cell.written_us,
            }),
            ReadCell::Null | ReadCell::Unusable(_) => None,
        }
    }
}

/// A digest of rows, whatever their order.
///
/// It is the number of rows and the sum of a keyed hash of each. A sum doesn't depend on the order
/// of the rows. A writer who doesn't know the key can't make rows whose hashes cancel out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RowSetDigest {
    rows: u64,
    sum: u64,
}

impl RowSetDigest {
    /// Adds a row. `hasher` must be the same for all digests that are compared.
    pub(super) fn add(&mut self, hasher: &RandomState, key: &PrimaryKey, row: RowFingerprint) {
        let mut state = hasher.build_hasher();
        state.write(key.as_bytes());
        state.write_u64(row.value_hash);
        state.write_i64(row.written_us);
        self.rows += 1;
        self.sum = self.sum.wrapping_add(state.finish());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::tests::text_schema;

    #[test]
    fn digests_differ_with_anything_but_the_order() {
        let hasher = RandomState::new();
        let keys = text_schema(1, 0);
        let row = |key: &str, value_hash, written_us| {
            let row = RowFingerprint {
                value_hash,
                written_us,
            };
            (keys.encode([key.as_bytes()]), row)
        };
        let digest = |rows: &[(PrimaryKey, RowFingerprint)]| {
            let mut digest = RowSetDigest::default();
            for (key, row) in rows {
                digest.add(&hasher, key, *row);
            }
            digest
        };
        let [a, b] = [row("a", 1, 2), row("b", 1, 2)];
        let both = digest(&[a.clone(), b.clone()]);
        assert_eq!(both, digest(&[b.clone(), a.clone()]));
        for other in [
            digest(std::slice::from_ref(&a)),
            digest(&[a.clone(), b.clone(), b]),
            digest(&[a.clone(), row("c", 1, 2)]),
            digest(&[a.clone(), row("b", 2, 2)]),
            digest(&[a, row("b", 1, 3)]),
        ] {
            assert_ne!(other, both);
        }
    }
}
