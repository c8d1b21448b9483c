//! A line chart over a numeric axis.

use super::plane::Plane;
use super::{Axis, Line, Mark};
use crate::svg::Picture;

/// Pixels of the plane.
const HEIGHT: f64 = 340.0;

/// A line chart over a numeric axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// Above it.
    pub title: String,
    /// Left to right.
    pub across: Axis,
    /// Bottom to top.
    pub up: Axis,
    /// Drawn in this order.
    pub lines: Vec<Line>,
    /// Points with names.
    pub marks: Vec<Mark>,
}

/// Draws a chart.
pub fn lines(chart: &Chart) -> Picture {
    let axes = (&chart.across, &chart.up);
    let (mut svg, plane) = Plane::new(&chart.title, axes, &chart.lines, HEIGHT, 0.0);
    plane.draw(&mut svg, &chart.lines, &chart.marks);
    svg.finish(&chart.title)
}

#[cfg(test)]
mod tests {
    use super::{Chart, lines};
    use crate::charts::{Axis, Line, Mark};

    #[test]
    fn a_chart_has_its_titles_its_lines_and_no_markup_from_names() {
        let hostile = "<script>&\"".to_owned();
        let points = vec![(0.0, 1.0), (1.0, 2.0)];
        let chart = Chart {
            title: "Times".into(),
            across: Axis::new("t_s / t_c", 0.0, 1.0),
            up: Axis::new("seconds", 0.0, 3.0),
            lines: vec![Line { name: hostile.clone(), points, colour: 0, dashed: true }],
            marks: vec![Mark { name: hostile, at: (0.5, 1.5), colour: 1 }],
        };
        let svg = lines(&chart).element();
        assert!(svg.contains("Times") && svg.contains("t_s / t_c") && svg.contains("seconds"));
        assert_eq!(svg.matches("&lt;script&gt;").count(), 2, "{svg}");
        assert!(!svg.contains("<script"), "{svg}");
        assert!(svg.trim_end().ends_with("</svg>"));
        let empty = Chart { lines: Vec::new(), marks: Vec::new(), ..chart };
        assert!(!lines(&empty).element().contains("series"));
    }
}
