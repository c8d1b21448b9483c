//! `run` with every mode of `decode`: the same bits at both ends.

use super::jobs::{check_run, job};
use super::support::run;
use serde_json::{Value, json};
use std::path::Path;

/// Tags of a TIFF.
const WIDTH: u16 = 256;
const HEIGHT: u16 = 257;
const BITS: u16 = 258;
const COMPRESSION: u16 = 259;
const PHOTOMETRIC: u16 = 262;
const OFFSETS: u16 = 273;
const SAMPLES: u16 = 277;
const EXTRA: u16 = 338;
const FORMAT: u16 = 339;

/// An uncompressed TIFF of pixels of `bits` a sample; floats where they are 32.
fn tiff((width, height): (u32, u32), samples: u32, bits: u32, pixels: &[u8]) -> Vec<u8> {
    let mut file = b"II*\0".to_vec();
    let end = 8 + pixels.len() as u32;
    file.extend(end.to_le_bytes());
    file.extend(pixels);
    // Several numbers of a tag lie behind the directory.
    let format = if bits == 32 { 3 } else { 1 };
    let mut tags = vec![
        (WIDTH, vec![width]),
        (HEIGHT, vec![height]),
        (BITS, vec![bits; samples as usize]),
        (COMPRESSION, vec![1]),
        (PHOTOMETRIC, vec![if samples == 1 { 1 } else { 2 }]),
        (OFFSETS, vec![8]),
        (SAMPLES, vec![samples]),
    ];
    if samples == 4 {
        tags.push((EXTRA, vec![2]));
    }
    tags.push((FORMAT, vec![format; samples as usize]));
    let behind = end + 2 + 12 * tags.len() as u32 + 4;
    let mut values = Vec::new();
    file.extend((tags.len() as u16).to_le_bytes());
    for (tag, numbers) in tags {
        file.extend(tag.to_le_bytes());
        file.extend(4u16.to_le_bytes());
        file.extend((numbers.len() as u32).to_le_bytes());
        if let [number] = numbers[..] {
            file.extend(number.to_le_bytes());
            continue;
        }
        file.extend((behind + values.len() as u32).to_le_bytes());
        values.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    }
    file.extend([0; 4]);
    file.extend(values);
    file
}

/// A picture without regularities.
fn picture(seed: u32, samples: u32, bits: u32) -> Vec<u8> {
    let (width, height) = (60 + seed % 7, 52 + seed % 5);
    let mut state = seed.wrapping_mul(0x9e37_79b9) | 1;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 8
    };
    let pixels: Vec<u8> = (0..width * height * samples)
        .flat_map(|_| match bits {
            8 => vec![(next() >> 4) as u8],
            16 => (next() as u16).to_le_bytes().to_vec(),
            _ => (next() as f32 / 1000.0 - 5.0).to_le_bytes().to_vec(),
        })
        .collect();
    tiff((width, height), samples, bits, &pixels)
}

pub(crate) fn packed(folder: &Path, samples: u32, bits: u32) {
    for seed in 0..48 {
        let class = folder.join("pictures").join(["cat", "dog"][seed as usize % 2]);
        std::fs::create_dir_all(&class).expect("a folder");
        let file = class.join(format!("{seed}.tif"));
        std::fs::write(file, picture(seed, samples, bits)).expect("a file");
    }
    run(folder, &["pack", "pictures", "small.set", "--force"]).success();
}

fn job_of(mode: &str, strategy: &str) -> String {
    let decode = "name = \"decode\"\n";
    job(strategy, 1, "").replace(decode, &format!("{decode}mode = \"{mode}\"\n"))
}

#[test]
fn every_mode_is_prepared_with_the_same_bits_at_both_ends() {
    for (mode, samples, bits, dtype, channels) in [
        ("gray", 3, 8, "uint8", 1),
        ("rgba", 4, 8, "uint8", 4),
        ("gray16", 1, 16, "uint16", 1),
        ("rgb16", 3, 16, "uint16", 3),
        ("float", 1, 32, "float32", 1),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        packed(folder, samples, bits);
        for strategy in ["device-only", "mte"] {
            let job = format!("columns = [\"image\"]\n{}", job_of(mode, strategy));
            std::fs::write(folder.join("job.toml"), job).expect("a job file");
            let done = run(folder, &["run", "job.toml", "--json"]).success();
            let report: Value = serde_json::from_str(&done.stdout).expect("a JSON document");
            check_run(&report["runs"][0]);
            let image = &report["job"]["columns"][0];
            assert_eq!(image["shape"], json!([48, 48, channels]), "{mode}");
            assert_eq!(image["dtype"], dtype, "{mode}");
        }
    }
}

#[test]
fn a_file_of_other_numbers_than_the_mode_has_is_named_with_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    packed(folder, 3, 8);
    std::fs::write(folder.join("job.toml"), job_of("rgb16", "host-only")).expect("a job file");
    run(folder, &["run", "job.toml"]).refused(&[
        ".tif",
        "TIFF of RGB of 3 unsigned integers of 8 bits a pixel",
        "mode \"rgb16\"",
        "change `mode` of `decode`",
    ]);
}
