//! The charts of the report: the machines and the watts that the headline implies.

use super::paper;
use super::region::{self, Method, Reading};
use meetpoint_report::charts::{Axis, Chart, Line, Map, Mark, lines, map};
use meetpoint_report::svg::Picture;

/// Maximum t_s/t_c of the plane.
const Y_MAX: f64 = 8.0;
const COLUMNS: usize = 40;
const ROWS: usize = 40;
/// Maximum gain of the colour scale; higher gains have its colour.
const GAIN_MAX: f64 = 0.6;

/// A point that was measured.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Measured {
    /// Its label.
    pub name: String,
    /// t_g/t_c.
    pub x: f64,
    /// t_s/t_c.
    pub y: f64,
}

/// The gain of `wrr` over the plane, with the lines that the headlines imply.
pub(super) fn region(reading: Reading, measured: &[Measured]) -> Picture {
    let middle =
        |place: usize, count: usize, limit: f64| (place as f64 + 0.5) / count as f64 * limit;
    let cells = (0..ROWS)
        .map(|row| {
            let y = middle(row, ROWS, Y_MAX);
            (0..COLUMNS)
                .map(|column| {
                    reading.gain(region::ratio(Method::Wrr, middle(column, COLUMNS, 1.0), y))
                })
                .collect()
        })
        .collect();
    let border = |name: &str, method, gain, colour, dashed| Line {
        name: name.to_owned(),
        points: straight(|x| region::border(method, reading, gain, x)),
        colour,
        dashed,
    };
    let (x, y) = region::point(reading, paper::IMAGENET_GAIN, paper::USAGE_LESS);
    let implied =
        Mark { name: "headline's point, if of one row".to_owned(), at: (x, y), colour: 1 };
    let ours = measured.iter().map(|point| Mark {
        name: point.name.clone(),
        at: (point.x.clamp(0.0, 1.0), point.y.clamp(0.0, Y_MAX)),
        colour: 2,
    });
    let drawn = Map {
        title: format!("Gain of wrr over the host alone, read as {} (w = 0)", reading.name()),
        across: Axis::new("t_g / t_c: step on a ready batch / batch of the host", 0.0, 1.0),
        up: Axis::new("t_s / t_c: device's batch / batch of the host", 0.0, Y_MAX),
        cells,
        heat: Axis::new("gain", 0.0, GAIN_MAX),
        lines: vec![
            border("wrr gives +23.5 % (ImageNet)", Method::Wrr, paper::IMAGENET_GAIN, 1, false),
            border("wrr gives +27.6 % (CIFAR-10)", Method::Wrr, paper::CIFAR_GAIN, 5, false),
            border("mte gives +23.5 %", Method::Mte, paper::IMAGENET_GAIN, 1, true),
            border("mte gives +27.6 %", Method::Mte, paper::CIFAR_GAIN, 5, true),
        ],
        marks: std::iter::once(implied).chain(ours).collect(),
    };
    map(&drawn)
}

/// A straight line from t_g/t_c = 0 to where it meets the axis below.
fn straight(y_at: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
    let (from, slope) = (y_at(0.0), y_at(1.0) - y_at(0.0));
    vec![(0.0, from), (-from / slope, 0.0)]
}

/// Which added powers of host core and device give the published energy, under both readings.
pub(super) fn watts() -> Picture {
    let energy = 1.0 - paper::ENERGY_LESS;
    let mut drawn = Vec::new();
    for (place, reading) in Reading::ALL.into_iter().enumerate() {
        let (x, y) = region::point(reading, paper::IMAGENET_GAIN, paper::USAGE_LESS);
        for (dashed, accelerator, name) in [(false, 0.0, "0"), (true, 0.5, "0.5")] {
            // The line is straight, because the equation is linear in the host's watts.
            let ends = [0.0, 2.0];
            let points = ends
                .map(|host| (host, region::device_watts(x, y, energy, host, accelerator)))
                .into();
            drawn.push(Line {
                name: format!("read as {}, accelerator adds {name}", reading.name()),
                points,
                colour: place,
                dashed,
            });
        }
    }
    let none = Line {
        name: "no device adds less than nothing".to_owned(),
        points: vec![(0.0, 0.0), (2.0, 0.0)],
        colour: 4,
        dashed: false,
    };
    drawn.push(none);
    let chart = Chart {
        title: "Added powers that give an energy of -19.7 % at the headline's points".to_owned(),
        across: Axis::new("a busy host core adds, / constant power", 0.0, 2.0),
        up: Axis::new("a busy device adds, / the same", -0.2, 0.6),
        lines: drawn,
        marks: Vec::new(),
    };
    lines(&chart)
}

#[cfg(test)]
mod tests {
    use super::{Measured, region, watts};
    use crate::reproduce::region::Reading;

    #[test]
    fn the_pictures_hold_every_line_and_what_was_measured() {
        let ours = Measured { name: "this machine".into(), x: 0.4, y: 2.0 };
        for reading in Reading::ALL {
            let svg = region(reading, std::slice::from_ref(&ours)).element();
            for part in ["+23.5 %", "+27.6 %", "this machine", "t_s / t_c"] {
                assert!(svg.contains(part), "{part}");
            }
            assert!(!region(reading, &[]).element().contains("this machine"));
        }
        assert!(watts().element().contains("-19.7 %"));
    }
}
