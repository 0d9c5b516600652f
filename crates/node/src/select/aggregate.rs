//! Aggregates: one value from many rows.
//!
//! Nulls are left out, except in a count of rows. Without values, the count, the sum and the
//! average are 0, and the minimum and maximum are null. A sum that its type can't hold is an error
//! rather than a wrong number.

use std::cmp::Ordering;

use bigdecimal::BigDecimal;
use bytes::Bytes;
use cql::error::CqlError;
use num_bigint::BigInt;
use value::{CqlType, Value, compare};

use super::expression::Expression;
use super::retained_rows::own_value;

/// The greatest exponent, positive or negative, of a decimal that is summed. A sum can need as many
/// digits as the exponents of its numbers differ by.
const SCALE_MAX: i64 = 20_000;

/// 2^-64. The sum of doubles times this factor does not overflow, with as many doubles as there can
/// be rows.
const SMALLER: f64 = 1.0 / (1_u128 << 64) as f64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
/// A native aggregate function.
pub(super) enum AggregateFunction {
    /// Counts rows, whatever is in them.
    CountRows,
    /// Counts the values that are not null.
    Count,
    Min,
    Max,
    Sum,
    Avg,
}

/// A call of an aggregate function, with its types resolved.
#[derive(Clone, Debug)]
pub(super) struct AggregateCall {
    /// The function that is called.
    pub function: AggregateFunction,
    /// The argument; `None` for [`AggregateFunction::CountRows`].
    pub argument: Option<Expression>,
    /// The type of the argument; `bigint` if there is none.
    pub argument_type: CqlType,
}

/// The state of an aggregate while rows are read.
#[derive(Clone, Debug)]
pub(super) struct Accumulator {
    function: AggregateFunction,
    argument_type: CqlType,
    /// The number of values taken so far; for [`AggregateFunction::CountRows`], of rows.
    count: i64,
    /// The least or greatest value so far, serialised.
    best: Option<Bytes>,
    /// The sum of the values so far.
    total: RunningSum,
}

#[derive(Clone, Debug)]
/// The sum of values, in a form by their type.
enum RunningSum {
    /// An integer that is wide enough for the sum of 2^63 values of 64 bits.
    Integer(i128),
    /// The sum of floats by Neumaier's summation.
    Float {
        /// The sum, with rounding errors.
        sum: f64,
        /// The amount that rounding has lost of the sum.
        lost: f64,
        /// The sum of the numbers times [`SMALLER`]. It gives the average of numbers whose sum is
        /// infinite: it overflows, or one of them is.
        small: f64,
    },
    Varint(BigInt),
    Decimal(BigDecimal),
}

impl AggregateFunction {
    /// Finds a function by its CQL name.
    pub(super) fn by_name(name: &str) -> Option<AggregateFunction> {
        Some(match name {
            "countrows" | "count_rows" => AggregateFunction::CountRows,
            "count" => AggregateFunction::Count,
            "min" => AggregateFunction::Min,
            "max" => AggregateFunction::Max,
            "sum" => AggregateFunction::Sum,
            "avg" => AggregateFunction::Avg,
            _ => return None,
        })
    }

    /// The type of the result for an argument of this type. `name` is for the message.
    ///
    /// # Errors
    /// If the function sums up its argument, and that is no number.
    pub(super) fn result_type(self, name: &str, argument: &CqlType) -> Result<CqlType, CqlError> {
        match self {
            AggregateFunction::CountRows | AggregateFunction::Count => Ok(CqlType::Bigint),
            AggregateFunction::Min | AggregateFunction::Max => Ok(argument.clone()),
            AggregateFunction::Sum | AggregateFunction::Avg => match argument {
                CqlType::Tinyint
                | CqlType::Smallint
                | CqlType::Int
                | CqlType::Bigint
                | CqlType::Counter
                | CqlType::Float
                | CqlType::Double
                | CqlType::Varint
                | CqlType::Decimal => Ok(argument.clone()),
                _ => Err(CqlError::invalid(format!(
                    "Invalid call to function system.{name}: its argument must be a number, but is of type {argument}"
                ))),
            },
        }
    }
}

impl Accumulator {
    /// Makes the state of an aggregate that has taken no row yet.
    pub(super) fn new(call: &AggregateCall) -> Accumulator {
        Accumulator {
            function: call.function,
            argument_type: call.argument_type.clone(),
            count: 0,
            best: None,
            total: match call.argument_type {
                CqlType::Float | CqlType::Double => RunningSum::Float {
                    sum: 0.0,
                    lost: 0.0,
                    small: 0.0,
                },
                CqlType::Varint => RunningSum::Varint(BigInt::ZERO),
                CqlType::Decimal => RunningSum::Decimal(BigDecimal::from(0)),
                _ => RunningSum::Integer(0),
            },
        }
    }

    /// Takes the argument's value for one more row; `None` is null.
    /// [`AggregateFunction::CountRows`] counts the row whatever the value is.
    ///
    /// # Errors
    /// If the value is a decimal whose exponent is too great to be summed.
    pub(super) fn take(&mut self, value: Option<Bytes>) -> Result<(), CqlError> {
        if self.function == AggregateFunction::CountRows {
            self.count += 1;
            return Ok(());
        }
        let Some(value) = value else { return Ok(()) };
        self.count += 1;
        match self.function {
            AggregateFunction::CountRows | AggregateFunction::Count => {}
            AggregateFunction::Min => self.keep(value, Ordering::Less),
            AggregateFunction::Max => self.keep(value, Ordering::Greater),
            AggregateFunction::Sum | AggregateFunction::Avg => self.add(&value)?,
        }
        Ok(())
    }

    fn keep(&mut self, value: Bytes, wanted: Ordering) {
        let is_better = self
            .best
            .as_ref()
            .is_none_or(|best| compare(&self.argument_type, &value, best) == wanted);
        if is_better {
            self.best = Some(value);
        }
    }

    fn add(&mut self, bytes: &Bytes) -> Result<(), CqlError> {
        let value = Value::deserialize(&self.argument_type, bytes)
            .map_err(|error| CqlError::invalid(error.0))?;
        match (&mut self.total, value) {
            // `take` has counted it, but it is no number that an average could count.
            (_, Value::Empty) => self.count -= 1,
            (RunningSum::Integer(sum), Value::Tinyint(number)) => *sum += i128::from(number),
            (RunningSum::Integer(sum), Value::Smallint(number)) => *sum += i128::from(number),
            (RunningSum::Integer(sum), Value::Int(number)) => *sum += i128::from(number),
            (RunningSum::Integer(sum), Value::Bigint(number) | Value::Counter(number)) => {
                *sum += i128::from(number);
            }
            (total @ RunningSum::Float { .. }, Value::Float(number)) => {
                add_float(total, f64::from(number));
            }
            (total @ RunningSum::Float { .. }, Value::Double(number)) => add_float(total, number),
            (RunningSum::Varint(sum), Value::Varint(number)) => *sum += number,
            (RunningSum::Decimal(sum), Value::Decimal(number)) => {
                if number.fractional_digit_count().abs() > SCALE_MAX {
                    return Err(CqlError::invalid(format!(
                        "a decimal with an exponent beyond {SCALE_MAX} can't be summed up"
                    )));
                }
                // A sum begins at 0, which has no zeros before its point to leave out.
                *sum += number.with_scale(number.fractional_digit_count().max(0));
            }
            (_, other) => {
                return Err(CqlError::server(format!(
                    "{} was read as {}",
                    other.to_literal(),
                    self.argument_type
                )));
            }
        }
        Ok(())
    }

    /// Copies the least or greatest value out of the block of the disk that it may be part of.
    /// Returns its bytes.
    pub(super) fn own(&mut self) -> usize {
        self.best = self.best.as_ref().map(own_value);
        self.kept_bytes()
    }

    /// The bytes of the value that is held.
    pub(super) fn kept_bytes(&self) -> usize {
        self.best.as_ref().map_or(0, Bytes::len)
    }

    /// The serialised result; `None` for null.
    ///
    /// # Errors
    /// If the type of the result can't hold it.
    pub(super) fn finish(self) -> Result<Option<Bytes>, CqlError> {
        match self.function {
            AggregateFunction::CountRows | AggregateFunction::Count => {
                Ok(Some(Value::Bigint(self.count).serialize()))
            }
            AggregateFunction::Min | AggregateFunction::Max => Ok(self.best),
            AggregateFunction::Sum => {
                sum_value(&self.argument_type, self.total).map(|value| Some(value.serialize()))
            }
            AggregateFunction::Avg => {
                let average = average(self.total, self.count);
                sum_value(&self.argument_type, average).map(|value| Some(value.serialize()))
            }
        }
    }
}

/// Adds a number to a total of floats.
fn add_float(total: &mut RunningSum, number: f64) {
    let RunningSum::Float { sum, lost, small } = total else {
        return;
    };
    *small += number * SMALLER;
    let next = *sum + number;
    // With an infinite sum the loss would be NaN, and the result as well.
    if next.is_finite() {
        *lost += if sum.abs() >= number.abs() {
            (*sum - next) + number
        } else {
            (number - next) + *sum
        };
    }
    *sum = next;
}

/// The total divided by the count; 0 if the count is 0.
fn average(total: RunningSum, count: i64) -> RunningSum {
    if count == 0 {
        return total;
    }
    match total {
        RunningSum::Integer(sum) => RunningSum::Integer(sum / i128::from(count)),
        RunningSum::Float { sum, lost, small } => RunningSum::Float {
            sum: if sum.is_infinite() {
                small / count as f64 / SMALLER
            } else {
                (sum + lost) / count as f64
            },
            lost: 0.0,
            small: 0.0,
        },
        RunningSum::Varint(sum) => RunningSum::Varint(sum / count),
        RunningSum::Decimal(sum) => {
            let (digits, scale) = sum.into_bigint_and_exponent();
            RunningSum::Decimal(BigDecimal::new(divide_half_even(&digits, count), scale))
        }
    }
}

/// The quotient as the nearest integer, or the even one of two that are equally near. The divisor
/// is positive.
fn divide_half_even(dividend: &BigInt, divisor: i64) -> BigInt {
    let quotient = dividend / divisor;
    let rest = dividend - &quotient * divisor;
    let away = if dividend.sign() == num_bigint::Sign::Minus {
        BigInt::from(-1)
    } else {
        BigInt::from(1)
    };
    let twice: BigInt = BigInt::from(rest.magnitude().clone()) * 2;
    let is_odd = quotient.bit(0);
    match twice.cmp(&BigInt::from(divisor)) {
        Ordering::Greater => quotient + away,
        Ordering::Equal if is_odd => quotient + away,
        _ => quotient,
    }
}

/// The total as a value of type `cql_type`.
fn sum_value(cql_type: &CqlType, total: RunningSum) -> Result<Value, CqlError> {
    let too_large = |_| {
        CqlError::invalid(format!(
            "the sum is out of range of type {cql_type}; cast the argument to a wider type"
        ))
    };
    Ok(match total {
        RunningSum::Integer(sum) => match cql_type {
            CqlType::Tinyint => Value::Tinyint(sum.try_into().map_err(too_large)?),
            CqlType::Smallint => Value::Smallint(sum.try_into().map_err(too_large)?),
            CqlType::Int => Value::Int(sum.try_into().map_err(too_large)?),
            _ => Value::Bigint(sum.try_into().map_err(too_large)?),
        },
        RunningSum::Float { sum, lost, .. } => match cql_type {
            CqlType::Float => Value::Float((sum + lost) as f32),
            _ => Value::Double(sum + lost),
        },
        RunningSum::Varint(sum) => Value::Varint(sum),
        RunningSum::Decimal(sum) => Value::Decimal(sum),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(function: AggregateFunction, cql_type: &CqlType, values: &[Value]) -> Option<Value> {
        let call = AggregateCall {
            function,
            argument: None,
            argument_type: cql_type.clone(),
        };
        let mut accumulator = Accumulator::new(&call);
        accumulator.take(None).unwrap();
        for value in values {
            accumulator.take(Some(value.serialize())).unwrap();
        }
        let result_type = function.result_type("f", cql_type).unwrap();
        accumulator
            .finish()
            .unwrap()
            .map(|bytes| Value::deserialize(&result_type, &bytes).unwrap())
    }

    fn decimals(texts: &[&str]) -> Vec<Value> {
        texts
            .iter()
            .map(|text| Value::Decimal(text.parse().unwrap()))
            .collect()
    }

    #[test]
    fn values_are_taken_together() {
        use AggregateFunction::*;
        let ints = [Value::Int(-3), Value::Int(4), Value::Int(-9)];
        let cases: Vec<(AggregateFunction, CqlType, Vec<Value>, Option<Value>)> = vec![
            (Count, CqlType::Int, ints.to_vec(), Some(Value::Bigint(3))),
            (
                CountRows,
                CqlType::Int,
                ints.to_vec(),
                Some(Value::Bigint(4)),
            ),
            (Min, CqlType::Int, ints.to_vec(), Some(Value::Int(-9))),
            (Max, CqlType::Int, ints.to_vec(), Some(Value::Int(4))),
            (Sum, CqlType::Int, ints.to_vec(), Some(Value::Int(-8))),
            (Avg, CqlType::Int, ints.to_vec(), Some(Value::Int(-2))),
            (Min, CqlType::Int, vec![], None),
            (Sum, CqlType::Int, vec![], Some(Value::Int(0))),
            (Avg, CqlType::Double, vec![], Some(Value::Double(0.0))),
            (
                Sum,
                CqlType::Double,
                vec![
                    Value::Double(1e100),
                    Value::Double(1.0),
                    Value::Double(-1e100),
                ],
                Some(Value::Double(1.0)),
            ),
            (
                Avg,
                CqlType::Decimal,
                decimals(&["1.5", "2.0", "0.25"]),
                decimals(&["1.25"]).pop(),
            ),
            (
                Avg,
                CqlType::Decimal,
                decimals(&["0.1", "0.2"]),
                decimals(&["0.2"]).pop(),
            ),
            (
                Avg,
                CqlType::Decimal,
                decimals(&["2E+2"]),
                decimals(&["200"]).pop(),
            ),
            (
                Avg,
                CqlType::Varint,
                vec![Value::Varint(7.into()), Value::Varint(8.into())],
                Some(Value::Varint(7.into())),
            ),
        ];
        for (function, cql_type, values, expected) in cases {
            assert_eq!(
                run(function, &cql_type, &values),
                expected,
                "{function:?} of {values:?}"
            );
        }
    }

    #[test]
    fn a_sum_that_does_not_fit_is_an_error() {
        let call = AggregateCall {
            function: AggregateFunction::Sum,
            argument: None,
            argument_type: CqlType::Tinyint,
        };
        let mut accumulator = Accumulator::new(&call);
        for _ in 0..2 {
            accumulator
                .take(Some(Value::Tinyint(100).serialize()))
                .unwrap();
        }
        assert_eq!(
            accumulator.finish().unwrap_err().message,
            "the sum is out of range of type tinyint; cast the argument to a wider type"
        );
    }

    #[test]
    fn an_average_need_not_overflow_with_its_sum() {
        for (values, average) in [
            ([1e308, 1.5e308], 1.25e308),
            ([f64::INFINITY, 1.0], f64::INFINITY),
            ([f64::MAX, -f64::INFINITY], -f64::INFINITY),
        ] {
            assert_eq!(
                run(
                    AggregateFunction::Avg,
                    &CqlType::Double,
                    &values.map(Value::Double)
                ),
                Some(Value::Double(average))
            );
        }
        let floats = [f32::NEG_INFINITY, 1.0].map(Value::Float);
        assert_eq!(
            run(AggregateFunction::Avg, &CqlType::Float, &floats),
            Some(Value::Float(f32::NEG_INFINITY))
        );
    }

    #[test]
    fn only_numbers_are_summed() {
        let refused = AggregateFunction::Sum.result_type("sum", &CqlType::Text);
        assert!(refused.unwrap_err().message.contains("must be a number"));
    }

    #[test]
    fn halves_go_to_the_even_neighbour() {
        for (dividend, divisor, expected) in [
            (5, 2, 2),
            (7, 2, 4),
            (-5, 2, -2),
            (-7, 2, -4),
            (8, 3, 3),
            (-8, 3, -3),
            (7, 3, 2),
        ] {
            assert_eq!(
                divide_half_even(&BigInt::from(dividend), divisor),
                BigInt::from(expected),
                "{dividend} / {divisor}"
            );
        }
    }
}
