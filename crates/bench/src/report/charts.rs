//! Makes the charts of a set of results.

use super::axis::ChartScale;
use super::chart::{Chart, LineSeries};
use super::measurement::{ChartPoint, Measurement, ResultRecord};

/// The most lines in the chart over time. More can't be distinguished.
const LINES_OVER_TIME_MAX: usize = 8;

/// The charts of some results. Empty ones are left out when they are drawn.
pub fn charts(records: &[ResultRecord]) -> Vec<Chart> {
    let measurements = measurements(records);
    let mut charts = of_measurements(&measurements);
    charts.extend(of_points(records));
    charts
}

/// The measurements among the records.
pub fn measurements(records: &[ResultRecord]) -> Vec<&Measurement> {
    records
        .iter()
        .filter_map(|record| match record {
            ResultRecord::Measurement(measurement) => Some(&**measurement),
            ResultRecord::Environment(_) | ResultRecord::Point(_) | ResultRecord::Other => None,
        })
        .collect()
}

fn of_measurements(measurements: &[&Measurement]) -> Vec<Chart> {
    let searches: Vec<_> = measurements
        .iter()
        .filter(|m| m.operation == "search" && m.operations > 0)
        .copied()
        .collect();
    let mut ks: Vec<Option<usize>> = searches.iter().map(|m| m.k).collect();
    ks.sort_unstable();
    ks.dedup();
    let mut charts = Vec::new();
    // Searches for each number of rows have charts of their own, as their work differs and their
    // lines can't be compared.
    for k in &ks {
        let of_k: Vec<_> = searches.iter().filter(|m| m.k == *k).copied().collect();
        let mut of_searches = of_searches(&of_k);
        if let (Some(k), 2..) = (k, ks.len()) {
            for chart in &mut of_searches {
                chart.title = format!("{}, k = {k}", chart.title);
            }
        }
        charts.extend(of_searches);
    }
    charts.push(chart(
        "P99 over time",
        "seconds",
        "P99, ms",
        ChartScale::Logarithmic,
        over_time(measurements),
    ));
    charts
}

fn chart(title: &str, x: &str, y: &str, y_scale: ChartScale, series: Vec<LineSeries>) -> Chart {
    Chart {
        title: title.to_owned(),
        x_label: x.to_owned(),
        y_label: y.to_owned(),
        x_scale: ChartScale::Linear,
        y_scale,
        series,
    }
}

fn of_searches(searches: &[&Measurement]) -> Vec<Chart> {
    let closed: Vec<_> = searches
        .iter()
        .filter(|m| m.rate_asked_per_s.is_none())
        .copied()
        .collect();
    let concurrency = "requests under way at once";
    vec![
        chart(
            "Queries a second against concurrency",
            concurrency,
            "queries a second",
            ChartScale::Linear,
            by_series(&closed, |m| (m.concurrency as f64, m.rate_per_s)),
        ),
        chart(
            "P99 against concurrency",
            concurrency,
            "P99, ms",
            ChartScale::Logarithmic,
            by_series(&closed, |m| (m.concurrency as f64, m.latency_ms.p99)),
        ),
        chart(
            "Latency against queries a second",
            "queries a second",
            "latency, ms",
            ChartScale::Logarithmic,
            [("P50", 0.5), ("P99", 0.99)]
                .iter()
                .flat_map(|(name, share)| {
                    let of = |m: &Measurement| match *share {
                        0.5 => m.latency_ms.p50,
                        _ => m.latency_ms.p99,
                    };
                    let mut series = by_series(searches, |m| (m.rate_per_s, of(m)));
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
            ChartScale::Linear,
            by_series(searches, |m| (m.recall.unwrap_or(f64::NAN), m.rate_per_s))
                .into_iter()
                .filter(|series| series.points.iter().all(|point| point.0.is_finite()))
                .collect(),
        ),
    ]
}

/// Makes a line for each series, in the order of their first measurements.
fn by_series(
    measurements: &[&Measurement],
    point: impl Fn(&Measurement) -> (f64, f64),
) -> Vec<LineSeries> {
    let mut all: Vec<LineSeries> = Vec::new();
    for measurement in measurements {
        line(&mut all, &measurement.series)
            .points
            .push(point(measurement));
    }
    sort(&mut all);
    all
}

fn sort(all: &mut [LineSeries]) {
    for series in all {
        series.points.sort_by(|a, b| a.0.total_cmp(&b.0));
    }
}

/// The charts that scripts draw, in the order of their first points.
fn of_points(records: &[ResultRecord]) -> Vec<Chart> {
    let mut all: Vec<Chart> = Vec::new();
    for record in records {
        let ResultRecord::Point(point) = record else {
            continue;
        };
        let at = all.iter().position(|chart| chart.title == point.chart);
        let at = at.unwrap_or_else(|| {
            all.push(empty(point));
            all.len() - 1
        });
        line(&mut all[at].series, &point.series)
            .points
            .push((point.x, point.y));
    }
    for chart in &mut all {
        sort(&mut chart.series);
    }
    all
}

/// An empty chart for a point.
fn empty(point: &ChartPoint) -> Chart {
    let scale = match point.logarithmic {
        true => ChartScale::Logarithmic,
        false => ChartScale::Linear,
    };
    Chart {
        title: point.chart.clone(),
        x_label: point.x_label.clone(),
        y_label: point.y_label.clone(),
        x_scale: scale,
        y_scale: scale,
        series: Vec::new(),
    }
}

/// The line with a name, which is added if it is missing.
fn line<'a>(all: &'a mut Vec<LineSeries>, name: &str) -> &'a mut LineSeries {
    let at = all.iter().position(|series| series.name == name);
    let at = at.unwrap_or_else(|| {
        all.push(LineSeries {
            name: name.to_owned(),
            points: Vec::new(),
        });
        all.len() - 1
    });
    &mut all[at]
}

/// A line for each of the measurements that lasted longest.
fn over_time(measurements: &[&Measurement]) -> Vec<LineSeries> {
    let mut longest: Vec<_> = measurements
        .iter()
        .filter(|m| m.moments.len() > 1)
        .collect();
    longest.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    longest
        .iter()
        .take(LINES_OVER_TIME_MAX)
        .map(|m| LineSeries {
            name: format!("{}, {} at once", m.series, m.concurrency),
            points: m.moments.iter().map(|at| (at.second, at.p99_ms)).collect(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(concurrency: usize) -> Measurement {
        Measurement {
            series: "a".to_owned(),
            concurrency,
            rate_per_s: 10.0 * concurrency as f64,
            ..Measurement::default()
        }
    }

    #[test]
    fn points_of_a_series_are_in_order() {
        let (a, b) = (search(4), search(1));
        let series = by_series(&[&a, &b], |m| (m.concurrency as f64, m.rate_per_s));
        assert_eq!(series[0].points, [(1.0, 10.0), (4.0, 40.0)]);
    }

    #[test]
    fn each_number_of_rows_has_charts_of_its_own() {
        let of_k = |k| Measurement {
            operation: "search".to_owned(),
            operations: 1,
            k,
            ..search(1)
        };
        let titles = |ks: &[Option<usize>]| -> Vec<String> {
            let all: Vec<Measurement> = ks.iter().map(|k| of_k(*k)).collect();
            let charts = of_measurements(&all.iter().collect::<Vec<_>>());
            let rates = charts.into_iter().map(|chart| chart.title);
            rates.filter(|title| title.starts_with("Queries")).collect()
        };
        let title = "Queries a second against concurrency";
        assert_eq!(titles(&[Some(10), Some(10)]), [title]);
        assert_eq!(titles(&[None]), [title]);
        let both = [format!("{title}, k = 10"), format!("{title}, k = 100")];
        assert_eq!(titles(&[Some(100), Some(10)]), both);
    }

    #[test]
    fn scripts_draw_by_points() {
        let point = |chart: &str, series: &str, x| {
            ResultRecord::Point(ChartPoint {
                chart: chart.to_owned(),
                x_label: "vectors".to_owned(),
                y_label: "s".to_owned(),
                logarithmic: true,
                series: series.to_owned(),
                x,
                y: 1.0,
            })
        };
        let charts = of_points(&[
            point("builds", "a", 2.0),
            ResultRecord::Other,
            point("memory", "a", 1.0),
            point("builds", "b", 1.0),
            point("builds", "a", 1.0),
        ]);
        let titles: Vec<&str> = charts.iter().map(|chart| chart.title.as_str()).collect();
        assert_eq!(titles, ["builds", "memory"]);
        assert_eq!(charts[0].series[0].points, [(1.0, 1.0), (2.0, 1.0)]);
        assert_eq!(charts[0].series.len(), 2);
        assert_eq!(charts[0].x_scale, ChartScale::Logarithmic);
    }
}
