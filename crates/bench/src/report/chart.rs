//! Draws line charts.

use annulus_bench::spread::MedianRange;

use super::axis::{Axis, ChartScale, number};
use super::canvas::{Canvas, Colour, Place, Png, SeriesStyle, Svg, TextAnchor};

/// Colours that people with colour blindness can tell apart too (Okabe and Ito).
const COLOURS: &[Colour] = &[
    (0x00, 0x72, 0xb2),
    (0xd5, 0x5e, 0x00),
    (0x00, 0x9e, 0x73),
    (0xcc, 0x79, 0xa7),
    (0xe6, 0x9f, 0x00),
    (0x56, 0xb4, 0xe9),
    (0x8c, 0x6d, 0x31),
    (0x66, 0x66, 0x66),
];
const WIDTH: f64 = 620.0;
const HEIGHT: f64 = 340.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 30.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 46.0;
const LEGEND_LINE: f64 = 18.0;

/// A line chart.
#[derive(Clone, Debug)]
pub struct Chart {
    /// The title above the chart.
    pub title: String,
    /// The label below the chart, with the unit.
    pub x_label: String,
    /// The label next to the chart, with the unit.
    pub y_label: String,
    /// The scale of the horizontal axis.
    pub x_scale: ChartScale,
    /// The scale of the vertical axis.
    pub y_scale: ChartScale,
    /// The lines of the chart.
    pub series: Vec<LineSeries>,
}

/// A line of a chart.
#[derive(Clone, Debug)]
pub struct LineSeries {
    /// The name in the legend.
    pub name: String,
    /// Points `(x, y)`, joined in this order. Of several points that follow each other at one x,
    /// such as those of rounds, the line goes through the median.
    pub points: Vec<(f64, f64)>,
}

impl Chart {
    /// Draws the chart as SVG for a page. Returns `None` if it would be empty.
    pub fn svg(&self) -> Option<String> {
        let (x, y) = self.axes()?;
        let mut svg = Svg::new(WIDTH, self.height());
        self.draw(&mut svg, &x, &y);
        Some(svg.finish())
    }

    /// Draws the chart with its title as a PNG file. Returns `None` if it would be empty.
    pub fn png(&self) -> anyhow::Result<Option<Vec<u8>>> {
        let Some((x, y)) = self.axes() else {
            return Ok(None);
        };
        let mut png = Png::new(WIDTH, self.height());
        png.text((WIDTH / 2.0, TOP - 10.0), TextAnchor::Middle, &self.title);
        self.draw(&mut png, &x, &y);
        png.finish().map(Some)
    }

    fn height(&self) -> f64 {
        HEIGHT + LEGEND_LINE * self.series.len() as f64
    }

    /// Whether a point has a place in the chart.
    fn is_drawable(&self, &(x, y): &(f64, f64)) -> bool {
        self.x_scale.takes(x) && self.y_scale.takes(y)
    }

    /// The two axes; `None` if there is nothing to draw.
    fn axes(&self) -> Option<(Axis, Axis)> {
        let points = || {
            let points = self.series.iter().flat_map(|series| &series.points);
            points.filter(|point| self.is_drawable(point))
        };
        points().next()?;
        let ends = |of: fn(&(f64, f64)) -> f64| {
            points()
                .map(of)
                .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
                    (low.min(value), high.max(value))
                })
        };
        let (x, y) = (ends(|point| point.0), ends(|point| point.1));
        Some((
            Axis::new(self.x_scale, x, false),
            Axis::new(self.y_scale, y, true),
        ))
    }

    fn draw(&self, canvas: &mut impl Canvas, x: &Axis, y: &Axis) {
        self.draw_axes(canvas, x, y);
        for (at, series) in self.series.iter().enumerate() {
            let pen = pen(at);
            let place = |&(px, py): &(f64, f64)| {
                (
                    LEFT + x.share(px) * (WIDTH - LEFT - RIGHT),
                    HEIGHT - BOTTOM - y.share(py) * (HEIGHT - TOP - BOTTOM),
                )
            };
            let mut points = series.points.clone();
            points.retain(|point| self.is_drawable(point));
            let line: Vec<Place> = medians(&points).iter().map(place).collect();
            canvas.line(&line, pen);
            for point in &points {
                let (x, y) = (number(point.0), number(point.1));
                canvas.point(place(point), pen, &format!("{}: {x}, {y}", series.name));
            }
            let line = HEIGHT + LEGEND_LINE * at as f64;
            canvas.swatch((LEFT, line), pen);
            canvas.text((LEFT + 20.0, line + 6.0), TextAnchor::Start, &series.name);
        }
    }

    fn draw_axes(&self, canvas: &mut impl Canvas, x: &Axis, y: &Axis) {
        let (right, bottom) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        for &tick in &y.ticks {
            let at = bottom - y.share(tick) * (bottom - TOP);
            canvas.grid((LEFT, at), (right, at));
            canvas.text((LEFT - 6.0, at + 4.0), TextAnchor::End, &number(tick));
        }
        for &tick in &x.ticks {
            let at = LEFT + x.share(tick) * (right - LEFT);
            canvas.grid((at, TOP), (at, bottom));
            canvas.text((at, bottom + 16.0), TextAnchor::Middle, &number(tick));
        }
        let middle = (TOP + bottom) / 2.0;
        canvas.text(
            ((LEFT + right) / 2.0, bottom + 36.0),
            TextAnchor::Middle,
            &self.x_label,
        );
        canvas.text((14.0, middle), TextAnchor::Upwards, &self.y_label);
    }
}

/// The pen of the series with the number `at`. Twice as many can be distinguished as there are
/// colours.
fn pen(at: usize) -> SeriesStyle {
    SeriesStyle {
        colour: COLOURS[at % COLOURS.len()],
        broken: at / COLOURS.len() % 2 == 1,
    }
}

/// Replaces points that follow each other at one x by one at their median.
fn medians(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let at_one_x = points.chunk_by(|a, b| a.0 == b.0);
    let median = |rounds: &[(f64, f64)]| {
        let values: Vec<f64> = rounds.iter().map(|point| point.1).collect();
        MedianRange::of(&values).map(|spread| (rounds[0].0, spread.median))
    };
    at_one_x.filter_map(median).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(y_scale: ChartScale, points: &[(f64, f64)]) -> Chart {
        Chart {
            x_scale: ChartScale::Linear,
            title: "t".to_owned(),
            x_label: "x <s>".to_owned(),
            y_label: "y".to_owned(),
            y_scale,
            series: vec![LineSeries {
                name: "a & b".to_owned(),
                points: points.to_vec(),
            }],
        }
    }

    #[test]
    fn every_point_is_inside() {
        for scale in [ChartScale::Linear, ChartScale::Logarithmic] {
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
    fn a_line_goes_through_the_median_of_rounds() {
        let rounds = [(1.0, 2.0), (4.0, 9.0), (4.0, 3.0), (4.0, 5.0), (16.0, 7.0)];
        assert_eq!(medians(&rounds), [(1.0, 2.0), (4.0, 5.0), (16.0, 7.0)]);
        let svg = chart(ChartScale::Linear, &rounds).svg().unwrap();
        assert_eq!(svg.matches("<circle").count(), rounds.len());
    }

    #[test]
    fn as_many_lines_are_told_apart_as_there_are_pens() {
        let one = chart(ChartScale::Linear, &[(1.0, 2.0), (2.0, 3.0)]);
        let count = 2 * COLOURS.len();
        let many = Chart {
            series: vec![one.series[0].clone(); count],
            ..one
        };
        for (at, other) in (0..count).flat_map(|at| (0..at).map(move |other| (at, other))) {
            assert_ne!(pen(at), pen(other));
        }
        let svg = many.svg().unwrap();
        assert_eq!(svg.matches("stroke-dasharray").count(), COLOURS.len());
        assert_eq!(svg.matches(r#"r="3" fill="none""#).count(), count);
        // A series has a piece in the legend, or two if its line is broken.
        assert_eq!(svg.matches("<rect").count(), 3 * COLOURS.len());
    }

    #[test]
    fn a_single_point_and_none() {
        assert!(chart(ChartScale::Linear, &[(1.0, 0.0)]).svg().is_some());
        assert!(
            chart(ChartScale::Logarithmic, &[(1.0, 1.0)])
                .svg()
                .is_some()
        );
        assert_eq!(chart(ChartScale::Logarithmic, &[(1.0, 0.0)]).svg(), None);
        assert_eq!(chart(ChartScale::Linear, &[]).svg(), None);
    }

    #[test]
    fn both_scales_may_be_logarithms() {
        let chart = Chart {
            x_scale: ChartScale::Logarithmic,
            ..chart(
                ChartScale::Logarithmic,
                &[(1e4, 2.0), (1e6, 900.0), (0.0, 3.0)],
            )
        };
        let svg = chart.svg().unwrap();
        assert_eq!(svg.matches("<circle").count(), 2, "zero has no logarithm");
    }

    #[test]
    fn a_file_of_png_is_there_when_there_is_a_chart() {
        let file = chart(ChartScale::Linear, &[(1.0, 2.0)])
            .png()
            .unwrap()
            .unwrap();
        // The header has the width: two pixels for a unit.
        let width = u32::from_be_bytes(file[16..20].try_into().unwrap());
        assert_eq!(f64::from(width), 2.0 * WIDTH);
        assert_eq!(chart(ChartScale::Linear, &[]).png().unwrap(), None);
    }
}
