//! Things that hold: the log, the table, the indexes and searches with filters.

use super::*;

impl World {
    /// Reads the log up to the present, up to which it is complete from then on.
    pub(super) async fn read_log(&mut self, process: &Process) -> Result<(), Failure> {
        let Some(log) = table::log(&process.storage) else {
            return Ok(());
        };
        let settled = process.storage.settle_log_to_end(log).await;
        let settled = settled.map_err(|error| format!("the log can't be read: {error}"))?;
        let up_to_micros = settled.kept_micros;
        let rows = table::log_rows(&process.storage, log);
        let mut rows = rows.map_err(|error| format!("the log can't be read: {error}"))?;
        rows.retain(|(time, _)| *time <= up_to_micros);
        self.tell(format!(
            "{} rows in the log up to {up_to_micros}",
            rows.len()
        ));
        self.reads.push(Read {
            log,
            up_to_micros,
            rows,
        });
        self.check_log(process)
    }

    /// Checks that the log still has exactly the rows that were read of it.
    pub(super) fn check_log(&self, process: &Process) -> Result<(), Failure> {
        let log = table::log(&process.storage);
        let Some(log) = log.filter(|log| self.reads.iter().any(|read| read.log == *log)) else {
            return Ok(());
        };
        let rows = table::log_rows(&process.storage, log);
        let rows = rows.map_err(|error| format!("the log can't be read: {error}"))?;
        for read in self.reads.iter().filter(|read| read.log == log) {
            let now = rows.iter().filter(|(time, _)| *time <= read.up_to_micros);
            if !now.clone().eq(&read.rows) {
                return Err(format!(
                    "the log had {} rows up to {} when it was read, and has {}",
                    read.rows.len(),
                    read.up_to_micros,
                    now.count()
                ));
            }
        }
        Ok(())
    }

    /// Has the storage take writes again, and the graphs of indexes too.
    pub(super) async fn heal(&mut self, process: &mut Process) -> Result<(), Failure> {
        process.held = None;
        if self.memory_is_out() {
            self.set_memory_out(false);
        }
        let healed = async {
            while process.storage.health() != WriteAvailability::Writable {
                pass(500).await;
            }
            // A fault that is still to come comes now.
            process.storage.settle_log(i64::MAX).await
        };
        let healed = tokio::time::timeout(PATIENCE, healed).await;
        let healed = healed.map_err(|_| "the storage takes no writes any more".to_owned())?;
        healed
            .map(drop)
            .map_err(|error| format!("the log can't be settled: {error}"))
    }

    pub(super) async fn check_all(&mut self, process: &Process) -> Result<(), Failure> {
        self.check_table(process).await?;
        self.check_log(process)?;
        self.check_secondary(process).await?;
        self.check_index(process).await?;
        self.check_texts(process).await?;
        self.check_filters(process).await
    }

    /// Checks that the table is what the writes have made of it.
    pub(super) async fn check_table(&mut self, process: &Process) -> Result<(), Failure> {
        for sent in &mut lock(&self.model).sent {
            // No one answers any more.
            sent.within_s.1 = sent.within_s.1.min(process.storage.clock().now_s());
        }
        loop {
            let now_s = process.storage.clock().now_s();
            let rows = table::rows(&process.storage);
            let rows = rows.map_err(|error| format!("the table can't be read: {error}"))?;
            let explained = lock(&self.model).explains(&rows, now_s);
            match explained {
                Some(true) => {
                    self.tell(format!("the table has {} rows, as it should", rows.len()));
                    return Ok(());
                }
                Some(false) => {
                    let expected = lock(&self.model).expected(now_s);
                    return Err(format!(
                        "the table is not what was written: {rows:?}, where it should be {expected:?}"
                    ));
                }
                // Something is about to expire.
                None => pass(1000).await,
            }
        }
    }

    /// Checks that the secondary index lacks no row, and has no others but those that wait to be
    /// swept.
    async fn check_secondary(&self, process: &Process) -> Result<(), Failure> {
        let storage = &process.storage;
        let Some(index) = table::secondary(storage) else {
            return Ok(());
        };
        let built = tokio::time::timeout(PATIENCE, storage.index_built(index)).await;
        built.map_err(|_| "the secondary index is not built".to_owned())?;
        let failed = |error| format!("the secondary index can't be read: {error}");
        let rows = table::rows(storage).map_err(failed)?;
        let numbers: BTreeSet<i32> = rows.values().filter_map(|shown| shown.numbers[0]).collect();
        for number in numbers {
            let of_number = rows
                .iter()
                .filter(|(_, shown)| shown.numbers[0] == Some(number));
            let expected: BTreeSet<Key> = of_number.map(|(key, _)| *key).collect();
            let found = table::keys_of(storage, index, number).map_err(failed)?;
            let is_swept = storage.statistics().sweeps_waiting == 0;
            if !found.is_superset(&expected) || (is_swept && found != expected) {
                return Err(format!(
                    "the secondary index has {found:?} under {number}, not {expected:?}"
                ));
            }
        }
        self.check_entries(storage, index).await?;
        self.tell("the secondary index has its rows, as it should".to_owned());
        Ok(())
    }

    /// Checks that a repair of the secondary index finds nothing to mend.
    async fn check_entries(&self, storage: &Storage, index: Uuid) -> Result<(), Failure> {
        let task = TaskRegistry::default().start(TaskSpec {
            kind: "repair",
            scope: TaskScope::default(),
            units: "keys",
            total: None,
            counters: REPAIR_COUNTERS,
            abortable: true,
        });
        let repaired = storage.repair_index(table::id(), index, &task).await;
        repaired.map_err(|error| format!("the secondary index can't be repaired: {error}"))?;
        for counter in ["entries_added", "entries_mended", "entries_removed"] {
            let count = task.counter(counter);
            if count > 0 {
                return Err(format!(
                    "a repair found entries at fault: {counter} {count}"
                ));
            }
        }
        Ok(())
    }

    /// Checks that searches with filters are answered, and rightly.
    async fn check_filters(&mut self, process: &Process) -> Result<(), Failure> {
        if !self.has_index {
            return Ok(());
        }
        let has_own_index = table::secondary(&process.storage).is_some();
        for _ in 0..FILTERS_CHECKED {
            let search = Search::random(&mut self.random, has_own_index);
            let answered = async {
                while self.ask(process, &search).await?.is_err() {
                    pass(700).await;
                }
                Ok::<(), Failure>(())
            };
            let answered = tokio::time::timeout(PATIENCE, answered).await;
            answered.map_err(|_| format!("nobody answers {search}"))??;
        }
        Ok(())
    }

    /// Checks that the index holds the rows of the table with a vector, once it has had the time.
    async fn check_index(&mut self, process: &Process) -> Result<(), Failure> {
        if !self.has_index {
            return Ok(());
        }
        let mut last = String::new();
        let equal = async {
            loop {
                let rows = table::rows(&process.storage);
                let rows = rows.map_err(|error| format!("the table can't be read: {error}"))?;
                let expected = scores(&rows);
                let found = process
                    .local
                    .search(
                        table::KEYSPACE,
                        table::INDEX,
                        VectorSearch::new(vec![1.0, 1.0], 1000),
                    )
                    .await;
                match found {
                    Ok(found) => {
                        let is_short = found.is_short;
                        let found = found_scores(&found);
                        if found == expected && !is_short {
                            return Ok(expected.len());
                        }
                        last = format!("it holds {found:?} where the table has {expected:?}");
                    }
                    Err(error) => last = error.to_string(),
                }
                pass(700).await;
            }
        };
        let equal = tokio::time::timeout(PATIENCE, equal).await;
        let rows: Result<usize, Failure> =
            equal.map_err(|_| format!("the index does not become equal to the table: {last}"))?;
        let rows = rows?;
        self.tell(format!("the index has {rows} rows, as it should"));
        Ok(())
    }

    /// Checks that the index on texts holds those of the table, once it has had the time: a word of
    /// all names each row with a text, and the word of a number those with that number.
    async fn check_texts(&mut self, process: &Process) -> Result<(), Failure> {
        if !self.has_index {
            return Ok(());
        }
        let numbers = 0..table::NUMBERS_BELOW as i32;
        let words = numbers.map(|number| (table::word_of(number), Some(number)));
        let words = words.chain([(table::COMMON_WORD.to_owned(), None)]);
        for (word, number) in words {
            let mut last = String::new();
            let equal = async {
                loop {
                    let rows = table::rows(&process.storage);
                    let rows = rows.map_err(|error| format!("the table can't be read: {error}"))?;
                    let matches = rows.iter().filter(|(_, shown)| match number {
                        Some(_) => shown.numbers[2] == number,
                        None => shown.numbers[2].is_some(),
                    });
                    let expected: BTreeSet<Key> = matches.map(|(key, _)| *key).collect();
                    let search = WordMatches::new(word.clone(), 1000);
                    let found = process
                        .local
                        .match_words(table::KEYSPACE, table::TEXT_INDEX, search)
                        .await;
                    match found {
                        Ok(page) => {
                            let found: BTreeSet<Key> =
                                page.keys.iter().map(|key| key_of(key)).collect();
                            if found == expected && !page.is_short {
                                return Ok(());
                            }
                            last = format!("{word} is in {found:?}, and in the table {expected:?}");
                        }
                        Err(error) => last = error.to_string(),
                    }
                    pass(700).await;
                }
            };
            let equal = tokio::time::timeout(PATIENCE, equal).await;
            let equal: Result<(), Failure> =
                equal.map_err(|_| format!("the texts do not become those of the table: {last}"))?;
            equal?;
        }
        self.tell("the index on texts has its rows, as it should".to_owned());
        Ok(())
    }
}
