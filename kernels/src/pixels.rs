//! A whole picture in memory, for operations that need all channels of a pixel, or all pixels.

use crate::elements::Elements;
use crate::planes::Planes;
use crate::recording::Recording;
use crate::wide::Layers;
use crate::{Cpu, Error, Interrupt};
use meetpoint_format::recipe::{DecodeMode, Dtype};

/// Rows between two polls of the interrupt and two pauses.
const ROWS: usize = 16;

/// A picture that some operations change in place and others replace.
///
/// A grey picture has three equal channels. A tensor of one channel contains only the first.
pub(crate) struct Pixels<'a> {
    picture: &'a mut Planes,
    /// Memory for a replacement.
    next: &'a mut Planes,
    cpu: Cpu,
    interrupt: &'a Interrupt,
    pause: &'a mut dyn FnMut(),
    is_grey: bool,
    style: Style,
    /// The layers and the mode of a picture of elements, which is not in `planes`.
    elements: Option<(&'a mut Layers, DecodeMode)>,
    /// The recording, if changes are recorded; there are no pixels then.
    recording: Option<Recording<'a>>,
}

/// The meaning of pixels, which determines how they move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Style {
    /// Colours.
    #[default]
    Picture,
    /// Alpha, which is interpolated like colours.
    Alpha,
    /// Bytes of the elements of a picture's layer, which are never mixed.
    Elements {
        /// The mode of the picture.
        mode: DecodeMode,
        /// Index of the layer.
        layer: usize,
    },
    /// Bytes of the elements of a mask, which are never mixed; these bytes fill the outside.
    Mask([u8; 3]),
    /// Weights, which are interpolated like colours; these fill the outside.
    Saliency([u8; 3]),
}

impl Style {
    /// Whether they belong to a target, which operations on colours skip.
    pub(crate) fn is_target(self) -> bool {
        match self {
            Self::Picture | Self::Alpha | Self::Elements { .. } => false,
            Self::Mask(_) | Self::Saliency(_) => true,
        }
    }

    /// The fill of the outside, for an operation that fills a picture with a colour.
    pub(crate) fn fill(self, colour: [u8; 4]) -> [u8; 3] {
        let [red, green, blue, alpha] = colour;
        match self {
            Self::Picture => [red, green, blue],
            Self::Alpha => [alpha; 3],
            Self::Elements { mode, layer } => element_fill(mode, layer, colour),
            Self::Mask(fill) | Self::Saliency(fill) => fill,
        }
    }
}

/// The fill bytes of a layer for a colour, as numbers of the element type.
fn element_fill(mode: DecodeMode, layer: usize, colour: [u8; 4]) -> [u8; 3] {
    let element_bytes = mode.dtype().bytes();
    std::array::from_fn(|plane| {
        let byte = 3 * layer + plane;
        if byte >= mode.pixel_bytes() {
            return 0;
        }
        let value = colour[byte / element_bytes];
        match mode.dtype() {
            Dtype::Uint8 => value,
            Dtype::Uint16 => u16::from(value).to_le_bytes()[byte % element_bytes],
            Dtype::Int32 | Dtype::Float16 => {
                unreachable!("no picture is of {}", mode.dtype().name())
            }
            Dtype::Float32 => f32::from(value).to_le_bytes()[byte % element_bytes],
        }
    })
}

impl<'a> Pixels<'a> {
    pub(crate) fn new(
        picture: &'a mut Planes,
        next: &'a mut Planes,
        cpu: Cpu,
        interrupt: &'a Interrupt,
        pause: &'a mut dyn FnMut(),
    ) -> Self {
        let (is_grey, style, elements, recording) = (false, Style::Picture, None, None);
        Self { picture, next, cpu, interrupt, pause, is_grey, style, elements, recording }
    }

    /// Records operations instead of executing them; the planes are not used.
    pub(crate) fn recorded(self, recording: Recording<'a>) -> Self {
        Self { recording: Some(recording), ..self }
    }

    /// The recording, if changes are recorded.
    pub(crate) fn recording(&mut self) -> Option<&mut Recording<'a>> {
        self.recording.as_mut()
    }

    /// A picture of elements, which only changes of colours support; the planes are not used.
    pub(crate) fn of_elements(
        Elements { layers, mode, interrupt, pause }: Elements<'a>,
        picture: &'a mut Planes,
        next: &'a mut Planes,
        cpu: Cpu,
    ) -> Self {
        let elements = Some((layers, mode));
        Self { elements, ..Self::new(picture, next, cpu, interrupt, pause) }
    }

    /// The picture of elements, if it is one.
    pub(crate) fn elements(&mut self) -> Option<Elements<'_>> {
        let (layers, mode) = self.elements.as_mut()?;
        let (interrupt, pause) = (self.interrupt, &mut *self.pause);
        Some(Elements { layers, mode: *mode, interrupt, pause })
    }

    /// Whether the pixels are alpha.
    pub(crate) fn is_alpha(&self) -> bool {
        self.style == Style::Alpha
    }

    /// The instruction set for operations on it.
    pub(crate) fn cpu(&self) -> Cpu {
        self.cpu
    }

    /// Sets the meaning of the pixels.
    pub(crate) fn set_style(&mut self, style: Style) {
        self.style = style;
    }

    /// The fill of the outside, for an operation that fills a picture with a colour.
    pub(crate) fn fill(&self, colour: [u8; 4]) -> [u8; 3] {
        self.style.fill(colour)
    }

    /// Whether the pixels belong to a target, which operations on colours skip.
    pub(crate) fn is_target(&self) -> bool {
        self.style.is_target()
    }

    /// Whether pixels must not be interpolated but taken from the nearest pixel.
    pub(crate) fn is_nearest(&self) -> bool {
        matches!(self.style, Style::Mask(_) | Style::Elements { .. })
    }

    /// Sets whether the picture has one channel.
    pub(crate) fn set_grey(&mut self, is_grey: bool) {
        self.is_grey = is_grey;
    }

    /// Whether the picture has one channel, which all three planes contain.
    pub(crate) fn is_grey(&self) -> bool {
        self.is_grey
    }

    /// Columns and rows.
    pub(crate) fn size(&self) -> (u32, u32) {
        if let Some(recording) = &self.recording {
            return recording.size();
        }
        let (width, height) = match &self.elements {
            Some((layers, _)) => layers.size(),
            None => self.picture.size(),
        };
        (width as u32, height as u32)
    }

    /// Number of pixels.
    pub(crate) fn count(&self) -> u64 {
        let (width, height) = self.picture.size();
        width as u64 * height as u64
    }

    /// Passes each row to a function, from top to bottom: red, green and blue, of equal length.
    /// Fails if the sample is interrupted.
    pub(crate) fn each_row(&mut self, mut change: impl FnMut([&mut [u8]; 3])) -> Result<(), Error> {
        if let Some(recording) = &mut self.recording {
            recording.refuse();
            return Ok(());
        }
        let (_, height) = self.picture.size();
        for y in 0..height {
            if y % ROWS == 0 {
                self.interrupt.check()?;
                (self.pause)();
            }
            change(self.picture.pixels_mut(y));
        }
        Ok(())
    }

    /// Replaces the picture by one of another size, in columns and rows. For each new row, from top
    /// to bottom, the function receives the old picture, the index of the row and its planes to
    /// fill. Fails if the sample is interrupted.
    pub(crate) fn replace(
        &mut self,
        (width, height): (u32, u32),
        mut fill: impl FnMut(&Planes, usize, [&mut [u8]; 3]),
    ) -> Result<(), Error> {
        if let Some(recording) = &mut self.recording {
            recording.refuse();
            return Ok(());
        }
        self.next.set_size(width as usize, height as usize);
        for y in 0..height as usize {
            self.interrupt.check()?;
            if y % ROWS == 0 {
                (self.pause)();
            }
            fill(self.picture, y, self.next.pixels_mut(y));
        }
        std::mem::swap(self.picture, self.next);
        Ok(())
    }
}
