//! Summarises a dataset: counts, labels, parts, formats and dimensions.

use crate::jpeg::form_of;
use crate::store::RemoteOptions;
use crate::{Error, open_dataset};
use meetpoint_format::dataset::{
    ColumnEntry, ContentEntry, ContentKind, Form, PartEntry, Provenance, Stored,
};
use meetpoint_kernels::{ImageFormat, probe};
use meetpoint_prepare::{Dataset, KeyLookup};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Maximum number of images whose headers are read: enough for percentages, in about a second.
pub const PROBED_MAX: u64 = 2000;

/// The summary of a dataset.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Inspection {
    /// The folder.
    pub path: PathBuf,
    /// Version of the conventions.
    pub version: u32,
    /// The content of samples.
    pub content: ContentEntry,
    /// The further columns.
    pub columns: Vec<ColumnEntry>,
    /// Samples.
    pub samples: u64,
    /// Bytes of all images.
    pub image_bytes: u64,
    /// Longest image in bytes.
    pub image_bytes_max: u64,
    /// Bytes of all part files.
    pub file_bytes: u64,
    /// SHA-256 of `dataset.json`, hexadecimal: the dataset's identity.
    pub manifest_sha256: String,
    /// Each label with its number of samples, in label order.
    pub labels: Vec<LabelCount>,
    /// Samples without a label.
    pub unlabelled: u64,
    /// The parts, as the manifest lists them.
    pub parts: Vec<PartEntry>,
    /// The form of the images.
    pub stored: Option<Stored>,
    /// Its provenance.
    pub provenance: Provenance,
    /// Statistics from the headers of images.
    pub images: ImageStatistics,
    /// How samples are looked up by key.
    pub keys: KeyLookup,
    /// The folder that contains the content, if it is not in the parts.
    pub content_root: Option<PathBuf>,
}

/// A label and how often it occurs.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct LabelCount {
    /// Name.
    pub name: String,
    /// Samples that have it.
    pub samples: u64,
}

/// Statistics from the headers of all images, or of [`PROBED_MAX`] spread evenly over the dataset.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize)]
pub struct ImageStatistics {
    /// Images whose headers were read.
    pub probed: u64,
    /// Whether these are all images.
    pub is_complete: bool,
    /// Images of each format and form; `unreadable` for those without a header.
    pub formats: BTreeMap<String, u64>,
    /// Least, mean and greatest width in pixels.
    pub width: ValueRange,
    /// Least, mean and greatest height in pixels.
    pub height: ValueRange,
    /// Images by megapixels: below 0.1, 0.3, 1, 3, 10, and the rest.
    pub megapixels: Vec<SizeClass>,
    /// Bits of stored image per pixel, over all probed images.
    pub bits_per_pixel: f64,
}

/// Minimum, mean and maximum of a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize)]
pub struct ValueRange {
    /// Least.
    pub min: u32,
    /// Arithmetic mean.
    pub mean: f64,
    /// Greatest.
    pub max: u32,
}

/// Number of images in a range of sizes.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct SizeClass {
    /// Upper bound in megapixels, exclusive; absent for the last class.
    pub below: Option<f64>,
    /// Images.
    pub images: u64,
}

/// Upper bounds of the classes by megapixels.
const MEGAPIXELS: [f64; 5] = [0.1, 0.3, 1.0, 3.0, 10.0];

/// Summarises a dataset: counts, labels, parts, provenance, and formats and sizes of its images.
///
/// ```
/// let found = meetpoint_datasets::inspect("tests/golden/version-3".as_ref())?;
/// assert_eq!((found.samples, found.parts.len()), (6, 1));
/// let labels: Vec<&str> = found.labels.iter().map(|label| &*label.name).collect();
/// assert_eq!(labels, ["coarse", "fine"]);
/// # Ok::<(), meetpoint_datasets::Error>(())
/// ```
pub fn inspect(path: &Path) -> Result<Inspection, Error> {
    inspect_with(path, &RemoteOptions::default())
}

/// As [`inspect`], with options for a dataset at a URL.
pub fn inspect_with(path: &Path, options: &RemoteOptions) -> Result<Inspection, Error> {
    let dataset = open_dataset(path, options)?;
    let manifest = dataset.manifest();
    let mut labels = vec![0_u64; manifest.labels.len()];
    let mut unlabelled = 0;
    for sample in 0..dataset.len() {
        match dataset.locate(sample)?.label.and_then(|label| usize::try_from(label).ok()) {
            // The index rejects labels that are not in the manifest.
            Some(label) => labels[label] += 1,
            None => unlabelled += 1,
        }
    }
    let labels = manifest.labels.iter().zip(labels);
    Ok(Inspection {
        path: path.to_path_buf(),
        version: manifest.version,
        content: ContentEntry {
            kind: manifest.kind(),
            column: manifest.content_name().to_owned(),
            prepared: manifest.prepared().cloned(),
        },
        columns: manifest.columns.clone(),
        samples: manifest.samples,
        image_bytes: manifest.image_bytes,
        image_bytes_max: manifest.image_bytes_max,
        file_bytes: manifest.parts.iter().map(|part| part.bytes).sum(),
        manifest_sha256: dataset.manifest_sha256().iter().map(|b| format!("{b:02x}")).collect(),
        labels: labels.map(|(name, samples)| LabelCount { name: name.clone(), samples }).collect(),
        unlabelled,
        parts: manifest.parts.clone(),
        stored: manifest.stored.clone(),
        provenance: manifest.provenance.clone(),
        images: probe_images(&dataset)?,
        keys: dataset.key_lookup(),
        content_root: dataset.content_root().map(Path::to_path_buf),
    })
}

fn probe_images(dataset: &Dataset) -> Result<ImageStatistics, Error> {
    let samples = dataset.len();
    let is_of_images = dataset.manifest().kind() == ContentKind::Image;
    let probed = if is_of_images { samples.min(PROBED_MAX) } else { 0 };
    let mut statistics = ImageStatistics {
        probed,
        is_complete: probed == samples,
        megapixels: MEGAPIXELS
            .into_iter()
            .map(Some)
            .chain([None])
            .map(|below| SizeClass { below, images: 0 })
            .collect(),
        ..ImageStatistics::default()
    };
    let (mut widths, mut heights) = (Vec::new(), Vec::new());
    let (mut bytes, mut pixels) = (0, 0);
    for number in 0..probed {
        // Evenly spread: sample floor(number * samples / probed), without overflow.
        let sample = u128::from(number) * u128::from(samples) / u128::from(probed);
        let image = dataset.read_sample(u64::try_from(sample).expect("below samples"))?;
        let Ok(info) = probe(&image) else {
            *statistics.formats.entry("unreadable".to_owned()).or_default() += 1;
            continue;
        };
        let name = match form_of(&image) {
            Form::Jpeg => name_of(info.format).to_owned(),
            form => format!("{} ({})", name_of(info.format), form.name()),
        };
        *statistics.formats.entry(name).or_default() += 1;
        widths.push(info.width);
        heights.push(info.height);
        let area = u64::from(info.width) * u64::from(info.height);
        bytes += image.len() as u64;
        pixels += area;
        let class = MEGAPIXELS.iter().position(|below| (area as f64) < below * 1e6);
        statistics.megapixels[class.unwrap_or(MEGAPIXELS.len())].images += 1;
    }
    statistics.width = value_range(&widths);
    statistics.height = value_range(&heights);
    if pixels > 0 {
        statistics.bits_per_pixel = bytes as f64 * 8.0 / pixels as f64;
    }
    Ok(statistics)
}

fn value_range(values: &[u32]) -> ValueRange {
    let (Some(&min), Some(&max)) = (values.iter().min(), values.iter().max()) else {
        return ValueRange::default();
    };
    let sum: u64 = values.iter().copied().map(u64::from).sum();
    ValueRange { min, mean: sum as f64 / values.len() as f64, max }
}

fn name_of(format: ImageFormat) -> &'static str {
    match format {
        ImageFormat::Jpeg | ImageFormat::Coefficients => "JPEG",
        ImageFormat::Png => "PNG",
        ImageFormat::WebP => "WebP",
        ImageFormat::Bmp => "BMP",
        ImageFormat::Gif => "GIF",
        ImageFormat::Tiff => "TIFF",
        ImageFormat::Pnm => "PNM",
    }
}
