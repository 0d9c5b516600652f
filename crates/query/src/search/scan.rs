//! All rows of the access path, scored by their own values as indexes would name them: where there
//! are few, and where indexes can't name enough.

use bytes::Bytes;
use store_api::ClientError;

use super::asker::IndexAsker;
use super::definition::IndexOrdering;
use super::indexes::SearchedIndex;
use super::order::NamedKey;
use super::rows::{SearchedRows, ValueOf};
use crate::TopScored;

/// The best `count` rows of each search, as an index would name them that has all rows.
pub(super) async fn name_all<I: SearchedIndex, R: SearchedRows>(
    asker: &IndexAsker<'_, I>,
    rows: &mut R,
    count: usize,
) -> Result<Vec<Vec<NamedKey<R::Key>>>, R::Error> {
    asker.ranked_rows();
    let searches = &asker.search.searches;
    let mut best: Vec<TopScored<NamedKey<R::Key>>> =
        searches.iter().map(|_| TopScored::new(count)).collect();
    let mut scanned = 0;
    while let Some(batch) = rows.scan().await? {
        scanned += batch.len();
        let ScannedValues {
            keys,
            of_searches,
            of_conditions,
        } = ScannedValues::of(rows, batch, (searches.len(), asker.search.words.len()));
        let are_matches = asker.matching(keys.len(), of_conditions).await;
        let are_matches = are_matches.map_err(|error| rows.search_failed(error))?;
        for ((ordering, best), values) in searches.iter().zip(&mut best).zip(of_searches) {
            let scores = scores_of(asker, ordering, values, &are_matches).await;
            let scores = scores.map_err(|error| rows.search_failed(error))?;
            for ((key, score), is_match) in keys.iter().zip(scores).zip(&are_matches) {
                if let (Some(score), true) = (score, *is_match) {
                    let key = key.clone();
                    best.push(score, NamedKey { key, score });
                }
            }
        }
    }
    traces::note(|| format!("Ranked {scanned} rows of the access path by their own values"));
    let best = best.into_iter();
    Ok(best.map(|best| best.into_best().collect()).collect())
}

/// The values of rows that were read, which are dropped.
struct ScannedValues<K> {
    keys: Vec<K>,
    /// The values that each search looks at.
    of_searches: Vec<Vec<Option<Bytes>>>,
    /// The texts that each condition on words looks at.
    of_conditions: Vec<Vec<Option<Bytes>>>,
}

impl<K> ScannedValues<K> {
    fn of<R: SearchedRows<Key = K>>(
        rows: &R,
        batch: Vec<(K, R::Row)>,
        (searches, conditions): (usize, usize),
    ) -> ScannedValues<K> {
        let values = |of: ValueOf| {
            let values = batch.iter().map(|(_, row)| rows.value(row, of).cloned());
            values.collect::<Vec<Option<Bytes>>>()
        };
        let of_searches = (0..searches).map(|at| values(ValueOf::Search(at)));
        let of_searches = of_searches.collect();
        let of_conditions = (0..conditions).map(|at| values(ValueOf::Condition(at)));
        let of_conditions = of_conditions.collect();
        ScannedValues {
            of_searches,
            of_conditions,
            keys: batch.into_iter().map(|(key, _)| key).collect(),
        }
    }
}

/// The scores of values in a search; `None` for a row that it does not name.
async fn scores_of<I: SearchedIndex>(
    asker: &IndexAsker<'_, I>,
    ordering: &IndexOrdering<'_>,
    mut values: Vec<Option<Bytes>>,
    are_matches: &[bool],
) -> Result<Vec<Option<f32>>, ClientError> {
    match ordering {
        IndexOrdering::Vector(vector) => {
            let metric = vector.candidates.metric;
            let score = |value: Option<Bytes>| Some(metric.score(&vector.vector, &value?));
            Ok(values.into_iter().map(score).collect())
        }
        IndexOrdering::Words(words) => {
            for (value, is_match) in values.iter_mut().zip(are_matches) {
                *value = value.take().filter(|_| *is_match);
            }
            asker.score_texts(words, values).await
        }
    }
}
