//! Records changes of the colours as data.

use super::{Change, RowChange, box_blur, gaussian, tables};
use crate::picture_program::PictureChange;
use crate::recording::Recording;

impl Change {
    /// Records the change.
    pub(crate) fn record(self, recording: &mut Recording<'_>) {
        if let Some(change) = self.of_rows() {
            return change.record(recording);
        }
        match self {
            Self::Contrast(factor) => recording.push(PictureChange::Contrast(factor as f32)),
            Self::Sharpness(factor) => recording.push(PictureChange::Sharpness(factor as f32)),
            Self::Autocontrast => recording.push(PictureChange::Autocontrast),
            Self::Equalize => recording.push(PictureChange::Equalize),
            Self::Tone { contrast, gammas } => {
                recording.push_tables(gammas.map(|gamma| tables::tone(contrast, gamma)));
            }
            Self::PillowBlur(radius) => {
                if let Some((radius, weights)) = box_blur::box_of(radius) {
                    recording.push(PictureChange::BoxBlur { radius, weights });
                }
            }
            Self::Blur { kernel: (height, width), sigma } => {
                let mut weights = |length: u32| {
                    let weights = gaussian::weights(length, sigma).into_iter();
                    let bits = weights.map(|weight| weight.to_bits().cast_signed());
                    (recording.add_words(bits), length)
                };
                let (across, down) = (weights(width), weights(height));
                recording.push(PictureChange::KernelBlur { across, down });
            }
            Self::Brightness(_)
            | Self::Saturation(_)
            | Self::Hue(_)
            | Self::Invert
            | Self::Posterize(_)
            | Self::Solarize(_)
            | Self::SolarizeAdd { .. }
            | Self::Gamma { .. }
            | Self::SigmoidContrast(_)
            | Self::Grey
            | Self::Channels(_) => unreachable!("these are changes of rows"),
        }
    }
}

impl RowChange {
    /// Records the change.
    fn record(&self, recording: &mut Recording<'_>) {
        match self {
            Self::Table(table) => recording.push_table(*table),
            Self::Bits(bits) => recording.push_table(tables::of_bits(*bits)),
            Self::Saturation(change) => {
                recording.push(PictureChange::Saturation(change.factor()));
            }
            Self::Hue(change) => recording.push(PictureChange::Hue(change.shift())),
            Self::Grey => recording.push(PictureChange::Grey),
            Self::Channels(change) => {
                recording.push(PictureChange::Channels(change.order.map(|channel| channel as u8)));
            }
        }
    }
}
