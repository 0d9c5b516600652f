//! Draws charts as SVG for the page. The style of the page gives the colours of text and grid.

use std::fmt::Write as _;

use super::{
    Canvas, Colour, DASH, LINE, POINT, Place, SWATCH, SeriesStyle, TextAnchor, swatch_pieces,
};

/// An SVG image.
pub struct Svg(String);

impl Svg {
    /// Makes an empty image of `width` times `height` units.
    pub fn new(width: f64, height: f64) -> Svg {
        Svg(format!(
            r#"<svg viewBox="0 0 {width} {height}" role="img" xmlns="http://www.w3.org/2000/svg">"#
        ))
    }

    /// The image as text.
    pub fn finish(mut self) -> String {
        self.0.push_str("</svg>");
        self.0
    }

    fn push(&mut self, more: std::fmt::Arguments<'_>) {
        self.0.write_fmt(more).expect("a string takes any text");
    }
}

impl Canvas for Svg {
    fn grid(&mut self, from: Place, to: Place) {
        self.push(format_args!(
            r#"<line class="grid" x1="{:.1}" x2="{:.1}" y1="{:.1}" y2="{:.1}"/>"#,
            from.0, to.0, from.1, to.1
        ));
    }

    fn line(&mut self, places: &[Place], pen: SeriesStyle) {
        let places: Vec<String> = places
            .iter()
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        self.push(format_args!(
            r#"<polyline fill="none" stroke="{}" stroke-width="{LINE}"{} points="{}"/>"#,
            hex(pen.colour),
            if pen.broken {
                format!(r#" stroke-dasharray="{} {}""#, DASH.0, DASH.1)
            } else {
                String::new()
            },
            places.join(" ")
        ));
    }

    fn point(&mut self, (x, y): Place, pen: SeriesStyle, title: &str) {
        let colour = hex(pen.colour);
        let fill = if pen.broken { "none" } else { &colour };
        self.push(format_args!(
            r#"<circle cx="{x:.1}" cy="{y:.1}" r="{POINT}" fill="{fill}" stroke="{colour}"><title>{}</title></circle>"#,
            escape(title)
        ));
    }

    fn swatch(&mut self, (x, y): Place, pen: SeriesStyle) {
        for (from, length) in swatch_pieces(pen) {
            self.push(format_args!(
                r#"<rect x="{}" y="{y}" width="{length}" height="{}" fill="{}"/>"#,
                x + from,
                SWATCH.1,
                hex(pen.colour)
            ));
        }
    }

    fn text(&mut self, (x, y): Place, anchor: TextAnchor, text: &str) {
        let place = match anchor {
            TextAnchor::Start => String::new(),
            TextAnchor::Middle => r#" class="middle""#.to_owned(),
            TextAnchor::End => r#" class="end""#.to_owned(),
            TextAnchor::Upwards => format!(r#" class="middle" transform="rotate(-90 {x} {y})""#),
        };
        self.push(format_args!(
            r#"<text{place} x="{x:.1}" y="{y:.1}">{}</text>"#,
            escape(text)
        ));
    }
}

fn hex((red, green, blue): Colour) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// Escapes a text for HTML and SVG.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}
