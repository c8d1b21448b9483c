//! Pictures, and the comparison of the kernels with the CPU's decoder.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use jpeg_encoder::{ColorType, Encoder, SamplingFactor};
use meetpoint_gpu::jpeg::{JpegBatch, JpegLimits, PictureStatus};
use meetpoint_gpu::{Compute, subject};
use meetpoint_jpeg::{
    DecodeOptions, DecodePlan, Decoder, Encoded, HuffmanTables, Picture, PlanError, Planner,
    Process, Region, Rewrite, Spacing, entry_points, rewrite,
};
use std::time::Duration;

pub(crate) const SAMPLINGS: [SamplingFactor; 5] = [
    SamplingFactor::F_1_1,
    SamplingFactor::F_2_1,
    SamplingFactor::F_1_2,
    SamplingFactor::F_2_2,
    SamplingFactor::F_4_1,
];

/// A picture to decode.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) file: Vec<u8>,
    pub(crate) entry_points: Vec<u8>,
    /// Of the file, where it is not to be computed.
    pub(crate) crc32c: Option<u32>,
    pub(crate) region: Option<Region>,
    pub(crate) options: DecodeOptions,
}

impl Case {
    pub(crate) fn whole(file: Vec<u8>) -> Self {
        Self {
            file,
            entry_points: Vec::new(),
            crc32c: None,
            region: None,
            options: DecodeOptions::default(),
        }
    }

    pub(crate) fn with_entry_points(file: Vec<u8>, spacing: Spacing) -> Self {
        let entry_points = entry_points(&file, spacing).unwrap().unwrap();
        Self { entry_points, ..Self::whole(file) }
    }

    /// The case with other bytes, for which the entry points count as made all the same.
    pub(crate) fn changed_to(self, file: Vec<u8>) -> Self {
        let crc32c = self
            .entry_points
            .get(4..8)
            .map(|sum| u32::from_le_bytes(sum.try_into().expect("four bytes")));
        Self { file, crc32c, ..self }
    }

    pub(crate) fn of(self, region: Region) -> Self {
        Self { region: Some(region), ..self }
    }

    fn encoded(&self) -> Encoded<'_> {
        Encoded { bytes: &self.file, entry_points: &self.entry_points, crc32c: self.crc32c }
    }

    /// The pixels that the CPU decodes.
    pub(crate) fn pixels(&self) -> Result<Picture, meetpoint_jpeg::Error> {
        let mut picture = Picture::default();
        let (encoded, region) = (self.encoded(), self.region);
        Decoder::new().decode_into(encoded, region, &self.options, &mut picture)?;
        Ok(picture)
    }

    pub(crate) fn plan(
        &self,
        planner: &mut Planner,
        plan: &mut DecodePlan,
    ) -> Result<(), PlanError> {
        let (width, height) = planner.open(self.encoded(), self.options.on_damage)?;
        let region = self.region.unwrap_or(Region { x: 0, y: 0, width, height });
        planner.plan_opened(self.encoded(), region, &self.options, plan)
    }
}

/// Counts of results.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Pictures with the pixels of the CPU.
    pub(crate) sound: usize,
    /// Pictures that the CPU decodes although the kernels reported a problem.
    pub(crate) flagged_needlessly: usize,
    /// Pictures that both refuse.
    pub(crate) refused: usize,
    /// Pictures for which there is no plan.
    pub(crate) unplanned: usize,
    pub(crate) statuses: Vec<PictureStatus>,
}

/// Runs the kernels on batches with reused memory, which decode each segment with a thread, with a
/// warp, and long segments with a block of threads.
pub(crate) struct Setup {
    pub(crate) compute: Box<dyn Compute>,
    pub(crate) batches: [JpegBatch; 3],
    planner: Planner,
    plan: DecodePlan,
}

impl Setup {
    pub(crate) fn start() -> Self {
        Self::on(subject(env!("CARGO_TARGET_TMPDIR").as_ref()).unwrap())
    }

    pub(crate) fn on(compute: Box<dyn Compute>) -> Self {
        // A block of threads for a few bytes takes long on a CPU.
        let lengths = [(usize::MAX, usize::MAX), (0, usize::MAX), (0, 256)];
        let batches = lengths.map(|(segment_bytes_long, segment_bytes_huge)| {
            let limits = JpegLimits::default();
            JpegBatch::new(JpegLimits { segment_bytes_long, segment_bytes_huge, ..limits })
        });
        Self { compute, batches, planner: Planner::default(), plan: DecodePlan::default() }
    }

    /// Decodes all, once in each batch. Panics where the kernels accept what the CPU refuses, or
    /// where pixels differ. Returns the outcome of the batch with fewer sound pictures.
    pub(crate) fn check(&mut self, cases: &[Case]) -> Outcome {
        let outcomes = [0, 1, 2].map(|batch| self.check_in(batch, cases));
        outcomes.into_iter().min_by_key(|outcome| outcome.sound).unwrap()
    }

    /// Like `check`, in one batch only: for pictures without segments, which all batches treat
    /// alike.
    pub(crate) fn check_once(&mut self, cases: &[Case]) -> Outcome {
        self.check_in(0, cases)
    }

    fn check_in(&mut self, batch: usize, cases: &[Case]) -> Outcome {
        let (compute, batch) = (&mut *self.compute, &mut self.batches[batch]);
        batch.clear();
        let (mut outcome, mut added) = (Outcome::default(), Vec::new());
        for (number, case) in cases.iter().enumerate() {
            match case.plan(&mut self.planner, &mut self.plan) {
                Ok(()) => {
                    batch.add(compute, &self.plan, &case.file).unwrap();
                    added.push(number);
                }
                Err(PlanError::Refused(error)) => {
                    assert_eq!(case.pixels().unwrap_err(), error, "case {number}");
                    outcome.refused += 1;
                }
                Err(_) => outcome.unplanned += 1,
            }
        }
        batch.run(compute).unwrap();
        compute.wait(Duration::from_secs(60)).unwrap();
        outcome.statuses = batch.status(compute).unwrap().to_vec();
        let mut pixels = Vec::new();
        for (index, (number, status)) in added.iter().zip(&outcome.statuses).enumerate() {
            let expected = cases[*number].pixels();
            match (status.is_sound(), expected) {
                (true, Ok(expected)) => {
                    batch.download(compute, index, &mut pixels).unwrap();
                    let differs = expected.pixels.iter().zip(&pixels).position(|(a, b)| a != b);
                    assert_eq!(expected.pixels.len(), pixels.len());
                    assert_eq!(differs, None, "case {number}, {:?}", cases[*number].region);
                    outcome.sound += 1;
                }
                (true, Err(error)) => panic!("case {number} should be refused: {error}"),
                (false, Ok(_)) => outcome.flagged_needlessly += 1,
                (false, Err(_)) => outcome.refused += 1,
            }
        }
        outcome
    }
}

/// Noise over a gradient, so that blocks have few and many coefficients.
pub(crate) fn encode(
    sampling: SamplingFactor,
    seed: u32,
    width: u16,
    height: u16,
    quality: u8,
) -> Vec<u8> {
    let pixels = noise(seed, usize::from(width), usize::from(height));
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, quality);
    encoder.set_sampling_factor(sampling);
    encoder.set_optimized_huffman_tables(seed % 2 == 1);
    encoder.encode(&pixels, width, height, ColorType::Rgb).unwrap();
    // In one scan, which the encoder does not write for every sampling.
    let (tables, process) = (HuffmanTables::Keep, Process::Baseline);
    rewrite(&file, &Rewrite { tables, process, ..Rewrite::default() })
        .or_else(|_| rewrite(&file, &Rewrite { process, ..Rewrite::default() }))
        .unwrap()
}

fn noise(seed: u32, width: usize, height: usize) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..width * height * 3)
        .map(|at| {
            let (x, y, channel) = (at / 3 % width, at / 3 / width, at % 3);
            let gradient = (x * (2 + channel) + y * 3) as u8;
            if x / 8 % 2 == 0 { next() } else { gradient }
        })
        .collect()
}

/// The files with expected pixels in the tests of the decoder, and damaged ones.
pub(crate) fn golden() -> Vec<(String, Vec<u8>)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../jpeg/tests/golden/jpeg");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jpg"))
        .collect();
    files.sort();
    let read = |path: std::path::PathBuf| {
        (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(&path).unwrap())
    };
    files.into_iter().map(read).collect()
}

/// A grey picture in which all blocks are the same.
pub(crate) fn repetitive(width: u16, height: u16) -> Vec<u8> {
    let block = [200, 31, 7, 99, 14, 250, 180, 66];
    let (wide, high) = (usize::from(width), usize::from(height));
    let pixels: Vec<u8> = (0..wide * high).map(|at| block[(at / wide * 3 + at) % 8]).collect();
    let mut file = Vec::new();
    let encoder = Encoder::new(&mut file, 60);
    encoder.encode(&pixels, width, height, ColorType::Luma).unwrap();
    file
}

/// White with noise in a few squares.
pub(crate) fn white(sampling: SamplingFactor, width: u16, height: u16) -> Vec<u8> {
    let wide = usize::from(width);
    let mut pixels = noise(1, wide, usize::from(height));
    for (at, value) in pixels.iter_mut().enumerate() {
        let (x, y) = (at / 3 % wide, at / 3 / wide);
        if x / 16 % 10 != 3 || y / 16 % 5 != 1 {
            *value = 255;
        }
    }
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, 90);
    encoder.set_sampling_factor(sampling);
    encoder.encode(&pixels, width, height, ColorType::Rgb).unwrap();
    let process = Process::Baseline;
    rewrite(&file, &Rewrite { process, ..Rewrite::default() }).unwrap()
}
