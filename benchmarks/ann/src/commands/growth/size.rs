//! Measures build, memory and searches with one number of vectors.

use std::path::Path;

use contender::{Effort, Elapsed};
use serde::Serialize;

use super::{Arguments, RECALLS};
use crate::contenders::{Process, Rival};
use crate::data;
use crate::statistics::Spread;
use crate::sweep::{Entrant, Plan, Scope, scopes, sweep};

/// The results for one number of vectors.
#[derive(Serialize)]
pub struct Size {
    r#type: &'static str,
    dataset: String,
    contender: String,
    pub vectors: usize,
    dimensions: usize,
    k: usize,
    /// The recipe of the set, and the intrinsic dimension around the queries.
    remark: String,
    pub threads: usize,
    pub build: Elapsed,
    /// Bytes that must stay in RAM: by how much the process' anonymous memory grew, or what the
    /// index says, if that is more.
    pub bytes_in_ram: u64,
    /// The parts of the index's memory with their bytes, as the index says.
    pub components: Vec<(String, u64)>,
    /// The searches at each of [`RECALLS`] that is reached.
    pub searches: Vec<AtRecall>,
}

/// The searches of one thread at one recall.
#[derive(Serialize)]
pub struct AtRecall {
    pub recall: f64,
    /// The recall of the fastest search, if even that is above the recall asked for.
    pub recall_above: Option<f64>,
    /// Queries a second of processor time.
    pub queries_per_cpu_second: Spread,
    /// Queries a second by the clock.
    pub queries_per_second: Spread,
    /// The effort of the nearest width that reaches the recall.
    pub effort: Option<Effort>,
}

impl Size {
    /// Builds an index in a process of its own, and searches it.
    pub fn measure(
        arguments: &Arguments,
        vectors: usize,
        threads: usize,
        cache: &Path,
    ) -> anyhow::Result<Size> {
        let name = data::growing(vectors);
        let data = data::open(&name, cache)?;
        let about = data.description();
        let rival = Rival::parse(&arguments.contender)?;
        let mut process = Process::start(&rival, &cache.join(&name), false)?;
        eprintln!("{name}: building {}", arguments.contender);
        let built = process.build(threads)?;
        let mut contenders = [Entrant {
            name: arguments.contender.clone(),
            rescores: rival.rescores(),
            process,
        }];
        let k = arguments.k as usize;
        let plan = Plan {
            k,
            recalls: &RECALLS,
            rounds: arguments.rounds as usize,
            beams: &[],
            // The contender's own choice is tried, and smaller numbers, which are enough if less
            // recall is asked for.
            rescored: &[None, Some(k + k / 8 + 2), Some(k)],
        };
        let curves = sweep(&data, &mut contenders, &plan)?;
        let scope = &scopes(&data)[0];
        let searches = RECALLS
            .iter()
            .filter_map(|&recall| AtRecall::read(&curves[0], scope, (k, plan.rounds), recall))
            .collect();
        let says = built.memory.map_or(0, |memory| memory.anonymous);
        Ok(Size {
            r#type: "growth",
            dataset: name,
            contender: arguments.contender.clone(),
            vectors,
            dimensions: about.dimensions,
            k,
            remark: about.remark.clone(),
            threads,
            build: built.elapsed,
            bytes_in_ram: built.anonymous_grown.max(says),
            components: built.components,
            searches,
        })
    }

    /// The searches at one of [`RECALLS`].
    pub fn at(&self, recall: f64) -> Option<&AtRecall> {
        self.searches.iter().find(|search| search.recall == recall)
    }
}

impl AtRecall {
    fn read(
        curve: &crate::sweep::Curve,
        scope: &Scope,
        (k, rounds): (usize, usize),
        recall: f64,
    ) -> Option<AtRecall> {
        let reading = crate::ratio::read(curve, None, scope, (k, rounds), recall)?;
        let place = curve.place(scope, k, recall)?;
        let spread = |of: fn(Elapsed) -> f64| {
            let of_round = |round| {
                1.0 / place.seconds(|setting| of(curve.settings[setting].of_round(scope, round)))
            };
            Spread::of((0..rounds).map(of_round).collect())
        };
        Some(AtRecall {
            recall,
            recall_above: reading.recall_above,
            queries_per_cpu_second: spread(|elapsed| elapsed.cpu_seconds)?,
            queries_per_second: spread(|elapsed| elapsed.wall_seconds)?,
            effort: reading.effort,
        })
    }
}
