//! Charts: lines over a number, and a heat map over two.
//!
//! In reading order: this file (the data of a chart), [`lines`], [`map`], `plane` (axes and drawing
//! area), `labels` (positions of the names of points), `heat` (colours of a map).

mod heat;
mod labels;
mod lines;
mod map;
mod plane;

pub use lines::{Chart, lines};
pub use map::{Map, map};

/// An axis with its title and range.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// Title, with the unit.
    pub title: String,
    /// First value.
    pub from: f64,
    /// Last value.
    pub to: f64,
}

impl Axis {
    /// An axis; an empty range is widened, so that a single point can be drawn.
    pub fn new(title: &str, from: f64, to: f64) -> Self {
        let is_range = from.is_finite() && to.is_finite() && to > from;
        let (from, to) = if is_range { (from, to) } else { (from - 0.5, from + 0.5) };
        let (from, to) = if from.is_finite() { (from, to) } else { (0.0, 1.0) };
        Self { title: title.to_owned(), from, to }
    }

    /// A range around these values with a margin; it begins at 0 if no value is negative.
    pub fn around(title: &str, values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = values
            .filter(|value| value.is_finite())
            .fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
        let room = ((high - low) * 0.08).max(high.abs() * 0.02);
        let from = if low >= 0.0 && low < high * 0.5 { 0.0 } else { low - room };
        Self::new(title, from, high + room)
    }
}

/// A line with a name in the legend.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Name in the legend.
    pub name: String,
    /// (across, up), in order.
    pub points: Vec<(f64, f64)>,
    /// Index of its colour in the palette, which repeats.
    pub colour: usize,
    /// Whether the line is dashed.
    pub dashed: bool,
}

/// A point with a label.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    /// The label of the point.
    pub name: String,
    /// (across, up).
    pub at: (f64, f64),
    /// Index of its colour in the palette, which repeats.
    pub colour: usize,
}

#[cfg(test)]
mod tests {
    use super::Axis;

    #[test]
    fn an_axis_always_has_a_length() {
        for (from, to) in [(1.0, 1.0), (2.0, 1.0), (f64::NAN, 3.0), (0.0, f64::INFINITY)] {
            let axis = Axis::new("x", from, to);
            assert!(axis.to > axis.from, "{axis:?}");
        }
        assert_eq!(Axis::around("x", [2.0, 10.0].into_iter()).from, 0.0);
        assert!(Axis::around("x", [9.0, 10.0].into_iter()).from > 8.0);
        assert!(Axis::around("x", std::iter::empty()).to > 0.0);
    }
}
