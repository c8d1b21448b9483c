//! Compares our JPEG decoder with libjpeg-turbo, pixel by pixel, on the files of a folder.
//!
//! Whole pictures and random regions of each; the exit code is 1 where anything differs. Files that
//! libjpeg refuses or warns of are counted, and ours must refuse them too.

use anyhow::ensure;
use clap::Parser;
use meetpoint_format::random::{DrawKey, Draws};
use meetpoint_jpeg_benches::libjpeg::{Mode, Turbo, TurboError, VERSION};
use meetpoint_jpeg_benches::{instruction_set, jpeg_files};
use meetpoint_kernels::decode::Decoder;
use meetpoint_kernels::{Picture, Region};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Maximum number of differing files that are named.
const NAMED_MAX: u64 = 20;

#[derive(Parser)]
#[command(about = "Compares our JPEG decoder with libjpeg-turbo, pixel by pixel")]
struct Arguments {
    /// Folders or files; every JPEG at or below them is compared.
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Random regions of each picture.
    #[arg(long, default_value_t = 50)]
    regions: u32,
    /// Seed of the regions.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Instruction set of our kernels; the best one of this machine by default.
    #[arg(long)]
    cpu: Option<String>,
}

/// Counts so far.
#[derive(Default)]
struct Totals {
    files: u64,
    equal_files: u64,
    /// Refused by both.
    refused: u64,
    /// Refused by only one.
    disputed: u64,
    regions: u64,
    values: u64,
    wrong_values: u64,
    worst: u8,
    named: u64,
}

#[expect(clippy::print_stdout, reason = "the report")]
fn main() -> anyhow::Result<ExitCode> {
    let arguments = Arguments::parse();
    let cpu = instruction_set(arguments.cpu.as_deref())?;
    println!("{} kernels against libjpeg-turbo {VERSION}", cpu.name());
    let mut totals = Totals::default();
    let (mut turbo, mut decoder) = (Turbo::new(), Decoder::new(cpu));
    for path in &arguments.paths {
        for (path, encoded) in jpeg_files(path)? {
            let sample = totals.files;
            let Arguments { regions, seed, .. } = arguments;
            let key = DrawKey { seed, epoch: 0, sample, operation: 0 };
            let mut file = File { path: &path, encoded: &encoded, totals: &mut totals };
            file.compare(&mut turbo, &mut decoder, &mut Draws::new(key), regions);
        }
    }
    let Totals { files, equal_files, refused, disputed, regions, values, wrong_values, .. } =
        totals;
    println!(
        "files       {files}, {equal_files} equal, {refused} refused by both, {disputed} by one"
    );
    println!("regions     {regions}");
    println!("values      {values}");
    println!("mismatches  {wrong_values}, by at most {}", totals.worst);
    ensure!(files > 0, "no file was compared");
    let same = wrong_values == 0 && disputed == 0;
    Ok(if same { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// One file under test.
struct File<'a> {
    path: &'a Path,
    encoded: &'a [u8],
    totals: &'a mut Totals,
}

impl File<'_> {
    fn compare(
        &mut self,
        turbo: &mut Turbo,
        decoder: &mut Decoder,
        draws: &mut Draws,
        regions: u32,
    ) {
        self.totals.files += 1;
        let (mut theirs, mut ours) = (Picture::default(), Picture::default());
        let their_result = turbo.decode(self.encoded, Mode::default(), &mut theirs);
        let our_result = decoder.decode_into(self.encoded.into(), None, &mut ours);
        match (their_result, our_result) {
            (Ok(()), Ok(())) => {}
            (Err(_), Err(_)) => {
                self.totals.refused += 1;
                return;
            }
            (Ok(()), Err(ours)) => return self.dispute(&format!("ours refuses it: {ours}")),
            (Err(theirs @ TurboError::Unsupported), Ok(())) => {
                return self.dispute(&format!("ours decodes it; {theirs}"));
            }
            (Err(theirs), Ok(())) => return self.dispute(&format!("ours decodes it; {theirs}")),
        }
        if (ours.width, ours.height) != (theirs.width, theirs.height) {
            return self.dispute("the sizes differ");
        }
        let before = self.totals.wrong_values;
        let whole = Region { x: 0, y: 0, width: theirs.width, height: theirs.height };
        self.count(&ours, &theirs, whole);
        for number in 0..regions {
            let region = region(draws, number, theirs.width, theirs.height);
            self.totals.regions += 1;
            match decoder.decode_into(self.encoded.into(), Some(region), &mut ours) {
                Ok(()) => self.count(&ours, &theirs, region),
                Err(error) => return self.dispute(&format!("{region:?}: {error}")),
            }
        }
        self.totals.equal_files += u64::from(self.totals.wrong_values == before);
    }

    /// Compares a region with the same part of the whole picture.
    fn count(&mut self, ours: &Picture, theirs: &Picture, region: Region) {
        let row_bytes = region.width as usize * 3;
        let mut first = None;
        let (mut wrong, mut worst) = (0, 0);
        for (y, row) in ours.pixels.chunks_exact(row_bytes).enumerate() {
            let from = (region.y as usize + y) * theirs.width as usize + region.x as usize;
            let expected = &theirs.pixels[from * 3..][..row_bytes];
            if row == expected {
                continue;
            }
            for (x, (got, expected)) in row.iter().zip(expected).enumerate() {
                if got != expected {
                    wrong += 1;
                    worst = worst.max(got.abs_diff(*expected));
                    first = first.or(Some((x / 3, y, x % 3, *got, *expected)));
                }
            }
        }
        self.totals.values += ours.pixels.len() as u64;
        self.totals.wrong_values += wrong;
        self.totals.worst = self.totals.worst.max(worst);
        if let Some((x, y, channel, got, expected)) = first {
            self.name(&format!(
                "{region:?}: {wrong} values differ by up to {worst}, first at x {x}, y {y}, \
                 channel {channel}: {got}, libjpeg {expected}"
            ));
        }
    }

    fn dispute(&mut self, what: &str) {
        self.totals.disputed += 1;
        self.name(what);
    }

    #[expect(clippy::print_stdout, reason = "the report")]
    fn name(&mut self, what: &str) {
        self.totals.named += 1;
        match self.totals.named {
            ..=NAMED_MAX => println!("{}: {what}", self.path.display()),
            n if n == NAMED_MAX + 1 => println!("... and more, not listed"),
            _ => {}
        }
    }
}

/// A random region: usually any rectangle, sometimes a single pixel, a row, a column, or a
/// rectangle at an edge.
fn region(draws: &mut Draws, number: u32, width: u32, height: u32) -> Region {
    let span = |draws: &mut Draws, whole: u32, short: bool| {
        let length =
            if short { 1 + draws.up_to(whole.min(3) - 1) } else { 1 + draws.up_to(whole - 1) };
        let from = match draws.up_to(5) {
            0 => 0,
            1 => whole - length,
            _ => draws.up_to(whole - length),
        };
        (from, length)
    };
    let (x, width) = span(draws, width, number % 5 == 1 || number % 5 == 3);
    let (y, height) = span(draws, height, number % 5 == 2 || number % 5 == 3);
    Region { x, y, width, height }
}
