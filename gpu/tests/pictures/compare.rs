//! Prepares samples on the CPU and by the kernels, and compares the bytes.

use crate::program::{ConvertedProgram, tensor_format};
use meetpoint_format::recipe::Recipe;
use meetpoint_gpu::pictures::{PictureBatch, TensorLocation};
use meetpoint_gpu::{Compute, DeviceMemory, PictureDescriptor, subject};
use meetpoint_kernels::jpeg::OutputColour;
use meetpoint_kernels::{
    Cpu, Encoded, NotExported, PictureProgram, Region, SampleId, SamplePreparer,
};

/// A source of equally distributed numbers.
pub(crate) struct Numbers(u64);

impl Numbers {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed ^ 0x9e37_79b9_7f4a_7c15)
    }

    pub(crate) fn next(&mut self) -> u64 {
        // Steele, Lea, Flood: SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }
}

/// A PNG of [`pixels`].
pub(crate) fn png(width: u32, height: u32, seed: u64) -> Vec<u8> {
    png_of((width, height), &pixels((width, height), seed))
}

/// A picture with smooth parts, noise and areas of one colour.
pub(crate) fn pixels((width, height): (u32, u32), seed: u64) -> Vec<u8> {
    let mut numbers = Numbers::new(seed);
    let [a, b, c] = [0; 3].map(|_: u8| numbers.next() % 7);
    let mut pixels = Vec::new();
    for y in 0..u64::from(height) {
        for x in 0..u64::from(width) {
            let noise = numbers.next();
            let is_flat = x / 8 % 3 == 0;
            let colour = [x * a + y * b, y * c + x * 3, (x ^ y) * 5];
            for (channel, value) in colour.into_iter().enumerate() {
                let noise = if is_flat { 0 } else { noise >> (8 * channel) & 63 };
                pixels.push((value + noise) as u8);
            }
        }
    }
    pixels
}

/// A PNG of pixels, each red, green and blue.
pub(crate) fn png_of((width, height): (u32, u32), pixels: &[u8]) -> Vec<u8> {
    let mut encoded = Vec::new();
    let mut encoder = png::Encoder::new(&mut encoded, width, height);
    encoder.set_color(png::ColorType::Rgb);
    let mut writer = encoder.write_header().expect("a header in memory");
    writer.write_image_data(pixels).expect("pixels in memory");
    drop(writer);
    encoded
}

/// A recipe of operations, each a name and its keys, with `;` between lines.
pub(crate) fn recipe(operations: &[&str]) -> Recipe {
    let mut text = String::new();
    for operation in operations {
        let (name, keys) = operation.split_once(' ').unwrap_or((operation, ""));
        let keys = keys.replace(';', "\n");
        text.push_str(&format!("[[operation]]\nname = \"{name}\"\n{keys}\n"));
    }
    Recipe::from_toml(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

pub(crate) fn start() -> Box<dyn Compute> {
    subject(env!("CARGO_TARGET_TMPDIR").as_ref()).expect("the kernels compile")
}

/// The part of the picture in the file that a program takes, uploaded.
fn upload(
    compute: &mut dyn Compute,
    encoded: Encoded<'_>,
    program: &PictureProgram,
) -> (DeviceMemory, PictureDescriptor) {
    let (mode, channels) = match program.colour {
        OutputColour::Rgb => ("rgb", 3),
        OutputColour::Grey => ("gray", 1),
    };
    let decode = recipe(&[&format!("decode mode = \"{mode}\"")]);
    let id = SampleId { seed: 0, epoch: 0, sample: 0 };
    let mut decoder = SamplePreparer::new(&decode, Cpu::detect());
    let picture = decoder.prepare_tensor(encoded, id).expect("a picture");
    let width = picture.spec.width;
    let region = program.source;
    // Not a multiple of any alignment, as pixels of the decoder may be at any offset.
    let row_stride = region.width + 3;
    let plane_stride = row_stride * region.height + 5;
    let mut planes = vec![0; 3 * plane_stride as usize];
    for (plane, planes) in planes.chunks_exact_mut(plane_stride as usize).enumerate() {
        for y in 0..region.height {
            for x in 0..region.width {
                let from = ((region.y + y) * width + region.x + x) as usize;
                let value = picture.data[channels * from + plane % channels];
                planes[(y * row_stride + x) as usize] = value;
            }
        }
    }
    let memory = compute.allocate(planes.len()).expect("the kernels run");
    compute.upload(&planes, &memory, 0).expect("the kernels run");
    let (address, Region { width, height, .. }) = (memory.address(), region);
    (memory, PictureDescriptor { address, row_stride, plane_stride, width, height })
}

/// The result of a picture, or of all pictures of a sample.
pub(crate) enum Outcome {
    /// Both ways gave the same bytes.
    Equal,
    /// The bytes differ; how.
    Different(String),
    /// There are no programs.
    NotExported(NotExported),
    /// The operations do not fit the picture.
    Refused,
    /// The result is so large that the kernels would take long on the CPU.
    Large,
}

/// Executes a recipe on samples both ways. Returns why the recipe or a sample has no programs.
pub(crate) fn compare(
    compute: &mut dyn Compute,
    recipe: &Recipe,
    pictures: &[Vec<u8>],
) -> Result<(), NotExported> {
    for outcome in outcomes(compute, recipe, pictures, u32::MAX) {
        match outcome {
            Outcome::Equal => (),
            Outcome::Different(what) => panic!("{what}"),
            Outcome::NotExported(reason) => return Err(reason),
            Outcome::Refused => panic!("the operations fit"),
            Outcome::Large => panic!("the result is small"),
        }
    }
    Ok(())
}

/// As [`compare`], with the result of each picture, or of samples that have none; if the recipe has
/// no programs, one result for all. Results of more pixels than `pixels_max` are not compared.
pub(crate) fn outcomes(
    compute: &mut dyn Compute,
    recipe: &Recipe,
    pictures: &[Vec<u8>],
    pixels_max: u32,
) -> Vec<Outcome> {
    let mut preparer = SamplePreparer::new(recipe, Cpu::detect());
    let formats = match preparer.export_tensors() {
        Ok(formats) => formats.iter().map(tensor_format).collect::<Vec<_>>(),
        Err(reason) => return vec![Outcome::NotExported(reason)],
    };
    let mut batch = PictureBatch::new(&formats);
    let (mut held, mut outcomes) = (Vec::new(), Vec::new());
    for (sample, encoded) in (0..).zip(pictures) {
        let id = SampleId { seed: 3, epoch: 1, sample };
        let encoded = Encoded::from(&encoded[..]);
        let mut programs = Vec::new();
        let expected = preparer.prepare_tensors(encoded, id);
        let (expected, exported) = match (expected, preparer.export(encoded, id, &mut programs)) {
            (Ok(expected), Ok(exported)) => (expected, exported),
            (Err(_), Err(_)) => {
                outcomes.push(Outcome::Refused);
                continue;
            }
            (expected, exported) => panic!("{expected:?} but {exported:?}"),
        };
        if let Err(reason) = exported {
            outcomes.push(Outcome::NotExported(reason));
            continue;
        }
        let expected = expected.into_iter().enumerate().flat_map(|(column, pictures)| {
            let place = move |(index, picture)| ((column, index), picture);
            pictures.into_iter().enumerate().map(place)
        });
        let expected: Vec<_> = expected.collect();
        assert_eq!(programs.len(), expected.len(), "a program for each picture");
        batch.begin_sample();
        for (program, (place, expected)) in programs.into_iter().zip(expected) {
            assert_eq!((program.column, program.index), place);
            assert_eq!(program.tensor, (expected.spec.height, expected.spec.width));
            if expected.spec.height * expected.spec.width > pixels_max {
                outcomes.push(Outcome::Large);
                continue;
            }
            let (memory, source) = upload(compute, encoded, &program);
            let tensor = compute.allocate(expected.data.len()).expect("the kernels run");
            let place = TensorLocation { column: program.column, offset: tensor.address() };
            batch.add(&source, &ConvertedProgram::default().convert(&program), place);
            held.push((memory, tensor, expected, program));
        }
    }
    batch.run(compute, 0, &vec![0; formats.len()]).expect("the kernels run");
    for (_, tensor, expected, program) in &held {
        let mut got = vec![0; expected.data.len()];
        compute.download(tensor, 0, &mut got).expect("the kernels run");
        let first = got.iter().zip(&expected.data).position(|(got, expected)| got != expected);
        outcomes.push(first.map_or(Outcome::Equal, |first| {
            Outcome::Different(format!(
                "byte {first} of {} is {}, not {}; {:?} {:?} {:?} {:?}",
                got.len(),
                got[first],
                expected.data[first],
                expected.spec,
                program.stages,
                program.changes,
                program.erasures,
            ))
        }));
    }
    outcomes
}
