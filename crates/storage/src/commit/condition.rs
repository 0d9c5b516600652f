//! Checks the condition of a write against the row that stands.

use std::sync::Arc;

use super::apply::Moment;
use super::overlay::Overlay;
use crate::StorageError;
use crate::key::{self, HEADER, ROW};
use crate::layout::Schema;
use crate::mutation::{Condition, RowPredicate};
use crate::read::{Partition, Position, Row};
use crate::record::Liveness;

/// The outcome of a check.
pub(super) enum Checked {
    /// The condition holds. Timestamps at or above `floor` win over everything that the row has.
    Holds { floor: i64 },
    /// The condition fails. `standing` is the row that it was checked against; `None` if there is
    /// none.
    Fails { standing: Option<Box<Row>> },
}

/// Checks the predicates of a condition, all of which must hold.
pub(super) fn check(
    overlay: &Overlay<'_>,
    schema: &Schema,
    condition: &Condition,
    moment: Moment,
) -> Result<Checked, StorageError> {
    let (row, newest) = standing_row(overlay, schema, condition, moment)?;
    let holds = condition
        .predicates
        .iter()
        .all(|predicate| holds(predicate, row.as_ref()));
    Ok(match holds {
        true => Checked::Holds {
            floor: newest.saturating_add(1),
        },
        false => Checked::Fails {
            standing: row.map(Box::new),
        },
    })
}

fn holds(predicate: &RowPredicate, row: Option<&Row>) -> bool {
    match predicate {
        RowPredicate::NotExists => row.is_none(),
    }
}

/// The live row of a condition, and the greatest timestamp of all that is stored of it.
fn standing_row(
    overlay: &Overlay<'_>,
    schema: &Schema,
    condition: &Condition,
    moment: Moment,
) -> Result<(Option<Row>, i64), StorageError> {
    let Condition {
        table,
        partition_key,
        clustering,
        predicates: _,
    } = condition;
    let table = schema.table(*table)?;
    let (token, partition) = table.keys.partition(partition_key)?;
    let of_statics = clustering.is_empty() && table.keys.has_clustering();
    let head = overlay.head(table, &partition)?;
    let head_liveness = Liveness {
        deleted_to: i64::MIN,
        now_s: moment.now_s,
    };
    let statics = head_liveness.statics(&head, &table.live);
    let (key, record, deleted_to, cells) = if of_statics {
        let key = key::join(&partition, HEADER, &[])?;
        let cells = (!statics.is_empty()).then(Vec::new);
        (key, head, i64::MIN, cells)
    } else {
        let suffix = table.keys.clustering(clustering)?;
        let key = key::join(&partition, ROW, &suffix)?;
        let deleted_to = overlay.deleted_to(table, &partition, &head, &suffix)?;
        let record = overlay.row(table, &partition, &suffix)?;
        let liveness = Liveness {
            deleted_to,
            now_s: moment.now_s,
        };
        let cells = liveness.row(&record, &table.live);
        (key, record, deleted_to, cells)
    };
    let newest = record.newest().max(deleted_to);
    let row = cells.map(|cells| Row {
        partition: Arc::new(Partition {
            token,
            key: partition_key.clone(),
            static_cells: statics,
        }),
        clustering: (!of_statics).then(|| {
            record
                .clustering
                .clone()
                .unwrap_or_else(|| clustering.clone())
        }),
        cells,
        position: Position(key.into()),
    });
    Ok((row, newest))
}
