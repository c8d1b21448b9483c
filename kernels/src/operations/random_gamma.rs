//! Executes `random_gamma` and `random_sigmoid_contrast`.

use super::PixelOperation;
use crate::Error;
use crate::colour::Change;
use crate::pixels::Pixels;
use meetpoint_format::random::Draws;
use meetpoint_format::recipe::{RandomGamma, RandomSigmoidContrast};

/// The random parameters; `None` if not applied.
struct DrawnFactors {
    brightness: Option<f64>,
    color: Option<[f64; 3]>,
    contrast: Option<f64>,
}

impl DrawnFactors {
    fn of(operation: &RandomGamma, draws: &mut Draws) -> Self {
        let &RandomGamma { brightness: (low, high), color, contrast, p } = operation;
        let brightness = draws.chance(p).then(|| draws.uniform_in(low, high));
        let color = color
            .filter(|_| draws.chance(p))
            .map(|(low, high)| [(); 3].map(|()| draws.uniform_in(low, high)));
        let contrast =
            contrast.filter(|_| draws.chance(p)).map(|(low, high)| draws.uniform_in(low, high));
        Self { brightness, color, contrast }
    }
}

impl PixelOperation for RandomGamma {
    fn is_applied(&self, draws: &mut Draws) -> bool {
        let DrawnFactors { brightness, color, contrast } = DrawnFactors::of(self, draws);
        brightness.is_some() || color.is_some() || contrast.is_some()
    }

    fn apply(&self, draws: &mut Draws, pixels: &mut Pixels<'_>) -> Result<(), Error> {
        let DrawnFactors { brightness, color, contrast } = DrawnFactors::of(self, draws);
        let of_all = brightness.map_or(1.0, RandomGamma::gamma);
        let color = color.filter(|_| !pixels.is_grey());
        let gammas = color.map_or([1.0; 3], |numbers| numbers.map(RandomGamma::gamma));
        let gammas = gammas.map(|gamma| of_all * gamma);
        Change::Tone { contrast: contrast.unwrap_or(0.0), gammas }.apply(pixels)
    }
}

impl PixelOperation for RandomSigmoidContrast {
    fn is_applied(&self, draws: &mut Draws) -> bool {
        draws.chance(self.p)
    }

    fn apply(&self, draws: &mut Draws, pixels: &mut Pixels<'_>) -> Result<(), Error> {
        draws.chance(self.p);
        let contrast = draws.uniform_in(self.contrast.0, self.contrast.1);
        Change::SigmoidContrast(contrast).apply(pixels)
    }
}
