//! Converts bytes of samples to RGB with Pillow's formulas, oriented according to the orientation
//! tag.

use super::directory::{Directory, tag};
use super::layout::{Compression, Layout, Meaning};
use super::{damaged, unsupported};
use crate::decode::Picture;
use crate::{Error, Interrupt};
use meetpoint_jpeg::OutputColour;

/// The orientation tag, 1..=8: the positions of the file's first row and first column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Orientation(u8);

impl Orientation {
    /// The orientation in the file; upright if it is missing or invalid.
    pub(super) fn of(directory: &Directory<'_>) -> Result<Self, Error> {
        Ok(Self(match directory.first(tag::ORIENTATION)? {
            Some(orientation @ 2..=8) => orientation as u8,
            _ => 1,
        }))
    }

    /// The size of the oriented picture.
    pub(super) fn size(self, (width, height): (u32, u32)) -> (u32, u32) {
        if self.0 >= 5 { (height, width) } else { (width, height) }
    }

    /// Index of the file's first pixel in the oriented picture, and the steps to the next column
    /// and row.
    fn walk(self, width: u32, height: u32) -> [isize; 3] {
        let (width, height) = (width as isize, height as isize);
        let (last_x, last_y) = (width - 1, height - 1);
        match self.0 {
            2 => [last_x, -1, width],
            3 => [last_y * width + last_x, -1, -width],
            4 => [last_y * width, 1, -width],
            5 => [0, height, 1],
            6 => [last_y, height, -1],
            7 => [last_x * height + last_y, -height, -1],
            8 => [last_x * height, -height, 1],
            _ => [0, 1, width],
        }
    }
}

/// How samples are converted to colours.
#[derive(Debug)]
pub(super) struct Conversion {
    orientation: Orientation,
    palette: Vec<[u8; 3]>,
}

impl Conversion {
    /// The conversion for a file.
    pub(super) fn of(directory: &Directory<'_>, layout: &Layout<'_>) -> Result<Self, Error> {
        let mut palette = Vec::new();
        if layout.meaning == Meaning::Palette {
            let map = directory.values(tag::COLOUR_MAP)?;
            let map = map.ok_or_else(|| damaged("it has no colour map"))?;
            let colours = 1 << layout.bits;
            if layout.bits > 8 {
                return Err(unsupported("a palette of more than 256 colours"));
            }
            if map.count() != 3 * colours {
                return Err(damaged(format_args!("a colour map of {} values", map.count())));
            }
            let upper = |index| map.get(index).map_or(0, |value| (value >> 8) as u8);
            palette.extend(
                (0..colours).map(|index| {
                    [upper(index), upper(colours + index), upper(2 * colours + index)]
                }),
            );
        }
        Ok(Self { orientation: Orientation::of(directory)?, palette })
    }

    /// Converts all samples of a picture to RGB. Like Pillow, grey output from YCbCr is the luma,
    /// in all three channels.
    pub(super) fn convert(
        &self,
        layout: &Layout<'_>,
        samples: (&[u8], &Interrupt),
        colour: OutputColour,
        out: &mut Picture,
    ) -> Result<(), Error> {
        let (width, height) = self.orientation.size((layout.width, layout.height));
        out.set_size(width, height);
        let is_multiplied = layout.is_multiplied;
        // Pillow inverts only samples that it reads as at most 8 bits.
        let is_inverted = layout.meaning == Meaning::Grey { inverted: true } && layout.bits <= 8;
        let invert = if is_inverted { 255 } else { 0 };
        match layout.meaning {
            Meaning::Grey { .. } if is_multiplied => {
                self.put(layout, samples, out, |p| [divided(p[0] ^ invert, p[1]); 3])
            }
            Meaning::Grey { .. } => self.put(layout, samples, out, |p| [p[0] ^ invert; 3]),
            Meaning::Palette => self.put(layout, samples, out, |p| self.palette[usize::from(p[0])]),
            Meaning::Rgb if is_multiplied => self.put(layout, samples, out, |p| {
                [divided(p[0], p[3]), divided(p[1], p[3]), divided(p[2], p[3])]
            }),
            Meaning::Rgb => self.put(layout, samples, out, |p| [p[0], p[1], p[2]]),
            Meaning::Cmyk => {
                self.put(layout, samples, out, |p| [0, 1, 2].map(|ink| without_ink(p[ink], p[3])))
            }
            Meaning::YCbCr if layout.compression == Compression::Jpeg => {
                self.put(layout, samples, out, |p| [p[0], p[1], p[2]])
            }
            Meaning::YCbCr if colour == OutputColour::Grey => {
                self.put(layout, samples, out, |p| [p[0]; 3])
            }
            Meaning::YCbCr => self.put(layout, samples, out, |p| ycc_to_rgb(p[0], p[1], p[2])),
        }
    }

    /// The alpha of all pixels, oriented; 255 if the file has none.
    pub(super) fn alpha(
        &self,
        layout: &Layout<'_>,
        samples: (&[u8], &Interrupt),
        out: &mut Picture,
    ) -> Result<(), Error> {
        let (width, height) = self.orientation.size((layout.width, layout.height));
        out.set_size(width, height);
        let has_alpha = layout.kept > layout.meaning.channels();
        let alpha = |pixel: &[u8]| if has_alpha { pixel[layout.kept - 1] } else { 255 };
        self.put(layout, samples, out, |pixel| [alpha(pixel); 3])
    }

    /// Copies the bytes of pixels to their positions in the oriented picture.
    pub(super) fn place(
        &self,
        layout: &Layout<'_>,
        (samples, interrupt): (&[u8], &Interrupt),
        pixel_bytes: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let [first, column, row] = self.orientation.walk(layout.width, layout.height);
        out.clear();
        out.resize(samples.len(), 0);
        for (y, pixels) in samples.chunks_exact(layout.width as usize * pixel_bytes).enumerate() {
            interrupt.check()?;
            let begin = first + y as isize * row;
            for (x, pixel) in pixels.chunks_exact(pixel_bytes).enumerate() {
                let at = (begin + x as isize * column) as usize * pixel_bytes;
                out[at..at + pixel_bytes].copy_from_slice(pixel);
            }
        }
        Ok(())
    }

    fn put(
        &self,
        layout: &Layout<'_>,
        (samples, interrupt): (&[u8], &Interrupt),
        out: &mut Picture,
        convert: impl Fn(&[u8]) -> [u8; 3],
    ) -> Result<(), Error> {
        let [first, column, row] = self.orientation.walk(layout.width, layout.height);
        let rgb = out.pixels.as_chunks_mut::<3>().0;
        let rows = samples.chunks_exact(layout.width as usize * layout.kept);
        for (y, pixels) in rows.enumerate() {
            interrupt.check()?;
            let begin = first + y as isize * row;
            for (x, pixel) in pixels.chunks_exact(layout.kept).enumerate() {
                rgb[(begin + x as isize * column) as usize] = convert(pixel);
            }
        }
        Ok(())
    }
}

/// Divides a premultiplied colour by its alpha. Pillow's `unpackRGBa`.
fn divided(colour: u8, alpha: u8) -> u8 {
    let (colour, alpha) = (u32::from(colour), u32::from(alpha));
    (colour * 255).checked_div(alpha).unwrap_or(0).min(255) as u8
}

/// A colour channel from an ink and black. Pillow's `cmyk2rgb`.
fn without_ink(ink: u8, black: u8) -> u8 {
    let white = 255 - u32::from(black);
    let product = u32::from(ink) * white + 128;
    (white - ((product + (product >> 8)) >> 8)) as u8
}

/// Pillow's `ImagingConvertYCbCr2RGB`, whose tables have 6 fraction bits and differ from those of
/// libjpeg: products are rounded to the nearest integer, and negative ones then to the next integer
/// above.
fn ycc_to_rgb(luma: u8, blue: u8, red: u8) -> [u8; 3] {
    let product = |hundred_thousandths: i64, chroma: u8| {
        let product = hundred_thousandths * 64 * (i64::from(chroma) - 128);
        (product + 50_000).div_euclid(100_000) + i64::from(product < 0)
    };
    let channel = |chroma: i64| (i64::from(luma) + (chroma >> 6)).clamp(0, 255) as u8;
    [
        channel(product(140_200, red)),
        channel(product(-34_414, blue) + product(-71_414, red)),
        channel(product(177_200, blue)),
    ]
}
