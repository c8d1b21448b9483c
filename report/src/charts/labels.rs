//! The positions of the names of points: no name covers another or a point; all stay in the chart.

/// Pixels of a line of text, and maximum pixels of a character.
const LINE: f64 = 16.0;
const CHARACTER: f64 = 7.0;

/// The labels of points that have been placed.
#[derive(Debug)]
pub(super) struct PointLabels {
    /// First and last baseline that a name may have.
    between: (f64, f64),
    /// Left edge, baseline and right edge; all are as high as a line.
    taken: Vec<(f64, f64, f64)>,
}

impl PointLabels {
    /// No labels yet; they must lie between two baselines.
    pub(super) fn new(first: f64, last: f64) -> Self {
        Self { between: (first, last), taken: Vec::new() }
    }

    /// Keeps names off a point of a radius.
    pub(super) fn keep_off(&mut self, point: (f64, f64), radius: f64) {
        // Letters stand on their baseline: a name covers what is above it.
        self.taken.push((point.0 - radius, point.1 + radius, point.0 + radius));
    }

    /// Where the name of a point begins, or ends if it stands to the left of it: above the point,
    /// below it, or on the nearest line above or below that is free.
    pub(super) fn place(&mut self, point: (f64, f64), name: &str, to_the_left: bool) -> (f64, f64) {
        let width = name.chars().count() as f64 * CHARACTER;
        let x = if to_the_left { point.0 - 8.0 } else { point.0 + 9.0 };
        let (left, right) = if to_the_left { (x - width, x) } else { (x, x + width) };
        let is_free = |baseline: &f64| {
            let (first, last) = self.between;
            let apart = |&(other_left, other, other_right): &(f64, f64, f64)| {
                left >= other_right || right <= other_left || (baseline - other).abs() >= LINE
            };
            (first..=last).contains(baseline) && self.taken.iter().all(apart)
        };
        let offsets = (0..).flat_map(|line| {
            let far = LINE * f64::from(line);
            [-4.0 - far, 13.0 + far]
        });
        let near = offsets.take(2 * (self.taken.len() + 2)).map(|offset| point.1 + offset);
        let baseline = near.into_iter().find(is_free).unwrap_or(point.1 - 4.0);
        self.taken.push((left, baseline, right));
        (x, baseline)
    }
}

#[cfg(test)]
mod tests {
    use super::{LINE, PointLabels};

    #[test]
    fn a_name_does_not_cover_another_point() {
        let mut names = PointLabels::new(20.0, 400.0);
        let alone = names.place((100.0, 200.0), "twelve chars", false);
        let mut names = PointLabels::new(20.0, 400.0);
        names.keep_off((150.0, 196.0), 5.0);
        let beside = names.place((100.0, 200.0), "twelve chars", false);
        assert_eq!(alone, (109.0, 196.0));
        assert!((beside.1 - 201.0).abs() >= LINE, "{beside:?}");
    }

    #[test]
    fn names_of_points_close_together_do_not_cover_each_other() {
        let mut names = PointLabels::new(20.0, 400.0);
        let points = [(100, 100), (101, 100), (99, 103), (130, 98), (400, 100), (100, 100)];
        for (x, y) in points {
            names.place((f64::from(x), f64::from(y)), "twelve chars", x > 300);
        }
        for (at, a) in names.taken.iter().enumerate() {
            for b in &names.taken[at + 1..] {
                let beside = a.0 >= b.2 || b.0 >= a.2;
                assert!(beside || (a.1 - b.1).abs() >= LINE, "{a:?} {b:?}");
            }
        }
        // The first is where one alone would be, and so is one far away.
        assert_eq!((names.taken[0].0, names.taken[0].1), (109.0, 96.0));
        assert_eq!((names.taken[4].2, names.taken[4].1), (392.0, 96.0));
    }

    #[test]
    fn the_name_of_a_point_at_the_top_stands_below_it() {
        let mut names = PointLabels::new(20.0, 400.0);
        assert_eq!(names.place((50.0, 20.0), "top", false), (59.0, 33.0));
        assert_eq!(names.place((50.0, 398.0), "bottom", false), (59.0, 394.0));
    }
}
