//! JPEG decoding and the subsequent operations, compared with libjpeg-turbo on the pictures of a
//! folder.
//!
//! Each picture is processed by all methods, one after another, before the next picture; thread CPU
//! time is counted, and the median over sweeps printed. Options, beside those of every bench:
//!
//! ```text
//! --dir DIR        pictures (all JPEGs at or below); by default generated ones
//! --cpu NAME       instruction set of the kernels; by default the best available
//! --sweeps N       times that everything is measured, each with other crops; 5
//! --pictures N     maximum number of pictures
//! --sets given     leaves out the set that is encoded from the given pictures
//! --methods TEXT   measures only methods whose names contain it
//! --boxes FILE     writes the random crops, for peers in other languages
//! --samples FILE   writes the results of our sample method in the first sweep, in order
//! ```

mod methods;
mod ours;
mod sets;
mod simd;
#[cfg(feature = "libjpeg-turbo")]
mod turbo;

use anyhow::{Context, ensure};
use meetpoint_jpeg_benches::{Options, Report, Row, Target, instruction_set};
use meetpoint_kernels::Cpu;
use methods::{Measured, Method};
use sets::Set;

/// One line of the result: how many times as fast as the peer.
struct Comparison {
    ours: &'static str,
    peer: &'static str,
    /// Minimum ratio for the given files and for the 4:2:0 files at quality 90; `None` without a
    /// target.
    targets: [Option<f64>; 2],
}

const fn compare(ours: &'static str, peer: &'static str, targets: [Option<f64>; 2]) -> Comparison {
    Comparison { ours, peer, targets }
}

const A: &str = "sample: libjpeg whole + resize (A)";
const B: &str = "sample: libjpeg region + resize (B)";

/// A comparison counts when both its methods were measured.
const COMPARISONS: &[Comparison] = &[
    compare("whole: ours", "whole: libjpeg", [Some(1.6), Some(1.9)]),
    compare("region: ours", "region: libjpeg", [None; 2]),
    compare("region: ours, entry points", "region: libjpeg", [Some(2.3), Some(2.6)]),
    compare("region: ours, fast", "region: libjpeg", [None; 2]),
    compare("region: ours, compact", "region: libjpeg", [None; 2]),
    compare("sample: ours", A, [None; 2]),
    compare("sample: ours, entry points", A, [Some(2.8), Some(3.3)]),
    compare("sample: ours, entry points", B, [Some(2.2), Some(2.6)]),
    compare("sample: ours, fast", A, [Some(7.0), Some(5.0)]),
    compare("sample: ours, compact", A, [None; 2]),
    compare("entropy: ours, fast", "entropy: libjpeg", [Some(15.0), None]),
    compare("entropy: ours, compact", "entropy: libjpeg", [Some(3.5), None]),
];

/// Bytes stored for a file: name, maximum share of the file's bytes, and what they are.
type Stored = (&'static str, Option<f64>, fn(&sets::Picture) -> &[u8]);

const STORED: &[Stored] = &[
    ("entry points, one a row", Some(0.004), |picture| &picture.entry_points),
    ("fast", Some(1.7), |picture| &picture.fast),
    ("compact", Some(1.0), |picture| &picture.compact),
];

fn main() -> anyhow::Result<()> {
    let own =
        ["dir", "cpu", "sweeps", "pictures", "sets", "methods", "boxes", "samples", simd::CHILD];
    let options = Options::from_args(&own)?;
    if let Some(path) = options.own.get(simd::CHILD) {
        return simd::child(path.as_ref());
    }
    let number = |name: &str, otherwise: u32| {
        options.own.get(name).map_or(Ok(otherwise), |text| text.parse())
    };
    let sweeps = number("sweeps", if options.quick { 1 } else { 5 }).context("--sweeps")?;
    let pictures_max = number("pictures", u32::MAX).context("--pictures")?;
    ensure!(sweeps > 0, "--sweeps must be 1 or more");
    let cpu = instruction_set(options.own.get("cpu").map(String::as_str))?;
    let mut report = Report::new("jpeg", &options);
    report.note(format!("kernels for {}; one thread; {sweeps} sweeps", cpu.name()));
    let count = if options.quick { 2 } else { 60 };
    let dir = options.path("dir");
    let mut given = sets::given(dir.as_deref(), pictures_max, count)?;
    let only_given = options.own.get("sets").is_some_and(|sets| sets == "given");
    let mut sets = if only_given { Vec::new() } else { sets::others(&given)? };
    let wanted = options.own.get("methods").map_or("", String::as_str);
    methods::retain_decodable(&mut given, &mut methods(cpu, "")?, &mut report);
    if let Some(path) = options.path("boxes") {
        sets::write_boxes(&given, sweeps, &path)?;
    }
    if let Some(path) = options.path("samples") {
        methods::write_results(&given, ours::sample(cpu)?, &path)?;
    }
    simd::note(&given, &mut report)?;
    sets.insert(0, given);
    for set in &sets {
        measure(set, methods(cpu, wanted)?, sweeps, &mut report)?;
    }
    report.finish(&options)
}

/// All methods, ours and others', whose names contain a text.
fn methods(cpu: Cpu, wanted: &str) -> anyhow::Result<Vec<Method>> {
    let ours = ours::methods(cpu)?;
    #[cfg(feature = "libjpeg-turbo")]
    let ours: Vec<Method> = ours.into_iter().chain(turbo::methods()).collect();
    Ok(ours.into_iter().filter(|method| method.name.contains(wanted)).collect())
}

fn measure(
    set: &Set,
    methods: Vec<Method>,
    sweeps: u32,
    report: &mut Report,
) -> anyhow::Result<()> {
    let measured = methods::measure(set, methods, sweeps)?;
    let megapixels = set.pixels() as f64 / set.pictures.len() as f64 / 1e6;
    report.note(format!(
        "{}: {} pictures, {:.1} KB and {megapixels:.3} Mpixel on average",
        set.name,
        set.pictures.len(),
        set.bytes() as f64 / set.pictures.len() as f64 / 1e3,
    ));
    for Measured { name, us, crc } in &measured {
        let per_second = 1e6 / us;
        report.note(format!(
            "{}: {name}: {per_second:.0} images/s, {:.1} Mpixel/s, CRC {crc:08x}",
            set.name,
            per_second * megapixels,
        ));
        report.row(Row::alone(format!("{}: {name}", set.name), *us, "us"));
    }
    let find = |name: &str| measured.iter().find(|measured| measured.name == name);
    for (name, most, of) in STORED {
        let row = Row::alone(format!("{}: bytes: {name}", set.name), set.bytes_of(*of) as f64, "B")
            .against("file", set.bytes() as f64);
        report.row(match most {
            Some(most) => row.target(Target::RatioAtMost(*most)),
            None => row,
        });
    }
    for Comparison { ours, peer, targets } in COMPARISONS {
        let (Some(ours), Some(peer)) = (find(ours), find(peer)) else { continue };
        let case = format!("{}: {} / {}", set.name, ours.name, peer.name);
        let row = Row::alone(case, 1e6 / ours.us, "img/s").against("peer", 1e6 / peer.us);
        report.row(match &targets[usize::from(set.name != sets::GIVEN)] {
            Some(least) => row.target(Target::RatioAtLeast(*least)),
            None => row,
        });
    }
    Ok(())
}
