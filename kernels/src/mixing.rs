//! A batch in memory whose samples, and rows of labels, are mixed with one another in place.
//!
//! It never holds more than one sample besides the batch.

use crate::blend::{Weights, blend, blend_floats};
use crate::picture_program::{BatchProgram, SampleMix};
use crate::{Cpu, Error, Interrupt};
use meetpoint_format::random::Draws;
use meetpoint_format::recipe::{CutBox, Layout, MixMode, MixPartner, TensorSpec};

/// Lambda as used: rounded to float32 unless all samples share it.
pub(crate) fn rounded(lambda: f64, mode: MixMode) -> f64 {
    match mode {
        MixMode::Batch => lambda,
        MixMode::Elem | MixMode::Pair => f64::from(lambda as f32),
    }
}

/// The weights of lambda and 1 - lambda.
fn weights(lambda: f64, mode: MixMode) -> Weights {
    let lambda = rounded(lambda, mode);
    Weights { own: lambda as f32, partner: (1.0 - lambda) as f32 }
}

/// How a sample is mixed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Mix {
    /// It does not change.
    Keep,
    /// The weighted sum with its partner.
    Blend(Weights),
    /// It gets a rectangle of its partner; its label becomes the weighted sum.
    Paste(Rectangle, Weights),
}

impl Mix {
    /// A blend with lambda.
    pub(crate) fn blend(lambda: f64, mode: MixMode) -> Self {
        Self::Blend(weights(lambda, mode))
    }

    /// A pasted rectangle, and lambda for the labels.
    pub(crate) fn paste(rectangle: Rectangle, lambda: f64, mode: MixMode) -> Self {
        Self::Paste(rectangle, weights(lambda, mode))
    }
}

/// A rectangle of a picture: half-open ranges of rows and columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rectangle {
    pub(crate) top: u32,
    pub(crate) bottom: u32,
    pub(crate) left: u32,
    pub(crate) right: u32,
}

impl Rectangle {
    /// The rectangle for lambda around a random centre, in a picture of this height and width.
    pub(crate) fn drawn(
        (height, width): (u32, u32),
        lambda: f64,
        by: (MixMode, CutBox),
        draws: &mut Draws,
    ) -> Self {
        let column = draws.up_to(width - 1);
        let row = draws.up_to(height - 1);
        let (top, bottom) = ends(height, row, lambda, by);
        let (left, right) = ends(width, column, lambda, by);
        Self { top, bottom, left, right }
    }

    /// The share of the picture outside the rectangle.
    pub(crate) fn lambda(self, (height, width): (u32, u32)) -> f64 {
        let area = u64::from(self.bottom - self.top) * u64::from(self.right - self.left);
        1.0 - area as f64 / (f64::from(height) * f64::from(width))
    }
}

/// Start and end of a rectangle along one side of a picture. If samples differ in lambda, timm
/// computes in float32.
pub(crate) fn ends(
    side: u32,
    centre: u32,
    lambda: f64,
    (mode, cut_box): (MixMode, CutBox),
) -> (u32, u32) {
    let length = match mode {
        MixMode::Batch => (f64::from(side) * (1.0 - lambda).sqrt()) as u32,
        MixMode::Elem | MixMode::Pair => (side as f32 * (1.0 - lambda as f32).sqrt()) as u32,
    };
    let after = match cut_box {
        CutBox::Torchvision => length / 2,
        CutBox::Timm => length.div_ceil(2),
    };
    (centre.saturating_sub(length / 2), (centre + after).min(side))
}

/// The tensors and rows of labels of a batch, either of which may be absent.
pub(crate) struct MixedBatch<'a> {
    pub(crate) cpu: Cpu,
    pub(crate) spec: TensorSpec,
    pub(crate) samples: usize,
    /// `samples` tensors of `spec`, or empty.
    pub(crate) images: &'a mut [u8],
    /// `samples` rows of float32, or empty.
    pub(crate) labels: &'a mut [u8],
    /// Scratch memory for one sample.
    pub(crate) scratch: &'a mut Vec<u8>,
    pub(crate) interrupt: &'a Interrupt,
    pub(crate) pause: &'a mut dyn FnMut(),
    /// Programs to record mixes, if there are no tensors.
    pub(crate) recording: Option<&'a mut Vec<BatchProgram>>,
}

impl Mix {
    fn recorded(self) -> SampleMix {
        match self {
            Self::Keep => SampleMix::Keep,
            Self::Blend(Weights { own, partner }) => SampleMix::Blend { own, partner },
            Self::Paste(Rectangle { top, bottom, left, right }, _) => {
                SampleMix::Paste { top, bottom, left, right }
            }
        }
    }

    /// The mix of the row of labels.
    fn recorded_label(self) -> SampleMix {
        match self {
            Self::Keep => SampleMix::Keep,
            Self::Blend(Weights { own, partner }) | Self::Paste(_, Weights { own, partner }) => {
                SampleMix::Blend { own, partner }
            }
        }
    }
}

impl MixedBatch<'_> {
    /// Rows and columns of a picture.
    pub(crate) fn size(&self) -> (u32, u32) {
        (self.spec.height, self.spec.width)
    }

    /// The mix of each sample, from the mix of each unit of a mode. In pairs, the middle sample of
    /// an odd number is not changed.
    pub(crate) fn units(&self, mode: MixMode, mut unit: impl FnMut() -> Mix) -> Vec<Mix> {
        let samples = self.samples;
        match mode {
            MixMode::Batch => vec![unit(); samples],
            MixMode::Elem => (0..samples).map(|_| unit()).collect(),
            MixMode::Pair => {
                let first: Vec<Mix> = (0..samples / 2).map(|_| unit()).collect();
                let middle = (samples % 2 == 1).then_some(Mix::Keep);
                first.iter().copied().chain(middle).chain(first.iter().rev().copied()).collect()
            }
        }
    }

    /// Mixes each sample, and its label, with its partner. A sample that is its own partner does
    /// not change.
    pub(crate) fn mix(&mut self, partner: MixPartner, mixes: &[Mix]) -> Result<(), Error> {
        let Self { cpu, spec, images, labels, scratch, interrupt, pause, recording, .. } = self;
        if let Some(recording) = recording {
            let label_mixes = mixes.iter().map(|mix| mix.recorded_label()).collect();
            let mixes = mixes.iter().map(|mix| mix.recorded()).collect();
            recording.push(BatchProgram { partner, mixes, label_mixes });
        }
        in_place(images, partner, mixes.len(), scratch, |index, own, partner| {
            interrupt.check()?;
            pause();
            match mixes[index] {
                Mix::Keep => (),
                Mix::Blend(weights) => blend(*cpu, spec.dtype, own, partner, weights),
                Mix::Paste(rectangle, _) => paste(spec, own, partner, rectangle),
            }
            Ok(())
        })?;
        in_place(labels, partner, mixes.len(), scratch, |index, own, partner| {
            match mixes[index] {
                Mix::Keep => (),
                Mix::Blend(weights) | Mix::Paste(_, weights) => blend_floats(own, partner, weights),
            }
            Ok(())
        })
    }
}

/// Changes each of `count` rows, given the original row of its partner.
fn in_place(
    rows: &mut [u8],
    partner: MixPartner,
    count: usize,
    scratch: &mut Vec<u8>,
    mut change: impl FnMut(usize, &mut [u8], &[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    if rows.is_empty() || count < 2 {
        return Ok(());
    }
    let bytes = rows.len() / count;
    assert_eq!(rows.len(), bytes * count, "rows have one length");
    scratch.clear();
    match partner {
        MixPartner::Previous => {
            scratch.extend_from_slice(&rows[(count - 1) * bytes..]);
            for index in (1..count).rev() {
                let (before, own) = rows.split_at_mut(index * bytes);
                change(index, &mut own[..bytes], &before[(index - 1) * bytes..])?;
            }
            change(0, &mut rows[..bytes], scratch)
        }
        MixPartner::Mirrored => {
            for index in 0..count / 2 {
                let mirrored = count - 1 - index;
                let (own, other) = rows.split_at_mut(mirrored * bytes);
                let (own, other) = (&mut own[index * bytes..][..bytes], &mut other[..bytes]);
                scratch.clear();
                scratch.extend_from_slice(own);
                change(index, own, other)?;
                change(mirrored, other, scratch)?;
            }
            Ok(())
        }
    }
}

/// Copies a rectangle from one tensor to another.
fn paste(spec: &TensorSpec, own: &mut [u8], partner: &[u8], rectangle: Rectangle) {
    let Rectangle { top, bottom, left, right } = rectangle;
    let [top, bottom, left, right] = [top, bottom, left, right].map(|end| end as usize);
    let [height, width, channels] =
        [spec.height, spec.width, spec.channels].map(|side| side as usize);
    // Bytes of a pixel in a plane, and number of planes.
    let (pixel_bytes, planes) = match spec.layout {
        Layout::Nhwc | Layout::Nt | Layout::Ntc => (channels * spec.dtype.bytes(), 1),
        Layout::Nchw | Layout::Nct => (spec.dtype.bytes(), channels),
    };
    for plane in 0..planes {
        for row in top..bottom {
            let first = (plane * height + row) * width;
            let range = (first + left) * pixel_bytes..(first + right) * pixel_bytes;
            own[range.clone()].copy_from_slice(&partner[range]);
        }
    }
}
