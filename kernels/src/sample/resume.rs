//! Resumes a recipe in the middle, from the result of its first operations.

use super::plan::{ProgramEnd, choose, for_each_stage};
use super::wide::WidePicture;
use super::{SampleId, SamplePreparer, Source, Streams, Tensor};
use crate::Error;
use crate::operations::Step;
use crate::points::Points;
use crate::stage::Geometry;
use crate::tensor::convert_elements;
use meetpoint_format::recipe::{Layout, TensorSpec};

impl SamplePreparer {
    /// Applies the operations of the recipe from the number `first` on to the result of the
    /// preceding ones: the tensor of a preparer whose recipe consists of only those. Numbers count
    /// operations from 0; each operation precedes those that it contains. The result is
    /// bit-identical to that of the whole recipe, including random parameters.
    ///
    /// There are two exceptions. Operations before `first` that look ahead
    /// ([`meetpoint_format::recipe::Operation::looks_ahead`]) have a different result without those
    /// after them. A picture that was stored with lossy compression differs.
    ///
    /// # Errors
    ///
    /// [`Error::OutputSize`] if the length of `data` differs from that of `spec`.
    ///
    /// # Panics
    ///
    /// If `first` is 0 or past the end; if `spec` is not the input type of that operation (a
    /// picture is NHWC, with the type and channels of its mode); or if the recipe creates several
    /// pictures of a sample.
    pub fn resume(
        &mut self,
        first: usize,
        (spec, data): (&TensorSpec, &[u8]),
        id: SampleId,
    ) -> Result<Tensor, Error> {
        if self.is_of_series() {
            let result = self.resume_series(first, (spec, data), id, &mut || ())?;
            let mut out = vec![0; result.bytes()];
            let to = (&result, &mut out[..]);
            self.finish_resumed_series(first, (spec, data), to, id, &mut || ())?;
            return Ok(Tensor { spec: result, data: out });
        }
        let id = Streams::from(id);
        let result = self.plan_resumed(first, (spec, data), &[], id)?;
        let mut out = vec![0; result.bytes()];
        self.run_resumed(first, (spec, data), (&[], result), id, (&mut out, &mut || ()))?;
        Ok(Tensor { spec: result, data: out })
    }

    /// Like [`Self::resume`], into `out`, with the stored values of all targets, which no operation
    /// before `first` may move: [`Self::target`] returns the results. `after_stage` is called as by
    /// [`Self::prepare`].
    pub fn resume_with(
        &mut self,
        first: usize,
        (spec, data): (&TensorSpec, &[u8]),
        stored: &[&[u8]],
        id: SampleId,
        (out, after_stage): (&mut [u8], &mut dyn FnMut()),
    ) -> Result<(), Error> {
        assert_eq!(stored.len(), self.targets.len(), "a value for each target");
        if self.is_of_series() {
            let result = self.resume_series(first, (spec, data), id, after_stage)?;
            self.check_output(result, out)?;
            let to = (&result, out);
            return self.finish_resumed_series(first, (spec, data), to, id, after_stage);
        }
        let id = Streams::from(id);
        let result = self.plan_resumed(first, (spec, data), stored, id)?;
        self.check_output(result, out)?;
        self.run_resumed(first, (spec, data), (stored, result), id, (out, after_stage))
    }

    /// Like [`Self::resume_with`], for a shape that may depend on the picture: appends the tensor
    /// to `out`, and returns its shape. After an error `out` has its original length.
    pub fn resume_appended(
        &mut self,
        first: usize,
        (spec, data): (&TensorSpec, &[u8]),
        stored: &[&[u8]],
        id: SampleId,
        (out, after_stage): (&mut Vec<u8>, &mut dyn FnMut()),
    ) -> Result<TensorSpec, Error> {
        assert_eq!(stored.len(), self.targets.len(), "a value for each target");
        let id = Streams::from(id);
        let result = self.plan_resumed(first, (spec, data), stored, id)?;
        let start = out.len();
        out.resize(start + result.bytes(), 0);
        let into = (&mut out[start..], after_stage);
        let done = self.run_resumed(first, (spec, data), (stored, result), id, into);
        if done.is_err() {
            out.truncate(start);
        }
        done.map(|()| result)
    }

    /// Upper bound of the memory in bytes of [`Self::resume`] for whole pictures, including the
    /// picture of `spec`.
    pub fn resume_bytes(
        &self,
        first: usize,
        spec: &TensorSpec,
        id: SampleId,
    ) -> Result<u64, Error> {
        if self.is_of_series() {
            return self.resumed_series_bytes(first, spec);
        }
        if !self.resumes_picture(first) {
            return Ok(0);
        }
        let picture = Geometry::upright(spec.width, spec.height);
        let id = Streams::from(id);
        let pixels_of = |it: Geometry| u64::from(it.width) * u64::from(it.height);
        let mut before = picture.bytes().max(self.mask_bytes(picture));
        let (mut most, mut pixels) = (before, pixels_of(picture));
        let mut chosen = Vec::new();
        choose(&self.program.steps, first, self.program.steps.len(), id, &mut chosen);
        let programs = (&self.program.steps[..], &self.program.names[..]);
        let (ending, points) = ((&chosen[..], ProgramEnd::Tensor), &mut Points::unknown());
        for_each_stage(programs, ending, picture, id, points, &mut |stage| {
            pixels = pixels.max(pixels_of(stage.result())).max(pixels_of(stage.after));
            let held = if stage.is_last { 0 } else { stage.result().bytes() };
            most = most.max(before + held).max(stage.whole_bytes_max);
            before = if stage.is_last { 0 } else { stage.after.bytes() };
        })?;
        let mode = self.decode.mode;
        let of_wide = if mode.is_wide() { WidePicture::bytes(mode, pixels) } else { 0 };
        Ok(most + of_wide)
    }

    /// Whether the input of the operation with this number is a picture, not elements.
    pub(super) fn resumes_picture(&self, first: usize) -> bool {
        let is_on_tensor = |step: &Step| matches!(step, Step::Elements(_) | Step::Tensor(_));
        first < self.program.steps.len() && !self.program.steps[..first].iter().any(is_on_tensor)
    }

    /// Plans the stages of the rest of the recipe, and the shape of the result.
    fn plan_resumed(
        &mut self,
        first: usize,
        (spec, data): (&TensorSpec, &[u8]),
        stored: &[&[u8]],
        id: Streams,
    ) -> Result<TensorSpec, Error> {
        assert!(self.views.is_none(), "the recipe makes one picture of a sample");
        assert!((1..=self.program.steps.len()).contains(&first), "operation {first} of the recipe");
        if data.len() != spec.bytes() {
            return Err(Error::OutputSize { got: data.len(), expected: spec.bytes() });
        }
        self.orientation = None;
        self.unscaled = None;
        self.source = Geometry::upright(spec.width, spec.height);
        self.begin_targets(stored)?;
        self.chosen.clear();
        choose(&self.program.steps, first, self.program.steps.len(), id, &mut self.chosen);
        self.stages.clear();
        let found = &mut |stage| self.stages.push(stage);
        let (source, points) = (self.source, &mut self.points);
        let programs = (&self.program.steps[..], &self.program.names[..]);
        let ending = (&self.chosen[..], ProgramEnd::Tensor);
        let picture = for_each_stage(programs, ending, source, id, points, found)?;
        Ok(self.program.result.tensor((picture.height, picture.width)))
    }

    /// Executes the planned stages.
    fn run_resumed(
        &mut self,
        first: usize,
        (spec, data): (&TensorSpec, &[u8]),
        (stored, result): (&[&[u8]], TensorSpec),
        id: Streams,
        (out, after_stage): (&mut [u8], &mut dyn FnMut()),
    ) -> Result<(), Error> {
        self.finish_points(stored, result);
        if self.resumes_picture(first) {
            let dtype = self.decode.mode.dtype();
            assert_eq!((spec.dtype, spec.layout), (dtype, Layout::Nhwc), "a picture");
            match self.decode.mode.is_wide() {
                true => self.take_wide(spec, data),
                false => self.take_picture(spec, data),
            }
            self.run(Source::Picture, id, out, after_stage)?;
        } else {
            self.resume_tensor(first, (spec, data), (&result, out));
            after_stage();
        }
        self.finish(result, id, out, after_stage)?;
        self.prepare_masks(stored, result, id, after_stage)
    }

    /// Executes the rest of the recipe, which only changes elements, on a tensor.
    fn resume_tensor(
        &self,
        first: usize,
        (spec, data): (&TensorSpec, &[u8]),
        (result, out): (&TensorSpec, &mut [u8]),
    ) {
        let rest = &self.program.steps[first..];
        if !rest.iter().any(|step| matches!(step, Step::Elements(_))) {
            return out.copy_from_slice(data);
        }
        convert_elements((spec, data), (result, out), &|table| {
            for step in rest {
                if let Step::Elements(operation) = step {
                    operation.fold(table);
                }
            }
        });
    }

    /// Copies a picture into the memory of the picture between two stages. One channel becomes
    /// three equal ones, like after operations that make a picture grey.
    fn take_picture(&mut self, spec: &TensorSpec, data: &[u8]) {
        let (width, height) = (spec.width as usize, spec.height as usize);
        let channels = spec.channels as usize;
        self.picture.set_size(width, height);
        for (y, row) in data.chunks_exact((width * channels).max(1)).enumerate() {
            for plane in 0..3 {
                let channel = if channels == 1 { 0 } else { plane };
                let pixels = row.chunks_exact(channels);
                for (out, pixel) in self.picture.row_mut(plane, y).iter_mut().zip(pixels) {
                    *out = pixel[channel];
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{SampleId, SamplePreparer};
    use crate::Cpu;
    use meetpoint_format::recipe::{Recipe, RecipeError};

    const ID: SampleId = SampleId { seed: 7, epoch: 3, sample: 41 };

    fn recipe(operations: &[&str]) -> Result<Recipe, RecipeError> {
        let tables = operations.iter().map(|keys| {
            let (name, rest) = keys.split_once(' ').unwrap_or((keys, ""));
            format!("[[operation]]\nname = \"{name}\"\n{}\n", rest.replace(';', "\n"))
        });
        Recipe::from_toml(&tables.collect::<String>())
    }

    /// A BMP of an irregular picture.
    fn bmp(width: u32, height: u32) -> Vec<u8> {
        let mut state = 1u32;
        let mut file = Vec::new();
        let picture = image::RgbImage::from_fn(width, height, |_, _| {
            image::Rgb([0; 3].map(|_: u8| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 24) as u8
            }))
        });
        let to = &mut std::io::Cursor::new(&mut file);
        picture.write_to(to, image::ImageFormat::Bmp).unwrap();
        file
    }

    /// Compares the whole recipe with each split of it, resumed from the result of the first part.
    fn check_every_split(operations: &[&str], from: usize) {
        let file = bmp(67, 45);
        let whole_recipe = recipe(operations).unwrap();
        let mut whole = SamplePreparer::new(&whole_recipe, Cpu::detect());
        let expected = whole.prepare_tensor((&file[..]).into(), ID).unwrap();
        for first in from..=operations.len() {
            let beginning = recipe(&operations[..first]).unwrap();
            let mut beginning = SamplePreparer::new(&beginning, Cpu::detect());
            let stored = beginning.prepare_tensor((&file[..]).into(), ID).unwrap();
            let got = whole.resume(first, (&stored.spec, &stored.data), ID).unwrap();
            assert!(got == expected, "{operations:?} resumed at {first}");
        }
    }

    #[test]
    fn a_resumed_recipe_has_the_bits_of_the_whole() {
        let normalize = "normalize mean = [0.4, 0.5, 0.6];std = [0.2, 0.3, 0.25]";
        for dtype in ["float32", "float16"] {
            let to_dtype = format!("to_dtype dtype = \"{dtype}\";scale = true");
            check_every_split(
                &[
                    "decode",
                    "resize size = 40",
                    "random_horizontal_flip p = 1.0",
                    "resize size = [31, 33]",
                    "random_grayscale p = 1.0",
                    "center_crop size = 48",
                    "color_jitter brightness = 0.4",
                    "random_rotation degrees = 30.0",
                    "random_resized_crop size = 24",
                    &to_dtype,
                    normalize,
                    "layout layout = \"NCHW\"",
                    "random_erasing p = 1.0",
                ],
                1,
            );
        }
    }

    #[test]
    fn a_grey_picture_of_one_channel_is_resumed() {
        check_every_split(
            &[
                "decode",
                "grayscale",
                "resize size = 20",
                "random_vertical_flip p = 1.0",
                "to_dtype dtype = \"float32\"",
                "normalize mean = [3.0];std = [7.0]",
            ],
            1,
        );
    }

    #[test]
    fn a_tensor_that_does_not_have_its_bytes_is_refused() {
        let mut preparer = SamplePreparer::new(&recipe(&["decode"]).unwrap(), Cpu::detect());
        let stored = preparer.prepare_tensor((&bmp(5, 4)[..]).into(), ID).unwrap();
        let short = preparer.resume(1, (&stored.spec, &stored.data[1..]), ID);
        assert_eq!(short, Err(crate::Error::OutputSize { got: 59, expected: 60 }));
    }
}
