//! The rows around a structure, as its searches see them.

use std::borrow::Cow;

use index::score::DistanceAndScore;

use super::fresh::PublishedChanges;
use super::ranked_rows::RankedRows;
use super::request::{IndexSearch, StructureError};
use super::returned::{ReturnedValues, ValueOrigin};
use super::selection::SharedKeys;
use crate::identity::ColumnPlace;
use crate::keys::{EncodedValues, KeySchema, KeyTable};

/// The rows around a structure. Their keys and the values of filter columns are not the
/// structure's, which knows rows only by their ids.
pub(crate) struct SurroundingRows<'a, V> {
    /// The keys of the rows, by id.
    pub keys: &'a SharedKeys,
    /// The changes that the structure does not have yet.
    pub fresh: &'a PublishedChanges<V>,
    /// The key columns that the index was made with.
    pub schema: &'a KeySchema,
}

impl<'a, V> SurroundingRows<'a, V> {
    /// Whether the values of filter columns of one of these rows may be newer than its value was,
    /// when the next block of fresh changes had the number `end`. The keys are locked meanwhile.
    pub(crate) fn are_newer(
        &self,
        ids: impl Iterator<Item = u32>,
        end: u64,
        search: &IndexSearch<'_>,
    ) -> bool {
        search.uses_filters() && self.fresh.may_have_changed(ids, end)
    }

    /// Makes an answer of rows, best first. Those without a key are left out. `indexed` gives the
    /// value of the indexed column of an id, as CQL serialises it.
    ///
    /// # Errors
    /// If a row has no score, or the values are more than an answer may have.
    pub(crate) fn answer(
        &self,
        best: impl ExactSizeIterator<Item = Result<(u32, DistanceAndScore), StructureError>>,
        keys: &KeyTable,
        search: &IndexSearch<'a>,
        indexed: impl Fn(u32) -> Option<Cow<'static, [u8]>>,
    ) -> Result<RankedRows<'a>, StructureError> {
        let returned = search.returned;
        let schema = search.keys.unwrap_or(self.schema);
        let mut rows = RankedRows::with_capacity(schema, best.len()).returning(returned);
        let uses_filters = search.uses_filters();
        rows.put_proposed(best.len());
        for scored in best {
            let (id, scored) = scored?;
            let Some(key) = keys.shown(id) else {
                continue;
            };
            rows.push(key, scored);
            if uses_filters && keys.is_in_doubt(id, search.now_s) {
                rows.mark_expired_value();
            }
            for values in rows.returned() {
                let value = match values.column().source {
                    ValueOrigin::Kept(ColumnPlace::Key(at)) => {
                        EncodedValues::of(key).nth(at).map(Cow::Borrowed)
                    }
                    ValueOrigin::Kept(ColumnPlace::Filter(at)) => keys.filters().value(at, id),
                    ValueOrigin::Indexed => indexed(id),
                };
                values.push(value);
            }
            ReturnedValues::check(rows.returned())?;
        }
        Ok(rows)
    }
}
