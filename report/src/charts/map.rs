//! A coloured map over two numbers, with lines and marks on it and a scale of its colours.

use super::{Axis, DrawError, Line, Mark, WIDTH, draw_legend, draw_over, style};
use crate::svg::plain;
use plotters::prelude::*;

const HEIGHT: u32 = 560;
/// Pixels for the scale of colours on the right.
const SCALE_WIDTH: u32 = 120;
const SCALE_STEPS: u32 = 48;

/// A coloured map.
#[derive(Debug, Clone, PartialEq)]
pub struct Map {
    /// Above it.
    pub title: String,
    /// Left to right.
    pub across: Axis,
    /// Bottom to top.
    pub up: Axis,
    /// `cells[row][column]`, row 0 at the bottom; all rows are as long as the first.
    pub cells: Vec<Vec<f64>>,
    /// What the colours mean; its range is that of the colours.
    pub heat: Axis,
    /// Drawn over the cells.
    pub lines: Vec<Line>,
    /// Points with names.
    pub marks: Vec<Mark>,
}

/// The map as an SVG element.
pub fn map(map: &Map) -> Result<String, DrawError> {
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, (WIDTH, HEIGHT)).into_drawing_area();
        root.fill(&WHITE).map_err(DrawError::new)?;
        let (left, right) = root.split_horizontally(WIDTH - SCALE_WIDTH);
        let mut plane = ChartBuilder::on(&left)
            .caption(&map.title, style::title())
            .margin(14)
            .x_label_area_size(46)
            .y_label_area_size(70)
            .build_cartesian_2d(map.across.from..map.across.to, map.up.from..map.up.to)
            .map_err(DrawError::new)?;
        plane
            .configure_mesh()
            .disable_mesh()
            .x_desc(&map.across.title)
            .y_desc(&map.up.title)
            .axis_style(style::INK.mix(0.5))
            .label_style(style::label())
            .axis_desc_style(style::label())
            .x_label_formatter(&|value| plain(*value))
            .y_label_formatter(&|value| plain(*value))
            .draw()
            .map_err(DrawError::new)?;
        plane.draw_series(cells(map)).map_err(DrawError::new)?;
        draw_over(&mut plane, &map.lines, &map.marks, &map.across)?;
        draw_legend(&mut plane, &map.lines, SeriesLabelPosition::UpperRight)?;
        draw_scale(&right, &map.heat)?;
        root.present().map_err(DrawError::new)?;
    }
    Ok(text)
}

fn cells(map: &Map) -> impl Iterator<Item = Rectangle<(f64, f64)>> + '_ {
    let rows = map.cells.len().max(1) as f64;
    let columns = map.cells.first().map_or(1, Vec::len).max(1) as f64;
    let x = move |column: usize| {
        map.across.from + (map.across.to - map.across.from) * column as f64 / columns
    };
    let y = move |row: usize| map.up.from + (map.up.to - map.up.from) * row as f64 / rows;
    let seam_x = 2.0 * (map.across.to - map.across.from) / f64::from(WIDTH);
    let seam_y = 2.0 * (map.up.to - map.up.from) / f64::from(HEIGHT);
    let share = |value: f64| (value - map.heat.from) / (map.heat.to - map.heat.from);
    map.cells.iter().enumerate().flat_map(move |(row, values)| {
        values.iter().enumerate().map(move |(column, value)| {
            // A little into the next ones, which cover it, or seams would show.
            let (right, top) = (x(column + 1) + seam_x, y(row + 1) + seam_y);
            let to = (right.min(map.across.to), top.min(map.up.to));
            let corners = [(x(column), y(row)), to];
            Rectangle::new(corners, style::heat(share(*value)).filled())
        })
    })
}

/// A bar of the colours with their values.
fn draw_scale(
    area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    heat: &Axis,
) -> Result<(), DrawError> {
    let (x, top, bottom) = (14, 70, i32::try_from(HEIGHT).unwrap_or(0) - 90);
    let at = |step: u32| bottom - (bottom - top) * step.cast_signed() / SCALE_STEPS.cast_signed();
    for step in 0..SCALE_STEPS {
        let share = (f64::from(step) + 0.5) / f64::from(SCALE_STEPS);
        let corners = [(x, at(step + 1)), (x + 18, at(step))];
        area.draw(&Rectangle::new(corners, style::heat(share).filled())).map_err(DrawError::new)?;
    }
    for tick in 0..=4_u32 {
        let share = f64::from(tick) / 4.0;
        let value = heat.from + (heat.to - heat.from) * share;
        let y = at(SCALE_STEPS * tick / 4) - 8;
        let text = Text::new(shown(value), (x + 24, y), style::label());
        area.draw(&text).map_err(DrawError::new)?;
    }
    // The title in words of one line each: the scale is narrow.
    for (line, words) in heat.title.split('\n').enumerate() {
        let y = 16 + 17 * i32::try_from(line).unwrap_or(0);
        let text = Text::new(words.to_owned(), (x - 6, y), style::label());
        area.draw(&text).map_err(DrawError::new)?;
    }
    Ok(())
}

/// A value of the scale: whole where it is large.
fn shown(value: f64) -> String {
    let decimals = if value.abs() >= 100.0 { 1.0 } else { 1e3 };
    plain((value * decimals).round() / decimals)
}

#[cfg(test)]
mod tests {
    use super::{Map, map};
    use crate::charts::{Axis, Line};

    #[test]
    fn every_cell_is_drawn() {
        let drawn = Map {
            title: "Region".into(),
            across: Axis::new("t_g / t_c", 0.0, 1.0),
            up: Axis::new("t_s / t_c", 0.0, 8.0),
            cells: vec![vec![0.0, 0.5, 1.0], vec![-1.0, f64::NAN, 2.0]],
            heat: Axis::new("gain", 0.0, 1.0),
            lines: vec![Line {
                name: "border".into(),
                points: vec![(0.0, 4.26), (1.0, 0.0)],
                colour: 4,
                dashed: false,
            }],
            marks: Vec::new(),
        };
        let rectangles = |drawn: &Map| map(drawn).unwrap().matches("<rect").count();
        let with = rectangles(&drawn);
        let without = rectangles(&Map { cells: Vec::new(), ..drawn });
        assert_eq!(with - without, 6);
    }
}
