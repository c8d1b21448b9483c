//! Decodes a region of a JPEG to a PPM file: `decode_region IN.jpg X Y WIDTH HEIGHT OUT.ppm`.

use meetpoint_jpeg::{DecodeOptions, Decoder, Picture, Region};
use std::error::Error;
use std::fs::File;
use std::io::Write;

const USAGE: &str = "usage: decode_region IN.jpg X Y WIDTH HEIGHT OUT.ppm";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [input, x, y, width, height, output] = &arguments[..] else { return Err(USAGE.into()) };
    let region =
        Region { x: x.parse()?, y: y.parse()?, width: width.parse()?, height: height.parse()? };
    let file = std::fs::read(input)?;
    let mut picture = Picture::default();
    Decoder::new().decode_into(
        (&file).into(),
        Some(region),
        &DecodeOptions::default(),
        &mut picture,
    )?;
    let mut ppm = File::create(output)?;
    write!(ppm, "P6\n{} {}\n255\n", picture.width, picture.height)?;
    ppm.write_all(&picture.pixels)?;
    Ok(())
}
