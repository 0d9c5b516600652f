//! The streams of a change log: the partitions that its rows are spread over.
//!
//! The CDC library learns them from the tables of generations and streams. It reads each generation
//! from its time until the time of the next. A log row belongs to the generation of its `cdc$time`.

/// The id of a stream, `cdc$stream_id` of its log rows.
pub(crate) type StreamId = [u8; 16];

/// The set of streams that holds from a time on, until the next generation begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GenerationStreams {
    /// The beginning of the generation. Milliseconds since the epoch.
    pub(crate) from_ms: i64,
    /// The ids of the streams, sorted. There is at least one.
    pub(crate) ids: Vec<StreamId>,
}

/// All streams of a change log, of all generations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LogStreams {
    /// The generations in the order of their times. There is at least one.
    generations: Vec<GenerationStreams>,
}

impl LogStreams {
    /// The streams of these generations, which may come in any order. `None` if there is no
    /// generation, or one without streams.
    pub(crate) fn new(mut generations: Vec<GenerationStreams>) -> Option<LogStreams> {
        generations.sort_by_key(|generation| generation.from_ms);
        let whole = generations
            .iter()
            .all(|generation| !generation.ids.is_empty());
        (whole && !generations.is_empty()).then_some(LogStreams { generations })
    }

    /// The stream of a row whose `cdc$time` is `time_ms` (milliseconds since the epoch). All rows
    /// of one partition should come with the same `partition`: a number that follows from the
    /// partition key and is evenly spread, such as the token.
    pub(crate) fn stream_of(&self, time_ms: i64, partition: u64) -> StreamId {
        // A time before all generations goes to the first one. Its row is read late, but it is
        // read.
        let after = self
            .generations
            .partition_point(|generation| generation.from_ms <= time_ms);
        let ids = &self.generations[after.saturating_sub(1)].ids;
        ids[(partition % ids.len() as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generation(from_ms: i64, first: u8, count: u8) -> GenerationStreams {
        GenerationStreams {
            from_ms,
            ids: (0..count).map(|at| [first + at; 16]).collect(),
        }
    }

    #[test]
    fn a_row_goes_to_the_generation_of_its_time_and_a_partition_to_one_stream() {
        let streams =
            LogStreams::new(vec![generation(2_000, 20, 3), generation(1_000, 10, 2)]).unwrap();
        for (time_ms, partition, stream) in [
            (1_000, 0, 10),
            (1_999, 5, 11),
            (2_000, 5, 22),
            (9_000, 3, 20),
            (5, 4, 10),
        ] {
            assert_eq!(streams.stream_of(time_ms, partition), [stream; 16]);
        }
    }

    #[test]
    fn there_are_no_streams_without_a_stream() {
        assert_eq!(LogStreams::new(Vec::new()), None);
        assert_eq!(LogStreams::new(vec![generation(0, 1, 0)]), None);
    }
}
