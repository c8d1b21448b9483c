//! Executes `timm_mixup`.

use super::BatchOperation;
use crate::Error;
use crate::mixing::{Mix, MixedBatch, Rectangle, rounded};
use crate::random::beta;
use meetpoint_format::random::Draws;
use meetpoint_format::recipe::TimmMixup;

/// Draws the mix of a unit of samples, for pictures of `size` (rows, columns).
fn unit(mixup: &TimmMixup, size: (u32, u32), draws: &mut Draws) -> Mix {
    let mode = mixup.mode;
    if !draws.chance(mixup.prob) {
        return Mix::Keep;
    }
    let of_rectangles = mixup.alpha_of_rectangles();
    let is_cut = match (mixup.mixup_alpha > 0.0, of_rectangles > 0.0) {
        (true, true) => draws.chance(mixup.switch_prob),
        (_, is_cut) => is_cut,
    };
    let alpha = if is_cut { of_rectangles } else { mixup.mixup_alpha };
    let lambda = beta(alpha, draws);
    if rounded(lambda, mode) == 1.0 {
        return Mix::Keep;
    }
    if !is_cut {
        return Mix::blend(lambda, mode);
    }
    match mixup.cutmix_minmax {
        Some(shares) => {
            let found = between(size, shares, draws);
            Mix::paste(found, found.lambda(size), mode)
        }
        None => {
            let found = Rectangle::drawn(size, lambda, (mode, mixup.cut_box), draws);
            let lambda = if mixup.correct_lam { found.lambda(size) } else { lambda };
            Mix::paste(found, lambda, mode)
        }
    }
}

/// Draws a rectangle in the picture, whose sides are between two shares of the picture's sides.
fn between((height, width): (u32, u32), shares: (f64, f64), draws: &mut Draws) -> Rectangle {
    let mut length = |side| {
        let (least, most) = TimmMixup::bounds(side, shares);
        assert!(least < most, "the recipe was checked for the size of its result");
        least + draws.up_to(most - least - 1)
    };
    let (rows, columns) = (length(height), length(width));
    let top = draws.up_to(height - rows);
    let left = draws.up_to(width - columns);
    Rectangle { top, bottom: top + rows, left, right: left + columns }
}

impl BatchOperation for TimmMixup {
    fn apply(&self, draws: &mut Draws, batch: &mut MixedBatch<'_>) -> Result<(), Error> {
        let size = batch.size();
        let mixes = batch.units(self.mode, || unit(self, size, draws));
        batch.mix(Self::PARTNER, &mixes)
    }
}
