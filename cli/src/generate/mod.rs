//! Generates photo-like JPEGs for the demo: the same pictures for the same seed on every machine.
//!
//! For a loader, only the work that they cost matters: sizes, orientations, chroma sampling and
//! bits per pixel are similar to those of ImageNet files. In reading order: [`noise`], [`scene`]
//! (the content of a picture), this file (encoding, and writing many of them).

mod noise;
mod scene;

use crate::surface::Stop;
use anyhow::Context;
use jpeg_encoder::{ColorType, Encoder, SamplingFactor};
use meetpoint_diagnose::shown;
use noise::RandomNumbers;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

/// Class folders, one palette each.
pub(crate) const CLASSES: [&str; 4] = ["coast", "desert", "forest", "street"];

/// Statistics of the generated files.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Generated {
    /// Files.
    pub pictures: u32,
    /// Bytes of all files.
    pub bytes: u64,
    /// Pixels of all files.
    pub pixels: u64,
    /// Files with halved chroma (4:2:0); the others are 4:4:4.
    pub subsampled: u32,
}

impl Generated {
    /// Mean bits per pixel.
    pub(crate) fn bits_per_pixel(&self) -> f64 {
        self.bytes as f64 * 8.0 / self.pixels.max(1) as f64
    }

    fn add(self, other: Self) -> Self {
        Self {
            pictures: self.pictures + other.pictures,
            bytes: self.bytes + other.bytes,
            pixels: self.pixels + other.pixels,
            subsampled: self.subsampled + other.subsampled,
        }
    }
}

/// One encoded picture.
struct Encoded {
    jpeg: Vec<u8>,
    width: u16,
    height: u16,
    subsampled: bool,
}

/// Writes `count` pictures into class folders below `folder`, on `threads` threads.
///
/// `progress` is called with the number of files written so far.
pub(crate) fn generate(
    folder: &Path,
    count: u32,
    seed: u64,
    threads: usize,
    stop: &Stop,
    progress: &mut dyn FnMut(u32),
) -> anyhow::Result<Generated> {
    for class in CLASSES {
        let path = folder.join(class);
        std::fs::create_dir_all(&path)
            .with_context(|| format!("failed to create folder {}", shown(&path)))?;
    }
    let next = AtomicU32::new(0);
    let (report, written) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.max(1))
            .map(|_| {
                let (next, report) = (&next, report.clone());
                scope.spawn(move || write_some(folder, count, seed, next, stop, &report))
            })
            .collect();
        drop(report);
        // Ends when the last worker drops its sender.
        written.iter().zip(1..).for_each(|((), done)| progress(done));
        let mut total = Generated::default();
        for worker in workers {
            total = total.add(worker.join().expect("a worker returns its errors")?);
        }
        stop.check()?;
        Ok(total)
    })
}

/// One worker: takes the next index until none is left.
fn write_some(
    folder: &Path,
    count: u32,
    seed: u64,
    next: &AtomicU32,
    stop: &Stop,
    report: &std::sync::mpsc::Sender<()>,
) -> anyhow::Result<Generated> {
    let mut total = Generated::default();
    while !stop.is_asked() {
        let index = next.fetch_add(1, Ordering::Relaxed);
        if index >= count {
            break;
        }
        let encoded = picture(seed, index)?;
        let class = CLASSES[index as usize % CLASSES.len()];
        let path = folder.join(class).join(format!("{index:05}.jpg"));
        std::fs::write(&path, &encoded.jpeg)
            .with_context(|| format!("failed to write {}", shown(&path)))?;
        total = total.add(Generated {
            pictures: 1,
            bytes: encoded.jpeg.len() as u64,
            pixels: u64::from(encoded.width) * u64::from(encoded.height),
            subsampled: u32::from(encoded.subsampled),
        });
        // The receiver exists until every worker has ended.
        let _ = report.send(());
    }
    Ok(total)
}

/// Draws and encodes one picture.
pub(crate) fn encoded(seed: u64, index: u32) -> anyhow::Result<Vec<u8>> {
    Ok(picture(seed, index)?.jpeg)
}

/// The same with what is known about it.
fn picture(seed: u64, index: u32) -> anyhow::Result<Encoded> {
    let mut random = RandomNumbers::new(seed, u64::from(index));
    let (width, height) = dimensions(&mut random);
    // Of ImageNet's files about a fifth are 4:2:0.
    let subsampled = random.uniform() < 0.25;
    let quality = 90 + random.below(6);
    let class = index as usize % CLASSES.len();
    let pixels = scene::draw(class, u32::from(width), u32::from(height), &mut random);
    let mut jpeg = Vec::with_capacity(pixels.len() / 4);
    let mut encoder = Encoder::new(&mut jpeg, u8::try_from(quality).expect("below 100"));
    encoder.set_sampling_factor(if subsampled {
        SamplingFactor::F_2_2
    } else {
        SamplingFactor::F_1_1
    });
    encoder
        .encode(&pixels, width, height, ColorType::Rgb)
        .with_context(|| format!("failed to encode picture {index}"))?;
    Ok(Encoded { jpeg, width, height, subsampled })
}

/// Width and height, 320 to 640 pixels each, with the aspect ratios of cameras.
fn dimensions(random: &mut RandomNumbers) -> (u16, u16) {
    const SHAPES: [(u32, u32); 6] =
        [(500, 375), (500, 333), (640, 480), (640, 426), (448, 448), (400, 320)];
    let (long, short) = SHAPES[random.below(SHAPES.len() as u32) as usize];
    // A few pixels more: most sizes are not multiples of a block.
    let long = (long + random.below(9)).min(640) as u16;
    let short = (short + random.below(9)).min(640) as u16;
    if random.uniform() < 0.3 { (short, long) } else { (long, short) }
}

#[cfg(test)]
mod tests {
    use super::{Generated, picture};

    #[test]
    fn the_same_seed_makes_the_same_picture_and_another_seed_another() {
        let first = picture(7, 3).unwrap();
        assert_eq!(first.jpeg, picture(7, 3).unwrap().jpeg);
        assert_ne!(first.jpeg, picture(8, 3).unwrap().jpeg);
    }

    #[test]
    fn pictures_decode_and_are_laid_out_as_photographs() {
        let mut total = Generated::default();
        for index in 0..16 {
            let made = picture(1, index).unwrap();
            let info = meetpoint_kernels::probe(&made.jpeg).unwrap();
            assert_eq!((info.width, info.height), (made.width.into(), made.height.into()));
            assert!((320..=640).contains(&made.width) && (320..=640).contains(&made.height));
            total = total.add(Generated {
                pictures: 1,
                bytes: made.jpeg.len() as u64,
                pixels: u64::from(made.width) * u64::from(made.height),
                subsampled: made.subsampled.into(),
            });
        }
        let bits = total.bits_per_pixel();
        assert!((3.0..5.0).contains(&bits), "{bits:.2} bits a pixel");
        assert!((1..16).contains(&total.subsampled), "{} of 16 are 4:2:0", total.subsampled);
    }
}
