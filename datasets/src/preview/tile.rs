//! A prepared tensor as a picture of 8 bits: the inverse of layout, scale and normalisation.

use half::f16;
use image::RgbImage;
use image::imageops::{FilterType, resize};
use meetpoint_format::recipe::{Dtype, Layout, Operation, PerChannel, Scale, TensorSpec};

/// The operations to undo, in the order in which they are undone.
#[derive(Debug, Clone)]
pub(super) struct Undo {
    steps: Vec<Step>,
}

/// The inverse of an operation on elements.
#[derive(Debug, Clone)]
enum Step {
    /// Of `normalize`: multiply by the standard deviation and add the mean.
    Normalize(PerChannel, PerChannel),
    /// Of a division by 255: multiply by 255.
    Scale,
}

impl Undo {
    pub(super) fn of(operations: &[Operation]) -> Self {
        let steps = operations.iter().rev().filter_map(|operation| {
            if let Operation::Normalize(it) = operation {
                return Some(Step::Normalize(it.mean, it.std));
            }
            let Operation::ToDtype(it) = operation else { return None };
            let is_scaled = it.dtype != Dtype::Uint8 && it.scale != Scale::None;
            is_scaled.then_some(Step::Scale)
        });
        Self { steps: steps.collect() }
    }

    /// The picture of one sample's tensor.
    pub(super) fn picture(&self, bytes: &[u8], spec: &TensorSpec) -> RgbImage {
        let channels = spec.channels as usize;
        let pixels = (spec.width * spec.height) as usize;
        let value = |x: u32, y: u32, channel: usize| {
            let pixel = (y * spec.width + x) as usize;
            let at = match spec.layout {
                Layout::Nhwc | Layout::Nt | Layout::Ntc => pixel * channels + channel,
                Layout::Nchw | Layout::Nct => channel * pixels + pixel,
            };
            self.element(&bytes[at * spec.dtype.bytes()..], spec.dtype, channel)
        };
        RgbImage::from_fn(spec.width, spec.height, |x, y| {
            let of = |channel: usize| value(x, y, channel.min(channels - 1));
            // One channel is grey; channels after the third are not colour.
            image::Rgb(if channels < 3 { [of(0); 3] } else { [of(0), of(1), of(2)] })
        })
    }

    fn element(&self, bytes: &[u8], dtype: Dtype, channel: usize) -> u8 {
        let mut value = match dtype {
            Dtype::Uint8 => return bytes[0],
            // 65535 is white.
            Dtype::Uint16 => return (u16::from_le_bytes([bytes[0], bytes[1]]) / 257) as u8,
            Dtype::Int32 => f64::from(i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])),
            Dtype::Float16 => f64::from(f16::from_le_bytes([bytes[0], bytes[1]])),
            Dtype::Float32 => {
                f64::from(f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
            }
        };
        for step in &self.steps {
            value = match step {
                Step::Normalize(mean, std) => value * std.channel(channel) + mean.channel(channel),
                Step::Scale => value * 255.0,
            };
        }
        value.round().clamp(0.0, 255.0) as u8
    }
}

/// Enlarges the picture by an integer factor, without interpolation.
pub(super) fn enlarged(picture: &RgbImage, scale: u32) -> RgbImage {
    match scale {
        1 => picture.clone(),
        _ => {
            let (width, height) = picture.dimensions();
            resize(picture, width * scale, height * scale, FilterType::Nearest)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Undo;
    use meetpoint_format::recipe::Recipe;
    use meetpoint_kernels::{Cpu, SampleId, SamplePreparer};

    #[test]
    fn normalisation_scale_and_layout_are_undone_in_every_type() {
        let pixels: Vec<u8> = (0..2 * 3 * 3).map(|index| (index * 14) as u8).collect();
        let mut png = Vec::new();
        let stored = image::RgbImage::from_raw(3, 2, pixels.clone()).unwrap();
        let into = &mut std::io::Cursor::new(&mut png);
        stored.write_to(into, image::ImageFormat::Png).unwrap();
        let ends = [
            "",
            "[[operation]]\nname = 'layout'\nlayout = 'NCHW'\n",
            "[[operation]]\nname = 'to_dtype'\ndtype = 'float32'\n",
            "[[operation]]\nname = 'layout'\nlayout = 'NCHW'\n[[operation]]\nname = 'to_dtype'\n\
             dtype = 'float32'\nscale = 'divide'\n[[operation]]\nname = 'normalize'\n\
             mean = [0.4, 0.5, 0.6]\nstd = [0.2, 0.25, 0.3]\n",
            "[[operation]]\nname = 'to_dtype'\ndtype = 'float16'\nscale = true\n",
        ];
        for end in ends {
            let text = format!("[[operation]]\nname = 'decode'\n{end}");
            let recipe = Recipe::from_toml(&text).unwrap();
            let mut preparer = SamplePreparer::new(&recipe, Cpu::Portable);
            let id = SampleId { seed: 0, epoch: 0, sample: 0 };
            let tensor = preparer.prepare_tensor((&png).into(), id).unwrap();
            let picture = Undo::of(recipe.operations()).picture(&tensor.data, &tensor.spec);
            assert_eq!(picture.into_raw(), pixels, "{end}");
        }
    }
}
