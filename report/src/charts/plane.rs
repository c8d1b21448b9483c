//! The plane of a chart: title, legend and axes around it, lines and named points on it.

use super::labels::PointLabels;
use super::{Axis, Line, Mark};
use crate::legend::{Legend, Sample};
use crate::svg::{Anchor, Scale, Svg, plain};

/// Width of every chart in pixels of its own coordinates.
pub(super) const WIDTH: f64 = 960.0;
const MARGIN: f64 = 14.0;
/// Pixels below the plane for ticks and title.
const BELOW: f64 = 46.0;
/// Radius of a point.
const DOT: f64 = 5.0;
/// Colours that the style sheet has.
const COLOURS: usize = 8;

/// Where the plane lies and what is on its axes.
pub(super) struct Plane {
    pub(super) across: Scale,
    pub(super) up: Scale,
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) top: f64,
    pub(super) bottom: f64,
    limits: ((f64, f64), (f64, f64)),
}

impl Plane {
    /// A picture with everything around a plane of a height; `beside` pixels on the right are left
    /// free, and so is the plane.
    pub(super) fn new(
        title: &str,
        (across, up): (&Axis, &Axis),
        lines: &[Line],
        height: f64,
        beside: f64,
    ) -> (Svg, Self) {
        let entries = lines.iter().map(|line| (Sample::Line, class_of(line), line.name.clone()));
        let legend = Legend::new(entries.collect(), WIDTH - 2.0 * MARGIN);
        let top = 56.0 + legend.height();
        let bottom = top + height;
        let limits = ((across.from, across.to), (up.from, up.to));
        let scale_up = Scale::between(limits.1, bottom, top);
        let ticks: Vec<(f64, String)> =
            scale_up.ticks(7).into_iter().map(|tick| (scale_up.at(tick), plain(tick))).collect();
        let longest = ticks.iter().map(|(_, text)| text.chars().count()).max().unwrap_or(0);
        let (left, right) = (MARGIN + 14.0 + 7.0 * longest as f64, WIDTH - MARGIN - beside);
        let scale_across = Scale::between(limits.0, left, right);
        let mut svg = Svg::new(WIDTH, bottom + BELOW);
        svg.text("title", Anchor::Start, MARGIN, 20.0, title);
        legend.draw(&mut svg, MARGIN, 42.0);
        svg.text("axis", Anchor::Start, MARGIN, top - 10.0, &up.title);
        svg.text("axis", Anchor::End, right, bottom + 36.0, &across.title);
        for (y, text) in &ticks {
            svg.line("grid", (left, *y), (right, *y));
            svg.text("tick", Anchor::End, left - 6.0, y + 4.0, text);
        }
        for tick in scale_across.ticks(10) {
            let x = scale_across.at(tick);
            svg.line("grid", (x, bottom), (x, bottom + 5.0));
            svg.text("tick", Anchor::Middle, x, bottom + 18.0, &plain(tick));
        }
        (svg, Self { across: scale_across, up: scale_up, left, right, top, bottom, limits })
    }

    /// Lines, cut off at the edges of the plane, and points with their names.
    pub(super) fn draw(&self, svg: &mut Svg, lines: &[Line], marks: &[Mark]) {
        for line in lines {
            for piece in self.inside(&line.points) {
                svg.path(&class_of(line), &piece);
            }
        }
        let mut names = PointLabels::new(self.top + 10.0, self.bottom - 2.0);
        let middle = (self.left + self.right) / 2.0;
        let at = |mark: &Mark| (self.across.at(mark.at.0), self.up.at(mark.at.1));
        for mark in marks {
            svg.dot(&format!("mark series{}", mark.colour % COLOURS), at(mark), DOT);
            names.keep_off(at(mark), DOT);
        }
        let placed: Vec<_> = marks
            .iter()
            .filter(|mark| !mark.name.is_empty())
            .map(|mark| {
                let at = at(mark);
                // Names on the right half stand to the left of their point, or they would be cut
                // off.
                let to_the_left = at.0 > middle;
                (mark, to_the_left, names.place(at, &mark.name, to_the_left))
            })
            .collect();
        for (mark, to_the_left, (x, y)) in placed {
            let anchor = if to_the_left { Anchor::End } else { Anchor::Start };
            svg.text("name", anchor, x, y, &mark.name);
        }
    }

    /// The pieces of a line that lie in the plane, in pixels.
    fn inside(&self, points: &[(f64, f64)]) -> Vec<Vec<(f64, f64)>> {
        let pixel = |point: (f64, f64)| (self.across.at(point.0), self.up.at(point.1));
        let mut pieces: Vec<Vec<(f64, f64)>> = Vec::new();
        let mut reached = None;
        for pair in points.windows(2) {
            let Some((from, to)) = self.cut(pair[0], pair[1]) else {
                reached = None;
                continue;
            };
            match pieces.last_mut() {
                Some(piece) if reached == Some(from) => piece.push(pixel(to)),
                _ => pieces.push(vec![pixel(from), pixel(to)]),
            }
            reached = Some(to);
        }
        pieces
    }

    /// The part of a segment that lies in the plane (Liang and Barsky, 1984).
    fn cut(&self, from: (f64, f64), to: (f64, f64)) -> Option<((f64, f64), (f64, f64))> {
        let along = (to.0 - from.0, to.1 - from.1);
        let ((left, right), (low, high)) = self.limits;
        let (mut enters, mut leaves) = (0.0_f64, 1.0_f64);
        let edges = [
            (-along.0, from.0 - left),
            (along.0, right - from.0),
            (-along.1, from.1 - low),
            (along.1, high - from.1),
        ];
        for (outwards, distance) in edges {
            if outwards == 0.0 {
                if distance < 0.0 {
                    return None;
                }
            } else if outwards < 0.0 {
                enters = enters.max(distance / outwards);
            } else {
                leaves = leaves.min(distance / outwards);
            }
        }
        let at = |share: f64| match share {
            0.0 => from,
            1.0 => to,
            share => (from.0 + along.0 * share, from.1 + along.1 * share),
        };
        (enters <= leaves).then(|| (at(enters), at(leaves)))
    }
}

fn class_of(line: &Line) -> String {
    let dashed = if line.dashed { " dashed" } else { "" };
    format!("series{} curve{dashed}", line.colour % COLOURS)
}

#[cfg(test)]
mod tests {
    use super::Plane;
    use crate::charts::Axis;

    #[test]
    fn lines_end_at_the_edges_of_the_plane() {
        let (across, up) = (Axis::new("x", 0.0, 10.0), Axis::new("y", 0.0, 10.0));
        let (_, plane) = Plane::new("t", (&across, &up), &[], 100.0, 0.0);
        assert_eq!(plane.cut((-5.0, 5.0), (5.0, 5.0)), Some(((0.0, 5.0), (5.0, 5.0))));
        assert_eq!(plane.cut((1.0, 1.0), (2.0, 3.0)), Some(((1.0, 1.0), (2.0, 3.0))));
        assert_eq!(plane.cut((-5.0, 1.0), (-1.0, 9.0)), None);
        assert_eq!(plane.cut((4.0, 12.0), (4.0, 11.0)), None);
        // In, out over the top, in again: two pieces, the first of two segments.
        let pieces = plane.inside(&[(0.0, 0.0), (2.0, 5.0), (4.0, 15.0), (6.0, 15.0), (8.0, 5.0)]);
        assert_eq!(pieces.iter().map(Vec::len).collect::<Vec<_>>(), [3, 2]);
        assert_eq!(pieces[0][2].1, plane.top);
    }
}
