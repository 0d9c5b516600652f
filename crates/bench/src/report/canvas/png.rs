//! Draws charts as pixels for PNG files: black on white, two pixels for a unit.
//!
//! A rasteriser of SVG with text would add thirty crates, but a chart is only lines, points and
//! words. The words are set in Roboto (Apache-2.0). `roboto.ttf` has its letters of ASCII and few
//! more, so no font of the machine is needed. It was made by `pyftsubset Roboto-Regular.ttf
//! --no-hinting --layout-features='' --unicodes=20-7E,B5,B7,D7,2013,2019,2026,3BC`.

use tiny_skia::{
    Color, FillRule, LineCap, LineJoin, Paint, Path, PathBuilder, Pixmap, Rect, Stroke, StrokeDash,
    Transform,
};
use ttf_parser::{Face, OutlineBuilder};

use super::{
    Canvas, Colour, DASH, LINE, POINT, Place, SWATCH, SeriesStyle, TEXT, TextAnchor, swatch_pieces,
};

const FONT: &[u8] = include_bytes!("roboto.ttf");
/// The number of pixels for a unit.
const SCALE: f32 = 2.0;
const TEXT_COLOUR: Colour = (0x22, 0x22, 0x22);
const GRID_COLOUR: Colour = (0xdd, 0xdd, 0xdd);

/// An image of pixels.
pub struct Png {
    pixels: Pixmap,
    face: Face<'static>,
}

impl Png {
    /// Makes a white image of `width` times `height` units.
    pub fn new(width: f64, height: f64) -> Png {
        let pixels = |units: f64| (units as f32 * SCALE).ceil() as u32;
        let mut pixels = Pixmap::new(pixels(width), pixels(height)).expect("charts are not empty");
        pixels.fill(Color::WHITE);
        Png {
            pixels,
            face: Face::parse(FONT, 0).expect("the font is our own"),
        }
    }

    /// The image as a PNG file.
    pub fn finish(self) -> anyhow::Result<Vec<u8>> {
        Ok(self.pixels.encode_png()?)
    }

    fn fill(&mut self, path: Option<Path>, colour: Colour, transform: Transform) {
        // A text of spaces, or a value that is no number, has no path.
        if let Some(path) = path {
            self.pixels
                .fill_path(&path, &paint(colour), FillRule::Winding, transform, None);
        }
    }

    fn stroke(&mut self, places: &[Place], pen: SeriesStyle, width: f64) {
        let mut path = PathBuilder::new();
        for (at, &(x, y)) in places.iter().enumerate() {
            match at {
                0 => path.move_to(x as f32, y as f32),
                _ => path.line_to(x as f32, y as f32),
            }
        }
        let dash = pen
            .broken
            .then(|| StrokeDash::new(vec![DASH.0 as f32, DASH.1 as f32], 0.0));
        let stroke = Stroke {
            width: width as f32,
            line_cap: if pen.broken {
                LineCap::Butt
            } else {
                LineCap::Round
            },
            line_join: LineJoin::Round,
            dash: dash.flatten(),
            ..Stroke::default()
        };
        if let Some(path) = path.finish() {
            self.pixels
                .stroke_path(&path, &paint(pen.colour), &stroke, scaled(), None);
        }
    }

    /// The outlines of a text that begins at the origin, and its length, in units of the chart.
    fn outline(&self, text: &str) -> (Option<Path>, f32) {
        let size = TEXT as f32 / f32::from(self.face.units_per_em());
        let mut outline = GlyphOutline {
            path: PathBuilder::new(),
            size,
            x: 0.0,
        };
        for letter in text.chars() {
            // A question mark replaces a letter that the font lacks.
            let glyph = self
                .face
                .glyph_index(letter)
                .or_else(|| self.face.glyph_index('?'));
            let Some(glyph) = glyph else { continue };
            self.face.outline_glyph(glyph, &mut outline);
            let advance = self.face.glyph_hor_advance(glyph).unwrap_or(0);
            outline.x += f32::from(advance) * size;
        }
        (outline.path.finish(), outline.x)
    }
}

impl Canvas for Png {
    fn grid(&mut self, from: Place, to: Place) {
        let pen = SeriesStyle {
            colour: GRID_COLOUR,
            broken: false,
        };
        self.stroke(&[from, to], pen, 1.0);
    }

    fn line(&mut self, places: &[Place], pen: SeriesStyle) {
        self.stroke(places, pen, LINE);
    }

    fn point(&mut self, (x, y): Place, pen: SeriesStyle, _: &str) {
        let circle = |radius: f64| PathBuilder::from_circle(x as f32, y as f32, radius as f32);
        self.fill(circle(POINT + 0.5), pen.colour, scaled());
        if pen.broken {
            self.fill(circle(POINT - 1.0), (0xff, 0xff, 0xff), scaled());
        }
    }

    fn swatch(&mut self, (x, y): Place, pen: SeriesStyle) {
        for (from, length) in swatch_pieces(pen) {
            let height = SWATCH.1 as f32;
            let rect = Rect::from_xywh((x + from) as f32, y as f32, length as f32, height);
            self.fill(rect.map(PathBuilder::from_rect), pen.colour, scaled());
        }
    }

    fn text(&mut self, (x, y): Place, anchor: TextAnchor, text: &str) {
        let (path, length) = self.outline(text);
        let before = match anchor {
            TextAnchor::Start => 0.0,
            TextAnchor::Middle | TextAnchor::Upwards => length / 2.0,
            TextAnchor::End => length,
        };
        let turned = match anchor {
            TextAnchor::Upwards => Transform::from_rotate(-90.0),
            _ => Transform::identity(),
        };
        let transform = Transform::from_translate(-before, 0.0)
            .post_concat(turned)
            .post_translate(x as f32, y as f32)
            .post_concat(scaled());
        self.fill(path, TEXT_COLOUR, transform);
    }
}

fn scaled() -> Transform {
    Transform::from_scale(SCALE, SCALE)
}

fn paint((red, green, blue): Colour) -> Paint<'static> {
    let mut paint = Paint::default();
    paint.set_color_rgba8(red, green, blue, 255);
    paint
}

/// Collects the outlines of glyphs one after the other. The `y` axis of a font points upwards.
struct GlyphOutline {
    path: PathBuilder,
    size: f32,
    /// The place where the next glyph begins.
    x: f32,
}

impl GlyphOutline {
    fn place(&self, x: f32, y: f32) -> (f32, f32) {
        (self.x + x * self.size, -y * self.size)
    }
}

impl OutlineBuilder for GlyphOutline {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.place(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.place(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.place(x1, y1), self.place(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2)) = (self.place(x1, y1), self.place(x2, y2));
        let (x, y) = self.place(x, y);
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of pixels that are not white within a rectangle of units.
    fn inked(png: &Png, (left, top): Place, (right, bottom): Place) -> usize {
        let inside = |x: u32, y: u32| {
            let unit = |pixel: u32| f64::from(pixel) / f64::from(SCALE);
            (left..right).contains(&unit(x)) && (top..bottom).contains(&unit(y))
        };
        let pixels = &png.pixels;
        let places = (0..pixels.height()).flat_map(|y| (0..pixels.width()).map(move |x| (x, y)));
        places
            .filter(|&(x, y)| inside(x, y))
            .filter(|&(x, y)| pixels.pixel(x, y).expect("within it").red() < 0xff)
            .count()
    }

    #[test]
    fn words_lie_where_their_anchor_says() {
        let ink = |anchor| {
            let mut png = Png::new(100.0, 100.0);
            png.text((50.0, 50.0), anchor, "words µs");
            let part = |from, to| inked(&png, from, to);
            [
                part((0.0, 0.0), (50.0, 50.0)),
                part((50.0, 0.0), (100.0, 50.0)),
                part((0.0, 53.0), (100.0, 100.0)),
            ]
        };
        let [left, right, below] = ink(TextAnchor::Start);
        assert!(
            left == 0 && right > 50 && below == 0,
            "{left} {right} {below}"
        );
        let [left, right, _] = ink(TextAnchor::End);
        assert!(left > 50 && right == 0, "{left} {right}");
        let [left, right, _] = ink(TextAnchor::Middle);
        assert!(left > 20 && right > 20, "{left} {right}");
        let [left, _, below] = ink(TextAnchor::Upwards);
        assert!(left > 20 && below > 20, "{left} {below}");
    }

    #[test]
    fn a_letter_that_the_font_lacks_is_a_question_mark() {
        let png = Png::new(10.0, 10.0);
        assert_eq!(png.outline("字"), png.outline("?"));
        assert!(png.outline("?").0.is_some());
    }

    #[test]
    fn the_file_is_of_png() {
        let file = Png::new(10.0, 10.0).finish().unwrap();
        assert!(file.starts_with(b"\x89PNG\r\n"));
    }
}
