//! Writes the page.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;

use super::contenders::{BUILD_BEAM, Results, Searched};
use super::lines::{lines, name, or_dash};
use super::measure::Measured;
use super::verdict::Verdict;
use super::{EF_OF_OTHER_M, M, QUERIES};

/// The parameters at which the page sums up.
const SUMMED_UP: (usize, usize) = (M, EF_OF_OTHER_M);

/// Writes the page `report.md`, and says where and how many lines miss.
pub fn write(measured: &[Measured], took: Duration, folder: &Path) -> anyhow::Result<()> {
    let page = page(measured, took)?;
    let path = folder.join("report.md");
    fs::write(&path, page).with_context(|| path.display().to_string())?;
    let all = || measured.iter().flat_map(lines);
    let misses = all().filter(|line| line.verdict().is_some_and(|verdict| !verdict.passes()));
    let mut sets: Vec<String> = misses.map(|line| line.name()).collect();
    let count = sets.len();
    sets.dedup();
    println!(
        "{count} of {} lines miss, on {} of {} sets: {}",
        all().filter(|line| line.verdict().is_some()).count(),
        sets.len(),
        measured.len(),
        sets.join(", ")
    );
    eprintln!("{} has all of it", path.display());
    Ok(())
}

fn page(measured: &[Measured], took: Duration) -> Result<String, std::fmt::Error> {
    let mut page = String::new();
    writeln!(
        page,
        "# Recall on data of many kinds\n\n\
         Annulus beside hnswlib and usearch (f32) at the same parameters: `ef_construction` {BUILD_BEAM}, {QUERIES} \
         queries, each a new vector of the same kind. Recall is the share of the true nearest that is found; \
         a vector that is equally far as the last of them counts. A line misses where ours is below hnswlib's \
         by more than 0.005 (0.01 after deletes) and two standard errors of the difference. q/s are queries a \
         second of processor time of one thread. After deletes hnswlib's index is a new one of the rows left. \
         All defaults hold for Annulus, whose walks may be wider than `ef`.\n\n\
         Measured in {:.0} minutes ({}).\n",
        took.as_secs_f64() / 60.0,
        versions(measured)
    )?;
    sum_up(&mut page, measured)?;
    misses(&mut page, measured)?;
    table(&mut page, measured)?;
    builds(&mut page, measured)?;
    kinds(&mut page, measured)?;
    Ok(page)
}

fn versions(measured: &[Measured]) -> String {
    let builds = || measured.iter().flat_map(|measured| &measured.builds);
    let rivals = builds().flat_map(|build| [&build.hnswlib, &build.usearch].into_iter().flatten());
    let ours = builds().map(|build| &build.ours);
    let mut versions: Vec<&str> = ours
        .chain(rivals)
        .map(|results| results.version.as_str())
        .collect();
    versions.sort_unstable();
    versions.dedup();
    versions.join("; ")
}

/// A number of searches at one parameter: how many pass.
fn sum_up(page: &mut String, measured: &[Measured]) -> std::fmt::Result {
    writeln!(
        page,
        "| m | ef | k | sets | pass | miss | least recall | hnswlib's least | speed next to hnswlib, median |"
    )?;
    writeln!(
        page,
        "| --: | --: | --: | --: | --: | --: | --: | --: | --: |"
    )?;
    let mut keys: Vec<(usize, usize, usize)> = measured
        .iter()
        .flat_map(lines)
        .map(|line| (line.build.m, line.ours.ef, line.ours.k))
        .collect();
    keys.sort_unstable();
    keys.dedup();
    for (m, ef, k) in keys {
        let all = || measured.iter().flat_map(lines);
        let here = || all().filter(|line| (line.build.m, line.ours.ef, line.ours.k) == (m, ef, k));
        let verdicts: Vec<Verdict> = here().filter_map(|line| line.verdict()).collect();
        let passes = verdicts.iter().filter(|verdict| verdict.passes()).count();
        let least = |recalls: &mut dyn Iterator<Item = f64>| recalls.fold(1.0, f64::min);
        let mut ratios: Vec<f64> = here()
            .filter_map(|line| Some(line.ours.rate() / line.hnswlib?.rate()))
            .collect();
        writeln!(
            page,
            "| {m} | {ef} | {k} | {} | {passes} | {} | {:.4} | {:.4} | {:.2} |",
            here().count(),
            verdicts.len() - passes,
            least(&mut here().map(|line| line.ours.recall())),
            least(&mut here().filter_map(|line| Some(line.hnswlib?.recall()))),
            crate::statistics::median(&mut ratios).unwrap_or(f64::NAN),
        )?;
    }
    writeln!(page)
}

/// The misses at the parameters of the issue.
fn misses(page: &mut String, measured: &[Measured]) -> std::fmt::Result {
    let (m, ef) = SUMMED_UP;
    writeln!(page, "## Misses at m = {m}, ef = {ef}\n")?;
    writeln!(page, "| set | k | ours | hnswlib | differs | allowed |")?;
    writeln!(page, "| --- | --: | --: | --: | --: | --: |")?;
    let all = measured.iter().flat_map(lines);
    for line in all.filter(|line| (line.build.m, line.ours.ef) == (m, ef)) {
        let (Some(verdict), Some(hnswlib)) = (line.verdict(), line.hnswlib) else {
            continue;
        };
        if !verdict.passes() {
            writeln!(
                page,
                "| {} | {} | {:.4} | {:.4} | {:+.4} | {:.4} |",
                line.name(),
                line.ours.k,
                line.ours.recall(),
                hnswlib.recall(),
                verdict.difference,
                verdict.allowed
            )?;
        }
    }
    writeln!(page)
}

fn table(page: &mut String, measured: &[Measured]) -> std::fmt::Result {
    writeln!(
        page,
        "## All lines\n\nRecall, then queries a second of processor time.\n"
    )?;
    writeln!(
        page,
        "| set | m | ef | k | ours | hnswlib | usearch | | q/s ours | hnswlib | usearch | our searches |"
    )?;
    writeln!(
        page,
        "| --- | --: | --: | --: | --: | --: | --: | --- | --: | --: | --: | --- |"
    )?;
    for line in measured.iter().flat_map(lines) {
        writeln!(
            page,
            "| {} | {} | {} | {} | {:.4} | {} | {} | {} | {:.0} | {} | {} | {} |",
            line.name(),
            line.build.m,
            line.ours.ef,
            line.ours.k,
            line.ours.recall(),
            or_dash(line.hnswlib, Searched::recall, 4),
            or_dash(line.usearch, Searched::recall, 4),
            line.verdict().map_or("-", |verdict| verdict.word()),
            line.ours.rate(),
            or_dash(line.hnswlib, Searched::rate, 0),
            or_dash(line.usearch, Searched::rate, 0),
            line.work(),
        )?;
    }
    writeln!(page)
}

fn builds(page: &mut String, measured: &[Measured]) -> std::fmt::Result {
    writeln!(
        page,
        "## Builds\n\nProcessor seconds on one thread, changes included, and the bytes of memory that a \
         vector of ours takes.\n"
    )?;
    writeln!(
        page,
        "| set | m | vectors | ours | hnswlib | usearch | bytes a vector |"
    )?;
    writeln!(page, "| --- | --: | --: | --: | --: | --: | --: |")?;
    for measured in measured {
        for build in &measured.builds {
            let seconds = |results: &Option<Results>| {
                let results = results.as_ref();
                results.map_or("-".into(), |results| {
                    format!("{:.1}", results.build_seconds)
                })
            };
            writeln!(
                page,
                "| {} | {} | {} | {:.1} | {} | {} | {:.0} |",
                name(measured),
                build.m,
                measured.vectors,
                build.ours.build_seconds,
                seconds(&build.hnswlib),
                seconds(&build.usearch),
                build.ours.bytes.unwrap_or(f64::NAN),
            )?;
        }
    }
    writeln!(page)
}

fn kinds(page: &mut String, measured: &[Measured]) -> std::fmt::Result {
    writeln!(page, "## The sets\n")?;
    writeln!(page, "| set | vectors | dimensions | distance | seed | |")?;
    writeln!(page, "| --- | --: | --: | --- | --: | --- |")?;
    for measured in measured {
        let set = &measured.job.set;
        writeln!(
            page,
            "| {} | {} | {} | {:?} | {} | {} |",
            name(measured),
            measured.vectors,
            set.dimensions,
            set.metric,
            measured.job.seed,
            set.about
        )?;
    }
    let again = measured.iter().find(|measured| measured.job.drawn_anew);
    if let Some(again) = again {
        let seed = again.job.seed;
        writeln!(
            page,
            "\nSets with seed {seed} are made again by `bench-ann recall --seed {seed} --set NAME`."
        )?;
    }
    Ok(())
}
