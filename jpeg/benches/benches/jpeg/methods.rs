//! How methods are measured: interleaved, by thread CPU time, medians over sweeps.

use crate::sets::{Picture, Set};
use anyhow::Context;
use crc_fast::{CrcAlgorithm, Digest};
use meetpoint_jpeg_benches::{Report, median, thread_ns};
use std::path::Path;

/// Maximum number of skipped pictures that are named.
const NAMED_MAX: usize = 5;

/// An operation on a picture, by one implementation.
pub(crate) struct Method {
    /// The operation, a colon, and the implementation.
    pub(crate) name: &'static str,
    run: Box<Run>,
}

/// Takes a picture, the number of the sweep (which selects the crop), and the output buffer. Work
/// that only serves the check is left to the caller.
type Run = dyn FnMut(&Picture, u32, &mut Vec<u8>) -> anyhow::Result<()>;

impl Method {
    pub(crate) fn new(
        name: &'static str,
        run: impl FnMut(&Picture, u32, &mut Vec<u8>) -> anyhow::Result<()> + 'static,
    ) -> Self {
        Self { name, run: Box::new(run) }
    }
}

/// The results for a set.
pub(crate) struct Measured {
    pub(crate) name: &'static str,
    /// Microseconds an image, the median over sweeps of the mean over pictures.
    pub(crate) us: f64,
    /// CRC-32 of the results of the first sweep, one after another.
    pub(crate) crc: u32,
}

/// Removes the pictures that some method does not decode, and prints their names.
pub(crate) fn retain_decodable(set: &mut Set, methods: &mut [Method], report: &mut Report) {
    let (mut out, mut left_out, before) = (Vec::new(), Vec::new(), set.pictures.len());
    set.pictures.retain(|picture| {
        let refused = methods
            .iter_mut()
            .find_map(|method| Some((method.name, (method.run)(picture, 0, &mut out).err()?)));
        if let Some((name, error)) = &refused {
            left_out.push(format!("left out: {}: {name}: {error:#}", picture.name));
        }
        refused.is_none()
    });
    if !left_out.is_empty() {
        report.note(format!("{} of {before} pictures are left out", left_out.len()));
        left_out.into_iter().take(NAMED_MAX).for_each(|text| report.note(text));
    }
}

/// Measures every method on every picture.
pub(crate) fn measure(
    set: &Set,
    mut methods: Vec<Method>,
    sweeps: u32,
) -> anyhow::Result<Vec<Measured>> {
    anyhow::ensure!(!set.pictures.is_empty(), "no picture is left to measure");
    // No method is timed while it allocates its result.
    let mut outs = vec![Vec::new(); methods.len()];
    let mut digests: Vec<_> =
        methods.iter().map(|_| Digest::new(CrcAlgorithm::Crc32IsoHdlc)).collect();
    for picture in &set.pictures {
        for ((method, out), digest) in methods.iter_mut().zip(&mut outs).zip(&mut digests) {
            run(method, picture, 0, out)?;
            digest.update(out);
        }
    }
    let mut times = vec![Vec::new(); methods.len()];
    for sweep in 0..sweeps {
        let mut sums = vec![0; methods.len()];
        for picture in &set.pictures {
            for (at, method) in methods.iter_mut().enumerate() {
                let before = thread_ns();
                run(method, picture, sweep, &mut outs[at])?;
                sums[at] += thread_ns() - before;
                std::hint::black_box(&outs[at]);
            }
        }
        for (times, sum) in times.iter_mut().zip(sums) {
            times.push(sum as f64 / 1e3 / set.pictures.len() as f64);
        }
    }
    let results = methods.iter().zip(&times).zip(digests);
    Ok(results
        .map(|((method, times), digest)| Measured {
            name: method.name,
            us: median(times),
            crc: digest.finalize() as u32,
        })
        .collect())
}

fn run(
    method: &mut Method,
    picture: &Picture,
    sweep: u32,
    out: &mut Vec<u8>,
) -> anyhow::Result<()> {
    (method.run)(picture, sweep, out).with_context(|| format!("{}: {}", method.name, picture.name))
}

/// Writes the results of a method for every picture in the first sweep.
pub(crate) fn write_results(set: &Set, mut method: Method, path: &Path) -> anyhow::Result<()> {
    let (mut all, mut out) = (Vec::new(), Vec::new());
    for picture in &set.pictures {
        run(&mut method, picture, 0, &mut out)?;
        all.extend_from_slice(&out);
    }
    std::fs::write(path, all).with_context(|| format!("failed to write {}", path.display()))
}
