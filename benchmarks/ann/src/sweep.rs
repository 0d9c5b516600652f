//! Measures contenders in turn, with the beam widths that matter.
//!
//! First each contender answers all queries with wider and wider beams, which gives the recall of
//! each width. The widths around the recalls asked for are then timed in rounds. In each round
//! every contender has its turn: it times all its widths with the same queries. The order of turns
//! shifts from round to round. Ratios are taken within a round, in which all contenders met the
//! same machine, and then the median over the rounds is taken.

use annulus_bench::front::{self, RecallCost, RecallPosition};
use contender::{DataSet, Effort, Elapsed, Pick, Searched, Width};

use crate::contenders::Process;
use crate::statistics::median;

/// Each beam is wider than the one before by this factor, and at least by one.
const BEAM_GROWTH: f64 = 1.4;
/// The widest beam that is tried.
const BEAM_MAX: usize = 2_048;
/// The recall at which no wider beams are tried.
const RECALL_ENOUGH: f64 = 0.996;
/// The number of queries at the begin of a turn that do not count, since another contender has
/// filled the caches.
const WARM_UP: usize = 50;
/// The least number of queries of each kind in a round.
const QUERIES_A_ROUND: usize = 400;

/// The measurement that is wanted.
pub struct Plan<'a> {
    pub k: usize,
    /// The recalls that ratios are wanted at. Widths around them are timed; all widths if there are
    /// none.
    pub recalls: &'a [f64],
    pub rounds: usize,
    /// The beams to try. If there are none they are chosen by recall.
    pub beams: &'a [usize],
    /// The numbers of candidates to rescore, each tried with every beam. `None` is the contender's
    /// own choice. Only for contenders that take such a number.
    pub rescored: &'a [Option<usize>],
}

/// Queries that are evaluated together: all, or those of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The name in the results: the data set, with the kind if there are several.
    pub name: String,
    kinds: Vec<usize>,
}

/// The scope of all queries and, if there are several kinds, one for each kind.
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

/// The measurements of one contender.
pub struct Curve {
    /// The contender's name.
    pub contender: String,
    /// The measured widths; for each number of rescored candidates by ascending beam.
    pub settings: Vec<Setting>,
}

/// The measurements of one width.
pub struct Setting {
    pub width: Width,
    /// The results of all queries, for each kind.
    recall: Vec<Searched>,
    /// The results of each round, for each kind. Empty if the width was not timed.
    rounds: Vec<Vec<Searched>>,
    /// The effort of a search, if the contender tells it.
    pub effort: Option<Effort>,
}

impl Setting {
    /// The recall of all queries in the scope.
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

    /// The time of a query in one round.
    pub fn of_round(&self, scope: &Scope, round: usize) -> Elapsed {
        let of_kinds = || scope.kinds.iter().map(|&kind| &self.rounds[round][kind]);
        let queries: usize = of_kinds().map(|searched| searched.queries).sum();
        of_kinds().map(|searched| searched.elapsed).sum::<Elapsed>() / queries as f64
    }

    /// Seconds of processor time for a query in the median round; `None` if the width was not
    /// timed.
    pub fn seconds(&self, scope: &Scope) -> Option<f64> {
        self.median(scope, |elapsed| elapsed.cpu_seconds)
    }

    /// Seconds by the clock for a query in the median round; `None` if the width was not timed.
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
    /// Recall and time of the widths that were timed, with their numbers.
    fn timed(&self, scope: &Scope, k: usize) -> Vec<(usize, RecallCost)> {
        let settings = self.settings.iter().enumerate();
        settings
            .filter_map(|(number, setting)| {
                let measured = RecallCost {
                    recall: setting.recall(scope, k),
                    seconds: setting.seconds(scope)?,
                };
                Some((number, measured))
            })
            .collect()
    }

    /// The place of a recall among the widths that were timed; `None` if it is not reached. The
    /// numbers are those of [`Curve::settings`].
    pub fn place(&self, scope: &Scope, k: usize, recall: f64) -> Option<RecallPosition> {
        let (numbers, measured): (Vec<usize>, Vec<RecallCost>) =
            self.timed(scope, k).into_iter().unzip();
        let front = front::front(&measured);
        Some(match front::place(&measured, &front, recall)? {
            RecallPosition::Below(setting) => RecallPosition::Below(numbers[setting]),
            RecallPosition::Between(low, high, share) => RecallPosition::Between(numbers[low], numbers[high], share),
        })
    }
}

/// A contender whose index has been built.
pub struct Entrant {
    /// The name in the results.
    pub name: String,
    /// Whether the contender takes a number of candidates to rescore.
    pub rescores: bool,
    /// The process that has the index.
    pub process: Process,
}

/// Measures recall, time and effort of the contenders.
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

/// Times the widths of one contender with the queries of a round.
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

/// Picks about [`WARM_UP`] queries.
fn warm_up(data: &DataSet) -> Pick {
    let step = (data.description().queries() / WARM_UP).max(1);
    Pick { first: 0, step }
}

/// The recall of wider and wider searches, for each number of rescored candidates.
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

/// The recall of wider and wider searches that rescore `rescored` candidates.
fn ladder(
    data: &DataSet,
    process: &mut Process,
    plan: &Plan<'_>,
    rescored: Option<usize>,
) -> anyhow::Result<Vec<Setting>> {
    let mut settings = Vec::new();
    // A beam must be at least as wide as the numbers of rows to find and to rescore.
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

/// The numbers of the widths of a ladder to time: for each recall wanted, in each scope, the
/// narrowest beam that reaches it and the one before. If beams were given, these are all widths.
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
