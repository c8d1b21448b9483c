//! Possible sizes of the pictures of a recipe, computed before any picture is decoded.

use super::Padding;
use super::sample_type::PIXELS_MAX;

/// Heights and widths between two bounds, both inclusive. Sides are at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeRange {
    /// Smallest height and width.
    pub least: (u32, u32),
    /// Largest height and width; `u32::MAX` if there is no limit.
    pub most: (u32, u32),
}

impl SizeRange {
    /// Any size.
    pub const ANY: Self = Self { least: (1, 1), most: (u32::MAX, u32::MAX) };

    /// One size: height and width.
    pub fn exact(size: (u32, u32)) -> Self {
        Self { least: size, most: size }
    }

    /// The size, if there is only one.
    pub fn only(self) -> Option<(u32, u32)> {
        (self.least == self.most).then_some(self.most)
    }

    /// The largest height and width, if both have a limit that pictures can reach.
    pub fn limit(self) -> Option<(u32, u32)> {
        let (height, width) = self.most;
        let is_limited = |side: u32| u64::from(side) < PIXELS_MAX;
        (is_limited(height) && is_limited(width)).then_some(self.most)
    }

    /// The smallest range that contains both.
    #[must_use]
    pub(super) fn or(self, other: Self) -> Self {
        let least = |side: fn((u32, u32)) -> u32| side(self.least).min(side(other.least));
        let most = |side: fn((u32, u32)) -> u32| side(self.most).max(side(other.most));
        Self {
            least: (least(|it| it.0), least(|it| it.1)),
            most: (most(|it| it.0), most(|it| it.1)),
        }
    }

    /// Height and width swapped.
    #[must_use]
    pub(super) fn turned(self) -> Self {
        let turn = |(height, width): (u32, u32)| (width, height);
        Self { least: turn(self.least), most: turn(self.most) }
    }

    /// With padding added.
    #[must_use]
    pub(super) fn padded(self, padding: Padding) -> Self {
        let Padding { left, top, right, bottom } = padding;
        let around = |(height, width): (u32, u32)| {
            let down = height.saturating_add(top).saturating_add(bottom);
            (down, width.saturating_add(left).saturating_add(right))
        };
        Self { least: around(self.least), most: around(self.most) }
    }

    /// Resized so that the shorter side has a length between two bounds and the longer one is at
    /// most `longer_most`, allowing for any rounding of the result.
    #[must_use]
    pub(super) fn of_shorter_side(self, shorter: (u32, u32), longer_most: Option<u32>) -> Self {
        let (from, limit) = (self, longer_most.unwrap_or(u32::MAX));
        let most = |own: u32, other: u32| {
            let stretched = f64::from(own) / f64::from(other.max(1));
            // The cast saturates.
            let side = (f64::from(shorter.1) * stretched.max(1.0)).ceil() as u32;
            if own == u32::MAX { limit } else { side.saturating_add(1).min(limit) }
        };
        let least = |own: u32, other: u32| {
            let shrunk = f64::from(own) / f64::from(other);
            let by_shorter = f64::from(shorter.0) * shrunk.max(1.0);
            let by_longer = f64::from(limit) * shrunk.min(1.0);
            let by_longer = if limit == u32::MAX { f64::INFINITY } else { by_longer };
            // The cast truncates.
            (by_shorter.min(by_longer) as u32).saturating_sub(1).max(1)
        };
        Self {
            least: (least(from.least.0, from.most.1), least(from.least.1, from.most.0)),
            most: (most(from.most.0, from.least.1), most(from.most.1, from.least.0)),
        }
    }

    /// The largest sides times a factor, the smallest unchanged.
    #[must_use]
    pub(super) fn stretched(self, factor: f64) -> Self {
        let side = |side: u32| match side {
            u32::MAX => u32::MAX,
            side => (f64::from(side) * factor.max(1.0)).ceil() as u32,
        };
        Self { least: self.least, most: (side(self.most.0), side(self.most.1)) }
    }
}
