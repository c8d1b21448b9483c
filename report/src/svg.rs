//! Draws SVG: a buffer, escaped text, a linear axis with round ticks, and a picture for a page or a
//! file. Colours come from the style sheet of the page or file, never from the drawing.

use std::fmt::Write;

/// Colours of pages and pictures, by name.
pub(super) const COLOURS: &str = include_str!("colours.css");
/// Classes of pictures.
pub(super) const PICTURES: &str = include_str!("pictures.css");

/// Text made safe for HTML and SVG, in content and in attributes.
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            // Controls are not allowed in XML at all.
            control if control.is_control() && control != '\n' => safe.push('\u{fffd}'),
            other => safe.push(other),
        }
    }
    safe
}

/// Which end of a text lies at its point.
#[derive(Debug, Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

impl Anchor {
    fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Middle => "middle",
            Self::End => "end",
        }
    }
}

/// A picture being drawn. Coordinates are pixels from the top left.
#[derive(Debug)]
pub(super) struct Svg {
    width: f64,
    height: f64,
    body: String,
}

impl Svg {
    /// An empty picture.
    pub(super) fn new(width: f64, height: f64) -> Self {
        Self { width, height, body: String::new() }
    }

    /// The picture, with a title for screen readers.
    pub(super) fn finish(self, title: &str) -> Picture {
        Picture { title: escape(title), drawn: self }
    }

    fn push(&mut self, element: std::fmt::Arguments<'_>) {
        self.body.write_fmt(element).expect("a string takes every write");
        self.body.push('\n');
    }

    /// A filled rectangle.
    pub(super) fn rect(&mut self, class: &str, x: f64, y: f64, width: f64, height: f64) {
        let width = width.max(0.0);
        self.push(format_args!(
            "<rect class=\"{class}\" x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" \
             height=\"{height:.2}\"/>"
        ));
    }

    /// A rectangle whose colour is a value, `#rrggbb`, and so in no style sheet.
    pub(super) fn cell(&mut self, colour: &str, x: f64, y: f64, width: f64, height: f64) {
        self.push(format_args!(
            "<rect class=\"cell\" fill=\"{colour}\" x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" \
             height=\"{height:.2}\"/>"
        ));
    }

    /// A straight line.
    pub(super) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        self.push(format_args!(
            "<line class=\"{class}\" x1=\"{:.2}\" y1=\"{:.2}\" x2=\"{:.2}\" y2=\"{:.2}\"/>",
            from.0, from.1, to.0, to.1
        ));
    }

    /// A dot.
    pub(super) fn dot(&mut self, class: &str, centre: (f64, f64), radius: f64) {
        self.push(format_args!(
            "<circle class=\"{class}\" cx=\"{:.2}\" cy=\"{:.2}\" r=\"{radius:.2}\"/>",
            centre.0, centre.1
        ));
    }

    /// A line through points.
    pub(super) fn path(&mut self, class: &str, points: &[(f64, f64)]) {
        let listed: Vec<String> = points.iter().map(|(x, y)| format!("{x:.2},{y:.2}")).collect();
        self.push(format_args!("<polyline class=\"{class}\" points=\"{}\"/>", listed.join(" ")));
    }

    /// A line of text whose baseline is at `y`.
    pub(super) fn text(&mut self, class: &str, anchor: Anchor, x: f64, y: f64, text: &str) {
        self.push(format_args!(
            "<text class=\"{class}\" text-anchor=\"{}\" x=\"{x:.2}\" y=\"{y:.2}\">{}</text>",
            anchor.name(),
            escape(text)
        ));
    }
}

/// A finished picture.
#[derive(Debug)]
pub struct Picture {
    /// Escaped.
    title: String,
    drawn: Svg,
}

impl Picture {
    /// An element for a page, which has the style sheets.
    pub fn element(&self) -> String {
        self.with("", "")
    }

    /// A standalone file, with its style and a light background.
    pub fn file(&self) -> String {
        let Svg { width, height, .. } = self.drawn;
        let size = format!(" width=\"{width}\" height=\"{height}\"");
        let style = in_light_colours(PICTURES);
        let ground = "<rect class=\"ground\" width=\"100%\" height=\"100%\"/>";
        self.with(&size, &format!("<style>\n{style}</style>\n{ground}\n"))
    }

    fn with(&self, attributes: &str, before: &str) -> String {
        let Self { title, drawn: Svg { width, height, body } } = self;
        format!(
            "<svg{attributes} viewBox=\"0 0 {width} {height}\" role=\"img\" \
             aria-label=\"{title}\" xmlns=\"http://www.w3.org/2000/svg\">\n{before}{body}</svg>\n"
        )
    }
}

/// A style sheet with values in place of the names of colours: few viewers of SVG files know names.
fn in_light_colours(style: &str) -> String {
    let light = COLOURS.split(['{', '}']).nth(1).expect("the light colours come first");
    let named = light.split(';').filter_map(|colour| colour.trim().split_once(": "));
    named.fold(style.to_owned(), |style, (name, value)| {
        style.replace(&format!("var({name})"), value)
    })
}

/// Maps numbers from `low` to `high` to pixels.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Scale {
    /// From 0; `limit` is widened to something positive, so that an empty plot still has an axis.
    pub(super) fn new(limit: f64, from: f64, to: f64) -> Self {
        let high = if limit.is_finite() && limit > 0.0 { limit } else { 1.0 };
        Self { low: 0.0, high, from, to }
    }

    /// From `low` to `high`, which is above it.
    pub(super) fn between((low, high): (f64, f64), from: f64, to: f64) -> Self {
        Self { low, high, from, to }
    }

    /// Pixel of a value, kept inside the axis.
    pub(super) fn at(&self, value: f64) -> f64 {
        let share = ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0);
        self.from + (self.to - self.from) * share
    }

    /// Round values on the axis, about `count` of them.
    pub(super) fn ticks(&self, count: usize) -> Vec<f64> {
        let length = self.high - self.low;
        let rough = length / count.max(1) as f64;
        let power = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .into_iter()
            .map(|digit| digit * power)
            .find(|step| *step >= rough * 0.999)
            .unwrap_or(power * 10.0);
        let first = (self.low / step - 1e-4).ceil();
        (0..=count * 2)
            .map(|tick| (first + tick as f64) * step)
            .take_while(|value| *value <= self.high + length * 1e-4)
            .collect()
    }
}

/// A number without needless zeros: `0`, `0.5`, `20`, `1500`.
pub fn plain(value: f64) -> String {
    let text = format!("{value:.4}");
    match text.trim_end_matches('0').trim_end_matches('.') {
        "-0" => "0".to_owned(),
        short => short.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Anchor, PICTURES, Scale, Svg, escape, plain};

    #[test]
    fn a_file_has_the_style_that_a_page_has_by_itself() {
        let mut svg = Svg::new(30.0, 20.0);
        svg.text("label", Anchor::Start, 1.0, 2.0, "a & b");
        let picture = svg.finish("T");
        let (element, file) = (picture.element(), picture.file());
        assert!(element.starts_with("<svg") && !element.contains("<style>"), "{element}");
        assert!(file.starts_with("<svg width=\"30\" height=\"20\""), "{file}");
        assert!(file.contains("svg .series7 { fill: #8c5a28;") && !file.contains("var("), "{file}");
        assert!(PICTURES.contains("var(--series7)"));
        assert!([element, file].iter().all(|text| text.contains("a &amp; b")));
    }

    #[test]
    fn text_cannot_become_markup() {
        let hostile = "<script>\"'&\u{0}</script>";
        assert_eq!(escape(hostile), "&lt;script&gt;&quot;&#39;&amp;\u{fffd}&lt;/script&gt;");
    }

    #[test]
    fn ticks_are_round_and_inside() {
        assert_eq!(Scale::new(17.3, 0.0, 100.0).ticks(5), [0.0, 5.0, 10.0, 15.0]);
        assert_eq!(Scale::new(0.0, 0.0, 100.0).ticks(2), [0.0, 0.5, 1.0]);
        let below_zero = Scale::between((-0.2, 0.6), 0.0, 100.0).ticks(4);
        let shown: Vec<String> = below_zero.iter().map(|tick| plain(*tick)).collect();
        assert_eq!(shown, ["-0.2", "0", "0.2", "0.4", "0.6"]);
        for limit in [1e-9, 0.3, 1.0, 99.0, 1e12] {
            let ticks = Scale::new(limit, 0.0, 1.0).ticks(6);
            assert!((3..=12).contains(&ticks.len()), "{limit}: {ticks:?}");
        }
    }

    #[test]
    fn values_outside_stay_on_the_axis() {
        let scale = Scale::new(10.0, 100.0, 200.0);
        assert_eq!((scale.at(-5.0), scale.at(5.0), scale.at(50.0)), (100.0, 150.0, 200.0));
    }

    #[test]
    fn labels_have_no_needless_zeros() {
        assert_eq!(
            (plain(0.0), plain(0.5), plain(1500.0)),
            ("0".into(), "0.5".into(), "1500".into())
        );
    }
}
