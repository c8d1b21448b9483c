//! Programs of pictures in the form that the crate for GPUs takes. It decides nothing.

use meetpoint_format::recipe::{Layout, MixPartner};
use meetpoint_gpu::delivery::{Partner, SampleMix};
use meetpoint_gpu::pictures::{
    Axis, Change, ColourSpace, ErasedValues, Erasure, NoiseRange, PositionMap, Program, Region,
    Stage, TensorFormat, Turn, WarpForm,
};
use meetpoint_kernels::{
    AxisProgram, PictureChange, PictureProgram, SpaceConversion, StageProgram, TensorProgram,
};

/// The stages and changes of a program, converted. Its memory is reused.
#[derive(Debug, Default)]
pub(crate) struct ConvertedProgram {
    stages: Vec<Stage>,
    changes: Vec<Change>,
    erasures: Vec<Erasure>,
}

impl ConvertedProgram {
    /// Converts a program.
    pub(crate) fn convert<'a>(&'a mut self, from: &'a PictureProgram) -> Program<'a> {
        self.stages.clear();
        self.stages.extend(from.stages.iter().map(stage));
        self.changes.clear();
        self.changes.extend(from.changes.iter().map(|change| of_change(*change)));
        self.erasures.clear();
        self.erasures.extend(from.erasures.iter().map(erasure));
        let meetpoint_kernels::Turn { is_transposed, from_right, from_bottom } = from.turn;
        Program {
            turn: Turn { is_transposed, from_right, from_bottom },
            erasures: &self.erasures,
            stages: &self.stages,
            changes: &self.changes,
            words: &from.words,
            tables: &from.tables,
        }
    }
}

/// How the tensors of a recipe are written.
pub(crate) fn tensor_format(from: &TensorProgram) -> TensorFormat {
    TensorFormat {
        element_bytes: from.dtype.bytes() as u32,
        is_interleaved: match from.layout {
            Layout::Nhwc | Layout::Nt | Layout::Ntc => true,
            Layout::Nchw | Layout::Nct => false,
        },
        channels: from.channels,
        elements: from.elements.clone(),
    }
}

fn stage(from: &StageProgram) -> Stage {
    let StageProgram { region, .. } = from;
    Stage {
        region: Region { x: region.x, y: region.y, width: region.width, height: region.height },
        region_mirrored: from.region_mirrored,
        across: axis(from.across),
        down: axis(from.down),
        down_first: from.down_first,
        window: from.window,
        canvas: from.canvas,
        at: from.at,
        fill: from.fill,
        outside: from.outside,
        mirrored: from.mirrored,
        flipped: from.flipped,
        row_changes: from.row_changes.clone(),
        whole: from.whole.clone(),
        is_last: from.is_last,
    }
}

fn axis(from: AxisProgram) -> Axis {
    match from {
        AxisProgram::Shift => Axis::Shift,
        AxisProgram::Pick { words } => Axis::Pick { words },
        AxisProgram::Weigh { words, taps } => Axis::Weigh { words, taps },
    }
}

fn of_change(from: PictureChange) -> Change {
    match from {
        PictureChange::Table { table } => Change::Table { table },
        PictureChange::Tables { first } => Change::Tables { first },
        PictureChange::Saturation(factor) => Change::Saturation(factor),
        PictureChange::Hue(shift) => Change::Hue(shift),
        PictureChange::Grey => Change::Grey,
        PictureChange::Channels(order) => Change::Channels(order),
        PictureChange::Space(space) => Change::Space(match space {
            SpaceConversion::Hsv => ColourSpace::Hsv,
            SpaceConversion::Hls => ColourSpace::Hls,
            SpaceConversion::Lab { words } => ColourSpace::Lab { words },
            SpaceConversion::Ycrcb => ColourSpace::Ycrcb,
        }),
        PictureChange::Contrast(factor) => Change::Contrast(factor),
        PictureChange::Autocontrast => Change::Autocontrast,
        PictureChange::Equalize => Change::Equalize,
        PictureChange::Sharpness(factor) => Change::Sharpness(factor),
        PictureChange::Frame { size, columns, rows, fill } => {
            Change::Frame { size, columns, rows, fill }
        }
        PictureChange::Warp { size, form, samples, fill } => {
            Change::Warp { size, form: warp_form(form), samples, fill }
        }
        PictureChange::SumBegin { weight } => Change::SumBegin { weight },
        PictureChange::SumAdd { weight, is_last } => Change::SumAdd { weight, is_last },
        PictureChange::Noise { key, mean, sigma, is_clipped, is_grey } => {
            Change::Noise { key, mean, sigma, is_clipped, is_grey }
        }
        PictureChange::SensorNoise { key, coarse, fine, is_grey } => {
            let [coarse, fine] =
                [coarse, fine].map(|it| NoiseRange { low: it.low, count: it.count });
            Change::SensorNoise { key, coarse, fine, is_grey }
        }
        PictureChange::Elastic { key, weights, alpha, is_nearest, fill } => {
            Change::Elastic { key, weights, alpha, is_nearest, fill }
        }
        PictureChange::BoxBlur { radius, weights } => Change::BoxBlur { radius, weights },
        PictureChange::KernelBlur { across, down } => Change::KernelBlur { across, down },
    }
}

fn warp_form(from: meetpoint_kernels::WarpForm) -> WarpForm {
    use meetpoint_kernels::{PositionMap as From, WarpForm as Form};
    let map = |From { coefficients, is_perspective }| PositionMap { coefficients, is_perspective };
    match from {
        Form::Fixed { begin, across, down } => WarpForm::Fixed { begin, across, down },
        Form::Nearest(it) => WarpForm::Nearest(map(it)),
        Form::Bilinear(it) => WarpForm::Bilinear(map(it)),
        Form::Bicubic(it) => WarpForm::Bicubic(map(it)),
    }
}

fn erasure(from: &meetpoint_kernels::Erasure) -> Erasure {
    use meetpoint_kernels::ErasedValues as From;
    let &meetpoint_kernels::Erasure { top, left, height, width, values } = from;
    let values = match values {
        From::Channels(bits) => ErasedValues::Channels(bits),
        From::Noise { key } => ErasedValues::Noise { key },
    };
    Erasure { top, left, height, width, values }
}

/// The partner with which each sample of a batch is mixed.
pub fn mix_partner(from: MixPartner) -> Partner {
    match from {
        MixPartner::Previous => Partner::Previous,
        MixPartner::Mirrored => Partner::Mirrored,
    }
}

/// How a sample of a batch is mixed.
pub fn sample_mix(from: meetpoint_kernels::SampleMix) -> SampleMix {
    use meetpoint_kernels::SampleMix as From;
    match from {
        From::Keep => SampleMix::Keep,
        From::Blend { own, partner } => SampleMix::Blend { own, partner },
        From::Paste { top, bottom, left, right } => SampleMix::Paste { top, bottom, left, right },
    }
}
