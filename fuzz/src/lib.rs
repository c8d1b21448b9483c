//! Properties that must hold for any bytes: one function for each target, which panics otherwise.
//!
//! [`TARGETS`] lists them. `fuzz_targets/` has a file for each, for cargo-fuzz; the program
//! `mutate` runs them in a plain loop with any compiler. In reading order: [`pixels`] (decoding),
//! [`lossless`] (a file rewritten or in another form), [`stored`] (bytes in a dataset),
//! [`containers`] (container formats), [`series`] (recordings, measurements, texts), [`seeds`],
//! [`container_seeds`], [`series_seeds`] and [`mutation`] (the sources of inputs), [`memory`] and
//! [`tally`] (what is monitored).

pub mod container_seeds;
pub mod containers;
pub mod lossless;
pub mod memory;
pub mod mutation;
#[cfg(feature = "libjpeg-turbo")]
mod oracle;
pub mod pixels;
pub mod seeds;
pub mod series;
pub mod series_seeds;
pub mod stored;
pub mod tally;

use meetpoint_jpeg::DecodeOptions;
use meetpoint_kernels::decode::{Decoder, Encoded};
use meetpoint_kernels::{Cpu, Error, ImageFormat, Picture, Region, probe};

/// Larger pictures are skipped: they take time and show nothing more.
const PIXELS_MAX: u64 = 1 << 22;

/// A property that must hold for any bytes.
pub struct Target {
    /// Its name.
    pub name: &'static str,
    /// Panics if it does not hold.
    pub run: fn(&[u8]),
    /// Derives initial inputs from a file.
    pub seeds: fn(&[u8]) -> Vec<Vec<u8>>,
    /// Number of bytes at the end of an input that select something.
    pub choice_bytes: usize,
}

/// All targets.
pub const TARGETS: &[Target] = &[
    target("jpeg_decode", pixels::jpeg_decode, seeds::file, 0),
    target("jpeg_region", pixels::jpeg_region, seeds::file, pixels::REGION_BYTES),
    target("jpeg_lenient", pixels::jpeg_lenient, seeds::file, 0),
    target("any_decode", pixels::any_decode, seeds::any, 0),
    target("entry_points", stored::entry_points, seeds::file, stored::ENTRY_CHOICE_BYTES),
    target("rewrite", lossless::rewrite, seeds::file, 0),
    target("form", lossless::form, seeds::file, 0),
    target("form_bytes", stored::form_bytes, seeds::forms, 0),
    target("skeleton_bytes", stored::skeleton_bytes, seeds::skeletons, 0),
    target("tar", containers::tar, container_seeds::tar, 0),
    target("zip", containers::zip, container_seeds::zip, 0),
    target("cifar", containers::cifar, container_seeds::cifar, 0),
    target("idx", containers::idx, container_seeds::idx, 0),
    target("table", containers::table, container_seeds::table, 0),
    target("parquet", containers::parquet, container_seeds::parquet, 0),
    target("arrow", containers::arrow, container_seeds::arrow, 0),
    target("tfrecord", containers::tfrecord, container_seeds::tfrecord, 0),
    target("mds", containers::mds, container_seeds::mds, 0),
    target("datadings", containers::datadings, container_seeds::datadings, 0),
    target("ffcv", containers::ffcv, container_seeds::ffcv, 0),
    target("dataset", containers::dataset, container_seeds::dataset, 0),
    target("key_index", containers::key_index, container_seeds::key_index, 0),
    target("tar_to_folder", containers::tar_to_folder, container_seeds::tar, 0),
    target("zip_to_folder", containers::zip_to_folder, container_seeds::zip, 0),
    target("audio", series::audio, series_seeds::audio, 0),
    target("signal", series::signal, series_seeds::signal, 0),
    target("pnm", series::pnm, series_seeds::pnm, 0),
    target("text", series::text, series_seeds::documents, 0),
    target("html", series::html, series_seeds::documents, 0),
    target("recipe_file", series::recipe_file, series_seeds::recipe_file, 0),
];

const fn target(
    name: &'static str,
    run: fn(&[u8]),
    seeds: fn(&[u8]) -> Vec<Vec<u8>>,
    choice_bytes: usize,
) -> Target {
    Target { name, run, seeds, choice_bytes }
}

/// Whether the bytes may be a JPEG that is small enough to try.
fn is_small_jpeg(data: &[u8]) -> bool {
    ImageFormat::of(data) == Some(ImageFormat::Jpeg) && is_small(data)
}

fn is_small(data: &[u8]) -> bool {
    // Files without a readable header are tried as well, in order to be refused.
    probe(data).map_or(true, |info| u64::from(info.width) * u64::from(info.height) <= PIXELS_MAX)
}

/// The whole picture or a region of it, with every instruction set of this machine. Checks that it
/// has the requested size.
fn decoded(encoded: Encoded<'_>, region: Option<Region>) -> Result<Picture, Error> {
    let picture = decoded_with(encoded, region, &DecodeOptions::default())?;
    if region.is_none() {
        let info = probe(encoded.bytes).expect("what decodes has a header");
        assert_eq!((picture.width, picture.height), (info.width, info.height));
    }
    Ok(picture)
}

/// The same with other options.
fn decoded_with(
    encoded: Encoded<'_>,
    region: Option<Region>,
    options: &DecodeOptions,
) -> Result<Picture, Error> {
    let mut first: Option<Result<Picture, Error>> = None;
    for cpu in Cpu::available() {
        let mut out = Picture::default();
        let mut decoder = Decoder::new(cpu);
        let result = decoder.decode_into_with(encoded, region, options, &mut out).map(|()| out);
        match &first {
            None => first = Some(result),
            Some(first) => assert_same(cpu.name(), first, &result),
        }
    }
    let picture = first.expect("every machine has the portable one")?;
    if let Some(region) = region {
        assert_eq!((picture.width, picture.height), (region.width, region.height));
    }
    let pixels = picture.width as usize * picture.height as usize;
    assert_eq!(picture.pixels.len(), pixels * 3);
    Ok(picture)
}

/// Panics unless both are the same picture or the same error.
fn assert_same(name: &str, one: &Result<Picture, Error>, other: &Result<Picture, Error>) {
    if let (Ok(one), Ok(other)) = (one, other) {
        let values = one.pixels.iter().zip(&other.pixels).enumerate();
        let mut differ = values.filter(|(_, (one, other))| one != other);
        let first = differ.next();
        assert!(one == other, "{name}: {} other values, {first:?}", 1 + differ.count());
    }
    assert!(one == other, "{name}: {:?}, {:?}", one.as_ref().err(), other.as_ref().err());
}

/// A region inside a picture, selected by eight bytes.
fn region_of(choice: [u8; 8], (width, height): (u32, u32)) -> Region {
    let word = |at: usize| u32::from(u16::from_le_bytes([choice[at], choice[at + 1]]));
    let span = |from: u32, length: u32, whole: u32| {
        let from = from % whole;
        (from, 1 + length % (whole - from))
    };
    let (x, width) = span(word(0), word(2), width);
    let (y, height) = span(word(4), word(6), height);
    Region { x, y, width, height }
}

/// Panics unless `part` equals that region of the whole.
fn assert_part(part: &Picture, region: Region, whole: &Picture) {
    let row_bytes = region.width as usize * 3;
    for (row, y) in part.pixels.chunks_exact(row_bytes).zip(region.y as usize..) {
        let from = (y * whole.width as usize + region.x as usize) * 3;
        assert!(row == &whole.pixels[from..from + row_bytes], "{region:?}, row {y}");
    }
}

/// Eight bytes that depend on all of the data, for selecting if nothing else does.
fn choice_of(data: &[u8]) -> [u8; 8] {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in data {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    (hash ^ hash >> 29).to_le_bytes()
}
