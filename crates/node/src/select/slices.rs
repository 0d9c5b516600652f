//! Turns bounds on clustering columns, which go by the order of values, into slices, which go by
//! the order of the rows on disk.
//!
//! `(a, b) > (1, 2)` is one slice if the table keeps `a` and `b` in the same direction. With `a
//! ASC, b DESC` it is two: the rows with `a = 1` and `b > 2` are before the row `(1, 2)` on disk,
//! and all rows with a greater `a` are after it.

use bytes::Bytes;
use schema::{Column, ColumnKind};
use storage::read::{ClusteringBound, ClusteringSlice};
use value::compare;

/// A bound on one or more successive clustering columns.
#[derive(Clone, Copy, Debug)]
pub struct SliceBound<'a> {
    /// Serialised values, at least one, of the columns that follow the prefix.
    pub values: &'a [Bytes],
    /// Whether rows with exactly these values are within the bound.
    pub inclusive: bool,
}

/// The slices of the rows that begin with `prefix` and are between two edges. The slices are
/// disjoint and in the order of the disk. There are none if no row can be between the edges.
///
/// `clustering` is the table's whole clustering key. The prefix and an edge together have no more
/// values than the key has columns.
pub fn slices_between(
    clustering: &[&Column],
    prefix: &[Bytes],
    lower: Option<SliceBound<'_>>,
    upper: Option<SliceBound<'_>>,
) -> Vec<ClusteringSlice> {
    let columns = &clustering[prefix.len()..];
    let mut out = Vec::new();
    if is_empty(columns, lower, upper) {
        return out;
    }
    let span = [lower, upper]
        .into_iter()
        .flatten()
        .map(|edge| edge.values.len())
        .max()
        .unwrap_or(0);
    let one_direction = columns[..span]
        .windows(2)
        .all(|pair| is_descending(pair[0]) == is_descending(pair[1]));
    if one_direction {
        let reversed = span > 0 && is_descending(columns[0]);
        out.push(slice(prefix, lower, upper, reversed));
    } else {
        split(columns, prefix, lower, upper, &mut out);
    }
    out
}

fn is_descending(column: &Column) -> bool {
    matches!(
        column.kind,
        ColumnKind::Clustering {
            descending: true,
            ..
        }
    )
}

/// Whether no row can be between the edges.
fn is_empty(
    columns: &[&Column],
    lower: Option<SliceBound<'_>>,
    upper: Option<SliceBound<'_>>,
) -> bool {
    let (Some(lower), Some(upper)) = (lower, upper) else {
        return false;
    };
    let differing = columns
        .iter()
        .zip(lower.values)
        .zip(upper.values)
        .map(|((column, a), b)| compare(&column.cql_type, a, b))
        .find(|order| order.is_ne());
    match differing {
        Some(order) => order.is_gt(),
        // The shorter edge covers all rows that begin with its values, and the longer edge is one
        // of them.
        None => match lower.values.len().cmp(&upper.values.len()) {
            std::cmp::Ordering::Less => !lower.inclusive,
            std::cmp::Ordering::Greater => !upper.inclusive,
            std::cmp::Ordering::Equal => !(lower.inclusive && upper.inclusive),
        },
    }
}

/// The one slice between two edges, if all their columns have the same direction.
fn slice(
    prefix: &[Bytes],
    lower: Option<SliceBound<'_>>,
    upper: Option<SliceBound<'_>>,
    reversed: bool,
) -> ClusteringSlice {
    let bound = |edge: Option<SliceBound<'_>>| match edge {
        None if prefix.is_empty() => ClusteringBound::Unbounded,
        None => ClusteringBound::Inclusive(prefix.to_vec()),
        Some(edge) => {
            let values = [prefix, edge.values].concat();
            if edge.inclusive {
                ClusteringBound::Inclusive(values)
            } else {
                ClusteringBound::Exclusive(values)
            }
        }
    };
    let (start, end) = if reversed {
        (upper, lower)
    } else {
        (lower, upper)
    };
    ClusteringSlice {
        start: bound(start),
        end: bound(end),
    }
}

/// Adds the slices of columns with mixed directions, column by column: the rows that share the
/// lower edge's value, the rows between the edges' values, and the rows that share the upper edge's
/// value.
fn split(
    columns: &[&Column],
    prefix: &[Bytes],
    lower: Option<SliceBound<'_>>,
    upper: Option<SliceBound<'_>>,
    out: &mut Vec<ClusteringSlice>,
) {
    if lower.is_none() && upper.is_none() {
        out.push(slice(prefix, None, None, false));
        return;
    }
    let below = |value: &Bytes| [prefix, std::slice::from_ref(value)].concat();
    if let (Some(low), Some(high)) = (lower, upper)
        && compare(&columns[0].cql_type, &low.values[0], &high.values[0]).is_eq()
    {
        split(
            &columns[1..],
            &below(&low.values[0]),
            rest(low),
            rest(high),
            out,
        );
        return;
    }
    let reversed = is_descending(columns[0]);
    let at_edge = |edge: Option<SliceBound<'_>>, is_lower: bool, out: &mut Vec<ClusteringSlice>| {
        if let Some(edge) = edge
            && let Some(rest) = rest(edge)
        {
            let (lower, upper) = if is_lower {
                (Some(rest), None)
            } else {
                (None, Some(rest))
            };
            split(&columns[1..], &below(&edge.values[0]), lower, upper, out);
        }
    };
    at_edge(if reversed { upper } else { lower }, !reversed, out);
    out.push(slice(prefix, lower.map(first), upper.map(first), reversed));
    at_edge(if reversed { lower } else { upper }, reversed, out);
}

/// The part of an edge after its first column; `None` if it has no more columns.
fn rest(edge: SliceBound<'_>) -> Option<SliceBound<'_>> {
    (edge.values.len() > 1).then(|| SliceBound {
        values: &edge.values[1..],
        ..edge
    })
}

/// The edge's bound on only the first column. If the edge has more columns, the rows that share its
/// first value are excluded, since the later columns decide on them.
fn first(edge: SliceBound<'_>) -> SliceBound<'_> {
    SliceBound {
        values: &edge.values[..1],
        inclusive: edge.inclusive && edge.values.len() == 1,
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use schema::ColumnId;
    use value::CqlType;

    use super::*;

    const VALUES: i8 = 3;

    fn column(position: usize, descending: bool) -> Column {
        Column {
            id: ColumnId(position as u32),
            name: format!("c{position}"),
            kind: ColumnKind::Clustering {
                position,
                descending,
            },
            cql_type: CqlType::Tinyint,
        }
    }

    fn bytes(values: &[i8]) -> Vec<Bytes> {
        values
            .iter()
            .map(|value| Bytes::copy_from_slice(&value.to_be_bytes()))
            .collect()
    }

    /// The order of a row relative to a bound on its first columns, in the order of the disk.
    fn disk_order(row: &[i8], bound: &[Bytes], directions: &[bool]) -> Ordering {
        row.iter()
            .zip(bound)
            .zip(directions)
            .map(|((value, edge), descending)| {
                let order = value.cmp(&(edge[0] as i8));
                if *descending { order.reverse() } else { order }
            })
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal)
    }

    fn holds(slice: &ClusteringSlice, row: &[i8], directions: &[bool]) -> bool {
        let after = match &slice.start {
            ClusteringBound::Unbounded => true,
            ClusteringBound::Inclusive(bound) => disk_order(row, bound, directions).is_ge(),
            ClusteringBound::Exclusive(bound) => disk_order(row, bound, directions).is_gt(),
        };
        let before = match &slice.end {
            ClusteringBound::Unbounded => true,
            ClusteringBound::Inclusive(bound) => disk_order(row, bound, directions).is_le(),
            ClusteringBound::Exclusive(bound) => disk_order(row, bound, directions).is_lt(),
        };
        after && before
    }

    fn tuples(length: usize) -> Vec<Vec<i8>> {
        (0..length).fold(vec![Vec::new()], |tuples, _| {
            tuples
                .iter()
                .flat_map(|tuple| (0..VALUES).map(|value| [tuple.as_slice(), &[value]].concat()))
                .collect()
        })
    }

    fn edges() -> Vec<Option<(Vec<i8>, bool)>> {
        let mut edges = vec![None];
        for length in 1..=2 {
            for tuple in tuples(length) {
                edges.push(Some((tuple.clone(), true)));
                edges.push(Some((tuple, false)));
            }
        }
        edges
    }

    fn edge(owned: Option<&(Vec<Bytes>, bool)>) -> Option<SliceBound<'_>> {
        owned.map(|(values, inclusive)| SliceBound {
            values,
            inclusive: *inclusive,
        })
    }

    fn expected(
        row: &[i8],
        lower: Option<&(Vec<i8>, bool)>,
        upper: Option<&(Vec<i8>, bool)>,
    ) -> bool {
        let above = lower.is_none_or(|(edge, inclusive)| match row[..edge.len()].cmp(edge) {
            Ordering::Greater => true,
            Ordering::Equal => *inclusive,
            Ordering::Less => false,
        });
        let below = upper.is_none_or(|(edge, inclusive)| match row[..edge.len()].cmp(edge) {
            Ordering::Less => true,
            Ordering::Equal => *inclusive,
            Ordering::Greater => false,
        });
        above && below
    }

    /// Tests every combination of directions and edges on three columns with three values each.
    #[test]
    fn slices_hold_what_the_edges_say_once_and_in_disk_order() {
        for mask in 0..8 {
            let directions: Vec<bool> = (0..3).map(|bit| mask >> bit & 1 == 1).collect();
            let columns: Vec<Column> = directions
                .iter()
                .enumerate()
                .map(|(position, descending)| column(position, *descending))
                .collect();
            let columns: Vec<&Column> = columns.iter().collect();
            let mut rows = tuples(3);
            rows.sort_by(|a, b| disk_order(a, &bytes(b), &directions));
            for lower in edges() {
                for upper in edges() {
                    let values = |edge: &Option<(Vec<i8>, bool)>| {
                        edge.as_ref()
                            .map(|(edge, inclusive)| (bytes(edge), *inclusive))
                    };
                    let (low, high) = (values(&lower), values(&upper));
                    let slices =
                        slices_between(&columns, &[], edge(low.as_ref()), edge(high.as_ref()));
                    let got: Vec<&Vec<i8>> = slices
                        .iter()
                        .flat_map(|slice| rows.iter().filter(|row| holds(slice, row, &directions)))
                        .collect();
                    let wanted: Vec<&Vec<i8>> = rows
                        .iter()
                        .filter(|row| expected(row, lower.as_ref(), upper.as_ref()))
                        .collect();
                    assert_eq!(got, wanted, "{directions:?} {lower:?} {upper:?} {slices:?}");
                }
            }
        }
    }

    #[test]
    fn a_prefix_is_kept_in_every_bound() {
        let columns = [column(0, false), column(1, true)];
        let columns: Vec<&Column> = columns.iter().collect();
        let edge = bytes(&[7]);
        let slices = slices_between(
            &columns,
            &bytes(&[1]),
            Some(SliceBound {
                values: &edge,
                inclusive: false,
            }),
            None,
        );
        assert_eq!(
            slices,
            [ClusteringSlice {
                start: ClusteringBound::Inclusive(bytes(&[1])),
                end: ClusteringBound::Exclusive(bytes(&[1, 7])),
            }]
        );
    }
}
