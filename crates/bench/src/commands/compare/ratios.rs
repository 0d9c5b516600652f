//! Computes the ratios of two sides, A by B, from rounds in which both were measured.

use annulus_bench::front::{self, RecallCost};

use crate::report::Measurement;

/// The largest difference of two recalls that still counts as equal.
const RECALL_TOLERANCE: f64 = 0.005;

/// Takes the compared figure from a measurement.
type Figure = fn(&Measurement) -> f64;

/// The figures that are compared. Each is above zero and is read off between two indexes by its
/// logarithm, like the time of a search.
const FIGURES: [(&str, Figure); 3] = [
    ("answers a second", |m| m.rate_per_s),
    ("P50", |m| m.latency_ms.p50),
    ("P99", |m| m.latency_ms.p99),
];

/// The measurements of one index or table of a side, one for each round.
pub type Rounds = Vec<Measurement>;

/// The median, least and most of the rounds' ratios, A by B.
pub fn summary(a: &Rounds, b: &Rounds) -> Measurement {
    let recall: (&str, Figure) = ("recall", |m| m.recall.unwrap_or(f64::NAN));
    let rounds = answered([a, b].into_iter());
    let mut summary = empty();
    for (name, of) in FIGURES.into_iter().chain([recall]) {
        let ratios: Vec<f64> = rounds.iter().map(|&n| of(&a[n]) / of(&b[n])).collect();
        summary.add_spread(name, &ratios);
    }
    add_left_out(&mut summary, a.len() - rounds.len());
    summary
}

/// The recalls of both, if they are too far apart for a comparison.
pub fn recalls_apart(a: &Rounds, b: &Rounds) -> Option<(f64, f64)> {
    let (a, b) = (mean_recall(a)?, mean_recall(b)?);
    ((a - b).abs() > RECALL_TOLERANCE).then_some((a, b))
}

/// The median, least and most of the rounds' ratios, A by B, at `recall`. The figures at that
/// recall are read off between the indexes of each side.
///
/// # Errors
///
/// Fails if a side does not reach the recall. The error has the number of the side, 0 or 1, and its
/// best recall.
pub fn at_recall(sides: [&[Rounds]; 2], recall: f64) -> Result<Measurement, (usize, f64)> {
    let mut places = Vec::new();
    for (number, side) in sides.into_iter().enumerate() {
        let measured: Vec<RecallCost> = side.iter().map(measured).collect();
        let best = measured.iter().map(|m| m.recall).fold(0.0, f64::max);
        let place = front::place(&measured, &front::front(&measured), recall);
        let place = place.ok_or((number, best))?;
        // If even the fastest index is above the recall, it is compared as it is, and its recall is
        // reported.
        let reached = measured[place.setting()].recall;
        let above =
            matches!(place, front::RecallPosition::Below(_)) && reached > recall + RECALL_TOLERANCE;
        places.push((place, above.then_some(reached)));
    }
    let rounds = answered(sides.into_iter().flatten());
    let mut found = empty();
    for (name, of) in FIGURES {
        let of_round = |side: usize, round: usize| {
            places[side]
                .0
                .seconds(|setting| of(&sides[side][setting][round]))
        };
        let ratios: Vec<f64> = rounds
            .iter()
            .map(|&round| of_round(0, round) / of_round(1, round))
            .collect();
        found.add_spread(name, &ratios);
    }
    add_left_out(&mut found, sides[0][0].len() - rounds.len());
    for (name, (_, above)) in ["recall of A, which is above", "recall of B, which is above"]
        .into_iter()
        .zip(&places)
    {
        if let Some(reached) = above {
            found.figures.insert(name.to_owned(), *reached);
        }
    }
    Ok(found)
}

/// The rounds in which every index answered something. Other rounds have no latency to compare.
fn answered<'a>(indexes: impl Iterator<Item = &'a Rounds> + Clone) -> Vec<usize> {
    let rounds = indexes.clone().map(Vec::len).min().unwrap_or(0);
    (0..rounds)
        .filter(|&round| indexes.clone().all(|index| index[round].rate_per_s > 0.0))
        .collect()
}

fn add_left_out(ratios: &mut Measurement, rounds: usize) {
    if rounds > 0 {
        let name = "rounds left out, in which one of them answered nothing";
        ratios.figures.insert(name.to_owned(), rounds as f64);
    }
}

fn empty() -> Measurement {
    Measurement {
        operation: "ratio".to_owned(),
        ..Measurement::default()
    }
}

/// The mean recall and time of an index over all rounds.
fn measured(rounds: &Rounds) -> RecallCost {
    let rates = rounds.iter().map(|m| m.rate_per_s).sum::<f64>() / rounds.len() as f64;
    RecallCost {
        recall: mean_recall(rounds).unwrap_or(0.0),
        seconds: 1.0 / rates,
    }
}

fn mean_recall(rounds: &Rounds) -> Option<f64> {
    let answered = rounds.iter().filter(|round| round.rate_per_s > 0.0);
    let recalls: Option<Vec<f64>> = answered.map(|round| round.recall).collect();
    let recalls = recalls.filter(|recalls| !recalls.is_empty())?;
    Some(recalls.iter().sum::<f64>() / recalls.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes the rounds of an index from its recall and its rates.
    fn index(recall: Option<f64>, rates: &[f64]) -> Rounds {
        let measurement = |rate_per_s: &f64| Measurement {
            rate_per_s: *rate_per_s,
            recall,
            ..Measurement::default()
        };
        rates.iter().map(measurement).collect()
    }

    #[test]
    fn ratios_are_taken_within_rounds() {
        let of = |rates: &[f64]| index(None, rates);
        // The machine was half as fast in the second round.
        let found = summary(&of(&[200.0, 100.0, 330.0]), &of(&[100.0, 50.0, 110.0]));
        assert_eq!(found.figures["answers a second, median"], 2.0);
        assert_eq!(found.figures["answers a second, most"], 3.0);
        let even = summary(&of(&[200.0, 100.0]), &of(&[100.0, 100.0]));
        assert_eq!(even.figures["answers a second, median"], 1.5);
        // Nothing was known of the recall.
        assert!(!found.figures.contains_key("recall, median"));
    }

    /// A round without answers would give a ratio that is not finite, which the spread drops in
    /// silence.
    #[test]
    fn rounds_without_an_answer_are_left_out_and_counted() {
        let a = index(Some(0.9), &[200.0, 0.0, 300.0]);
        let b = index(Some(0.9), &[100.0, 100.0, 100.0]);
        let left_out = |found: &Measurement| {
            let mut names = found.figures.iter();
            names.find_map(|(name, count)| name.starts_with("rounds left out").then_some(*count))
        };
        for (a, b, median) in [(&a, &b, 2.5), (&b, &a, (0.5 + 1.0 / 3.0) / 2.0)] {
            let found = summary(a, b);
            assert_eq!(found.figures["answers a second, median"], median);
            assert_eq!(left_out(&found), Some(1.0));
            let (a, b) = ([a.clone()], [b.clone()]);
            let found = at_recall([&a, &b], 0.9).unwrap();
            let at_recall = found.figures["answers a second, median"];
            assert!((at_recall - median).abs() < 1e-9, "{at_recall}");
            assert_eq!(left_out(&found), Some(1.0));
        }
        assert_eq!(left_out(&summary(&b, &b)), None);
        let nothing = index(None, &[0.0, 0.0, 0.0]);
        let found = summary(&nothing, &b);
        assert_eq!(left_out(&found), Some(3.0));
        assert!(!found.figures.contains_key("answers a second, median"));
    }

    #[test]
    fn recalls_that_differ_are_said() {
        let of = |recall| index(Some(recall), &[1.0]);
        assert_eq!(recalls_apart(&of(0.95), &of(0.954)), None);
        assert_eq!(recalls_apart(&of(0.95), &of(0.96)), Some((0.95, 0.96)));
        assert_eq!(recalls_apart(&of(0.95), &index(None, &[1.0])), None);
    }

    #[test]
    fn equal_recall_is_read_off_between_indexes() {
        let us = [
            index(Some(0.9), &[800.0, 400.0]),
            index(Some(0.999), &[200.0, 100.0]),
        ];
        let them = [index(Some(0.99), &[200.0, 100.0])];
        let found = at_recall([&us, &them], 0.99).unwrap();
        let median = found.figures["answers a second, median"];
        assert!((median - 2.0).abs() < 1e-9, "{median}");
        assert!(!found.figures.keys().any(|name| name.contains("above")));
    }

    #[test]
    fn a_recall_that_is_above_or_not_reached_is_reported() {
        let us = [index(Some(0.98), &[10.0])];
        let them = [index(Some(0.9), &[10.0])];
        assert_eq!(at_recall([&us, &them], 0.95), Err((1, 0.9)));
        let found = at_recall([&us, &them], 0.9).unwrap();
        assert_eq!(found.figures["recall of A, which is above"], 0.98);
        assert!(!found.figures.contains_key("recall of B, which is above"));
    }
}
