//! Measures one set with all contenders.

use std::fs;

use anyhow::Context;
use vector_sets::{ChurnPattern, VectorSet};

use super::cache::Cache;
use super::contenders::{BUILD_BEAM, Results, Searched, Task, hnswlib, ours, usearch};
use super::judge::Judge;
use super::truth::Truth;
use super::{Arguments, EF_OF_OTHER_M, EFS, KS, M, QUERIES, RealVectors};

/// A set to measure.
pub struct Job {
    pub set: VectorSet,
    pub seed: u64,
    /// Whether the seed is new in this run.
    pub drawn_anew: bool,
    pub rows: usize,
    /// Links of a vector, each a build.
    pub ms: Vec<usize>,
}

/// The results of a set.
pub struct Measured {
    /// The set with its seed.
    pub job: Job,
    /// The vectors that the searches were among.
    pub vectors: usize,
    /// The results for each number of links.
    pub builds: Vec<Build>,
}

/// The results of one number of links.
pub struct Build {
    /// Links of a vector.
    pub m: usize,
    /// Pairs of beam and neighbours wanted that are shown.
    pub shown: Vec<(usize, usize)>,
    pub ours: Results,
    /// Our results of the last run before, as far as it did the same searches.
    pub before: Vec<Searched>,
    pub hnswlib: Option<Results>,
    pub usearch: Option<Results>,
}

impl Measured {
    /// Whether vectors were deleted or replaced.
    pub fn changed(&self) -> bool {
        self.job.set.changes != ChurnPattern::None
    }
}

/// Measures a set.
pub fn measure(job: &Job, real: &RealVectors, arguments: &Arguments) -> anyhow::Result<Measured> {
    let set = &job.set;
    let made = set.make(job.seed, job.rows, QUERIES, &real.real());
    let left = made.left();
    let cache = Cache::new(&arguments.folder.join("kept"), set.name, set.metric, &made)?;
    let truth = match cache.get("truth") {
        Some(limits) => Truth::of_limits(limits),
        None => {
            let (vectors, queries) = (&left.vectors, &made.queries);
            let truth = Truth::compute(set.metric, vectors, queries, made.dimensions, &KS);
            cache.put("truth", &truth.limits())?;
            truth
        }
    };
    // One folder for each seed, as a set can be measured twice at the same time.
    let work = arguments.folder.join(format!("work-{}", job.seed));
    fs::create_dir_all(&work).with_context(|| work.display().to_string())?;
    let mut builds = Vec::new();
    for &m in &job.ms {
        let (searches, shown) = searches(m, arguments)?;
        let task = Task {
            name: set.name,
            metric: set.metric,
            made: &made,
            left: &left,
            judge: Judge::new(set.metric, &left, &made.queries, made.dimensions, &truth),
            m,
            searches,
        };
        let kept = |version: &str, run: &dyn Fn() -> anyhow::Result<Results>| {
            rival(&task, &cache, version, arguments.ours_only, run)
        };
        let python = &arguments.python;
        let hnswlib = kept(hnswlib::VERSION, &|| hnswlib::run(&task, python, &work))?;
        let usearch = kept(usearch::VERSION, &|| usearch::run(&task))?;
        let asked = Task {
            searches: shown.clone(),
            judge: Judge::new(set.metric, &left, &made.queries, made.dimensions, &truth),
            ..task
        };
        let ours = ours::run(&asked, &work)?;
        builds.push(Build {
            m,
            before: exchanged(&cache, m, &ours)?,
            ours,
            shown,
            hnswlib,
            usearch,
        });
    }
    Ok(Measured {
        job: Job {
            set: set.clone(),
            ms: job.ms.clone(),
            ..*job
        },
        vectors: left.ids.len(),
        builds,
    })
}

/// A rival's results: those that are kept, or new ones.
fn rival(
    task: &Task<'_>,
    cache: &Cache,
    version: &str,
    only_kept: bool,
    run: &dyn Fn() -> anyhow::Result<Results>,
) -> anyhow::Result<Option<Results>> {
    let searches: Vec<String> = task
        .searches
        .iter()
        .map(|(ef, k)| format!("{ef}x{k}"))
        .collect();
    let what = format!("{version}-m{}-b{BUILD_BEAM}-{}", task.m, searches.join("-"));
    if let Some(kept) = cache.get(&what) {
        return Ok(Some(kept));
    }
    if only_kept {
        return Ok(None);
    }
    let results = run()?;
    cache.put(&what, &results)?;
    Ok(Some(results))
}

/// Keeps our results for the next run, and returns those of the last one.
fn exchanged(cache: &Cache, m: usize, ours: &Results) -> anyhow::Result<Vec<Searched>> {
    let mut before = Vec::new();
    for searched in &ours.searches {
        let what = format!("ours-m{m}-{}x{}", searched.ef, searched.k);
        before.extend(cache.get::<Searched>(&what));
        cache.put(&what, searched)?;
    }
    Ok(before)
}

/// Pairs of beam and neighbours wanted.
type Searches = Vec<(usize, usize)>;

/// The searches that rivals do, and those that are shown. Rivals do all that any run shows by
/// default, so that what is kept serves for each.
fn searches(m: usize, arguments: &Arguments) -> anyhow::Result<(Searches, Searches)> {
    let by_default: &[usize] = match m {
        M => &EFS,
        _ => &[EF_OF_OTHER_M],
    };
    let shown: Vec<usize> = match arguments.ef.as_slice() {
        [] => by_default.to_vec(),
        efs => efs.to_vec(),
    };
    let mut all = [by_default, &shown].concat();
    all.sort_unstable();
    all.dedup();
    let ks: Vec<usize> = match arguments.k.as_slice() {
        [] => KS.to_vec(),
        ks => ks.iter().map(|k| k.parse()).collect::<Result<_, _>>()?,
    };
    let pairs = |efs: &[usize], ks: &[usize]| -> Searches {
        let of = |ef: &usize| ks.iter().map(|k| (*ef, *k)).collect::<Vec<_>>();
        efs.iter().flat_map(of).collect()
    };
    Ok((pairs(&all, &KS), pairs(&shown, &ks)))
}
