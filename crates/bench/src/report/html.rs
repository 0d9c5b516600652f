//! Results as one HTML page that needs nothing else.

use std::fmt::Write as _;

use super::chart::{Chart, Scale, Series, escape};
use super::measurement::{Environment, Measurement, Record};

const STYLE: &str = include_str!("style.css");
/// Lines in the chart over time; more can't be told apart.
const LINES_OVER_TIME_MAX: usize = 8;

/// The page.
pub fn page(records: &[Record]) -> String {
    let measurements: Vec<&Measurement> = records
        .iter()
        .filter_map(|record| match record {
            Record::Measurement(measurement) => Some(&**measurement),
            Record::Environment(_) => None,
        })
        .collect();
    let mut html = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>annulus bench</title>\
         <style>{STYLE}</style><h1>annulus bench</h1>"
    );
    for record in records {
        if let Record::Environment(environment) = record {
            write_environment(&mut html, environment);
        }
    }
    html.push_str("<div class=\"charts\">");
    for chart in charts(&measurements) {
        if let Some(svg) = chart.svg() {
            let title = escape(&chart.title);
            html.push_str(&format!(
                "<figure><figcaption>{title}</figcaption>{svg}</figure>"
            ));
        }
    }
    html.push_str("</div>");
    write_table(&mut html, &measurements);
    html.push_str("</html>\n");
    html
}

fn write_environment(html: &mut String, environment: &Environment) {
    let Environment {
        time,
        version,
        command,
        cpu,
        cores,
        system,
    } = environment;
    let line = format!("{time}, annulus {version}, {cores} cores of {cpu}, {system}");
    let (line, command) = (escape(&line), escape(command));
    html.push_str(&format!("<p>{line}<br><code>{command}</code></p>"));
}

/// The charts of what there is; empty ones are left out when they are drawn.
fn charts(measurements: &[&Measurement]) -> Vec<Chart> {
    let searches: Vec<_> = measurements
        .iter()
        .filter(|m| m.operation == "search" && m.operations > 0)
        .copied()
        .collect();
    let closed: Vec<_> = searches
        .iter()
        .filter(|m| m.rate_asked_per_s.is_none())
        .copied()
        .collect();
    let chart = |title: &str, x: &str, y: &str, y_scale, series| Chart {
        title: title.to_owned(),
        x_label: x.to_owned(),
        y_label: y.to_owned(),
        y_scale,
        series,
    };
    let concurrency = "requests under way at once";
    let latency = "latency, ms";
    vec![
        chart(
            "Queries a second against concurrency",
            concurrency,
            "queries a second",
            Scale::Linear,
            by_series(&closed, |m| (m.concurrency as f64, m.rate_per_s)),
        ),
        chart(
            "P99 against concurrency",
            concurrency,
            "P99, ms",
            Scale::Logarithmic,
            by_series(&closed, |m| (m.concurrency as f64, m.latency_ms.p99)),
        ),
        chart(
            "Latency against queries a second",
            "queries a second",
            latency,
            Scale::Logarithmic,
            [("P50", 0.5), ("P99", 0.99)]
                .iter()
                .flat_map(|(name, share)| {
                    let of = |m: &Measurement| match *share {
                        0.5 => m.latency_ms.p50,
                        _ => m.latency_ms.p99,
                    };
                    let mut series = by_series(&searches, |m| (m.rate_per_s, of(m)));
                    for series in &mut series {
                        series.name = format!("{}, {name}", series.name);
                    }
                    series
                })
                .collect(),
        ),
        chart(
            "Recall against queries a second",
            "recall",
            "queries a second",
            Scale::Linear,
            by_series(&searches, |m| (m.recall.unwrap_or(f64::NAN), m.rate_per_s))
                .into_iter()
                .filter(|series| series.points.iter().all(|point| point.0.is_finite()))
                .collect(),
        ),
        chart(
            "P99 over time",
            "seconds",
            "P99, ms",
            Scale::Logarithmic,
            over_time(measurements),
        ),
    ]
}

/// A line for each series, in the order of their first measurements.
fn by_series(
    measurements: &[&Measurement],
    point: impl Fn(&Measurement) -> (f64, f64),
) -> Vec<Series> {
    let mut all: Vec<Series> = Vec::new();
    for measurement in measurements {
        let name = &measurement.series;
        let at = all.iter().position(|series| series.name == *name);
        let at = at.unwrap_or_else(|| {
            all.push(Series {
                name: name.clone(),
                points: Vec::new(),
            });
            all.len() - 1
        });
        all[at].points.push(point(measurement));
    }
    for series in &mut all {
        series.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
    all
}

/// The measurements that lasted longest, each a line.
fn over_time(measurements: &[&Measurement]) -> Vec<Series> {
    let mut longest: Vec<_> = measurements
        .iter()
        .filter(|m| m.moments.len() > 1)
        .collect();
    longest.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    longest
        .iter()
        .take(LINES_OVER_TIME_MAX)
        .map(|m| Series {
            name: format!("{}, {} at once", m.series, m.concurrency),
            points: m.moments.iter().map(|at| (at.second, at.p99_ms)).collect(),
        })
        .collect()
}

fn write_table(html: &mut String, measurements: &[&Measurement]) {
    html.push_str(
        "<table><tr><th>what<th>at once<th>asked /s<th>answered /s<th>mean ms<th>P50<th>P90<th>P99<th>P99.9<th>max\
         <th>recall<th>failed<th>client cores<th>remarks</tr>",
    );
    for measurement in measurements {
        let asked = measurement.rate_asked_per_s;
        let latency = measurement.latency_ms;
        let mut remarks = measurement.warnings();
        let figures = measurement.figures.iter();
        remarks.extend(figures.map(|(name, value)| format!("{name}: {value:.3}")));
        write!(
            html,
            "<tr><td>{}, {}<td>{}<td>{}<td>{:.0}<td>{:.3}<td>{:.3}<td>{:.3}<td>{:.3}<td>{:.3}<td>{:.3}<td>{}<td>{}\
             <td>{:.2}<td>{}</tr>",
            escape(&measurement.operation),
            escape(&measurement.series),
            measurement.concurrency,
            asked.map_or(String::new(), |rate| format!("{rate:.0}")),
            measurement.rate_per_s,
            latency.mean,
            latency.p50,
            latency.p90,
            latency.p99,
            latency.p999,
            latency.max,
            measurement.recall.map_or(String::new(), |recall| format!("{recall:.4}")),
            measurement.failed(),
            measurement.client_cpu_cores,
            escape(&remarks.join("; ")),
        )
        .expect("a string takes any text");
    }
    html.push_str("</table>");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::LatencyMs;

    fn search(series: &str, concurrency: usize) -> Record {
        let latency_ms = LatencyMs {
            p50: 1.0,
            p99: 2.0,
            ..LatencyMs::default()
        };
        Record::Measurement(Box::new(Measurement {
            operation: "search".to_owned(),
            series: series.to_owned(),
            concurrency,
            operations: 100,
            rate_per_s: 10.0 * concurrency as f64,
            latency_ms,
            recall: Some(0.99),
            ..Measurement::default()
        }))
    }

    #[test]
    fn a_page_has_its_charts_and_rows_and_nothing_from_elsewhere() {
        let records = [search("a", 4), search("a", 1), search("<b>", 1)];
        let page = page(&records);
        // Over time there is nothing to show.
        assert_eq!(page.matches("<svg").count(), 4);
        assert_eq!(page.matches("<tr>").count(), 4);
        assert!(page.contains("&lt;b&gt;") && !page.contains("<b>"));
        assert!(!page.contains("src=") && !page.contains("href="));
    }

    #[test]
    fn points_of_a_series_are_in_order() {
        let records = [search("a", 4), search("a", 1)];
        let [Record::Measurement(a), Record::Measurement(b)] = &records else {
            unreachable!("both are measurements")
        };
        let series = by_series(&[a, b], |m| (m.concurrency as f64, m.rate_per_s));
        assert_eq!(series[0].points, [(1.0, 10.0), (4.0, 40.0)]);
    }
}
