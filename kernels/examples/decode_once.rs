//! Decodes files once, so that a profiler can count the instructions.
//!
//! ```sh
//! cargo build --release -p meetpoint-kernels --example decode_once
//! valgrind --tool=callgrind --callgrind-out-file=/dev/null \
//!     target/release/examples/decode_once whole PHOTOS/*.jpg
//! ```

use meetpoint_format::recipe::Recipe;
use meetpoint_jpeg::{Form, to_form};
use meetpoint_kernels::decode::{Decoder, Encoded};
use meetpoint_kernels::{Cpu, Picture, SampleId, SamplePreparer};

/// The operation on each file.
const MODES: &str = "the first argument is one of whole, sample, pack-fast, pack-compact";

const RECIPE: &str = "
    [[operation]]
    name = \"decode\"
    [[operation]]
    name = \"random_resized_crop\"
    size = 224
";

#[expect(clippy::print_stdout, reason = "the sum shows that the work was done")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let mode = arguments.next().ok_or(MODES)?;
    let mut decoder = Decoder::new(Cpu::detect());
    let mut preparer = SamplePreparer::new(&Recipe::from_toml(RECIPE)?, Cpu::detect());
    let mut picture = Picture::default();
    let mut sum = 0;
    for (sample, path) in (0..).zip(arguments) {
        let file = std::fs::read(path)?;
        sum += match mode.as_str() {
            "whole" => {
                decoder.decode_into((&file).into(), None, &mut picture)?;
                picture.pixels.iter().map(|value| usize::from(*value)).sum()
            }
            "sample" => {
                let id = SampleId { seed: 1, epoch: 0, sample };
                let tensor = preparer.prepare_tensor(Encoded::from(&file), id)?;
                tensor.data.iter().map(|value| usize::from(*value)).sum()
            }
            "pack-fast" => to_form(&file, Form::Fast)?.len(),
            "pack-compact" => to_form(&file, Form::Compact)?.len(),
            _ => return Err(MODES.into()),
        };
    }
    println!("{sum}");
    Ok(())
}
