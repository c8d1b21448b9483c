//! What decoding a JPEG at a lower resolution costs and gains, on the pictures of a folder:
//! `fast-modes DIR [SIDE, 224]`.
//!
//! Each picture is cropped at random and resized to SIDE x SIDE (with 224 the recipe of the bench's
//! rows named "sample"), exactly and in each fast mode, with equal random parameters. Errors are
//! over all values.

use anyhow::Context;
use meetpoint_format::recipe::Recipe;
use meetpoint_jpeg_benches::{jpeg_files, thread_ns};
use meetpoint_kernels::{Cpu, SampleId, SamplePreparer};

/// Modes by the keys of `decode`; the first is exact.
const MODES: [(&str, &str); 2] = [("exact", ""), ("scaled", "scaled = true\n")];

/// Times that every picture is prepared, each with another crop.
const SWEEPS: u32 = 3;

/// A mode and its measurements.
struct Mode {
    name: &'static str,
    preparer: SamplePreparer,
    out: Vec<u8>,
    ns: u64,
    worst: u8,
    sum: u64,
    squares: u64,
}

fn main() -> anyhow::Result<()> {
    let dir = std::env::args().nth(1).context("give a folder with JPEGs")?;
    let side: u32 = std::env::args().nth(2).map_or(Ok(224), |side| side.parse())?;
    let files = jpeg_files(dir.as_ref())?;
    let cpu = Cpu::detect();
    let mut modes = Vec::new();
    for (name, keys) in MODES {
        let recipe = Recipe::from_toml(&format!(
            "[[operation]]\nname = \"decode\"\n{keys}\
             [[operation]]\nname = \"random_resized_crop\"\nsize = {side}\n"
        ))?;
        let out = vec![0; recipe.output().map_or(0, |spec| spec.bytes())];
        let preparer = SamplePreparer::new(&recipe, cpu);
        modes.push(Mode { name, preparer, out, ns: 0, worst: 0, sum: 0, squares: 0 });
    }
    let mut values = 0;
    for sweep in 0..=SWEEPS {
        for (sample, (path, file)) in (0..).zip(&files) {
            let id = SampleId { seed: 7, epoch: sweep, sample };
            for mode in &mut modes {
                let before = thread_ns();
                mode.preparer
                    .prepare(file.into(), id, &mut mode.out, &mut || ())
                    .with_context(|| path.display().to_string())?;
                // The first sweep is a warm-up.
                mode.ns += if sweep == 0 { 0 } else { thread_ns() - before };
            }
            let (exact, others) = modes.split_first_mut().context("there are modes")?;
            values += exact.out.len() as u64;
            for mode in others {
                for (exact, fast) in exact.out.iter().zip(&mode.out) {
                    let error = exact.abs_diff(*fast);
                    mode.worst = mode.worst.max(error);
                    mode.sum += u64::from(error);
                    mode.squares += u64::from(error) * u64::from(error);
                }
            }
        }
    }
    println!("{} pictures, {}, {} crops each", files.len(), cpu.name(), SWEEPS + 1);
    println!("{:32} {:>9} {:>8} {:>8} {:>8}", "", "x exact", "max", "mean", "PSNR dB");
    let exact = modes.first().map_or(0, |mode| mode.ns) as f64;
    for mode in &modes {
        let mean = mode.sum as f64 / values as f64;
        let psnr = match mode.squares {
            0 => f64::INFINITY,
            squares => 10.0 * (255.0 * 255.0 * values as f64 / squares as f64).log10(),
        };
        let ratio = exact / mode.ns as f64;
        println!("{:32} {ratio:>9.2} {:>8} {mean:>8.3} {psnr:>8.1}", mode.name, mode.worst);
    }
    Ok(())
}
