//! Sound and signals: packed from folders, run with the same bits at both ends, shown, profiled and
//! prepared; damaged recordings are named.

use super::jobs::{SAMPLES, check_run, job};
use super::support::run;
use serde_json::{Value, json};
use std::path::Path;

/// A WAV of 16 bits and one channel.
pub(crate) fn wav(seed: u32, sample_rate: u32, samples: u32) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9) | 1;
    let values: Vec<u8> = (0..samples)
        .flat_map(|at| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let tone = (f64::from(at) * (0.01 + f64::from(seed) / 500.0)).sin() * 9000.0;
            ((tone + f64::from(state >> 20)) as i16).to_le_bytes()
        })
        .collect();
    let bytes = values.len() as u32;
    let mut file = b"RIFF".to_vec();
    file.extend((36 + bytes).to_le_bytes());
    file.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
    file.extend(sample_rate.to_le_bytes());
    file.extend((2 * sample_rate).to_le_bytes());
    file.extend(b"\x02\0\x10\0data");
    file.extend(bytes.to_le_bytes());
    file.extend(values);
    file
}

/// A NumPy file of two channels of float64.
pub(crate) fn npy(seed: u32, samples: u32) -> Vec<u8> {
    let header = format!(
        "{{'descr': '<f8', 'fortran_order': False, 'shape': (2, {samples}), }}{:>30}\n",
        ""
    );
    let mut file = b"\x93NUMPY\x01\0".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.as_bytes());
    for channel in 0..2 {
        let value = |at: u32| (f64::from(at * (channel + 1) + seed) * 0.049).sin() * 325.0;
        file.extend((0..samples).flat_map(|at| value(at).to_le_bytes()));
    }
    file
}

/// Writes files into folders of two classes, and packs them.
fn packed(folder: &Path, file: impl Fn(u32) -> (String, Vec<u8>)) -> Value {
    for seed in 0..SAMPLES {
        let class = folder.join("files").join(["cat", "dog"][seed as usize % 2]);
        std::fs::create_dir_all(&class).expect("a folder");
        let (name, bytes) = file(seed);
        std::fs::write(class.join(name), bytes).expect("a file");
    }
    let packed = run(folder, &["pack", "files", "small.set", "--force", "--json"]).success();
    serde_json::from_str(&packed.stdout).expect("a JSON document")
}

/// A recording that soundfile wrote, of each format in turn.
fn recording(seed: u32) -> (String, Vec<u8>) {
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../kernels/tests/golden/series");
    let read = |name: &str| std::fs::read(format!("{golden}/{name}")).expect("a golden file");
    match seed % 4 {
        0 => (format!("{seed}.flac"), read("stereo16.flac")),
        1 => (format!("{seed}.mp3"), read("mono.mp3")),
        2 => (format!("{seed}.mp3"), read("stereo.mp3")),
        _ => (format!("{seed}.wav"), wav(seed, 22_050, 9_000 + 100 * seed)),
    }
}

/// A job with another recipe.
fn job_of(recipe: &str, strategy: &str) -> String {
    let text = job(strategy, 1, "");
    let (start, end) = (text.find("[[recipe").expect("a recipe"), text.find("[device]"));
    let end = end.expect("a device");
    format!("recipe = \"{recipe}\"\n{}{}", &text[..start], &text[end..])
}

const CROPPED: &str = r#"
[[operation]]
name = "decode_audio"
sample_rate = 16000
[[operation]]
name = "random_time_crop"
length = 4000
[[operation]]
name = "mel_spectrogram"
n_fft = 320
hop_length = 160
[[operation]]
name = "log"
[[operation]]
name = "to_dtype"
dtype = "float16"
"#;

#[test]
fn recordings_and_signals_have_the_same_bits_at_both_ends() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("cropped.toml"), CROPPED).expect("a recipe");
    let check = |recipe: &str, shape: Value, dtype: &str| {
        for strategy in ["device-only", "mte"] {
            let job = format!("columns = [\"image\", \"label\"]\n{}", job_of(recipe, strategy));
            std::fs::write(folder.join("job.toml"), job).expect("a job file");
            let done = run(folder, &["run", "job.toml", "--json"]).success();
            let report: Value = serde_json::from_str(&done.stdout).expect("a JSON document");
            check_run(&report["runs"][0]);
            let column = &report["job"]["columns"][0];
            assert_eq!(column["shape"], shape, "{recipe}");
            assert_eq!(column["dtype"], dtype, "{recipe}");
        }
    };
    let summary = packed(folder, recording);
    assert_eq!(summary["samples"], SAMPLES);
    check("presto-flac", json!([1, 80, 1500]), "float32");
    check("presto-mp3", json!([1, 80, 500]), "float32");
    check("cropped.toml", json!([1, 80, 26]), "float16");
    std::fs::remove_dir_all(folder.join("files")).expect("a folder");
    packed(folder, |seed| (format!("{seed}.npy"), npy(seed, 64_000 / 10)));
    check("presto-nilm", json!([3, 500]), "float32");
}

#[test]
fn a_sample_is_shown_and_its_label_is_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    packed(folder, recording);
    let show = ["show", "small.set", "dog/3.wav", "--recipe", "presto-flac", "-o", "x.npy"];
    let done = run(folder, &[&show[..], &["--json"]].concat()).success();
    let shown: Value = serde_json::from_str(&done.stdout).expect("a JSON document");
    assert_eq!(shown["shape"], json!([1, 80, 1500]));
    let file = std::fs::read(folder.join("x.npy")).expect("an array");
    assert!(file.starts_with(b"\x93NUMPY") && file.len() > 4 * 80 * 1500);
    let inspected = run(folder, &["inspect", "small.set"]).success();
    assert!(inspected.stdout.contains("dog"), "{}", inspected.stdout);
    // A recipe for images reports that the file is not a picture.
    let show = ["show", "small.set", "0", "--recipe", "imagenet-resnet-eval", "-o", "x.npy"];
    run(folder, &show).refused(&["not a picture in a known format"]);
}

#[test]
fn every_cut_gives_the_same_batches_and_a_profile_has_all_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    packed(folder, recording);
    let shown = |dataset: &str| {
        let show = ["show", dataset, "5", "--recipe", "presto-flac", "-o", "x.npy"];
        run(folder, &show).success();
        std::fs::read(folder.join("x.npy")).expect("an array")
    };
    let expected = shown("small.set");
    for cut in ["decode_audio", "mel_spectrogram", "log", "fix_length"] {
        let prepare = ["prepare", "presto-flac", "small.set", "cut.set", "--cut", cut, "--force"];
        run(folder, &prepare).success();
        assert!(shown("cut.set") == expected, "{cut}");
    }
    let profile =
        ["profile", "presto-flac", "small.set", "--runs", "2", "--samples", "4", "--json"];
    let done = run(folder, &profile).success();
    let profile: Value = serde_json::from_str(&done.stdout).expect("a JSON document");
    let results = profile["results"].as_array().expect("a list of results");
    for (index, operation) in
        ["decode_audio", "mel_spectrogram", "log", "fix_length"].into_iter().enumerate()
    {
        let is_point = |it: &Value| it["operation"] == operation && it["operations"] == index + 1;
        assert!(results.iter().any(is_point), "{operation}");
    }
}

#[test]
fn a_damaged_recording_is_named_and_may_be_skipped() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    packed(folder, |seed| match seed {
        5 => ("5.wav".to_owned(), wav(5, 16_000, 4_000)[..3_001].to_vec()),
        _ => recording(seed),
    });
    let job = job_of("presto-flac", "host-only");
    std::fs::write(folder.join("job.toml"), &job).expect("a job file");
    run(folder, &["run", "job.toml"]).refused(&[
        "dog/5.wav",
        "WAV cannot be decoded",
        "ends in the middle",
    ]);
    for strategy in ["host-only", "device-only"] {
        let job = format!("on_error = \"skip\"\n{}", job_of("presto-flac", strategy));
        std::fs::write(folder.join("job.toml"), job).expect("a job file");
        let done = run(folder, &["run", "job.toml"]).success();
        assert!(format!("{}{}", done.stdout, done.stderr).contains("dog/5.wav"), "{strategy}");
    }
}
