//! Contenders measured in turn, over the settings that matter.
//!
//! First each contender answers all queries with ever wider beams, which gives the recall of each
//! width. The widths around the recalls asked for are then timed in rounds. In each round every
//! contender has its turn, with the same queries, and times all its widths; the order of turns
//! shifts from round to round. Ratios are taken within a round, where contenders met the same
//! machine, and only then is the median over the rounds taken.

use contender::{DataSet, Effort, Elapsed, Pick, Searched, Width};

use crate::contenders::Process;
use crate::front::{self, Measured, Place};
use crate::statistics::median;

/// Each beam is wider than the one before by this factor, or by one.
const BEAM_GROWTH: f64 = 1.4;
/// No beam is wider.
const BEAM_MAX: usize = 2_048;
/// No wider beams are tried when this recall is reached.
const RECALL_ENOUGH: f64 = 0.996;
/// Queries that a turn begins with and does not count: caches are another contender's.
const WARM_UP: usize = 50;
/// Queries in a round, at the least.
const QUERIES_A_ROUND: usize = 400;

/// What to measure.
pub struct Plan<'a> {
    pub k: usize,
    /// The recalls that ratios are wanted at. Widths around them are timed; all if there are none.
    pub recalls: &'a [f64],
    pub rounds: usize,
    /// The beams to try; chosen by recall where none are given.
    pub beams: &'a [usize],
    /// How many candidates are rescored, by contenders that can be told; each with every beam.
    /// None for the contender's own choice.
    pub rescored: &'a [Option<usize>],
}

/// Queries that are looked at together: all, or those of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// Of the results: the data set, and the kind where there are several.
    pub name: String,
    kinds: Vec<usize>,
}

/// All queries, and where there are several kinds each of them.
pub fn scopes(data: &DataSet) -> Vec<Scope> {
    let description = data.description();
    let kinds = &description.kinds;
    let mut scopes = vec![Scope {
        name: description.name.clone(),
        kinds: (0..kinds.len()).collect(),
    }];
    if kinds.len() > 1 {
        scopes.extend(kinds.iter().enumerate().map(|(number, kind)| Scope {
            name: format!("{}/{}", description.name, kind.name),
            kinds: vec![number],
        }));
    }
    scopes
}

/// What was measured of one contender.
pub struct Curve {
    /// Its name.
    pub contender: String,
    /// Each width measured, by ascending beam.
    pub settings: Vec<Setting>,
}

/// What was measured of one width.
pub struct Setting {
    pub width: Width,
    /// For each kind, of all queries.
    recall: Vec<Searched>,
    /// For each round and kind. None at all if the width was not timed.
    rounds: Vec<Vec<Searched>>,
    /// What a search costs, where the contender can tell.
    pub effort: Option<Effort>,
}

impl Setting {
    /// Of all queries in the scope.
    pub fn recall(&self, scope: &Scope, k: usize) -> f64 {
        let of = |count: fn(&Searched) -> usize| -> f64 {
            scope
                .kinds
                .iter()
                .map(|&kind| count(&self.recall[kind]))
                .sum::<usize>() as f64
        };
        of(|searched| searched.found) / (of(|searched| searched.queries) * k as f64)
    }

    /// Time a query in one round.
    pub fn of_round(&self, scope: &Scope, round: usize) -> Elapsed {
        let of_kinds = || scope.kinds.iter().map(|&kind| &self.rounds[round][kind]);
        let queries: usize = of_kinds().map(|searched| searched.queries).sum();
        of_kinds().map(|searched| searched.elapsed).sum::<Elapsed>() / queries as f64
    }

    /// Seconds of processor time a query in the median round. None if the width was not timed.
    pub fn seconds(&self, scope: &Scope) -> Option<f64> {
        self.median(scope, |elapsed| elapsed.cpu_seconds)
    }

    /// Seconds on the wall a query in the median round.
    pub fn wall_seconds(&self, scope: &Scope) -> Option<f64> {
        self.median(scope, |elapsed| elapsed.wall_seconds)
    }

    fn median(&self, scope: &Scope, of: fn(Elapsed) -> f64) -> Option<f64> {
        let rounds = 0..self.rounds.len();
        let mut seconds: Vec<f64> = rounds
            .map(|round| of(self.of_round(scope, round)))
            .collect();
        median(&mut seconds)
    }
}

impl Curve {
    /// The widths that were timed.
    fn timed(&self, scope: &Scope, k: usize) -> Vec<(usize, Measured)> {
        let settings = self.settings.iter().enumerate();
        settings
            .filter_map(|(number, setting)| {
                let measured = Measured {
                    recall: setting.recall(scope, k),
                    seconds: setting.seconds(scope)?,
                };
                Some((number, measured))
            })
            .collect()
    }

    /// Where a recall lies among the widths that were timed. The numbers are those of
    /// [`Curve::settings`].
    pub fn place(&self, scope: &Scope, k: usize, recall: f64) -> Option<Place> {
        let (numbers, measured): (Vec<usize>, Vec<Measured>) =
            self.timed(scope, k).into_iter().unzip();
        let front = front::front(&measured);
        Some(match front::place(&measured, &front, recall)? {
            Place::Below(setting) => Place::Below(numbers[setting]),
            Place::Between(low, high, share) => Place::Between(numbers[low], numbers[high], share),
        })
    }
}

/// A contender whose index has been built.
pub struct Entrant {
    /// As results have it.
    pub name: String,
    /// Whether it can be told how many candidates to rescore.
    pub rescores: bool,
    /// Where its index is.
    pub process: Process,
}

/// Measures the contenders.
pub fn sweep(
    data: &DataSet,
    contenders: &mut [Entrant],
    plan: &Plan<'_>,
) -> anyhow::Result<Vec<Curve>> {
    let about = data.description();
    let scopes = scopes(data);
    let mut curves = Vec::new();
    let mut timed = Vec::new();
    for contender in contenders.iter_mut() {
        eprintln!(
            "{}: k = {}: recall of {}",
            about.name, plan.k, contender.name
        );
        let mut settings = Vec::new();
        let mut numbers = Vec::new();
        for ladder in widths(data, contender, plan)? {
            let first = settings.len();
            numbers.extend(
                around(&scopes, &ladder, plan)
                    .iter()
                    .map(|number| first + number),
            );
            settings.extend(ladder);
        }
        curves.push(Curve {
            contender: contender.name.clone(),
            settings,
        });
        timed.push(numbers);
    }
    let rarest = about.kinds.iter().map(|kind| kind.queries).min();
    let step = (rarest.unwrap_or(0) / QUERIES_A_ROUND).clamp(1, plan.rounds.max(1));
    for round in 0..plan.rounds {
        eprintln!(
            "{}: k = {}: round {} of {}",
            about.name,
            plan.k,
            round + 1,
            plan.rounds
        );
        let pick = Pick {
            first: round % step,
            step,
        };
        for turn in 0..contenders.len() {
            let who = (turn + round) % contenders.len();
            take_turn(
                data,
                &mut contenders[who],
                &mut curves[who],
                &timed[who],
                plan.k,
                pick,
            )?;
        }
    }
    for (contender, (curve, timed)) in contenders.iter_mut().zip(curves.iter_mut().zip(&timed)) {
        for &number in timed {
            let setting = &mut curve.settings[number];
            setting.effort = contender
                .process
                .effort(plan.k, setting.width, warm_up(data))?;
        }
    }
    Ok(curves)
}

/// One contender times its widths with the queries of a round.
fn take_turn(
    data: &DataSet,
    contender: &mut Entrant,
    curve: &mut Curve,
    timed: &[usize],
    k: usize,
    pick: Pick,
) -> anyhow::Result<()> {
    if let Some(&first) = timed.first() {
        contender
            .process
            .search(k, curve.settings[first].width, warm_up(data))?;
    }
    for &number in timed {
        let setting = &mut curve.settings[number];
        setting
            .rounds
            .push(contender.process.search(k, setting.width, pick)?);
    }
    Ok(())
}

/// A few queries of each kind.
fn warm_up(data: &DataSet) -> Pick {
    let step = (data.description().queries() / WARM_UP).max(1);
    Pick { first: 0, step }
}

/// The recall of ever wider searches, for each count of rescored candidates.
fn widths(
    data: &DataSet,
    contender: &mut Entrant,
    plan: &Plan<'_>,
) -> anyhow::Result<Vec<Vec<Setting>>> {
    let rescored = match contender.rescores {
        true => plan.rescored,
        false => &[None],
    };
    let of_count = |&rescored: &Option<usize>| ladder(data, &mut contender.process, plan, rescored);
    rescored.iter().map(of_count).collect()
}

/// The recall of ever wider searches that rescore so many candidates.
fn ladder(
    data: &DataSet,
    process: &mut Process,
    plan: &Plan<'_>,
    rescored: Option<usize>,
) -> anyhow::Result<Vec<Setting>> {
    let mut settings = Vec::new();
    // No beam is narrower than what it is to find and to rescore.
    let mut beam = plan.k.max(rescored.unwrap_or(0));
    let mut given = plan.beams.iter().copied();
    let scopes = scopes(data);
    loop {
        if !plan.beams.is_empty() {
            match given.next() {
                Some(next) => beam = next,
                None => break,
            }
        }
        let width = Width { beam, rescored };
        let setting = Setting {
            width,
            recall: process.search(plan.k, width, Pick::ALL)?,
            rounds: Vec::new(),
            effort: None,
        };
        let recalls = scopes.iter().map(|scope| setting.recall(scope, plan.k));
        let enough = recalls.fold(1.0, f64::min) >= RECALL_ENOUGH;
        settings.push(setting);
        if plan.beams.is_empty() && (enough || beam >= BEAM_MAX) {
            break;
        }
        beam = ((beam as f64 * BEAM_GROWTH) as usize)
            .max(beam + 1)
            .min(BEAM_MAX);
    }
    Ok(settings)
}

/// Which widths of a ladder are to be timed: for each recall wanted, in each scope, the narrowest
/// beam that reaches it and the one before. All of them where beams were given.
fn around(scopes: &[Scope], ladder: &[Setting], plan: &Plan<'_>) -> Vec<usize> {
    if plan.recalls.is_empty() || !plan.beams.is_empty() {
        return (0..ladder.len()).collect();
    }
    let mut timed = Vec::new();
    for scope in scopes {
        for &recall in plan.recalls {
            let above = ladder
                .iter()
                .position(|setting| setting.recall(scope, plan.k) >= recall);
            let above = above.unwrap_or(ladder.len() - 1);
            timed.extend([above.saturating_sub(1), above]);
        }
    }
    timed.sort_unstable();
    timed.dedup();
    timed
}
