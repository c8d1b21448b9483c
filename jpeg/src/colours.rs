//! The colour space of a JPEG, as libjpeg and Pillow determine it.

use super::colour::{self, Ink};
use super::markers::{COMPONENTS_MAX, Frame, Header};
use super::options::OutputColour;
use crate::Cpu;

/// Meaning of the components.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colours {
    /// One component.
    Grey,
    /// Luma and chroma.
    YCbCr,
    /// Red, green and blue.
    Rgb,
    /// Four components, the last one black.
    Inks(Ink),
}

impl Colours {
    /// The statements of a file's header about colours.
    pub(crate) fn of(header: &Header) -> Self {
        Self::guess(&header.frame, header.jfif, header.adobe)
    }

    /// libjpeg's rules (jdapimin.c, `default_decompress_parms`), of whether there is a JFIF segment
    /// and of the transform in the Adobe segment.
    pub(crate) fn guess(frame: &Frame, jfif: bool, adobe: Option<u8>) -> Self {
        let ids = frame.components().iter().map(|component| component.id);
        match (frame.count, adobe) {
            (1, _) => Self::Grey,
            (4, Some(0) | None) => Self::Inks(Ink::Cmyk),
            (4, Some(_)) => Self::Inks(Ink::Ycck),
            _ if jfif => Self::YCbCr,
            (_, Some(0)) => Self::Rgb,
            (_, Some(_)) => Self::YCbCr,
            (_, None) if ids.eq(*b"RGB") => Self::Rgb,
            (_, None) => Self::YCbCr,
        }
    }

    /// Whether this many components can have this meaning.
    pub(crate) fn fits(self, components: usize) -> bool {
        components
            == match self {
                Self::Grey => 1,
                Self::YCbCr | Self::Rgb => 3,
                Self::Inks(_) => 4,
            }
    }

    /// Components that the pixels depend on, from the first on.
    pub(crate) fn components_for(self, output: OutputColour) -> usize {
        match (output, self) {
            (OutputColour::Grey, Self::Grey | Self::YCbCr) => 1,
            (OutputColour::Grey, Self::Rgb | Self::Inks(_)) | (OutputColour::Rgb, _) => {
                COMPONENTS_MAX
            }
        }
    }

    /// A row of components to a row of grey. All rows have the length of those planes; the others
    /// are memory.
    pub(crate) fn convert_to_grey(
        self,
        cpu: Cpu,
        components: [&[u8]; COMPONENTS_MAX],
        [grey, green, blue]: [&mut [u8]; 3],
    ) {
        match self {
            Self::Grey | Self::YCbCr => grey.copy_from_slice(components[0]),
            Self::Rgb | Self::Inks(_) => {
                self.convert(cpu, components, [&mut *grey, &mut *green, &mut *blue]);
                colour::rgb_to_grey(grey, green, blue);
            }
        }
    }

    /// A row of components to a row of red, green and blue. All rows have the length of those
    /// planes.
    pub(crate) fn convert(
        self,
        cpu: Cpu,
        [first, second, third, fourth]: [&[u8]; COMPONENTS_MAX],
        rgb: [&mut [u8]; 3],
    ) {
        match self {
            Self::Grey => colour::grey_to_rgb(first, rgb),
            Self::YCbCr => colour::ycc_to_rgb(cpu, [first, second, third], rgb),
            Self::Rgb => colour::rgb_to_rgb([first, second, third], rgb),
            Self::Inks(ink) => colour::ink_to_rgb_planes(ink, [first, second, third, fourth], rgb),
        }
    }
}
