//! The order of groups over several partitions: ORDER BY together with GROUP BY and IN.
//!
//! The groups of each partition are made in the order of the disk. They are put in order, and LIMIT
//! cuts them, once the last one has ended, and before that whenever there are twice as many. So a
//! LIMIT bounds the memory that they take.

use std::ops::Range;

use bytes::Bytes;
use client_memory::{MemoryAccount, MemoryCharge};
use cql::error::CqlError;
use storage::read::Row;

use super::order::RowOrder;
use super::page::ResultPage;
use crate::statement::answer_memory_error;

/// The number of groups that are held however small LIMIT is, as to cut them takes time.
const KEPT_MIN: usize = 1_000;

/// The groups that have ended, which are rows of a page, and the order that they are to have.
pub(super) struct GroupOrder {
    order: RowOrder,
    /// The number of groups that LIMIT leaves.
    limit: usize,
    ended: Vec<ClosedGroup>,
    charge: MemoryCharge,
    charged: usize,
}

/// A group that has ended.
struct ClosedGroup {
    /// The clustering key of its first row; `None` for a partition of static columns only.
    first: Option<Vec<Bytes>>,
    /// Its row within the body of the page.
    row: Range<usize>,
}

impl GroupOrder {
    /// Groups in this order, of which LIMIT leaves the first.
    pub(super) fn new(order: RowOrder, limit: Option<u32>, memory: &MemoryAccount) -> GroupOrder {
        GroupOrder {
            order,
            limit: limit.map_or(usize::MAX, |limit| limit as usize),
            ended: Vec::new(),
            charge: memory.charge(),
            charged: 0,
        }
    }

    /// Takes note of a group that was made last, whose row begins there in the body of the page.
    ///
    /// # Errors
    /// A group for which there is no memory.
    pub(super) fn note(
        &mut self,
        first: &Row,
        begin: usize,
        page: &mut ResultPage,
    ) -> Result<(), CqlError> {
        // A copy of the key's bytes, so that they don't keep a block of the disk.
        let copied = |key: &Vec<Bytes>| {
            key.iter()
                .map(|value| Bytes::copy_from_slice(value))
                .collect()
        };
        let ended = ClosedGroup {
            first: first.clustering.as_ref().map(copied),
            row: begin..page.body.len(),
        };
        self.charged += ended.bytes();
        if self.charged > self.charge.bytes() {
            let ahead = self.charged + self.charged / 4;
            self.charge
                .resize(ahead)
                .map_err(|_| answer_memory_error(self.charged))?;
        }
        self.ended.push(ended);
        let kept_max = self.limit.saturating_mul(2).max(KEPT_MIN);
        match self.ended.len() > kept_max {
            true => self.cut(page),
            false => Ok(()),
        }
    }

    /// Puts the rows of the page in order, and cuts them by LIMIT.
    ///
    /// # Errors
    /// A page for which there is no memory.
    pub(super) fn finish(mut self, page: &mut ResultPage) -> Result<(), CqlError> {
        self.cut(page)
    }

    /// Puts the groups so far in order, and leaves the first of them. Of equal ones the earlier
    /// stays, as those that come later are sorted after it.
    fn cut(&mut self, page: &mut ResultPage) -> Result<(), CqlError> {
        let order = &self.order;
        self.ended
            .sort_by(|a, b| order.compare(a.first.as_deref(), b.first.as_deref()));
        self.ended.truncate(self.limit);
        page.keep(self.ended.iter().map(|ended| ended.row.clone()))?;
        let mut end = 0;
        for ended in &mut self.ended {
            let begin = end;
            end += ended.row.len();
            ended.row = begin..end;
        }
        self.charged = self.ended.iter().map(ClosedGroup::bytes).sum();
        Ok(())
    }
}

impl ClosedGroup {
    /// Bytes that the group takes here.
    fn bytes(&self) -> usize {
        let key = self.first.iter().flatten();
        let values = key.map(|value| size_of::<Bytes>() + value.len());
        size_of::<ClosedGroup>() + values.sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use client_memory::MemoryBudget;
    use schema::ColumnKind;
    use storage::read::{Partition, RowPosition};
    use value::CqlType;
    use value::token::Token;

    use super::*;
    use crate::fixtures;
    use crate::select::order::ClusteringOrder;

    fn order(limit: Option<u32>) -> GroupOrder {
        let kind = ColumnKind::Clustering {
            position: 0,
            descending: false,
        };
        let table = fixtures::table("t", 1, &[("c", kind, CqlType::Int)]);
        let order = ClusteringOrder {
            reversed: false,
            columns: vec![(0, false)],
        };
        let memory = MemoryBudget::unbounded().client().unwrap();
        GroupOrder::new(RowOrder::new(&table, &order), limit, &memory)
    }

    fn row(c: i32) -> Row {
        Row {
            partition: Arc::new(Partition {
                token: Token(0),
                key: Vec::new(),
                static_cells: Vec::new(),
            }),
            clustering: Some(vec![Bytes::copy_from_slice(&c.to_be_bytes())]),
            cells: Vec::new(),
            marker: None,
            position: RowPosition(Bytes::new()),
        }
    }

    /// The rows that are left of groups with these keys. Each row is the number of its group. Looks
    /// at the size of the page meanwhile.
    fn left(limit: Option<u32>, keys: impl Iterator<Item = i32>, kept_max: usize) -> Vec<u16> {
        let memory = MemoryBudget::unbounded().client().unwrap();
        let mut page = ResultPage::new(None, &memory);
        let mut order = order(limit);
        for (number, key) in keys.enumerate() {
            let begin = page.body.len();
            page.body.extend_from_slice(&(number as u16).to_be_bytes());
            page.count += 1;
            order.note(&row(key), begin, &mut page).unwrap();
            assert!(page.count as usize <= kept_max);
        }
        order.finish(&mut page).unwrap();
        let (rows, _) = page.body.as_chunks::<2>();
        assert_eq!(rows.len(), page.count as usize);
        rows.iter().map(|row| u16::from_be_bytes(*row)).collect()
    }

    #[test]
    fn the_first_groups_are_left_of_many() {
        let backwards = (0..10_000).rev();
        assert_eq!(left(Some(3), backwards, KEPT_MIN), [9_999, 9_998, 9_997]);
        let forwards = 0..10_000;
        let first: Vec<u16> = (0..1_500).collect();
        assert_eq!(left(Some(1_500), forwards, 3_000), first);
    }

    #[test]
    fn of_equal_groups_the_earlier_are_left() {
        let halves = (0..5_000).map(|number| (5_000 - number) / 2_500);
        assert_eq!(left(Some(2), halves, KEPT_MIN), [2_501, 2_502]);
    }

    #[test]
    fn without_a_limit_all_groups_are_left() {
        let all: Vec<u16> = (0..5_000).rev().collect();
        assert_eq!(left(None, (0..5_000).rev(), usize::MAX), all);
    }
}
