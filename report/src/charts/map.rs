//! A coloured map over two numbers, with lines and marks on it and a scale of its colours.

use super::heat::heat;
use super::plane::Plane;
use super::{Axis, Line, Mark};
use crate::svg::{Anchor, Picture, Scale, Svg, plain};

/// Pixels of the plane.
const HEIGHT: f64 = 460.0;
/// Pixels for the scale of colours on the right.
const SCALE_WIDTH: f64 = 110.0;
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
    /// The axis of the colours, with their range.
    pub heat: Axis,
    /// Drawn over the cells.
    pub lines: Vec<Line>,
    /// Points with names.
    pub marks: Vec<Mark>,
}

/// Draws a map.
pub fn map(map: &Map) -> Picture {
    let axes = (&map.across, &map.up);
    let (mut svg, plane) = Plane::new(&map.title, axes, &map.lines, HEIGHT, SCALE_WIDTH);
    draw_cells(&mut svg, &plane, map);
    plane.draw(&mut svg, &map.lines, &map.marks);
    draw_scale(&mut svg, &plane, &map.heat);
    svg.finish(&map.title)
}

fn draw_cells(svg: &mut Svg, plane: &Plane, map: &Map) {
    let rows = map.cells.len() as f64;
    let columns = map.cells.first().map_or(0, Vec::len) as f64;
    let width = (plane.right - plane.left) / columns;
    let height = (plane.bottom - plane.top) / rows;
    let share = |value: f64| (value - map.heat.from) / (map.heat.to - map.heat.from);
    for (row, values) in map.cells.iter().enumerate() {
        let y = plane.bottom - (row + 1) as f64 * height;
        for (column, value) in values.iter().enumerate() {
            let x = plane.left + column as f64 * width;
            // A little into those to the right and below, or seams would show.
            let right = (x + width + 0.5).min(plane.right);
            let bottom = (y + height + 0.5).min(plane.bottom);
            svg.cell(&heat(share(*value)), x, y, right - x, bottom - y);
        }
    }
}

/// A bar of the colours with their values.
fn draw_scale(svg: &mut Svg, plane: &Plane, axis: &Axis) {
    let x = plane.right + 26.0;
    let scale = Scale::between((axis.from, axis.to), plane.bottom, plane.top + 20.0);
    let value = |share: f64| axis.from + (axis.to - axis.from) * share;
    for step in 0..SCALE_STEPS {
        let [from, middle, to] =
            [0.0, 0.5, 1.0].map(|part| (f64::from(step) + part) / f64::from(SCALE_STEPS));
        let (bottom, top) = (scale.at(value(from)), scale.at(value(to)));
        svg.cell(&heat(middle), x, top, 18.0, bottom - top + 0.25);
    }
    for quarter in 0..=4 {
        let value = value(f64::from(quarter) / 4.0);
        svg.text("tick", Anchor::Start, x + 24.0, scale.at(value) + 4.0, &shown(value));
    }
    svg.text("axis", Anchor::Start, x, plane.top + 6.0, &axis.title);
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
        let rectangles = |drawn: &Map| map(drawn).element().matches("<rect").count();
        let with = rectangles(&drawn);
        let without = rectangles(&Map { cells: Vec::new(), ..drawn });
        assert_eq!(with - without, 6);
    }
}
