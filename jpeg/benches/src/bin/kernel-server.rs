//! Runs kernels on request of programs in other languages, which check the results.
//!
//! A request is a line on standard input, fields separated by tabs:
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
use meetpoint_kernels::{Cpu, Picture, Region, probe};
use std::io::{BufRead, Write};

/// Buffers that are reused between requests.
struct Server {
    decoder: Decoder,
    resizer: Resizer,
    out: Picture,
}

fn main() -> anyhow::Result<()> {
    let name = std::env::args().nth(1);
    let wanted = |cpu: &Cpu| name.as_deref().is_none_or(|name| name == cpu.name());
    let cpu = Cpu::ALL.into_iter().rev().find(|cpu| wanted(cpu) && cpu.is_available());
    let cpu = cpu.context("this machine has no such instruction set")?;
    let mut server =
        Server { decoder: Decoder::new(cpu), resizer: Resizer::new(cpu), out: Picture::default() };
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
                Ok(self.decoder.decode_into(encoded.as_slice().into(), region, &mut self.out)?)
            }
            ["resize", file, left, top, right, bottom, width, height, filter, antialias] => {
                let Some(interpolation) = Interpolation::from_name(filter) else {
                    bail!("no filter {filter}")
                };
                let filter = Filter { interpolation, antialias: *antialias == "1" };
                let corners = [left.parse()?, top.parse()?, right.parse()?, bottom.parse()?];
                let (width, height) = (width.parse()?, height.parse()?);
                ensure!(width > 0 && height > 0, "the result would be empty");
                self.resize(file, corners, (width, height), filter)
            }
            _ => bail!("no such request"),
        }
    }

    fn resize(
        &mut self,
        file: &str,
        corners: [f32; 4],
        (width, height): (u32, u32),
        filter: Filter,
    ) -> anyhow::Result<()> {
        let encoded = std::fs::read(file)?;
        let info = probe(&encoded)?;
        let (from_width, from_height) = (info.width, info.height);
        let source = Some(corners);
        let resize =
            Resize { from_width, from_height, source, width, height, filter, window: None };
        let region = self.resizer.begin(&resize);
        let bytes = width as usize * height as usize * 3;
        self.out = Picture { width, height, pixels: vec![0; bytes] };
        let (resizer, out) = (&mut self.resizer, &mut self.out.pixels);
        self.decoder.decode_stripes(encoded.as_slice().into(), region, &mut |stripe| {
            resizer.feed(stripe, &mut || (), &mut |y, row| {
                let pixels = &mut out[y * width as usize * 3..][..width as usize * 3];
                for (x, pixel) in pixels.chunks_exact_mut(3).enumerate() {
                    pixel.copy_from_slice(&[0, 1, 2].map(|plane| row.planes[plane][x]));
                }
            });
        })?;
        Ok(())
    }
}
