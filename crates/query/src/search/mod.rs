//! Searches for the best rows, and the loops that carry them out.
//!
//! A [`RowSearch`] is a value: searches of vectors and of words, how they make one order,
//! predicates, a limit, a cursor, what it must know of new writes, and the columns of an answer
//! without rows. [`run()`] carries it out over two traits. The planners of the node and of the
//! gateway make the value, and have an adapter each for their rows.
//!
//! ```text
//!              RowSearch
//!                 v
//!   adapter <--  run  --> SearchedIndex: names keys, the best first, and scores texts
//!      ^          v         `ServedIndexes`: a call in the same process, or HTTP
//!      |    SearchedRows: reads the rows of keys, checks them, takes the answer
//!      |          node: a view of the storage; gateway: the client's own connection
//!      +----------+
//! ```
//!
//! # The loop of one search
//!
//! 1. If the access path leads to few rows, all of them are ranked, and no index is searched.
//! 2. If the index can search by all of WHERE and keeps all that is selected, it answers without
//!    rows, where the adapter has requested `returned` columns. An answer that lacks values is
//!    dropped, and the search goes on.
//! 3. The index is searched. Where the answer must know a new write and the index does not know
//!    it in time, it is searched once more for what it knows. Where it refuses conditions on
//!    columns that it does not name, it is searched once more without them.
//! 4. The rows of the keys are read, and checked for all of WHERE. A row that is deleted, has lost
//!    its vector or its text, or is left out by WHERE makes place for the next one.
//! 5. The rows come in the order of the index (`order`); where the index keeps its vectors
//!    quantized, in the order of their stored vectors; where something was written since the index
//!    was searched in the same process, in the order of the values that were read. Texts get their
//!    scores by the statistics of the index.
//! 6. If rows are missing, more are requested from the index, up to a bound (`refill`). Beyond it,
//!    all rows of the access path are ranked, or the answer comes with a [`SearchWarning`].
//!
//! Rows that are taken are put at once wherever their place is certain, so that the adapter can
//! charge what it makes of them, and end the search when there is no room. An adapter that has to
//! hold rows reads no more of them at a time than may be in memory together.
//!
//! The loop of several searches is in `hybrid`. Where rows are ranked without an index by words, or
//! by several searches, `scan` names them as indexes would.
//!
//! Words in WHERE are a condition by which indexes search. The rows that they name are checked for
//! it, by the scores of their texts, where something was written since.
//!
//! # What differs between the adapters
//!
//! | | node | gateway |
//! | --- | --- | --- |
//! | large rows | are read a few at a time, and charged | are read all together |
//! | rows that were read before a refill | are read again, as they are in memory | are remembered |
//! | an index without room for some rows | all rows are ranked | a warning |
//! | too few rows that match | all rows are ranked | likewise with WHERE, else a warning |
//! | new writes | the index in the same process knows them | a time to wait for, and a warning |
//! | columns that the index does not name | left out by the index itself | left out on refusal |
//! | failures of the index | as they are | of a new index or new writes: try again |
//!
//! # What follows
//!
//! Each has its place already, so that no signature changes: pages go on from
//! [`RowSearch::cursor`]; one hit a partition is a bound in `order`; a deadline and a class of work
//! come with the [`IndexQuestion`] and the adapter of the rows.

mod asker;
mod definition;
mod hybrid;
#[cfg(test)]
mod hybrid_tests;
mod indexes;
mod order;
mod refill;
mod rows;
mod run;
mod scan;
#[cfg(test)]
mod tests;

pub use definition::{
    IndexOrdering, RanksRows, RowSearch, ScoreExpression, SearchCursor, SearchFreshness, SearchHit,
    SearchPredicate, SearchRanking, SearchWarning, VectorOrdering, WordCondition, WordOrdering,
};
pub use indexes::{IndexQuestion, SearchedIndex, ServedIndexes};
pub use rows::{ReadRows, ScannedRows, SearchedRows, ValueOf};
pub use run::run;
