//! The legend of a chart: names next to samples of their colour, in as many rows as needed.

use crate::svg::{Anchor, Svg};

/// Pixels from one row to the next.
const ROW: f64 = 18.0;
/// Proportional letters: seven pixels each is ample at their size.
const LETTER: f64 = 7.0;
const GAP: f64 = 18.0;

/// What an entry shows of its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sample {
    /// An area.
    Square,
    /// A line.
    Line,
}

impl Sample {
    /// Pixels until the name.
    fn width(self) -> f64 {
        match self {
            Self::Square => 15.0,
            Self::Line => 28.0,
        }
    }
}

/// Sample, class and name.
type Entry = (Sample, String, String);

/// Entries that are divided into rows.
#[derive(Debug)]
pub(crate) struct Legend {
    /// Each entry with its distance from the left edge.
    rows: Vec<Vec<(f64, Entry)>>,
}

impl Legend {
    /// Rows of at most `width` pixels, unless one entry is wider.
    pub(crate) fn new(entries: Vec<Entry>, width: f64) -> Self {
        let mut rows: Vec<Vec<(f64, Entry)>> = Vec::new();
        let mut x = 0.0;
        for entry in entries {
            let own = entry.0.width() + LETTER * entry.2.chars().count() as f64;
            if rows.is_empty() || x + own > width {
                rows.push(Vec::new());
                x = 0.0;
            }
            let row = rows.last_mut().expect("there is a row");
            row.push((x, entry));
            x += own + GAP;
        }
        Self { rows }
    }

    /// Pixels of all rows.
    pub(crate) fn height(&self) -> f64 {
        self.rows.len() as f64 * ROW
    }

    /// Draws it; `y` is the baseline of the first row.
    pub(crate) fn draw(&self, svg: &mut Svg, left: f64, y: f64) {
        for (row, entries) in self.rows.iter().enumerate() {
            let y = y + row as f64 * ROW;
            for (x, (sample, class, name)) in entries {
                let x = left + x;
                match sample {
                    Sample::Square => svg.rect(class, x, y - 9.0, 10.0, 10.0),
                    Sample::Line => svg.line(class, (x, y - 4.0), (x + 22.0, y - 4.0)),
                }
                svg.text("label", Anchor::Start, x + sample.width(), y, name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Legend, Sample};

    #[test]
    fn entries_that_do_not_fit_begin_a_row() {
        let entry = |name: &str| (Sample::Square, "host".to_owned(), name.to_owned());
        let names = ["ten letters", "ten letters", "a name that is wider than the picture", "a"];
        let legend = Legend::new(names.map(entry).into(), 220.0);
        let rows: Vec<usize> = legend.rows.iter().map(Vec::len).collect();
        assert_eq!(rows, [2, 1, 1]);
        assert_eq!(legend.height(), 54.0);
        assert_eq!(Legend::new(Vec::new(), 220.0).height(), 0.0);
    }
}
