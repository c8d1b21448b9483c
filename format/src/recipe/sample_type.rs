//! The type of a sample between two operations, and the memory layout of a prepared sample.

use super::declaration::ValueKind;
use super::{ColorSpace, Dtype, Layout};

/// Maximum number of pixels of a picture, before, between and after operations: the limit of the
/// kernels. It also limits the number of values of sound, a spectrogram or a signal.
pub const PIXELS_MAX: u64 = 1 << 28;

/// Maximum number of steps in time of sound, a spectrogram or a signal.
pub const LENGTH_MAX: u32 = 1 << 28;

/// Channels of a picture after it is decoded.
const CHANNELS: u32 = 3;

/// Shape, element type and layout of one prepared sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TensorSpec {
    /// Rows; 1 for sound and signals, the number of frequencies for a spectrogram.
    pub height: u32,
    /// Columns; the steps in time, if there are any.
    pub width: u32,
    /// Channels; 1, 3 or 4 for a picture.
    pub channels: u32,
    /// Element type.
    pub dtype: Dtype,
    /// Order of the axes.
    pub layout: Layout,
}

impl TensorSpec {
    /// Bytes of one sample.
    pub fn bytes(&self) -> usize {
        self.elements() * self.dtype.bytes()
    }

    /// Elements of one sample.
    pub fn elements(&self) -> usize {
        self.height as usize * self.width as usize * self.channels as usize
    }

    /// The axes of a batch of `samples`, outermost first.
    pub fn batch_shape(&self, samples: u32) -> Vec<u32> {
        std::iter::once(samples).chain(self.axes()).collect()
    }

    /// The axes of one sample, outermost first.
    pub fn axes(&self) -> Vec<u32> {
        match self.layout {
            Layout::Nhwc => vec![self.height, self.width, self.channels],
            Layout::Nchw => vec![self.channels, self.height, self.width],
            Layout::Nct => vec![self.channels, self.width],
            Layout::Nt => vec![self.width],
            Layout::Ntc => vec![self.width, self.channels],
        }
    }
}

/// The type of a sample: its properties that are known before its file is opened.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SampleType {
    /// Type of value.
    pub kind: ValueKind,
    /// Height and width in pixels; `None` if they depend on the picture. For sound, spectrograms
    /// and signals, the rows of a channel and the steps in time.
    pub size: Option<(u32, u32)>,
    /// Channels; 1, 3 or 4 for a picture.
    pub channels: u32,
    /// Element type.
    pub dtype: Dtype,
    /// Order of the axes, if an operation has set it.
    pub layout: Option<Layout>,
    /// Colour space, if an operation has converted to one.
    pub space: Option<ColorSpace>,
    /// Pictures per sample, all of this type: more than 1 after an operation that produces several.
    pub pictures: u32,
    /// The conversion of labels by an operation on batches, if there is one.
    pub labels: Option<SoftLabels>,
    /// Further properties of sound, a spectrogram or a signal; `None` for pictures.
    pub series: Option<Series>,
}

/// Properties of values over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Series {
    /// Sound: samples per second.
    pub sample_rate: Option<u32>,
    /// Rows of a channel: the frequencies of a spectrogram, otherwise 1.
    pub rows: u32,
    /// Steps in time; `None` if they depend on the file.
    pub length: Option<u32>,
}

impl SampleType {
    /// A file.
    pub(super) const ENCODED: Self = Self {
        kind: ValueKind::Encoded,
        size: None,
        channels: CHANNELS,
        dtype: Dtype::Uint8,
        layout: None,
        space: None,
        pictures: 1,
        labels: None,
        series: None,
    };

    /// Sets the type to sound, a spectrogram or a signal of float32.
    pub(super) fn set_series(&mut self, series: Series, layout: Layout) {
        self.dtype = Dtype::Float32;
        self.layout = Some(layout);
        self.series = Some(series);
        self.size = series.length.map(|length| (series.rows, length));
    }

    /// Sets the type to text, tokens or their embeddings, with a length if it is known.
    pub(super) fn set_text(
        &mut self,
        length: Option<u32>,
        (channels, dtype, layout): (u32, Dtype, Layout),
    ) {
        let series = Series { sample_rate: None, rows: 1, length };
        self.set_series(series, layout);
        (self.channels, self.dtype) = (channels, dtype);
    }

    /// The properties of sound, a spectrogram, a signal, text or tokens.
    ///
    /// # Panics
    ///
    /// If the sample is none of them.
    pub(super) fn expect_series(&self) -> Series {
        self.series.expect("its input was checked")
    }

    /// The tensor for a sample of this height and width.
    pub fn tensor(&self, (height, width): (u32, u32)) -> TensorSpec {
        let Self { channels, dtype, .. } = *self;
        let layout = self.layout.unwrap_or(Layout::Nhwc);
        TensorSpec { height, width, channels, dtype, layout }
    }
}

/// The conversion of the label of a sample to a row of float32, with an element for each class;
/// their sum is 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SoftLabels {
    /// Number of classes: elements of a row.
    pub classes: u32,
    /// The share of the label that is divided evenly among all classes, from 0 to 1.
    pub smoothing: f64,
}

impl SoftLabels {
    /// The element of every other class: smoothing / classes, rounded to float32.
    pub fn off(&self) -> f32 {
        self.share() as f32
    }

    /// The element of the class of the label: (1 - smoothing) + smoothing / classes, rounded to
    /// float32.
    pub fn on(&self) -> f32 {
        (1.0 - self.smoothing + self.share()) as f32
    }

    fn share(&self) -> f64 {
        self.smoothing / f64::from(self.classes)
    }
}
