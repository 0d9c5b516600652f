//! Things that a process does, as the seed has them: writes, searches, changes of indexes, faults.

use super::*;

impl World {
    pub(super) async fn act(&mut self, process: &mut Process) -> Result<(), Failure> {
        match self.random.below(100) {
            0..55 => {
                let answers = self.send_some(process)?;
                if self.random.one_in(3) {
                    self.search_filtered(process).await?;
                }
                all(answers).await;
                if self.random.one_in(2) {
                    self.search(process).await?;
                    self.search_filtered(process).await?;
                }
            }
            55..75 => {
                let millis = self.random.below(3000);
                pass(millis).await;
            }
            75..78 => self.step_clock(),
            78..82 => {
                let batches = self.random.below(4);
                self.tell(format!("-- a write fails after {batches} batches"));
                self.disk.fail_after(batches);
            }
            82..84 => {
                self.tell("-- the disk is full".to_owned());
                self.disk.set_full(true);
                self.files.set_full(true);
                all(self.send_some(process)?).await;
                let millis = self.random.below(4000);
                pass(millis).await;
                self.disk.set_full(false);
                self.files.set_full(false);
                self.tell("-- there is room again".to_owned());
            }
            84..88 => {
                let steps = self.random.below(30);
                self.tell(format!("-- a file fails after {steps} steps"));
                self.files.fail_after(steps);
            }
            88..91 => {
                self.search(process).await?;
                self.search_filtered(process).await?;
            }
            91..94 => self.read_log(process).await?,
            94 => self.change_index(process).await,
            95 => self.change_secondary(process).await,
            96 => {
                let truncated = process.storage.truncate(table::id()).await;
                self.tell(format!("truncated: {:?}", truncated.is_ok()));
                if truncated.is_ok() {
                    lock(&self.model).truncate();
                    self.search(process).await?;
                }
            }
            _ => {
                self.heal(process).await?;
                self.check_all(process).await?;
            }
        }
        Ok(())
    }

    /// Drops the index, and mostly creates another one in its place.
    async fn change_index(&mut self, process: &Process) {
        self.version += 1;
        let version = (!self.random.one_in(4)).then_some(self.version);
        let changed = process
            .storage
            .change_catalog(move |catalog| table::change_index(catalog, version))
            .await;
        self.tell(format!("index {version:?}: {}", changed.is_ok()));
        if changed.is_ok() {
            self.has_index = version.is_some();
        }
    }

    /// Makes or drops the secondary index, whose column the other index keeps, too.
    async fn change_secondary(&mut self, process: &Process) {
        self.version += 1;
        let version = self.version;
        let changed = process
            .storage
            .change_catalog(move |catalog| table::change_secondary(catalog, version))
            .await;
        self.tell(format!("secondary index: {}", changed.is_ok()));
    }

    /// The effect of some kind of write.
    fn effect(&mut self) -> Effect {
        let key = (
            self.random.below(PARTITIONS) as i32,
            self.random.below(CLUSTERINGS) as i32,
        );
        match self.random.below(20) {
            0..2 => Effect::DeleteRow(key),
            2 => Effect::DeletePartition(key.0),
            3 => {
                let last = key.1 + self.random.below(3) as i32;
                Effect::DeleteRange(key.0, key.1, last)
            }
            4 => Effect::Row {
                key,
                vector: Some(None),
                numbers: [None; 3],
                marker: false,
                ttl_s: None,
            },
            5 | 6 => Effect::Row {
                key,
                vector: None,
                numbers: self.numbers(1),
                marker: self.random.one_in(2),
                ttl_s: self.ttl_s(),
            },
            _ => {
                let element = |random: &mut Random| random.below(200) as i8;
                let vector = [element(&mut self.random), element(&mut self.random)];
                Effect::Row {
                    key,
                    vector: Some(Some(vector)),
                    numbers: self.numbers(2),
                    marker: !self.random.one_in(3),
                    ttl_s: self.ttl_s(),
                }
            }
        }
    }

    /// The numbers of a write: one column in `one_in` gets one, or loses it.
    fn numbers(&mut self, one_in: u64) -> [Option<Option<i32>>; 3] {
        let random = &mut self.random;
        [(); 3].map(|()| {
            let number = random.below(table::NUMBERS_BELOW) as i32;
            let is_there = !random.one_in(8);
            random.one_in(one_in).then_some(is_there.then_some(number))
        })
    }

    fn ttl_s(&mut self) -> Option<u32> {
        let is_to_expire = self.random.one_in(5);
        is_to_expire.then(|| 1 + self.random.below(20) as u32)
    }

    /// Sends some writes at once. The results end with their answers.
    pub(super) fn send_some(&mut self, process: &Process) -> Result<Vec<JoinHandle<()>>, Failure> {
        let count = 1 + self.random.below(4);
        let mut sent = Vec::new();
        for _ in 0..count {
            let effect = self.effect();
            self.writes += 1;
            let clock = process.storage.clock();
            let is_given = !self.random.one_in(5);
            let timestamp = if is_given {
                clock.next_write_micros()
            } else {
                // This is a time that a client gives; no other write has the same.
                let around_s = match effect.deletes_rows() && self.random.one_in(2) {
                    // The log row of such a deletion is dated ahead.
                    true => self.random.below(5) as i64,
                    false => self.random.below(8000) as i64 - 6000,
                };
                (clock.now_micros() + around_s * S) / S * S + self.writes * 37 % S
            };
            let before = self.given.load(Ordering::Relaxed);
            if is_given && timestamp <= before {
                return Err(format!(
                    "time went back: a write gets {timestamp}, and one was acknowledged with {before}"
                ));
            }
            sent.push(self.send(process, effect, timestamp, is_given));
        }
        Ok(sent)
    }

    fn send(
        &self,
        process: &Process,
        effect: Effect,
        timestamp: i64,
        is_given: bool,
    ) -> JoinHandle<()> {
        let given = self.given.clone();
        let (model, trace) = (self.model.clone(), self.trace.clone());
        let storage = process.storage.clone();
        let number = self.writes;
        let from_s = storage.clock().now_s();
        let at = {
            let mut model = lock(&model);
            model.sent.push(Sent {
                effect: effect.clone(),
                timestamp,
                fate: Fate::Unknown,
                within_s: (from_s, i64::MAX / 2),
            });
            model.sent.len() - 1
        };
        trace.tell(format!("write {number} at {timestamp}: {effect:?}"));
        tokio::spawn(async move {
            let answer = storage.write(table::write(&effect, timestamp)).await;
            let fate = match &answer {
                Ok(_) => Fate::Acknowledged,
                Err(StorageError::Closed) => Fate::Unknown,
                Err(_) => Fate::Refused,
            };
            trace.tell(format!("write {number}: {fate:?}"));
            if is_given && fate == Fate::Acknowledged {
                given.fetch_max(timestamp, Ordering::Relaxed);
            }
            let mut model = lock(&model);
            // The model may have been emptied meanwhile.
            if let Some(sent) = model
                .sent
                .get_mut(at)
                .filter(|sent| sent.timestamp == timestamp)
            {
                sent.fate = fate;
                sent.within_s.1 = storage.clock().now_s();
            }
        })
    }

    /// Searches, and checks that the answer, if there is one, is made of the table as it is: all
    /// writes up to here are in it, and none is on its way.
    pub(super) async fn search(&mut self, process: &Process) -> Result<(), Failure> {
        let before = table::rows(&process.storage);
        let found = process
            .local
            .search(
                table::KEYSPACE,
                table::INDEX,
                VectorSearch::new(vec![1.0, 1.0], 1000),
            )
            .await;
        let after = table::rows(&process.storage);
        self.tell(format!("a search: {}", found.is_ok()));
        // Rows that expire meanwhile may be in the answer or not.
        if let (Ok(found), Ok(before), Ok(after)) = (found, before, after)
            && before == after
        {
            let is_short = found.is_short;
            let (found, expected) = (found_scores(&found), scores(&before));
            // What has had no room is missing, and the answer says so.
            let fits = match is_short {
                true => is_part_of(&found, &expected),
                false => found == expected,
            };
            if !fits {
                return Err(format!(
                    "a search of the index finds {found:?} where the table has {expected:?}"
                ));
            }
            self.tell(format!("it finds the {} rows of the table", found.len()));
        }
        Ok(())
    }

    /// Searches with a filter, and checks the answer, if there is one. Writes may be on their way.
    async fn search_filtered(&mut self, process: &Process) -> Result<(), Failure> {
        let has_own_index = table::secondary(&process.storage).is_some();
        let search = Search::random(&mut self.random, has_own_index);
        // There may be no index, or none yet, or it waits for reads that fail.
        self.ask(process, &search).await.map(drop)
    }

    /// Asks for the answer to a search, and checks it.
    pub(super) async fn ask(
        &mut self,
        process: &Process,
        search: &Search,
    ) -> Result<Result<Vec<Found>, CqlError>, Failure> {
        let clock = process.storage.clock();
        let (open, from_s) = (lock(&self.model).open(), clock.now_s());
        self.tell(format!("{search}"));
        let answer = search.ask(&process.node).await;
        let seen = lock(&self.model).seen(&open, from_s, clock.now_s());
        match &answer {
            Ok(found) => {
                let keys: Vec<Key> = found.iter().map(|found| found.key).collect();
                self.tell(format!("it finds {keys:?}"));
                if let Some(fault) = search.fault(found, &seen) {
                    return Err(format!("a wrong answer of {search}: {fault}"));
                }
                *self.found.entry(search.kind()).or_default() += found.len();
            }
            Err(error) => self.tell(format!("it fails: {error}")),
        }
        Ok(answer)
    }
}
