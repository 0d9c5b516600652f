//! The times of cells: when they were written, and how long they live.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};
use query::clock::StatementClock;
use storage::read::{LiveCell, Row};
use value::{CqlType, UserType};

use super::place::{Content, Place, put_bytes, put_null};

/// The cells of a column whose times are asked for.
#[derive(Clone, Debug)]
pub(super) enum TimedCells {
    /// The one cell of the column.
    Whole(Place),
    /// The cell of a field of a non-frozen user type, which is at this position.
    Field(Place, usize),
    /// The one cell of a column of a frozen user type, if the field at this position is not null.
    FrozenField(Place, Arc<UserType>, usize),
    /// The cells of all fields of a non-frozen user type with so many fields, as a list with nulls.
    Fields(Place, usize),
    /// The cell of a non-frozen user type that was written last.
    Newest(Place),
}

impl TimedCells {
    /// The type of what is told of the cells, given that of one time.
    pub(super) fn result_type(&self, one: CqlType) -> CqlType {
        match self {
            TimedCells::Fields(..) => CqlType::List {
                element: Box::new(one),
                frozen: false,
            },
            _ => one,
        }
    }

    /// The time at which the cells were written: microseconds since the epoch, a `bigint` or a list
    /// of them; `None` for null.
    pub(super) fn written(&self, row: &Row) -> Option<Bytes> {
        self.times(row, |cell| Some(bytes(cell.timestamp.to_be_bytes())))
    }

    /// The time that the cells have left to live: seconds, an `int` or a list of them; `None` for
    /// null.
    pub(super) fn left(&self, row: &Row, clock: &StatementClock) -> Option<Bytes> {
        let now_s = clock.micros().div_euclid(1_000_000);
        self.times(row, |cell| {
            let left = (cell.expiry?.at_s - now_s).max(0);
            let left = i32::try_from(left).unwrap_or(i32::MAX);
            Some(bytes(left.to_be_bytes()))
        })
    }

    fn times(&self, row: &Row, time: impl Fn(&LiveCell) -> Option<Bytes>) -> Option<Bytes> {
        match self {
            TimedCells::Whole(place) => time(place.live_cell(row)?),
            TimedCells::Field(place, position) => time(field(place, *position, row)?),
            TimedCells::FrozenField(place, definition, position) => {
                let cell = place.live_cell(row)?;
                let fields = definition.split(&cell.value).ok()?;
                (*fields.get(*position)?)?;
                time(cell)
            }
            TimedCells::Fields(place, count) => {
                let Content::Elements(_) = place.content(row) else {
                    return None;
                };
                let mut list = BytesMut::new();
                list.put_i32(*count as i32);
                for position in 0..*count {
                    match field(place, position, row).and_then(&time) {
                        Some(time) => put_bytes(&mut list, &time),
                        None => put_null(&mut list),
                    }
                }
                Some(list.freeze())
            }
            TimedCells::Newest(place) => match place.content(row) {
                Content::Elements(cells) => {
                    let cells = cells.iter().map(|(_, cell)| cell);
                    time(cells.max_by_key(|cell| cell.timestamp)?)
                }
                _ => None,
            },
        }
    }
}

fn field<'r>(place: &Place, position: usize, row: &'r Row) -> Option<&'r LiveCell> {
    let Content::Elements(cells) = place.content(row) else {
        return None;
    };
    let wanted = UserType::path(position);
    let (_, cell) = cells.iter().find(|(path, _)| *path == wanted)?;
    Some(cell)
}

fn bytes<const N: usize>(number: [u8; N]) -> Bytes {
    Bytes::copy_from_slice(&number)
}
