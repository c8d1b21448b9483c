//! Does what programs in other languages ask of the kernels, so that they can check the results.
//!
//! A request is a line on standard input, words parted by tabs:
//!
//! ```text
//! decode  FILE  x y width height                              (0 0 0 0 for the whole picture)
//! resize  FILE  left top right bottom  width height  bilinear|bicubic  antialias (0 or 1)
//! ```
//!
//! The answer on standard output: width and height, 32 bits each, little-endian, and then the
//! pixels, RGB; for an error two zeros, a length of 32 bits, and the message.

use anyhow::{Context, bail, ensure};
use meetpoint_format::recipe::Interpolation;
use meetpoint_kernels::decode::Decoder;
use meetpoint_kernels::resize::{Filter, Resize, Resizer};
use meetpoint_kernels::view::View;
use meetpoint_kernels::{Cpu, Picture, Region};
use std::io::{BufRead, Write};

/// What is reused from request to request.
struct Server {
    decoder: Decoder,
    resizer: Resizer,
    /// The file of the last request, decoded whole: requests come in runs.
    decoded: Option<(String, Picture)>,
    out: Picture,
}

fn main() -> anyhow::Result<()> {
    let name = std::env::args().nth(1);
    let wanted = |cpu: &Cpu| name.as_deref().is_none_or(|name| name == cpu.name());
    let cpu = Cpu::ALL.into_iter().rev().find(|cpu| wanted(cpu) && cpu.is_available());
    let mut server = Server {
        decoder: Decoder::default(),
        resizer: Resizer::new(cpu.context("this machine has no such instruction set")?),
        decoded: None,
        out: Picture::default(),
    };
    let mut answers = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        match server.request(&line.split('\t').collect::<Vec<_>>()) {
            Ok(()) => {
                let Picture { width, height, pixels } = &server.out;
                answers.write_all(&width.to_le_bytes())?;
                answers.write_all(&height.to_le_bytes())?;
                answers.write_all(pixels)?;
            }
            Err(error) => {
                let message = format!("{error:#}");
                answers.write_all(&[0; 8])?;
                answers.write_all(&(message.len() as u32).to_le_bytes())?;
                answers.write_all(message.as_bytes())?;
            }
        }
        answers.flush()?;
    }
    Ok(())
}

impl Server {
    fn request(&mut self, words: &[&str]) -> anyhow::Result<()> {
        match words {
            ["decode", file, numbers @ ..] => {
                let numbers = numbers.iter().map(|word| word.parse());
                let numbers: Vec<u32> = numbers.collect::<Result<_, _>>()?;
                let &[x, y, width, height] = numbers.as_slice() else { bail!("four numbers") };
                let region = (width > 0).then_some(Region { x, y, width, height });
                let encoded = std::fs::read(file)?;
                Ok(self.decoder.decode_into(&encoded, region, &mut self.out)?)
            }
            ["resize", file, left, top, right, bottom, width, height, filter, antialias] => {
                let interpolation = match *filter {
                    "bilinear" => Interpolation::Bilinear,
                    "bicubic" => Interpolation::Bicubic,
                    other => bail!("no filter {other}"),
                };
                let filter = Filter { interpolation, antialias: *antialias == "1" };
                let corners = [left.parse()?, top.parse()?, right.parse()?, bottom.parse()?];
                let (width, height) = (width.parse()?, height.parse()?);
                ensure!(width > 0 && height > 0, "the result would be empty");
                let resize = Resize { width, height, filter, source: Some(corners) };
                self.resize(file, resize)
            }
            _ => bail!("no such request"),
        }
    }

    fn resize(&mut self, file: &str, resize: Resize) -> anyhow::Result<()> {
        if self.decoded.as_ref().is_none_or(|(name, _)| name != file) {
            let mut picture = Picture::default();
            self.decoder.decode_into(&std::fs::read(file)?, None, &mut picture)?;
            self.decoded = Some((file.to_owned(), picture));
        }
        let (_, picture) = self.decoded.as_ref().context("it was decoded above")?;
        self.resizer.resize(View::whole(picture), resize, &mut self.out, &mut || ());
        Ok(())
    }
}
