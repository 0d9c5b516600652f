//! Line charts as SVG, to be put into a page.

use std::fmt::Write as _;

/// Colours that are told apart by those who see colours differently too (Okabe and Ito).
const COLOURS: &[&str] = &[
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c6d31", "#666666",
];
const WIDTH: f64 = 620.0;
const HEIGHT: f64 = 340.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 46.0;
const TICKS: usize = 6;
const LEGEND_LINE: f64 = 18.0;

/// A chart.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Above it.
    pub title: String,
    /// Below it, with the unit.
    pub x_label: String,
    /// Beside it, with the unit.
    pub y_label: String,
    /// Whether the lengths upwards are logarithms.
    pub y_scale: Scale,
    /// Its lines.
    pub series: Vec<Series>,
}

/// How values become lengths.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// From zero.
    Linear,
    /// Powers of ten at equal distances; values above zero only.
    Logarithmic,
}

/// A line.
#[derive(Clone, Debug)]
pub struct Series {
    /// In the legend.
    pub name: String,
    /// `(x, y)`, joined in this order.
    pub points: Vec<(f64, f64)>,
}

impl Chart {
    /// The chart, or nothing if it would be empty.
    pub fn svg(&self) -> Option<String> {
        let drawable = |y: f64| y.is_finite() && (self.y_scale == Scale::Linear || y > 0.0);
        let points = || self.series.iter().flat_map(|series| &series.points);
        let xs = || points().map(|point| point.0);
        let ys = || points().map(|point| point.1).filter(|&y| drawable(y));
        ys().next()?;
        let least = |values: &mut dyn Iterator<Item = f64>| values.fold(f64::INFINITY, f64::min);
        let most = |values: &mut dyn Iterator<Item = f64>| values.fold(f64::NEG_INFINITY, f64::max);
        let x = Axis::linear(least(&mut xs()), most(&mut xs()), false);
        let y = match self.y_scale {
            Scale::Linear => Axis::linear(least(&mut ys()), most(&mut ys()), true),
            Scale::Logarithmic => Axis::logarithmic(least(&mut ys()), most(&mut ys())),
        };
        let height = HEIGHT + LEGEND_LINE * self.series.len() as f64;
        let mut svg = format!(
            r#"<svg viewBox="0 0 {WIDTH} {height}" role="img" xmlns="http://www.w3.org/2000/svg">"#
        );
        self.draw_axes(&mut svg, &x, &y);
        for (at, series) in self.series.iter().enumerate() {
            let colour = COLOURS[at % COLOURS.len()];
            let place = |&(px, py): &(f64, f64)| {
                (
                    LEFT + x.share(px) * (WIDTH - LEFT - RIGHT),
                    HEIGHT - BOTTOM - y.share(py) * (HEIGHT - TOP - BOTTOM),
                )
            };
            let drawn: Vec<_> = series
                .points
                .iter()
                .filter(|point| drawable(point.1))
                .collect();
            draw_series(&mut svg, &series.name, colour, &drawn, place);
            let line = HEIGHT + LEGEND_LINE * at as f64;
            push(
                &mut svg,
                format_args!(
                    r#"<rect x="{LEFT}" y="{line}" width="14" height="4" fill="{colour}"/><text x="{}" y="{}">{}</text>"#,
                    LEFT + 20.0,
                    line + 6.0,
                    escape(&series.name)
                ),
            );
        }
        svg.push_str("</svg>");
        Some(svg)
    }

    fn draw_axes(&self, svg: &mut String, x: &Axis, y: &Axis) {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        for &tick in &y.ticks {
            let at = bottom - y.share(tick) * (bottom - TOP);
            push(
                svg,
                format_args!(
                    r#"<line class="grid" x1="{LEFT}" x2="{right}" y1="{at:.1}" y2="{at:.1}"/><text class="end" x="{}" y="{:.1}">{}</text>"#,
                    LEFT - 6.0,
                    at + 4.0,
                    number(tick)
                ),
            );
        }
        for &tick in &x.ticks {
            let at = LEFT + x.share(tick) * (right - LEFT);
            push(
                svg,
                format_args!(
                    r#"<line class="grid" x1="{at:.1}" x2="{at:.1}" y1="{TOP}" y2="{bottom}"/><text class="middle" x="{at:.1}" y="{}">{}</text>"#,
                    bottom + 16.0,
                    number(tick)
                ),
            );
        }
        let middle = (TOP + bottom) / 2.0;
        push(
            svg,
            format_args!(
                r#"<text class="middle" x="{}" y="{}">{}</text><text class="middle" transform="rotate(-90 14 {middle})" x="14" y="{middle}">{}</text>"#,
                (LEFT + right) / 2.0,
                bottom + 36.0,
                escape(&self.x_label),
                escape(&self.y_label)
            ),
        );
    }
}

fn draw_series(
    svg: &mut String,
    name: &str,
    colour: &str,
    points: &[&(f64, f64)],
    place: impl Fn(&(f64, f64)) -> (f64, f64),
) {
    let mut path = String::new();
    for point in points {
        let (x, y) = place(point);
        push(&mut path, format_args!("{x:.1},{y:.1} "));
    }
    push(
        svg,
        format_args!(
            r#"<polyline fill="none" stroke="{colour}" stroke-width="2" points="{}"/>"#,
            path.trim_end()
        ),
    );
    for point in points {
        let (x, y) = place(point);
        push(
            svg,
            format_args!(
                r#"<circle cx="{x:.1}" cy="{y:.1}" r="3" fill="{colour}"><title>{}: {}, {}</title></circle>"#,
                escape(name),
                number(point.0),
                number(point.1)
            ),
        );
    }
}

/// Where values lie between the ends of a line.
struct Axis {
    low: f64,
    high: f64,
    logarithmic: bool,
    ticks: Vec<f64>,
}

impl Axis {
    fn linear(low: f64, high: f64, from_zero: bool) -> Axis {
        let low = if from_zero { low.min(0.0) } else { low };
        let range = if high > low {
            high - low
        } else {
            high.abs().max(1.0)
        };
        let step = round_step(range / TICKS as f64);
        let first = (low / step).floor();
        let last = (high / step).ceil().max(first + 1.0);
        let ticks: Vec<f64> = (0..=(last - first) as usize)
            .map(|at| (first + at as f64) * step)
            .collect();
        Axis {
            low: first * step,
            high: last * step,
            logarithmic: false,
            ticks,
        }
    }

    /// Both ends must be above zero.
    fn logarithmic(low: f64, high: f64) -> Axis {
        let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
        let last = last.max(first + 1);
        let (low, high) = (10_f64.powi(first), 10_f64.powi(last));
        let ticks =
            (first..=last).flat_map(|power| [1.0, 2.0, 5.0].map(|n| n * 10_f64.powi(power)));
        Axis {
            low,
            high,
            logarithmic: true,
            ticks: ticks.filter(|tick| *tick <= high * 1.001).collect(),
        }
    }

    /// 0 at the low end, 1 at the high one.
    fn share(&self, value: f64) -> f64 {
        if self.logarithmic {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        }
    }
}

/// 1, 2 or 5 times a power of ten, at least `step`.
fn round_step(step: f64) -> f64 {
    let power = 10_f64.powf(step.log10().floor());
    let digits = [1.0, 2.0, 5.0];
    let fits = digits.iter().find(|digit| *digit * power >= step * 0.999);
    fits.map_or(10.0 * power, |digit| digit * power)
}

/// A number in few digits.
fn number(value: f64) -> String {
    let digits = match value.abs() {
        0.0 => 0,
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 4,
    };
    let text = format!("{value:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// Text as it may stand in HTML and SVG.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

fn push(text: &mut String, more: std::fmt::Arguments<'_>) {
    text.write_fmt(more).expect("a string takes any text");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(y_scale: Scale, points: &[(f64, f64)]) -> Chart {
        Chart {
            title: "t".to_owned(),
            x_label: "x <s>".to_owned(),
            y_label: "y".to_owned(),
            y_scale,
            series: vec![Series {
                name: "a & b".to_owned(),
                points: points.to_vec(),
            }],
        }
    }

    #[test]
    fn every_point_is_inside() {
        for scale in [Scale::Linear, Scale::Logarithmic] {
            let points = [(1.0, 3.2), (4.0, 170.0), (25.0, 999.0)];
            let svg = chart(scale, &points).svg().unwrap();
            assert_eq!(svg.matches("<circle").count(), 3);
            for circle in svg.split("<circle").skip(1) {
                let of = |name: &str| -> f64 {
                    let (_, rest) = circle.split_once(&format!("{name}=\"")).unwrap();
                    rest.split_once('"').unwrap().0.parse().unwrap()
                };
                assert!((LEFT..=WIDTH - RIGHT).contains(&of("cx")), "{circle}");
                assert!((TOP..=HEIGHT - BOTTOM).contains(&of("cy")), "{circle}");
            }
            assert!(svg.contains("a &amp; b") && svg.contains("x &lt;s&gt;"));
        }
    }

    #[test]
    fn a_single_point_and_none() {
        assert!(chart(Scale::Linear, &[(1.0, 0.0)]).svg().is_some());
        assert!(chart(Scale::Logarithmic, &[(1.0, 1.0)]).svg().is_some());
        assert_eq!(chart(Scale::Logarithmic, &[(1.0, 0.0)]).svg(), None);
        assert_eq!(chart(Scale::Linear, &[]).svg(), None);
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(
            Axis::linear(0.0, 970.0, true).ticks,
            [0.0, 200.0, 400.0, 600.0, 800.0, 1000.0]
        );
        assert_eq!(
            Axis::logarithmic(0.3, 4.0).ticks,
            [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0]
        );
        assert_eq!(number(0.25), "0.25");
        assert_eq!(number(1200.0), "1200");
    }
}
