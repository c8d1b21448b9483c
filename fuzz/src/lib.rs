//! What must hold for any bytes whatsoever: one function a target, which panics where it does not.
//!
//! [`TARGETS`] lists them for the loop; `fuzz_targets/` has a file for each, for cargo-fuzz.

use meetpoint_kernels::decode::Decoder;
use meetpoint_kernels::{ImageFormat, Picture, Region, probe};

/// Larger pictures are left out: they cost time and show nothing more.
const PIXELS_MAX: u64 = 1 << 20;

/// A property and its name.
pub type Target = (&'static str, fn(&[u8]));

/// All of them.
pub const TARGETS: &[Target] =
    &[("jpeg_decode", jpeg_decode), ("jpeg_region", jpeg_region), ("any_decode", any_decode)];

/// Whether these bytes are a JPEG small enough to try.
fn is_small_jpeg(data: &[u8]) -> bool {
    ImageFormat::of(data) == Some(ImageFormat::Jpeg) && is_small(data)
}

fn is_small(data: &[u8]) -> bool {
    // What has no readable header goes on as well, to be refused.
    probe(data).map_or(true, |info| u64::from(info.width) * u64::from(info.height) <= PIXELS_MAX)
}

/// The whole picture, if it decodes; its size must be what the header says.
fn decoded(data: &[u8]) -> Option<Picture> {
    let mut out = Picture::default();
    Decoder::default().decode_into(data, None, &mut out).ok()?;
    let info = probe(data).expect("what decodes has a header");
    assert_eq!((out.width, out.height), (info.width, info.height));
    assert_eq!(out.pixels.len(), out.width as usize * out.height as usize * 3);
    Some(out)
}

/// A file of any format is decoded to the size of its header or refused.
pub fn any_decode(data: &[u8]) {
    if is_small(data) {
        decoded(data);
    }
}

/// A JPEG is decoded or refused, the same way by a decoder that was used before; and where libjpeg
/// takes it without a warning, the pixels are the same.
pub fn jpeg_decode(data: &[u8]) {
    if !is_small_jpeg(data) {
        return;
    }
    let first = decoded(data);
    let mut used = Decoder::default();
    let mut out = Picture::default();
    // What a cut file leaves behind must not show.
    let _ = used.decode_into(&data[..data.len() / 2], None, &mut out);
    let again = used.decode_into(data, None, &mut out).ok().map(|()| out);
    assert!(first == again, "a used decoder gives something else");
    #[cfg(feature = "libjpeg-turbo")]
    if let Some(ours) = first {
        against_libjpeg(data, &ours);
    }
}

/// A region of a JPEG is that part of the whole. The last eight bytes choose the region.
pub fn jpeg_region(data: &[u8]) {
    let Some((data, choice)) = data.split_last_chunk::<8>() else { return };
    if !is_small_jpeg(data) {
        return;
    }
    let Some(whole) = decoded(data) else { return };
    let word = |at: usize| u32::from(u16::from_le_bytes([choice[at], choice[at + 1]]));
    let span = |from: u32, length: u32, whole: u32| {
        let from = from % whole;
        (from, 1 + length % (whole - from))
    };
    let (x, width) = span(word(0), word(2), whole.width);
    let (y, height) = span(word(4), word(6), whole.height);
    let mut part = Picture::default();
    let region = Region { x, y, width, height };
    let result = Decoder::default().decode_into(data, Some(region), &mut part);
    // A region may decode where the whole does not, never the other way round.
    result.expect("the whole picture decodes");
    assert_eq!((part.width, part.height), (width, height));
    let row_bytes = width as usize * 3;
    for (row, y) in part.pixels.chunks_exact(row_bytes).zip(y as usize..) {
        let from = (y * whole.width as usize + x as usize) * 3;
        assert!(row == &whole.pixels[from..from + row_bytes], "{region:?}, row {y}");
    }
}

/// Holds pixels against libjpeg's, where the coefficients are such as a picture may have: beyond
/// them, libjpeg's C code and its vector code differ from each other.
#[cfg(feature = "libjpeg-turbo")]
fn against_libjpeg(data: &[u8], ours: &Picture) {
    use meetpoint_measure::libjpeg::{Mode, Turbo};
    /// Sum over a block of the sizes of all coefficients, at most. An inverse transform of these
    /// stays within 500 of the middle.
    const BLOCK_SUM_MAX: u32 = 2000;
    let mut turbo = Turbo::new();
    let mut theirs = Picture::default();
    if turbo.decode(data, Mode::default(), &mut theirs).is_err() {
        return;
    }
    let Ok(planes) = turbo.coefficients(data) else { return };
    let plausible = planes.iter().all(|plane| {
        plane.blocks.iter().all(|block| {
            let sizes = block.iter().zip(&plane.quantisation);
            let sum: u32 =
                sizes.map(|(value, step)| u32::from(value.unsigned_abs()) * u32::from(*step)).sum();
            sum <= BLOCK_SUM_MAX
        })
    });
    assert!(!plausible || *ours == theirs, "libjpeg gives other pixels");
}
