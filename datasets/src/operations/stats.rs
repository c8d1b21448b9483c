//! Statistics of a dataset: sizes, pixels, encoding, labels, duplicates.
//!
//! Every sample is read and compared with its checksum. Memory: some kilobytes per quantity
//! (quantiles are accurate to 0.1 %), 16 bytes per sample to find duplicates, and the memory of an
//! open dataset.

use super::copy_options::Progress;
use crate::inspect::LabelCount;
use crate::threads::threads;
use crate::walk::{Sample, VisitedSample, each_sample};
use crate::{Error, LeftOut};
use hdrhistogram::Histogram;
use meetpoint_format::dataset::ContentKind;
use meetpoint_kernels::jpeg::JpegSummary;
use meetpoint_kernels::{ImageFormat, probe};
use meetpoint_prepare::Dataset;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Maximum number of damaged samples and of groups of duplicates that are named; all are counted.
pub const NAMED_MAX: usize = 20;
/// Significant digits of quantiles.
const DIGITS: u8 = 3;

/// The statistics of a dataset.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Statistics {
    /// The folder.
    pub path: PathBuf,
    /// Samples.
    pub samples: u64,
    /// Bytes of the stored content per sample.
    pub bytes: Distribution,
    /// Width in pixels, of pictures whose header can be read.
    pub width: Distribution,
    /// Height in pixels.
    pub height: Distribution,
    /// Pixels.
    pub pixels: Distribution,
    /// Pictures of each format; `unreadable` for those without a header. Empty where the content
    /// is not a picture.
    pub formats: BTreeMap<String, u64>,
    /// JPEGs by chroma subsampling.
    pub subsampling: BTreeMap<String, u64>,
    /// JPEGs, as files or in a coefficient form.
    pub jpegs: u64,
    /// JPEGs that are progressive, or whose coefficient form restores a progressive file.
    pub progressive: u64,
    /// Each label with its samples, in label order.
    pub labels: Vec<LabelCount>,
    /// Samples without a label.
    pub unlabelled: u64,
    /// The further columns.
    pub columns: Vec<ColumnCount>,
    /// Samples with the same stored bytes.
    pub duplicates: Duplicates,
    /// Samples that cannot be read.
    pub damaged: u64,
    /// The first [`NAMED_MAX`] of them, by key.
    pub damaged_named: Vec<LeftOut>,
    /// Whether the content is in the files of its source, so that damage is in these files.
    pub is_in_place: bool,
}

/// A quantity over all samples; zeros if there are no samples.
#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize)]
#[expect(missing_docs, reason = "the names say it: p5 is the quantile of 5 %")]
pub struct Distribution {
    pub count: u64,
    pub min: u64,
    pub p5: u64,
    pub p25: u64,
    pub p50: u64,
    pub p75: u64,
    pub p95: u64,
    pub p99: u64,
    pub max: u64,
    pub mean: f64,
    pub sum: u64,
}

/// A further column.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ColumnCount {
    /// Name.
    pub name: String,
    /// Arrow type in words.
    #[serde(rename = "type")]
    pub type_words: String,
    /// Rows without a value.
    pub nulls: u64,
}

/// Samples whose stored bytes equal those of another sample.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize)]
pub struct Duplicates {
    /// Different contents that occur more than once.
    pub groups: u64,
    /// Redundant samples: all but one of each group.
    pub samples: u64,
    /// Bytes of the redundant samples.
    pub bytes: u64,
    /// Keys of the first [`NAMED_MAX`] groups, in the order of the dataset.
    pub named: Vec<Vec<String>>,
}

/// The properties of one sample.
struct SampleProperties {
    bytes: u64,
    picture: Option<Picture>,
}

/// The information in the header of a picture.
enum Picture {
    Unreadable,
    Read { format: ImageFormat, width: u32, height: u32, jpeg: Option<JpegSummary> },
}

/// Computes the statistics of a dataset.
pub fn stats(
    path: &Path,
    asked_threads: usize,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> Result<Statistics, Error> {
    let dataset = Dataset::open(path)?;
    let mut builder = StatisticsBuilder::new();
    let mut done = Progress { samples: dataset.len(), ..Progress::default() };
    progress(done);
    let is_image = dataset.columns().kind == ContentKind::Image;
    let visit = |(): &mut (), sample: &Sample| properties(&dataset, sample.index, is_image);
    each_sample(&dataset, threads(asked_threads)?, &|| (), &visit, &mut |visited| {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        let VisitedSample { sample, result } = visited.map_err(|unread| unread.error)?;
        done.samples_done += 1;
        match result {
            Ok(properties) => {
                done.bytes_done += properties.bytes;
                builder.add(&properties);
            }
            Err(reason) => builder.damaged.push((sample.index, sample.key, reason)),
        }
        progress(done);
        Ok(())
    })?;
    let (labels, unlabelled) = labels(&dataset)?;
    let damaged: Vec<u64> = builder.damaged.iter().map(|(index, ..)| *index).collect();
    builder.damaged.sort_unstable();
    let named = builder.damaged.drain(..).take(NAMED_MAX);
    Ok(Statistics {
        path: path.to_path_buf(),
        samples: dataset.len(),
        damaged: damaged.len() as u64,
        is_in_place: dataset.content_root().is_some(),
        damaged_named: named
            .map(|(_, path, reason)| LeftOut { path, reason: reason.into() })
            .collect(),
        bytes: builder.bytes.distribution(),
        width: builder.width.distribution(),
        height: builder.height.distribution(),
        pixels: builder.pixels.distribution(),
        formats: builder.formats,
        subsampling: builder.subsampling,
        jpegs: builder.jpegs,
        progressive: builder.progressive,
        labels,
        unlabelled,
        columns: columns(&dataset)?,
        duplicates: duplicates(&dataset, &damaged, stop)?,
    })
}

/// Examines one sample; the error is why it cannot be read.
fn properties(dataset: &Dataset, sample: u64, is_image: bool) -> Result<SampleProperties, String> {
    let stored = dataset.read_sample(sample).map_err(|error| error.to_string())?;
    let picture = is_image.then(|| match probe(&stored) {
        Err(_) => Picture::Unreadable,
        Ok(info) => {
            let is_jpeg = matches!(info.format, ImageFormat::Jpeg | ImageFormat::Coefficients);
            let jpeg = if is_jpeg { JpegSummary::of(&stored).ok() } else { None };
            let (width, height) = (info.width, info.height);
            Picture::Read { format: info.format, width, height, jpeg }
        }
    });
    Ok(SampleProperties { bytes: stored.len() as u64, picture })
}

/// Accumulates a quantity.
struct QuantityBuilder {
    histogram: Histogram<u64>,
    sum: u64,
    min: u64,
    max: u64,
}

impl QuantityBuilder {
    fn new() -> Self {
        let histogram = Histogram::new(DIGITS).expect("0 to 5 digits are allowed");
        Self { histogram, sum: 0, min: u64::MAX, max: 0 }
    }

    fn add(&mut self, value: u64) {
        self.histogram.record(value).expect("it resizes itself for any value");
        self.sum += value;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    fn distribution(&self) -> Distribution {
        let count = self.histogram.len();
        if count == 0 {
            return Distribution::default();
        }
        // A bucket's upper bound may exceed the maximum.
        let at = |quantile| self.histogram.value_at_quantile(quantile).clamp(self.min, self.max);
        Distribution {
            count,
            min: self.min,
            p5: at(0.05),
            p25: at(0.25),
            p50: at(0.5),
            p75: at(0.75),
            p95: at(0.95),
            p99: at(0.99),
            max: self.max,
            mean: self.sum as f64 / count as f64,
            sum: self.sum,
        }
    }
}

/// Accumulates the statistics.
struct StatisticsBuilder {
    bytes: QuantityBuilder,
    width: QuantityBuilder,
    height: QuantityBuilder,
    pixels: QuantityBuilder,
    formats: BTreeMap<String, u64>,
    subsampling: BTreeMap<String, u64>,
    jpegs: u64,
    progressive: u64,
    damaged: Vec<(u64, String, String)>,
}

impl StatisticsBuilder {
    fn new() -> Self {
        Self {
            bytes: QuantityBuilder::new(),
            width: QuantityBuilder::new(),
            height: QuantityBuilder::new(),
            pixels: QuantityBuilder::new(),
            formats: BTreeMap::new(),
            subsampling: BTreeMap::new(),
            jpegs: 0,
            progressive: 0,
            damaged: Vec::new(),
        }
    }

    fn add(&mut self, properties: &SampleProperties) {
        self.bytes.add(properties.bytes);
        let (format, width, height, jpeg) = match &properties.picture {
            None => return,
            Some(Picture::Unreadable) => {
                *self.formats.entry("unreadable".to_owned()).or_default() += 1;
                return;
            }
            Some(Picture::Read { format, width, height, jpeg }) => (format, width, height, jpeg),
        };
        *self.formats.entry(format.name().to_owned()).or_default() += 1;
        self.width.add(u64::from(*width));
        self.height.add(u64::from(*height));
        self.pixels.add(u64::from(*width) * u64::from(*height));
        if let Some(jpeg) = jpeg {
            self.jpegs += 1;
            self.progressive += u64::from(jpeg.is_progressive);
            *self.subsampling.entry(jpeg.subsampling()).or_default() += 1;
        }
    }
}

/// Each label with its number of samples, and the number of samples without a label.
fn labels(dataset: &Dataset) -> Result<(Vec<LabelCount>, u64), Error> {
    let names = &dataset.manifest().labels;
    let mut counts = vec![0_u64; names.len()];
    let mut unlabelled = 0;
    for sample in 0..dataset.len() {
        match dataset.locate(sample)?.label.and_then(|label| usize::try_from(label).ok()) {
            // The index rejects labels that are not in the manifest.
            Some(label) => counts[label] += 1,
            None => unlabelled += 1,
        }
    }
    let labels = names.iter().zip(counts);
    let labels = labels.map(|(name, samples)| LabelCount { name: name.clone(), samples });
    Ok((labels.collect(), unlabelled))
}

/// The further columns, with their numbers of nulls.
fn columns(dataset: &Dataset) -> Result<Vec<ColumnCount>, Error> {
    let fields = dataset.columns().extra.fields();
    let mut counts: Vec<ColumnCount> = fields
        .iter()
        .map(|field| ColumnCount {
            name: field.name().clone(),
            type_words: field.data_type().to_string(),
            nulls: 0,
        })
        .collect();
    let nullable: Vec<usize> =
        (0..fields.len()).filter(|column| fields[*column].is_nullable()).collect();
    for batch in 0..dataset.record_batches() {
        if nullable.is_empty() {
            break;
        }
        let read = dataset.extra(batch, Some(&nullable))?;
        for (column, array) in nullable.iter().zip(read.columns()) {
            counts[*column].nulls += array.logical_null_count() as u64;
        }
    }
    Ok(counts)
}

/// Length and checksum of a content, used to search for duplicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ContentChecksum {
    crc32c: u32,
    /// At most 2^28.
    bytes: u32,
    sample: u64,
}

/// Finds contents that occur more than once: first by length and checksum, which are already known,
/// then by SHA-256.
fn duplicates(dataset: &Dataset, damaged: &[u64], stop: &AtomicBool) -> Result<Duplicates, Error> {
    let mut all = Vec::new();
    for sample in 0..dataset.len() {
        let location = dataset.locate(sample)?;
        let bytes = u32::try_from(location.bytes).expect("at most 2^28");
        if bytes > 0 {
            all.push(ContentChecksum { crc32c: location.crc32c, bytes, sample });
        }
    }
    all.sort_unstable();
    let is_same = |one: &ContentChecksum, next: &ContentChecksum| {
        (one.crc32c, one.bytes) == (next.crc32c, next.bytes)
    };
    let damaged: std::collections::HashSet<u64> = damaged.iter().copied().collect();
    let mut found = Duplicates::default();
    let mut groups: Vec<Vec<u64>> = Vec::new();
    for alike in all.chunk_by(is_same).filter(|alike| alike.len() > 1) {
        let mut by_digest: HashMap<[u8; 32], Vec<u64>> = HashMap::new();
        for summed in alike.iter().filter(|summed| !damaged.contains(&summed.sample)) {
            if stop.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            let digest = Sha256::digest(dataset.read_sample(summed.sample)?);
            by_digest.entry(digest.into()).or_default().push(summed.sample);
        }
        for group in by_digest.into_values().filter(|group| group.len() > 1) {
            found.groups += 1;
            found.samples += group.len() as u64 - 1;
            found.bytes += u64::from(alike[0].bytes) * (group.len() as u64 - 1);
            groups.push(group.into_iter().take(NAMED_MAX).collect());
            // Only the first groups in the order of the dataset are retained.
            if groups.len() > 2 * NAMED_MAX {
                groups.sort_unstable();
                groups.truncate(NAMED_MAX);
            }
        }
    }
    groups.sort_unstable();
    groups.truncate(NAMED_MAX);
    for group in groups {
        let keys = group.into_iter().map(|sample| dataset.key(sample));
        found.named.push(keys.collect::<Result<_, _>>()?);
    }
    Ok(found)
}
