//! The lines of the results, printed as sets are measured.

use super::contenders::Searched;
use super::measure::{Build, Measured};
use super::verdict::Verdict;

/// A line of the table: a set with a number of links, a beam and a number of neighbours.
pub struct Line<'a> {
    pub measured: &'a Measured,
    pub build: &'a Build,
    pub ours: &'a Searched,
    /// Ours in the run before.
    pub before: Option<&'a Searched>,
    pub hnswlib: Option<&'a Searched>,
    pub usearch: Option<&'a Searched>,
}

impl Line<'_> {
    /// The comparison with hnswlib, if it was measured.
    pub fn verdict(&self) -> Option<Verdict> {
        let changed = self.measured.changed();
        Some(Verdict::new(self.ours, self.hnswlib?, changed))
    }

    /// The name of the set, with its seed if that is new.
    pub fn name(&self) -> String {
        name(self.measured)
    }

    /// Shares of the ways of our searches, and their mean work.
    pub fn work(&self) -> String {
        let work = self.ours.work.unwrap_or_default();
        let scans = 1.0 - work.walks - work.scans_of_codes;
        let ways = [
            (work.walks, "walk"),
            (work.scans_of_codes, "codes"),
            (scans, "scan"),
        ];
        let ways = ways.iter().filter(|(share, _)| *share > 1e-9);
        let ways: Vec<String> = ways
            .map(|(share, way)| format!("{:.0}% {way}", share * 100.0))
            .collect();
        format!(
            "{}, {:.0} hops, {:.0} distances, {:.0} measured",
            ways.join(" "),
            work.hops,
            work.distances,
            work.rescored
        )
    }
}

/// The name of a set, with its seed if that is new.
pub fn name(measured: &Measured) -> String {
    let name = measured.job.set.name;
    match measured.job.drawn_anew {
        true => format!("{name} (seed {})", measured.job.seed),
        false => name.to_owned(),
    }
}

/// The lines of a set.
pub fn lines(measured: &Measured) -> impl Iterator<Item = Line<'_>> {
    measured.builds.iter().flat_map(move |build| {
        build.shown.iter().filter_map(move |&(ef, k)| {
            Some(Line {
                measured,
                build,
                ours: build.ours.of(ef, k)?,
                before: (build.before.iter()).find(|before| (before.ef, before.k) == (ef, k)),
                hnswlib: build.hnswlib.as_ref().and_then(|results| results.of(ef, k)),
                usearch: build.usearch.as_ref().and_then(|results| results.of(ef, k)),
            })
        })
    })
}

/// Prints the heading of the lines on standard output. `before` is our result of the run before.
pub fn print_heading() {
    let columns = [
        "ours", "before", "hnswlib", "usearch", "q/s", "before", "hnswlib", "usearch",
    ];
    let columns = columns.map(|column| format!("{column:>7}")).join(" ");
    println!(
        "{:36} {:>2} {:>4} {:>3} {columns}  {:4} {:>8}  ways and work of ours",
        "set", "m", "ef", "k", "", "differs"
    );
}

/// Prints the lines of a set on standard output.
pub fn print(measured: &Measured) {
    for line in lines(measured) {
        let all = [Some(line.ours), line.before, line.hnswlib, line.usearch];
        let recalls = all.map(|searched| or_dash(searched, Searched::recall, 4));
        let rates = all.map(|searched| or_dash(searched, Searched::rate, 0));
        let columns = [recalls, rates].concat();
        let columns: Vec<String> = columns
            .iter()
            .map(|column| format!("{column:>7}"))
            .collect();
        let verdict = line.verdict();
        println!(
            "{:36} {:>2} {:>4} {:>3} {}  {:4} {:>8}  {}",
            line.name(),
            line.build.m,
            line.ours.ef,
            line.ours.k,
            columns.join(" "),
            verdict.map_or("-", |verdict| verdict.word()),
            verdict.map_or("-".into(), |verdict| format!("{:+.4}", verdict.difference)),
            line.work(),
        );
    }
}

/// A number of a contender's results, or a dash where there are none.
pub fn or_dash(searched: Option<&Searched>, of: fn(&Searched) -> f64, decimals: usize) -> String {
    searched.map_or("-".into(), |searched| {
        format!("{:.decimals$}", of(searched))
    })
}
