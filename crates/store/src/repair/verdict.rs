//! Decides whether a differing row is at fault, or was only changing.

use super::compare::SuspectRow;
use super::index_side::fingerprint;
use super::report::RowDifference;
use super::table_side::TableRow;
use crate::items::KnownRow;

/// The longest time from the expiry of a row until the index removes it, seconds. Clocks are
/// assumed to differ by no more.
const EXPIRY_LAG_S: u32 = 5;

/// The second look at a row.
pub(super) struct RowRecheck {
    /// The first look.
    pub suspect: SuspectRow,
    /// The row in the table now.
    pub row: TableRow,
    /// The row in the index now.
    pub known: Option<KnownRow>,
}

/// The result of a second look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecheckVerdict {
    /// Index and table agree.
    Equal,
    /// They differ, but the row has changed in the table since, or expires just now.
    InMotion,
    /// They differ, and only the index has changed. The row was written and deleted again, or the
    /// index gave it up for want of room. Reading it again decides.
    Unsettled,
    /// They differ, and neither has changed.
    Faulty(RowDifference),
}

/// Judges a row by what both sides held at the first look and hold now.
pub(super) fn verdict(look: &RowRecheck, now_s: u32) -> RecheckVerdict {
    let in_table = look.row.fingerprint;
    let in_index = look.known.as_ref().map(fingerprint);
    let expiring = look.known.is_some_and(|known| {
        known.expires_s != 0 && known.expires_s.abs_diff(now_s) <= EXPIRY_LAG_S
    });
    match (in_table, in_index) {
        _ if in_table == in_index => RecheckVerdict::Equal,
        _ if in_table != look.suspect.in_table => RecheckVerdict::InMotion,
        (None, Some(_)) if expiring => RecheckVerdict::InMotion,
        _ if in_index != look.suspect.in_index => RecheckVerdict::Unsettled,
        (None, _) => RecheckVerdict::Faulty(RowDifference::Extra),
        (Some(_), None) => RecheckVerdict::Faulty(RowDifference::Missing),
        (Some(_), Some(_)) => RecheckVerdict::Faulty(RowDifference::Differs),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::identity::TokenRange;
    use crate::keys::tests::text_schema;
    use crate::repair::digest::RowFingerprint;

    const NOW_S: u32 = 1_000_000;

    fn print(value_hash: u64) -> RowFingerprint {
        RowFingerprint {
            value_hash,
            written_us: 1,
        }
    }

    /// Judges a row by the table at first, the table now, and the index, which is the same at both
    /// looks: vector hash and expiry.
    fn judged(before: Option<u64>, now: Option<u64>, index: Option<(u64, u32)>) -> RecheckVerdict {
        let in_index = index.map(|(value_hash, _)| print(value_hash));
        judged_of_index(before, now, in_index, index)
    }

    fn judged_of_index(
        before: Option<u64>,
        now: Option<u64>,
        in_index: Option<RowFingerprint>,
        index: Option<(u64, u32)>,
    ) -> RecheckVerdict {
        let key = text_schema(1, 0).encode([b"k".as_slice()]);
        let look = RowRecheck {
            suspect: SuspectRow {
                key: key.clone(),
                range: TokenRange::WHOLE_RING,
                in_table: before.map(print),
                in_index,
                seen_at: Duration::ZERO,
            },
            row: TableRow {
                key,
                fingerprint: now.map(print),
            },
            known: index.map(|(value_hash, expires_s)| KnownRow {
                value_hash,
                written_us: 1,
                expires_s,
                ..KnownRow::default()
            }),
        };
        verdict(&look, NOW_S)
    }

    #[test]
    fn a_row_that_agrees_now_does_not_differ() {
        assert_eq!(
            judged(Some(1), Some(2), Some((2, 0))),
            RecheckVerdict::Equal
        );
        assert_eq!(judged(Some(1), None, None), RecheckVerdict::Equal);
    }

    #[test]
    fn a_row_that_has_changed_since_is_in_motion() {
        assert_eq!(
            judged(Some(1), Some(2), Some((1, 0))),
            RecheckVerdict::InMotion
        );
        assert_eq!(
            judged(Some(1), None, Some((1, 0))),
            RecheckVerdict::InMotion
        );
        assert_eq!(judged(None, Some(1), None), RecheckVerdict::InMotion);
    }

    #[test]
    fn a_change_of_only_the_index_leaves_a_row_unsettled() {
        // The row was to be replaced, and the index gave it up for want of room.
        let lost = judged_of_index(Some(2), Some(2), Some(print(1)), None);
        assert_eq!(lost, RecheckVerdict::Unsettled);
        // The row was written and deleted again.
        let other = judged_of_index(None, None, Some(print(1)), Some((2, 0)));
        assert_eq!(other, RecheckVerdict::Unsettled);
    }

    #[test]
    fn a_row_that_has_just_expired_is_in_motion() {
        assert_eq!(
            judged(None, None, Some((1, NOW_S - 1))),
            RecheckVerdict::InMotion
        );
        let later = NOW_S + EXPIRY_LAG_S + 1;
        let extra = RecheckVerdict::Faulty(RowDifference::Extra);
        assert_eq!(judged(None, None, Some((1, later))), extra);
        let long_ago = NOW_S - EXPIRY_LAG_S - 1;
        assert_eq!(judged(None, None, Some((1, long_ago))), extra);
    }

    #[test]
    fn a_row_that_stays_different_is_at_fault() {
        let missing = RecheckVerdict::Faulty(RowDifference::Missing);
        assert_eq!(judged(Some(1), Some(1), None), missing);
        let differs = RecheckVerdict::Faulty(RowDifference::Differs);
        assert_eq!(judged(Some(1), Some(1), Some((2, 0))), differs);
        let extra = RecheckVerdict::Faulty(RowDifference::Extra);
        assert_eq!(judged(None, None, Some((1, 0))), extra);
    }
}
