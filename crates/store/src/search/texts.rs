//! Questions on texts that come with the request: their scores by the statistics of an index, and
//! excerpts with the words of a query marked.

use std::num::NonZeroUsize;

use bytes::Bytes;
use full_text::{AnalysedText, HighlightOptions, QueryStatistics, TextQuery};
use index::FullTextOptions;
use store_api::ColumnsPredicate;
use store_api::types::{Filter, HighlightForm};
use tokio::time::Instant;

use super::input::{ReceivedSearch, SearchSubject};
use super::question::text_options;
use super::slow::TimedSearch;
use super::{ConcurrencyPermit, SearchError, VectorSearcher};
use crate::identity::IndexName;

/// The bytes of texts that take about as long as one row of a search.
const BYTES_OF_ROW: usize = 1 << 10;

/// A question on texts.
#[derive(Debug)]
pub(crate) struct TextsQuestion {
    /// The query.
    pub query: String,
    /// The conditions on the key of a local index, of a request by HTTP.
    pub filter: Option<Filter>,
    /// The conditions on the key of a local index, of a node in this process.
    pub tenant: Vec<ColumnsPredicate>,
    /// The texts; `None` for null.
    pub texts: Vec<Option<Bytes>>,
}

/// The means to look at a text.
struct TextMeasure<'a> {
    query: &'a TextQuery,
    statistics: &'a QueryStatistics,
    options: FullTextOptions,
}

impl VectorSearcher {
    /// The scores of texts, in their order; `None` for one that does not match.
    pub(crate) async fn score_texts(
        &self,
        name: IndexName,
        asked: TextsQuestion,
        admission: ConcurrencyPermit,
    ) -> Result<Vec<Option<f32>>, SearchError> {
        self.look_at(name, asked, admission, |text, measure| {
            let text = AnalysedText::of(text, measure.options);
            measure.query.score(&text, measure.statistics)
        })
        .await
    }

    /// Excerpts of texts, in their order; `None` for one without any of the words.
    pub(crate) async fn highlight(
        &self,
        name: IndexName,
        asked: TextsQuestion,
        form: HighlightForm,
        admission: ConcurrencyPermit,
    ) -> Result<Vec<Option<String>>, SearchError> {
        let form = HighlightOptions {
            max_num_chars: form.max_num_chars,
            pre_tag: form.pre_tag,
            post_tag: form.post_tag,
        };
        self.look_at(name, asked, admission, move |text, measure| {
            let TextMeasure {
                query,
                statistics,
                options,
            } = *measure;
            full_text::highlight(query, statistics, options, text, &form)
        })
        .await
    }

    /// Looks at each text in a turn of a search. A text that is not UTF-8 is as a null.
    async fn look_at<A: Send + 'static>(
        &self,
        name: IndexName,
        asked: TextsQuestion,
        admission: ConcurrencyPermit,
        look: impl Fn(&str, &TextMeasure<'_>) -> Option<A> + Send + 'static,
    ) -> Result<Vec<Option<A>>, SearchError> {
        let TextsQuestion {
            query,
            filter,
            tenant,
            texts,
        } = asked;
        let mut timed = TimedSearch::begin(&self.slow, texts.len());
        let mut search = ReceivedSearch {
            is_without_rows: true,
            filter,
            predicates: tenant,
            ..ReceivedSearch::new(SearchSubject::Words(query), NonZeroUsize::MIN)
        };
        let question = self.question(&name, &mut search, &admission).await?;
        timed.note_question(&question);
        let index = question.routed.index.clone();
        let waits = Instant::now();
        let taken_up = self.wait_for(&index, name, &search, &admission).await;
        timed.note_wait(waits.elapsed());
        taken_up?;
        let requested = question.routed.requested.clone();
        let options = text_options(&index.identity)?;
        let bytes: usize = texts.iter().flatten().map(Bytes::len).sum();
        let rows = texts.len().max(bytes / BYTES_OF_ROW);
        let work = move || -> Result<Vec<Option<A>>, SearchError> {
            let Some(query) = question.subject.text_query() else {
                return Err(SearchError::Internal(
                    "words are a query on texts".to_owned(),
                ));
            };
            let tenant = question.tenant.as_deref();
            let statistics = index.content.text_statistics(query, tenant)?;
            let measure = TextMeasure {
                query,
                statistics: &statistics,
                options,
            };
            let looks = texts.iter().map(|text| {
                let text = std::str::from_utf8(text.as_ref()?).ok()?;
                look(text, &measure)
            });
            Ok(looks.collect())
        };
        let answer = self.compute.search(admission.deadline, rows, work).await;
        let answer = answer.map_err(|error| self.not_searched(&error))??;
        self.count(&requested, timed.note_answer(None));
        Ok(answer)
    }
}
