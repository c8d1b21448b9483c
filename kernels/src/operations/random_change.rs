//! Executes the operations that make a single change of the colours, always or with a probability.

use super::PixelOperation;
use crate::Error;
use crate::colour::{Change, RowChanges};
use crate::pixels::Pixels;
use meetpoint_format::random::Draws;
use meetpoint_format::recipe::{
    AdjustGamma, Grayscale, RandomAdjustSharpness, RandomAutocontrast, RandomEqualize,
    RandomGrayscale, RandomInvert, RandomPosterize, RandomSolarize, SigmoidContrast,
};
use std::fmt::Debug;

/// An operation that is a single change of the colours.
trait ChangeOperation: Debug + Send + Sync {
    /// The change.
    fn change(&self) -> Change;

    /// Its probability; `None` if it is always executed without a draw.
    fn probability(&self) -> Option<f64>;
}

impl<T: ChangeOperation> PixelOperation for T {
    fn is_applied(&self, draws: &mut Draws) -> bool {
        self.probability().is_none_or(|p| draws.chance(p))
    }

    fn needs_copy(&self) -> bool {
        self.change().needs_copy()
    }

    fn add_row_changes(&self, _draws: &mut Draws, changes: &mut RowChanges) -> bool {
        changes.add(self.change())
    }

    fn apply(&self, _draws: &mut Draws, pixels: &mut Pixels<'_>) -> Result<(), Error> {
        self.change().apply(pixels)
    }
}

macro_rules! changes {
    ($($type:ident: $probability:expr, $change:expr;)+) => {
        $(impl ChangeOperation for $type {
            fn change(&self) -> Change {
                let change: fn(&Self) -> Change = $change;
                change(self)
            }

            fn probability(&self) -> Option<f64> {
                let probability: fn(&Self) -> Option<f64> = $probability;
                probability(self)
            }
        })+
    };
}

changes! {
    Grayscale: |_| None, |_| Change::Grey;
    RandomGrayscale: |it| Some(it.p), |_| Change::Grey;
    RandomAdjustSharpness: |it| Some(it.p), |it| Change::Sharpness(it.sharpness_factor);
    RandomAutocontrast: |it| Some(it.p), |_| Change::Autocontrast;
    RandomEqualize: |it| Some(it.p), |_| Change::Equalize;
    RandomInvert: |it| Some(it.p), |_| Change::Invert;
    RandomPosterize: |it| Some(it.p), |it| Change::Posterize(it.bits);
    RandomSolarize: |it| Some(it.p), |it| Change::Solarize(it.threshold);
    AdjustGamma: |_| None, |it| Change::Gamma { gamma: it.gamma, gain: it.gain };
    SigmoidContrast: |_| None, |it| Change::SigmoidContrast(it.contrast);
}
