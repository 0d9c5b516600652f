//! The order of groups over several partitions: ORDER BY beside GROUP BY and IN.
//!
//! The groups of each partition are made in the order of the disk. They are put in order, and LIMIT
//! cuts them, once the last one has ended.

use std::ops::Range;

use bytes::Bytes;
use client_memory::{Account, Charge};
use cql::error::CqlError;
use storage::read::Row;

use super::order::RowOrder;
use super::page::{Page, no_room};

/// The groups that have ended, which are rows of a page, and the order that they are to have.
pub(super) struct GroupOrder {
    order: RowOrder,
    limit: Option<u32>,
    ended: Vec<Ended>,
    charge: Charge,
    charged: usize,
}

/// A group that has ended.
struct Ended {
    /// The clustering key of its first row; `None` for a partition of static columns only.
    first: Option<Vec<Bytes>>,
    /// Its row within the body of the page.
    row: Range<usize>,
}

impl GroupOrder {
    /// Groups in this order, of which LIMIT leaves the first.
    pub(super) fn new(order: RowOrder, limit: Option<u32>, memory: &Account) -> GroupOrder {
        GroupOrder {
            order,
            limit,
            ended: Vec::new(),
            charge: memory.charge(),
            charged: 0,
        }
    }

    /// Takes note of a group, whose row lies there in the body of the page.
    ///
    /// # Errors
    /// A group for which there is no memory.
    pub(super) fn note(&mut self, first: &Row, row: Range<usize>) -> Result<(), CqlError> {
        let key = first.clustering.iter().flatten().map(Bytes::len);
        let columns = first.clustering.as_ref().map_or(0, Vec::len);
        self.charged += size_of::<Ended>() + columns * size_of::<Bytes>() + key.sum::<usize>();
        if self.charged > self.charge.bytes() {
            let ahead = self.charged + self.charged / 4;
            self.charge
                .resize(ahead)
                .map_err(|_| no_room(self.charged))?;
        }
        // A copy of the key's bytes, so that they don't keep a block of the disk.
        let copied = |key: &Vec<Bytes>| {
            key.iter()
                .map(|value| Bytes::copy_from_slice(value))
                .collect()
        };
        self.ended.push(Ended {
            first: first.clustering.as_ref().map(copied),
            row,
        });
        Ok(())
    }

    /// Puts the rows of the page in order, and cuts them by LIMIT.
    ///
    /// # Errors
    /// A page for which there is no memory.
    pub(super) fn finish(mut self, page: &mut Page) -> Result<(), CqlError> {
        let order = &self.order;
        self.ended
            .sort_by(|a, b| order.compare(a.first.as_deref(), b.first.as_deref()));
        let limit = self.limit.map_or(usize::MAX, |limit| limit as usize);
        self.ended.truncate(limit);
        page.keep(self.ended.into_iter().map(|ended| ended.row))
    }
}
