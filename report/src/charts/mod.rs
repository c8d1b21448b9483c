//! Charts as SVG text: lines over a number, and a coloured map over two.
//!
//! They carry their own colours and a light ground, so that a file alone looks as it does in a
//! page. In reading order: this file (what a chart says), [`lines`], [`map`].

mod lines;
mod map;
mod style;

pub use lines::{Chart, lines};
pub use map::{Map, map};

use plotters::coord::types::RangedCoordf64;
use plotters::element::DashedPathElement;
use plotters::prelude::*;

/// Width of every chart in pixels of its own coordinates.
const WIDTH: u32 = 960;

/// An axis: what is on it, from where to where.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// With its unit.
    pub title: String,
    /// First value.
    pub from: f64,
    /// Last value.
    pub to: f64,
}

impl Axis {
    /// An axis; a range without length is widened, so that one point still has a place.
    pub fn new(title: &str, from: f64, to: f64) -> Self {
        let is_range = from.is_finite() && to.is_finite() && to > from;
        let (from, to) = if is_range { (from, to) } else { (from - 0.5, from + 0.5) };
        let (from, to) = if from.is_finite() { (from, to) } else { (0.0, 1.0) };
        Self { title: title.to_owned(), from, to }
    }

    /// Around these values with some room; from 0 where none is below.
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
    /// What it shows.
    pub name: String,
    /// (across, up), in order.
    pub points: Vec<(f64, f64)>,
    /// Place of its colour in the palette.
    pub colour: usize,
    /// Whether it is broken, as for a second reading of the same thing.
    pub dashed: bool,
}

/// A point with its name beside it.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    /// What lies there.
    pub name: String,
    /// (across, up).
    pub at: (f64, f64),
    /// Place of its colour in the palette.
    pub colour: usize,
}

/// A drawing error. Text takes every write, so there is none in practice; it is passed on anyway.
#[derive(Debug, thiserror::Error)]
#[error("failed to draw the chart: {0}")]
pub struct DrawError(String);

impl DrawError {
    fn new(error: impl std::fmt::Display) -> Self {
        Self(error.to_string())
    }
}

type Plane<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;

/// Lines and marks, each with an entry in the legend or a name beside it.
fn draw_over(
    plane: &mut Plane<'_, '_>,
    drawn: &[Line],
    marks: &[Mark],
    across: &Axis,
) -> Result<(), DrawError> {
    for line in drawn {
        let look = style::colour(line.colour).stroke_width(2);
        let dashed = line.dashed;
        let points = line.points.iter().copied();
        let series = if line.dashed {
            plane.draw_series(DashedLineSeries::new(points, 7, 5, look))
        } else {
            plane.draw_series(LineSeries::new(points, look))
        };
        series.map_err(DrawError::new)?.label(line.name.clone()).legend(move |(x, y)| {
            let (size, spacing) = if dashed { (7, 5) } else { (22, 1) };
            DashedPathElement::new([(x, y), (x + 22, y)], size, spacing, look)
        });
    }
    let mut names = Names::default();
    for mark in marks {
        let look = style::colour(mark.colour);
        // Names on the right half stand to the left of their point, or they would be cut off.
        let is_right = mark.at.0 > (across.from + across.to) / 2.0;
        let shift = names.place(plane.backend_coord(&mark.at), &mark.name, is_right);
        let name = mark.name.clone();
        let element = EmptyElement::at(mark.at)
            + Circle::new((0, 0), 6, WHITE.filled())
            + Circle::new((0, 0), 5, look.filled())
            + Text::new(name, shift, style::label());
        plane.draw_series(std::iter::once(element)).map_err(DrawError::new)?;
    }
    Ok(())
}

/// Where names beside points stand, so that none covers another.
#[derive(Debug, Default)]
struct Names {
    /// Left, top and right, in pixels; all are as high as a line.
    taken: Vec<(i32, i32, i32)>,
}

impl Names {
    /// Pixels of a line of text, and of a character at the most.
    const LINE: i32 = 16;
    const CHARACTER: i32 = 7;

    /// The place of a name beside a point, relative to it: above it, below it, or the nearest line
    /// above or below that is free.
    fn place(&mut self, point: (i32, i32), name: &str, to_the_left: bool) -> (i32, i32) {
        let width = i32::try_from(name.chars().count()).unwrap_or(0) * Self::CHARACTER;
        let x = if to_the_left { -width - 8 } else { 9 };
        let left = point.0 + x;
        let is_free = |taken: &[(i32, i32, i32)], top: i32| {
            taken.iter().all(|&(other_left, other_top, other_right)| {
                let beside = left >= other_right || left + width <= other_left;
                beside || (top - other_top).abs() >= Self::LINE
            })
        };
        let lines = (0..).flat_map(|line| [-Self::LINE * (line + 1), Self::LINE * line]);
        let mut near = lines.take(2 * (self.taken.len() + 1));
        let y = near.find(|y| is_free(&self.taken, point.1 + y)).unwrap_or(-Self::LINE);
        self.taken.push((left, point.1 + y, left + width));
        (x, y)
    }
}

/// The legend, where there is anything to name.
fn draw_legend<'a, 'b: 'a>(
    plane: &mut Plane<'a, 'b>,
    drawn: &[Line],
    corner: SeriesLabelPosition,
) -> Result<(), DrawError> {
    if drawn.is_empty() {
        return Ok(());
    }
    plane
        .configure_series_labels()
        .position(corner)
        .background_style(WHITE.mix(0.85))
        .border_style(style::RULE)
        .label_font(style::label())
        .legend_area_size(28)
        .margin(8)
        .draw()
        .map_err(DrawError::new)
}

#[cfg(test)]
mod tests {
    use super::{Axis, Names};

    #[test]
    fn names_of_points_close_together_do_not_cover_each_other() {
        let mut names = Names::default();
        let points = [(100, 100), (101, 100), (99, 103), (130, 98), (400, 100), (100, 100)];
        for point in points {
            names.place(point, "twelve chars", point.0 > 300);
        }
        for (at, a) in names.taken.iter().enumerate() {
            for b in &names.taken[at + 1..] {
                let beside = a.0 >= b.2 || b.0 >= a.2;
                assert!(beside || (a.1 - b.1).abs() >= Names::LINE, "{a:?} {b:?}");
            }
        }
        // The first is where one alone would be, and so is one far away.
        assert_eq!((names.taken[0].0, names.taken[0].1), (109, 84));
        assert_eq!((names.taken[4].2, names.taken[4].1), (392, 84));
    }

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
