//! The times of cells: when they were written, and how long they live.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use cql::error::CqlError;
use query::statement_clock::StatementClock;
use storage::read::{LiveCell, Row};
use value::{CqlType, UserType};

use super::EvaluationContext;
use super::elements::{BracketTerms, ElementSelection};
use crate::select::column_location::{ColumnContent, ColumnLocation, put_bytes, put_null};

/// The cells of a column whose times are selected.
#[derive(Clone, Debug)]
pub(in crate::select) struct TimedCells {
    /// The place of the column.
    pub place: ColumnLocation,
    /// The cells among those of the column.
    pub part: TimedPart,
    /// The form of the answer.
    pub form: CellTimeForm,
}

/// The cells of a column that are looked at.
#[derive(Clone, Debug)]
pub(in crate::select) enum TimedPart {
    /// The one cell of the column.
    Whole,
    /// The cell of a field of a non-frozen user type, which is at this position.
    Field(usize),
    /// The one cell of a column of a frozen user type, if the field at this position is not null.
    FrozenField(Arc<UserType>, usize),
    /// The cells of all fields of a non-frozen user type with so many fields.
    Fields(usize),
    /// The cells of all elements of a non-frozen collection.
    AllElements,
    /// The cells of some elements. Of a frozen collection it is its one cell, if it has them.
    Elements(ElementSelection),
}

/// The form in which times are returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::select) enum CellTimeForm {
    /// One time.
    One,
    /// A list of times, with a null for a cell that has none; null if there are no cells.
    List,
    /// The latest time of all.
    Newest,
}

impl TimedPart {
    /// The form in which the times of a column's cells are returned, unless only the latest is
    /// wanted.
    pub(in crate::select) fn form(&self, is_multi_cell: bool) -> CellTimeForm {
        let is_list = match self {
            TimedPart::Whole | TimedPart::Field(_) | TimedPart::FrozenField(..) => false,
            TimedPart::Fields(_) | TimedPart::AllElements => true,
            TimedPart::Elements(elements) => {
                is_multi_cell && matches!(elements.brackets, BracketTerms::Slice(..))
            }
        };
        match is_list {
            true => CellTimeForm::List,
            false => CellTimeForm::One,
        }
    }
}

impl TimedCells {
    /// The type of what is returned for the cells, given that of one time.
    pub(in crate::select) fn result_type(&self, one: CqlType) -> CqlType {
        match self.form {
            CellTimeForm::List => CqlType::List {
                element: Box::new(one),
                frozen: false,
            },
            CellTimeForm::One | CellTimeForm::Newest => one,
        }
    }

    /// Whether the one cell of the column is selected.
    pub(in crate::select) fn is_whole(&self) -> bool {
        matches!(self.part, TimedPart::Whole)
    }

    /// The time at which the cells were written: microseconds since the epoch, a `bigint` or a list
    /// of them; `None` for null.
    ///
    /// # Errors
    /// Terms in brackets that are null or fail.
    pub(in crate::select) fn written(
        &self,
        row: &Row,
        scope: EvaluationContext<'_>,
    ) -> Result<Option<Bytes>, CqlError> {
        let cells = self.cells(row, scope)?;
        if self.form == CellTimeForm::Newest {
            let newest = cells.iter().flatten().map(|cell| cell.timestamp).max();
            return Ok(newest.map(|written| bytes(written.to_be_bytes())));
        }
        Ok(self.serialise_times(&cells, |cell| Some(bytes(cell.timestamp.to_be_bytes()))))
    }

    /// The time that the cells have left to live: seconds, an `int` or a list of them; `None` for
    /// null.
    ///
    /// # Errors
    /// Terms in brackets that are null or fail.
    pub(in crate::select) fn left(
        &self,
        row: &Row,
        scope: EvaluationContext<'_>,
        clock: &StatementClock,
    ) -> Result<Option<Bytes>, CqlError> {
        let now_s = clock.expiry_s();
        let cells = self.cells(row, scope)?;
        Ok(self.serialise_times(&cells, |cell| {
            let left = (cell.expiry?.at_s - now_s).max(0);
            let left = i32::try_from(left).unwrap_or(i32::MAX);
            Some(bytes(left.to_be_bytes()))
        }))
    }

    fn serialise_times(
        &self,
        cells: &[Option<&LiveCell>],
        time: impl Fn(&LiveCell) -> Option<Bytes>,
    ) -> Option<Bytes> {
        if self.form != CellTimeForm::List {
            return time((*cells.first()?)?);
        }
        if cells.is_empty() {
            return None;
        }
        let mut list = BytesMut::new();
        list.put_i32(cells.len() as i32);
        for cell in cells {
            match cell.and_then(&time) {
                Some(time) => put_bytes(&mut list, &time),
                None => put_null(&mut list),
            }
        }
        Some(list.freeze())
    }

    /// The cells; `None` for a field that has none.
    fn cells<'r>(
        &self,
        row: &'r Row,
        scope: EvaluationContext<'_>,
    ) -> Result<Vec<Option<&'r LiveCell>>, CqlError> {
        let place = &self.place;
        Ok(match &self.part {
            TimedPart::Whole => vec![place.live_cell(row)],
            TimedPart::Field(position) => vec![field(place, *position, row)],
            TimedPart::FrozenField(definition, position) => {
                let cell = place.live_cell(row);
                let has_field = |cell: &&LiveCell| {
                    let fields = definition.split(&cell.value).ok();
                    fields.is_some_and(|fields| matches!(fields.get(*position), Some(Some(_))))
                };
                vec![cell.filter(has_field)]
            }
            TimedPart::Fields(count) => match place.content(row) {
                ColumnContent::Elements(_) => (0..*count)
                    .map(|position| field(place, position, row))
                    .collect(),
                _ => Vec::new(),
            },
            TimedPart::AllElements => match place.content(row) {
                ColumnContent::Elements(cells) => {
                    cells.iter().map(|(_, cell)| Some(cell)).collect()
                }
                _ => Vec::new(),
            },
            TimedPart::Elements(elements) => {
                let cells = elements.cells(row, scope)?;
                cells.into_iter().map(Some).collect()
            }
        })
    }
}

fn field<'r>(place: &ColumnLocation, position: usize, row: &'r Row) -> Option<&'r LiveCell> {
    let ColumnContent::Elements(cells) = place.content(row) else {
        return None;
    };
    let wanted = UserType::path(position);
    let (_, cell) = cells.iter().find(|(path, _)| *path == wanted)?;
    Some(cell)
}

fn bytes<const N: usize>(number: [u8; N]) -> Bytes {
    Bytes::copy_from_slice(&number)
}
