//! The searches of a statement: those by which its rows are ordered, and those whose scores and
//! ranks it selects besides. Calls that turn out to look for the same are one search.

use cql::ast::{ArithmeticOperation, Term};
use cql::error::CqlError;
use value::{CqlType, Value};

use crate::bind::{PrepareContext, PreparedTerm, TermValue, prepare_term};
use crate::hybrid_options::HybridOptions;
use crate::ordering::{SearchedOrdering, WrittenRanking, WrittenScore};
use crate::search::{ScoreExpression, SearchRanking};
use crate::search_call::SearchCall;
use crate::search_term::{SearchTerm, SearchedFor};
use crate::values::EvaluationInputs;

/// The name of a bind marker in an expression of scores.
const WEIGHT: &str = "[weight]";

/// The calls of searches in a statement, and how those of its ordering make one order.
#[derive(Clone, Debug)]
pub struct SearchCallPlan {
    /// The term of each call: those of the ordering in their order, then those of the selection.
    pub calls: Vec<SearchTerm>,
    ranking: PreparedRanking,
    hybrid: HybridOptions,
}

/// The way in which searches make one order, prepared. Searches are positions of calls.
#[derive(Clone, Debug)]
enum PreparedRanking {
    Single,
    /// The number of searches that are fused.
    Reciprocal(usize),
    Expression(PreparedScore),
}

#[derive(Clone, Debug)]
enum PreparedScore {
    Term(PreparedTerm),
    Search(usize),
    Negated(Box<PreparedScore>),
    Operation(ArithmeticOperation, Box<PreparedScore>, Box<PreparedScore>),
}

/// The searches of one execution.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchesOfExecution {
    /// The searches, no two of which are equal: the position of a call of each, and what it looks
    /// for. Those of the ordering come first.
    pub searches: Vec<(usize, SearchedFor)>,
    /// The search of each call.
    pub of_call: Vec<usize>,
    /// The way in which the searches make one order.
    pub ranking: SearchRanking,
    /// The number of rows that each search is requested for; `None` for a single search, which is
    /// requested for LIMIT.
    pub candidates: Option<usize>,
}

impl SearchCallPlan {
    /// Plans the searches of an ordering. `prepare` prepares the term of a call.
    ///
    /// # Errors
    /// Terms that don't fit their places.
    pub fn prepare(
        ordering: &SearchedOrdering<'_>,
        ctx: &mut PrepareContext,
        mut prepare: impl FnMut(&SearchCall<'_>, &mut PrepareContext) -> Result<SearchTerm, CqlError>,
    ) -> Result<SearchCallPlan, CqlError> {
        let calls = ordering.searches.iter();
        let calls = calls.map(|call| prepare(call, ctx));
        let calls = calls.collect::<Result<Vec<SearchTerm>, CqlError>>()?;
        Ok(SearchCallPlan {
            ranking: match &ordering.ranking {
                WrittenRanking::Single => PreparedRanking::Single,
                WrittenRanking::Reciprocal => PreparedRanking::Reciprocal(calls.len()),
                WrittenRanking::Expression(score) => {
                    PreparedRanking::Expression(PreparedScore::prepare(score, ctx)?)
                }
            },
            calls,
            hybrid: ordering.hybrid.clone(),
        })
    }

    /// Adds a call of the selection. Returns its position.
    pub fn add(&mut self, call: SearchTerm) -> usize {
        self.calls.push(call);
        self.calls.len() - 1
    }

    /// Whether the order is that of one search.
    pub fn is_single(&self) -> bool {
        matches!(self.ranking, PreparedRanking::Single)
    }

    /// Whether the order is by an expression of scores.
    pub fn is_expression(&self) -> bool {
        matches!(self.ranking, PreparedRanking::Expression(_))
    }

    /// The searches of an execution whose answer has `limit` rows.
    ///
    /// # Errors
    /// Values that don't fit their places, and fewer candidates than the answer has rows.
    pub fn evaluate(
        &self,
        limit: usize,
        values: EvaluationInputs<'_>,
    ) -> Result<SearchesOfExecution, CqlError> {
        let mut searches: Vec<(usize, SearchedFor)> = Vec::new();
        let mut of_call = Vec::with_capacity(self.calls.len());
        for (call, term) in self.calls.iter().enumerate() {
            let wanted = term.evaluate(values)?;
            let same = searches.iter().position(|(of, looked_for)| {
                self.calls[*of].column() == term.column() && *looked_for == wanted
            });
            of_call.push(same.unwrap_or(searches.len()));
            if same.is_none() {
                searches.push((call, wanted));
            }
        }
        let ranking = match &self.ranking {
            PreparedRanking::Single => SearchRanking::Single,
            PreparedRanking::Reciprocal(count) => SearchRanking::Reciprocal {
                constant: self.hybrid.rank_constant,
                weights: (0..*count)
                    .map(|call| (of_call[call], self.hybrid.weight(call)))
                    .collect(),
            },
            PreparedRanking::Expression(score) => {
                SearchRanking::Expression(score.evaluate(&of_call, values)?)
            }
        };
        let is_alone = ranking == SearchRanking::Single && searches.len() == 1;
        let candidates = match is_alone {
            true => None,
            false => Some(self.hybrid.candidates(limit)?),
        };
        Ok(SearchesOfExecution {
            searches,
            of_call,
            ranking,
            candidates,
        })
    }
}

impl PreparedScore {
    fn prepare(
        score: &WrittenScore<'_>,
        ctx: &mut PrepareContext,
    ) -> Result<PreparedScore, CqlError> {
        Ok(match score {
            WrittenScore::Term(term) => {
                let term: &Term = term;
                PreparedScore::Term(prepare_term(term, &CqlType::Double, WEIGHT, ctx)?)
            }
            WrittenScore::Search(call) => PreparedScore::Search(*call),
            WrittenScore::Negated(part) => {
                PreparedScore::Negated(Box::new(PreparedScore::prepare(part, ctx)?))
            }
            WrittenScore::Operation(operation, left, right) => PreparedScore::Operation(
                *operation,
                Box::new(PreparedScore::prepare(left, ctx)?),
                Box::new(PreparedScore::prepare(right, ctx)?),
            ),
        })
    }

    fn evaluate(
        &self,
        of_call: &[usize],
        values: EvaluationInputs<'_>,
    ) -> Result<ScoreExpression, CqlError> {
        Ok(match self {
            PreparedScore::Term(term) => ScoreExpression::Number(number(term, values)?),
            PreparedScore::Search(call) => ScoreExpression::Score(of_call[*call]),
            PreparedScore::Negated(part) => {
                ScoreExpression::Negated(Box::new(part.evaluate(of_call, values)?))
            }
            PreparedScore::Operation(operation, left, right) => ScoreExpression::Operation(
                *operation,
                Box::new(left.evaluate(of_call, values)?),
                Box::new(right.evaluate(of_call, values)?),
            ),
        })
    }
}

fn number(term: &PreparedTerm, values: EvaluationInputs<'_>) -> Result<f64, CqlError> {
    let fault = match term.evaluate(values.bound, values.clock)? {
        TermValue::Value(bytes) => match Value::deserialize(&CqlType::Double, &bytes) {
            Ok(Value::Double(number)) if number.is_finite() => return Ok(number),
            _ => "a number that is not finite",
        },
        TermValue::Null => "null",
        TermValue::Unset => "an unset value",
    };
    Err(CqlError::invalid(format!(
        "An expression in ORDER BY can't have {fault} as a number"
    )))
}
