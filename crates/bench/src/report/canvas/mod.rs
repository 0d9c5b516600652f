//! What charts are drawn on: SVG within a page, or the pixels of a PNG file.

mod png;
mod svg;

pub use png::Png;
pub use svg::{Svg, escape};

/// A place, in units of the chart, from its upper left corner.
pub type Place = (f64, f64);

/// Red, green, blue.
pub type Colour = (u8, u8, u8);

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
    fn line(&mut self, places: &[Place], colour: Colour);
    /// A point, and what it is, where that can be shown.
    fn point(&mut self, at: Place, colour: Colour, title: &str);
    /// A piece of a line in the legend, from its upper left corner.
    fn swatch(&mut self, at: Place, colour: Colour);
    /// Words on a base line.
    fn text(&mut self, at: Place, anchor: Anchor, text: &str);
}

/// Radius of a point.
const POINT: f64 = 3.0;
/// Width of a line.
const LINE: f64 = 2.0;
/// Width and height of a piece of a line in the legend.
const SWATCH: (f64, f64) = (14.0, 4.0);
/// Height of letters, as the page's style has it.
const TEXT: f64 = 12.0;
