//! Lines over a number.

use super::{Axis, DrawError, Line, Mark, WIDTH, draw_legend, draw_over, style};
use plotters::prelude::*;

const HEIGHT: u32 = 440;

/// Lines over a number.
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

/// The chart as an SVG element.
pub fn lines(chart: &Chart) -> Result<String, DrawError> {
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, (WIDTH, HEIGHT)).into_drawing_area();
        root.fill(&WHITE).map_err(DrawError::new)?;
        let mut plane = ChartBuilder::on(&root)
            .caption(&chart.title, style::title())
            .margin(14)
            .x_label_area_size(46)
            .y_label_area_size(70)
            .build_cartesian_2d(chart.across.from..chart.across.to, chart.up.from..chart.up.to)
            .map_err(DrawError::new)?;
        plane
            .configure_mesh()
            .x_desc(&chart.across.title)
            .y_desc(&chart.up.title)
            .bold_line_style(style::RULE)
            .light_line_style(TRANSPARENT)
            .axis_style(style::INK.mix(0.5))
            .label_style(style::label())
            .axis_desc_style(style::label())
            .x_labels(10)
            .y_labels(8)
            .x_label_formatter(&|value| crate::svg::plain(*value))
            .y_label_formatter(&|value| crate::svg::plain(*value))
            .draw()
            .map_err(DrawError::new)?;
        draw_over(&mut plane, &chart.lines, &chart.marks, &chart.across)?;
        draw_legend(&mut plane, &chart.lines, free_corner(chart))?;
        root.present().map_err(DrawError::new)?;
    }
    Ok(text)
}

/// The upper corner at which the lines lie lower.
fn free_corner(chart: &Chart) -> SeriesLabelPosition {
    let middle = (chart.across.from + chart.across.to) / 2.0;
    let highest = |is_left: bool| {
        let points = chart.lines.iter().flat_map(|line| &line.points);
        let points = points.filter(|point| (point.0 < middle) == is_left);
        points.map(|point| point.1).fold(f64::MIN, f64::max)
    };
    if highest(true) < highest(false) {
        SeriesLabelPosition::UpperLeft
    } else {
        SeriesLabelPosition::UpperRight
    }
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
        let svg = lines(&chart).unwrap();
        assert!(svg.contains("Times") && svg.contains("t_s / t_c") && svg.contains("seconds"));
        assert!(svg.contains("&lt;script&gt;") && !svg.contains("<script"), "{svg}");
        assert!(svg.trim_end().ends_with("</svg>"));
        let empty = Chart { lines: Vec::new(), marks: Vec::new(), ..chart };
        assert!(lines(&empty).is_ok());
    }
}
