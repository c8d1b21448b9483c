//! Executes `random_photometric_distort`.

use super::PixelOperation;
use crate::Error;
use crate::colour::Change;
use crate::pixels::Pixels;
use crate::random::shuffle;
use meetpoint_format::random::Draws;
use meetpoint_format::recipe::RandomPhotometricDistort;

impl PixelOperation for RandomPhotometricDistort {
    fn is_applied(&self, _draws: &mut Draws) -> bool {
        self.p > 0.0
    }

    fn apply(&self, draws: &mut Draws, pixels: &mut Pixels<'_>) -> Result<(), Error> {
        let Self { brightness, contrast, saturation, hue, p } = *self;
        let [brightness, contrast, saturation, hue] = [brightness, contrast, saturation, hue]
            .map(|(low, high)| draws.chance(p).then(|| draws.uniform_in(low, high)));
        let is_contrast_first = draws.chance(0.5);
        let order = draws.chance(p).then(|| {
            let mut order = [0, 1, 2];
            shuffle(&mut order, draws);
            order
        });
        let contrast = contrast.map(Change::Contrast);
        let changes = [
            brightness.map(Change::Brightness),
            contrast.filter(|_| is_contrast_first),
            saturation.map(Change::Saturation),
            hue.map(Change::Hue),
            contrast.filter(|_| !is_contrast_first),
            order.map(Change::Channels),
        ];
        changes.into_iter().flatten().try_for_each(|change| change.apply(pixels))
    }
}
