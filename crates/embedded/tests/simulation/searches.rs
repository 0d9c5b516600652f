//! Searches with filters, as a client asks for them, and the checks of their answers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use bytes::{Buf, Bytes};
use cql::error::CqlError;
use cql::wire::Consistency;
use node::database::CqlDatabase;
use node::planner;
use node::statement::{ExecutionOutcome, ExecutionParameters};

use crate::model::{Key, Shown};
use crate::random::Random;
use crate::table;

/// A column that searches are restricted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Column {
    Partition,
    Clustering,
    /// `n`, which may have an index of its own.
    OwnIndex,
    /// `d`, which the index on vectors names.
    Named,
    /// `u`, which nothing keeps but the row.
    Unkept,
}

const COLUMNS: [Column; 5] = [
    Column::Partition,
    Column::Clustering,
    Column::OwnIndex,
    Column::Named,
    Column::Unkept,
];

#[derive(Clone, Copy, Debug)]
enum Operator {
    Equal,
    Below,
    From,
    In,
}

/// A relation of WHERE.
#[derive(Clone, Debug)]
struct Relation {
    column: Column,
    operator: Operator,
    values: Vec<i32>,
}

/// A search with a filter.
#[derive(Clone, Debug)]
pub struct Search {
    relations: Vec<Relation>,
    vector: [i8; 2],
    limit: usize,
    /// Whether the selection and the consistency let the index answer alone, if WHERE does.
    reads_no_rows: bool,
    allows_filtering: bool,
}

/// A row of an answer.
#[derive(Clone, Debug)]
pub struct Found {
    pub key: Key,
    values: Values,
}

/// The values that were asked for beside the key.
#[derive(Clone, Copy, Debug)]
enum Values {
    All(Shown),
    Named(Option<i32>),
}

/// The contents that may have been seen of each row.
pub type Seen = BTreeMap<Key, BTreeSet<Option<Shown>>>;

impl Column {
    fn name(self) -> &'static str {
        match self {
            Column::Partition => "p",
            Column::Clustering => "c",
            Column::OwnIndex => "n",
            Column::Named => "d",
            Column::Unkept => "u",
        }
    }

    fn of(self, key: Key, shown: &Shown) -> Option<i32> {
        match self {
            Column::Partition => Some(key.0),
            Column::Clustering => Some(key.1),
            Column::OwnIndex => shown.numbers[0],
            Column::Named => shown.numbers[1],
            Column::Unkept => shown.numbers[2],
        }
    }
}

impl Relation {
    fn random(random: &mut Random, column: Column) -> Relation {
        let end = match column {
            Column::Partition | Column::Clustering => 4,
            _ => table::NUMBERS_BELOW,
        };
        let operator = match (column, random.below(4)) {
            (_, 0) => Operator::In,
            (Column::Partition, _) | (_, 1) => Operator::Equal,
            (_, 2) => Operator::Below,
            _ => Operator::From,
        };
        let count = match operator {
            Operator::In => 1 + random.below(3),
            _ => 1,
        };
        Relation {
            column,
            operator,
            values: (0..count).map(|_| random.below(end) as i32).collect(),
        }
    }

    fn holds(&self, key: Key, shown: &Shown) -> bool {
        self.column
            .of(key, shown)
            .is_some_and(|value| match self.operator {
                Operator::Equal | Operator::In => self.values.contains(&value),
                Operator::Below => value < self.values[0],
                Operator::From => value >= self.values[0],
            })
    }
}

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let values: Vec<String> = self.values.iter().map(ToString::to_string).collect();
        let (name, values) = (self.column.name(), values.join(", "));
        match self.operator {
            Operator::Equal => write!(f, "{name} = {values}"),
            Operator::Below => write!(f, "{name} < {values}"),
            Operator::From => write!(f, "{name} >= {values}"),
            Operator::In => write!(f, "{name} IN ({values})"),
        }
    }
}

impl fmt::Display for Search {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let selected = match self.reads_no_rows {
            true => "p, c, d",
            false => "p, c, n, d, u, v",
        };
        let relations: Vec<String> = self.relations.iter().map(ToString::to_string).collect();
        let (table, relations) = (table::NAME, relations.join(" AND "));
        let ([x, y], limit) = (self.vector, self.limit);
        write!(
            f,
            "SELECT {selected} FROM {table} WHERE {relations} ORDER BY v ANN OF [{x}, {y}] LIMIT {limit}"
        )?;
        match self.allows_filtering {
            true => write!(f, " ALLOW FILTERING"),
            false => Ok(()),
        }
    }
}

impl Search {
    /// A random search. `has_own_index` says whether `n` has an index of its own.
    pub fn random(random: &mut Random, has_own_index: bool) -> Search {
        let first = COLUMNS[random.below(5) as usize];
        let second = COLUMNS[random.below(5) as usize];
        let columns = match random.one_in(3) && second != first {
            true => vec![first, second],
            false => vec![first],
        };
        let is_needed = columns.iter().any(|column| match column {
            Column::Unkept => true,
            Column::OwnIndex => !has_own_index,
            _ => false,
        });
        let relations = columns.into_iter();
        Search {
            relations: relations
                .map(|column| Relation::random(random, column))
                .collect(),
            vector: [random.below(200) as i8, random.below(200) as i8],
            limit: [1, 2, 5, 50][random.below(4) as usize],
            reads_no_rows: random.one_in(2),
            allows_filtering: is_needed || random.one_in(4),
        }
    }

    /// The column that is restricted first, and whether the index may answer alone.
    pub fn kind(&self) -> (Column, bool) {
        (self.relations[0].column, self.reads_no_rows)
    }

    /// Asks the node.
    pub async fn ask(&self, database: &CqlDatabase) -> Result<Vec<Found>, CqlError> {
        let parsed = cql::parser::parse_statement(&self.to_string())?;
        let plan = planner::prepare(database, None, &parsed)?;
        let parameters = ExecutionParameters {
            consistency: match self.reads_no_rows {
                true => Consistency::One,
                false => Consistency::LocalQuorum,
            },
            ..ExecutionParameters::default()
        };
        let answer = plan.execute(database, parameters).await?;
        let ExecutionOutcome::Rows(rows) = answer.outcome else {
            panic!("a SELECT has rows");
        };
        let mut body = rows.body.freeze();
        Ok((0..rows.count).map(|_| self.found(&mut body)).collect())
    }

    /// Takes a row off the body of an answer.
    fn found(&self, body: &mut Bytes) -> Found {
        let mut value = || {
            let length = usize::try_from(body.get_i32()).ok()?;
            Some(body.split_to(length))
        };
        let mut int = || value().map(|value| table::int_of(&value));
        let key = (int().expect("a key"), int().expect("a key"));
        let values = match self.reads_no_rows {
            true => Values::Named(int()),
            false => Values::All(Shown {
                numbers: [int(), int(), int()],
                vector: value().map(|value| table::vector_of(&value)),
            }),
        };
        Found { key, values }
    }

    /// The distance of a row that the search may find; `None` for one without a vector, and for one
    /// that the filter leaves out.
    fn distance(&self, key: Key, shown: Option<&Shown>) -> Option<i32> {
        let shown = shown?;
        let vector = shown.vector?;
        let square = |at: usize| (i32::from(vector[at]) - i32::from(self.vector[at])).pow(2);
        let holds = self.relations.iter().all(|one| one.holds(key, shown));
        holds.then(|| square(0) + square(1))
    }

    /// The fault of an answer, if no contents that may have been seen explain it.
    pub fn fault(&self, found: &[Found], seen: &Seen) -> Option<String> {
        let none = BTreeSet::new();
        let of = |key: Key| seen.get(&key).unwrap_or(&none);
        let mut keys = BTreeSet::new();
        // The distances by which each row may stand where it stands.
        let mut ranks = Vec::new();
        for Found { key, values } in found {
            if !keys.insert(*key) {
                return Some(format!("row {key:?} comes twice"));
            }
            let fitting = of(*key).iter().flatten();
            let fitting = fitting.filter(|shown| values.fit(shown));
            let distances = fitting.filter_map(|shown| self.distance(*key, Some(shown)));
            let distances: BTreeSet<i32> = distances.collect();
            let (Some(nearest), Some(farthest)) = (distances.first(), distances.last()) else {
                return Some(format!(
                    "row {key:?} with {values:?} is none of {:?}",
                    of(*key)
                ));
            };
            ranks.push((*nearest, *farthest));
        }
        if found.len() > self.limit {
            return Some("there are more rows than LIMIT".to_owned());
        }
        let mut before = 0;
        for (nearest, farthest) in &ranks {
            if *farthest < before {
                return Some(format!("the rows are not in order: {ranks:?}"));
            }
            before = before.max(*nearest);
        }
        for (key, contents) in seen {
            let distances = contents
                .iter()
                .map(|shown| self.distance(*key, shown.as_ref()));
            // A row that may be none of the answer may be missing.
            let Some(distances) = distances.collect::<Option<BTreeSet<i32>>>() else {
                continue;
            };
            let farthest = distances.last();
            let is_missed =
                farthest.is_some_and(|distance| *distance < before || found.len() < self.limit);
            if is_missed && !keys.contains(key) {
                return Some(format!(
                    "row {key:?} is missing, which is {contents:?}: {ranks:?}"
                ));
            }
        }
        None
    }
}

impl Values {
    fn fit(&self, shown: &Shown) -> bool {
        match self {
            Values::All(all) => all == shown,
            Values::Named(named) => *named == shown.numbers[1],
        }
    }
}
