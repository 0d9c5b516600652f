//! Draws the parts of charts: SVG within a page, or the pixels of a PNG file.

mod png;
mod svg;

pub use png::Png;
pub use svg::{Svg, escape};

/// A place, in units of the chart, from its upper left corner.
pub type Place = (f64, f64);

/// A colour as red, green and blue.
pub type Colour = (u8, u8, u8);

/// The look of a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeriesStyle {
    /// The colour of lines and points.
    pub colour: Colour,
    /// Whether lines are broken and points are rings. This distinguishes a series from others of
    /// the same colour.
    pub broken: bool,
}

/// The part of a text that is at its place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TextAnchor {
    /// The beginning of the text.
    Start,
    /// The middle of the text.
    Middle,
    /// The end of the text.
    End,
    /// The middle of the text, which reads upwards.
    Upwards,
}

/// Draws the parts of a chart.
pub trait Canvas {
    /// Draws a faint line.
    fn grid(&mut self, from: Place, to: Place);
    /// Draws a line through places.
    fn line(&mut self, places: &[Place], pen: SeriesStyle);
    /// Draws a point. `title` is shown with it if the format can do so.
    fn point(&mut self, at: Place, pen: SeriesStyle, title: &str);
    /// Draws a piece of a line in the legend, from its upper left corner.
    fn swatch(&mut self, at: Place, pen: SeriesStyle);
    /// Draws a text on a base line.
    fn text(&mut self, at: Place, anchor: TextAnchor, text: &str);
}

/// The radius of a point.
const POINT: f64 = 3.0;
/// The width of a line.
const LINE: f64 = 2.0;
/// The lengths of a dash and of a gap in a broken line.
const DASH: (f64, f64) = (6.0, 4.0);
/// The width and height of a piece of a line in the legend.
const SWATCH: (f64, f64) = (14.0, 4.0);
/// The begins of the pieces of a broken line in the legend, and their length.
const SWATCH_PIECES: ([f64; 2], f64) = ([0.0, 9.0], 5.0);
/// The height of letters, as in the style of the page.
const TEXT: f64 = 12.0;

/// The begin and the length of each piece of a line in the legend.
fn swatch_pieces(pen: SeriesStyle) -> Vec<(f64, f64)> {
    if pen.broken {
        let (begins, length) = SWATCH_PIECES;
        begins.map(|begin| (begin, length)).to_vec()
    } else {
        vec![(0.0, SWATCH.0)]
    }
}
