//! Interrupts stop every format and every stage of a recipe promptly.

use crate::decode::Decoder;
use crate::{
    Cpu, Encoded, Error, Helper, ImageFormat, Interrupt, Picture, SampleId, SamplePreparer, golden,
};
use jpeg_encoder::{ColorType, Encoder, SamplingFactor};
use meetpoint_format::recipe::{
    Decode, DecodeMode, Grayscale, Interpolation, OnError, Operation, Recipe, Resize, Size,
};
use meetpoint_jpeg::DecodeOptions;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Pixels per side: six rows of MCUs of 16 pixels.
const SIDE: u32 = 96;

fn jpeg(is_progressive: bool) -> Vec<u8> {
    let Picture { width, height, pixels } = golden::picture("noise", 7, SIDE, SIDE);
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, 85);
    encoder.set_sampling_factor(SamplingFactor::F_2_2);
    encoder.set_progressive(is_progressive);
    encoder.encode(&pixels, width as u16, height as u16, ColorType::Rgb).unwrap();
    file
}

/// An interrupt that is raised after a number of polls, and the number of polls.
fn after(polls: usize) -> (Interrupt, Arc<AtomicUsize>) {
    let polled = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&polled);
    (Interrupt::when(move || counter.fetch_add(1, Ordering::Relaxed) >= polls), polled)
}

fn raised() -> Interrupt {
    Interrupt::when(|| true)
}

fn decode(file: &[u8], on_error: OnError, interrupt: Interrupt) -> Result<(), Error> {
    let mut decoder = Decoder::new(Cpu::detect());
    decoder.set_interrupt(interrupt);
    let on_damage = crate::decode::on_damage(on_error);
    let options = DecodeOptions { on_damage, ..DecodeOptions::default() };
    decoder.decode_into_with(Encoded::from(file), None, &options, &mut Picture::default())
}

#[test]
fn pictures_of_other_formats_are_interrupted() {
    for (name, file) in crate::decode::golden_files() {
        let is_jpeg = ImageFormat::of(&file) == Some(ImageFormat::Jpeg);
        for on_error in [OnError::Fail, OnError::Lenient] {
            let interrupted = decode(&file, on_error, raised());
            assert_eq!(interrupted, Err(Error::Interrupted), "{name}");
        }
        if is_jpeg {
            continue;
        }
        let (interrupt, _) = after(1);
        assert_eq!(decode(&file, OnError::Fail, interrupt), Err(Error::Interrupted), "{name}");
    }
}

/// Takes the work and never does it, as if each decoder blocked for ever: a caller that waited for
/// one would not return.
#[derive(Default)]
struct Blocked(Mutex<Vec<Box<dyn FnOnce() + Send>>>);

impl Helper for Blocked {
    fn run(
        &self,
        work: Box<dyn FnOnce() + Send>,
        _: &Interrupt,
    ) -> Result<(), meetpoint_jpeg::Error> {
        self.0.lock().unwrap().push(work);
        Err(meetpoint_jpeg::Error::Interrupted)
    }
}

/// Does the work in a thread.
struct InThread;

impl Helper for InThread {
    fn run(
        &self,
        work: Box<dyn FnOnce() + Send>,
        _: &Interrupt,
    ) -> Result<(), meetpoint_jpeg::Error> {
        std::thread::scope(|scope| scope.spawn(work).join().unwrap());
        Ok(())
    }
}

/// A square picture of 16 colours in a format that another crate decodes.
fn square(format: image::ImageFormat, side: u32) -> Vec<u8> {
    let picture = image::RgbImage::from_fn(side, side, |x, y| {
        let level = (x.wrapping_mul(x) ^ y) as u8 & 0xf0;
        image::Rgb([level, 255 - level, level / 2])
    });
    let mut file = std::io::Cursor::new(Vec::new());
    picture.write_to(&mut file, format).unwrap();
    file.into_inner()
}

/// The formats, each with a side of pictures that are large and of some that are not.
const LARGE: [(image::ImageFormat, u32, u32); 4] = [
    (image::ImageFormat::WebP, 516, 508),
    (image::ImageFormat::Png, 2052, 520),
    (image::ImageFormat::Bmp, 2052, 520),
    (image::ImageFormat::Gif, 2052, 520),
];

#[test]
fn a_large_picture_is_decoded_where_its_caller_can_abandon_it() {
    for (format, large, small) in LARGE {
        for (side, is_large) in [(large, true), (small, false)] {
            let file = square(format, side);
            let blocked = Arc::new(Blocked::default());
            let helper = Arc::clone(&blocked) as Arc<dyn Helper>;
            let interrupt = Interrupt::default().with_helper(helper);
            let result = decode(&file, OnError::Fail, interrupt);
            assert_eq!(result.is_err(), is_large, "{format:?} {side}: {result:?}");
            assert_eq!(blocked.0.lock().unwrap().len(), usize::from(is_large), "{format:?} {side}");
            let mut decoder = Decoder::new(Cpu::detect());
            let (mut whole, mut same) = (Picture::default(), Picture::default());
            decoder.decode_into(Encoded::from(&file[..]), None, &mut whole).unwrap();
            decoder.set_interrupt(Interrupt::default().with_helper(Arc::new(InThread)));
            decoder.decode_into(Encoded::from(&file[..]), None, &mut same).unwrap();
            assert_eq!(whole.pixels, same.pixels, "{format:?} {side}");
            let mut wide = Vec::new();
            decoder.set_interrupt(Interrupt::default().with_helper(blocked.clone()));
            let (mode, options) = (DecodeMode::Rgba, DecodeOptions::default());
            let result = decoder.decode_wide(Encoded::from(&file[..]), mode, &options, &mut wide);
            assert_eq!(result.is_err(), is_large, "{format:?} {side}: {result:?}");
            // Abandoned work still ends without its caller.
            blocked.0.lock().unwrap().drain(..).for_each(|work| work());
        }
    }
}

#[test]
fn damage_and_panics_of_a_decoder_on_a_helper_are_errors_of_the_picture() {
    for (format, large, _) in LARGE {
        let file = square(format, large);
        let half = &file[..file.len() / 2];
        let decode = |helper: Option<Arc<dyn Helper>>| {
            let interrupt = Interrupt::default();
            let interrupt = match helper {
                Some(helper) => interrupt.with_helper(helper),
                None => interrupt,
            };
            decode(half, OnError::Fail, interrupt)
        };
        assert!(matches!(decode(None), Err(Error::Decode { .. })), "{format:?}");
        assert_eq!(decode(Some(Arc::new(InThread))), decode(None), "{format:?}");
    }
}

fn prepared(file: &[u8], operations: &[Operation], interrupt: Interrupt) -> Result<usize, Error> {
    let operations = [&[Operation::Decode(Decode::EXACT)], operations].concat();
    let mut preparer = SamplePreparer::new(&Recipe::new(operations).unwrap(), Cpu::detect());
    preparer.set_interrupt(interrupt);
    let id = SampleId { seed: 1, epoch: 0, sample: 0 };
    preparer.prepare_tensor(Encoded::from(file), id).map(|tensor| tensor.data.len())
}

#[test]
fn a_resize_to_many_rows_is_interrupted_between_its_rows() {
    const ROWS: u32 = 3000;
    let file = jpeg(false);
    for interpolation in [Interpolation::Bilinear, Interpolation::Nearest] {
        let size = Size::Exact { height: ROWS, width: 4 };
        let resize =
            [Operation::Resize(Resize { size, max_size: None, interpolation, antialias: true })];
        let (never, polled) = after(usize::MAX);
        prepared(&file, &resize, never).unwrap();
        let polls = polled.load(Ordering::Relaxed);
        assert!(polls >= ROWS as usize, "{interpolation:?}: {polls}");
        let (interrupt, polled) = after(polls / 2);
        assert_eq!(prepared(&file, &resize, interrupt), Err(Error::Interrupted));
        // A row of MCUs is fed in chunks, and each chunk polls once.
        assert!(polled.load(Ordering::Relaxed) <= polls / 2 + 4);
    }
}

#[test]
fn a_recipe_is_interrupted_in_each_of_its_stages() {
    let exact = |side| {
        Operation::Resize(Resize {
            max_size: None,
            size: Size::Exact { height: side, width: side },
            interpolation: Interpolation::Bilinear,
            antialias: true,
        })
    };
    let file = jpeg(true);
    let grey = Operation::Grayscale(Grayscale { num_output_channels: 1 });
    let stages = [exact(200), grey, exact(40)];
    let (never, polled) = after(usize::MAX);
    prepared(&file, &stages, never).unwrap();
    for raised_at in 0..polled.load(Ordering::Relaxed) {
        let (interrupt, _) = after(raised_at);
        assert_eq!(prepared(&file, &stages, interrupt), Err(Error::Interrupted), "{raised_at}");
    }
}

#[test]
fn operations_on_whole_pictures_and_tensors_are_interrupted_wherever_they_poll() {
    let file = jpeg(true);
    for name in [
        "random_equalize\np = 1",
        "random_adjust_sharpness\np = 1\nsharpness_factor = 2",
        "gaussian_blur\nkernel_size = 5",
        "pillow_gaussian_blur",
        "gaussian_noise",
        "random_sensor_noise\np = 1",
        "rand_augment\nnum_ops = 4",
        "aug_mix",
        "random_erasing\np = 1",
    ] {
        let (name, keys) = name.split_once('\n').unwrap_or((name, ""));
        let text =
            format!("[[operation]]\nname = 'decode'\n[[operation]]\nname = '{name}'\n{keys}");
        let operations = Recipe::from_toml(&text).unwrap().operations()[1..].to_vec();
        let (never, polled) = after(usize::MAX);
        prepared(&file, &operations, never).unwrap();
        let (before, polled_before) = after(usize::MAX);
        prepared(&file, &[], before).unwrap();
        let [polls, before] = [polled, polled_before].map(|polled| polled.load(Ordering::Relaxed));
        assert!(polls > before, "{name}: {polls} {before}");
        for raised_at in (0..polls).step_by(polls / 8 + 1).chain([polls - 1]) {
            let (interrupt, _) = after(raised_at);
            let result = prepared(&file, &operations, interrupt);
            assert_eq!(result, Err(Error::Interrupted), "{name} {raised_at}");
        }
    }
}
