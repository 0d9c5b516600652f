//! What charts are drawn on: SVG within a page, or the pixels of a PNG file.

mod png;
mod svg;

pub use png::Png;
pub use svg::{Svg, escape};

/// A place, in units of the chart, from its upper left corner.
pub type Place = (f64, f64);

/// Red, green, blue.
pub type Colour = (u8, u8, u8);

/// What a series is drawn with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pen {
    /// Of lines and points.
    pub colour: Colour,
    /// Lines are broken and points are rings, which tells them apart from others of the colour.
    pub broken: bool,
}

/// Which part of a text lies at its place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Anchor {
    /// Its beginning.
    Start,
    /// Its middle.
    Middle,
    /// Its end.
    End,
    /// Its middle; it reads from below to above.
    Upwards,
}

/// Takes what a chart is made of.
pub trait Canvas {
    /// A faint line.
    fn grid(&mut self, from: Place, to: Place);
    /// A line through places.
    fn line(&mut self, places: &[Place], pen: Pen);
    /// A point, and what it is, where that can be shown.
    fn point(&mut self, at: Place, pen: Pen, title: &str);
    /// A piece of a line in the legend, from its upper left corner.
    fn swatch(&mut self, at: Place, pen: Pen);
    /// Words on a base line.
    fn text(&mut self, at: Place, anchor: Anchor, text: &str);
}

/// Radius of a point.
const POINT: f64 = 3.0;
/// Width of a line.
const LINE: f64 = 2.0;
/// Length and gap of a broken line.
const DASH: (f64, f64) = (6.0, 4.0);
/// Width and height of a piece of a line in the legend.
const SWATCH: (f64, f64) = (14.0, 4.0);
/// Where the pieces of a broken one begin, and how long they are.
const SWATCH_PIECES: ([f64; 2], f64) = ([0.0, 9.0], 5.0);
/// Height of letters, as the page's style has it.
const TEXT: f64 = 12.0;

/// From where to where a piece of a line in the legend goes.
fn swatch_pieces(pen: Pen) -> Vec<(f64, f64)> {
    if pen.broken {
        let (begins, length) = SWATCH_PIECES;
        begins.map(|begin| (begin, length)).to_vec()
    } else {
        vec![(0.0, SWATCH.0)]
    }
}
