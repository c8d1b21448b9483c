//! Sound against soundfile, torchaudio and librosa; `series.py` wrote the files.

use crate::{Cpu, Error, SampleId, SamplePreparer, Tensor};
use meetpoint_format::npy;
use meetpoint_format::recipe::{Dtype, Recipe};

/// A file of the script.
fn file(name: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/series");
    std::fs::read(format!("{folder}/{name}")).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Shape and values of an array of the script.
fn array(name: &str) -> (Vec<u32>, Vec<f32>) {
    let file = file(&format!("{name}.npy"));
    let array = npy::decode(&file).unwrap();
    assert_eq!(array.dtype, Dtype::Float32);
    (array.shape, floats(&file[array.data]))
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
}

fn prepare(name: &str, operations: &str) -> Result<Tensor, Error> {
    let recipe = Recipe::from_toml(operations).unwrap_or_else(|error| panic!("{error}"));
    let id = SampleId { seed: 1, epoch: 0, sample: 0 };
    SamplePreparer::new(&recipe, Cpu::detect()).prepare_tensor((&file(name)[..]).into(), id)
}

fn decode(sample_rate: u32, num_channels: u32) -> String {
    format!(
        "[[operation]]\nname = \"decode_audio\"\nsample_rate = {sample_rate}\n\
         num_channels = {num_channels}\n"
    )
}

/// Compares with an array of the script, which may lack the axis of channels. `error_max` returns
/// the tolerance for a value, given the largest of all values.
fn compare(tensor: &Tensor, name: &str, error_max: impl Fn(f32, f32) -> f32) {
    let (shape, expected) = array(name);
    let axes = tensor.spec.axes();
    assert_eq!(axes[axes.len() - shape.len()..], shape[..], "{name}");
    let got = floats(&tensor.data);
    assert_eq!(got.len(), expected.len(), "{name}");
    let largest = expected.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
    for (at, (got, expected)) in got.iter().zip(&expected).enumerate() {
        let (error, most) = ((got - expected).abs(), error_max(*expected, largest));
        assert!(error <= most, "{name}, value {at}: {got} for {expected}, allowed {most}");
    }
}

#[test]
fn lossless_files_decode_to_the_bits_of_libsndfile() {
    for (name, rate, channels) in [
        ("mono16.wav", 16_000, 1),
        ("stereo24.wav", 44_100, 2),
        ("float.wav", 8_000, 1),
        ("bytes.wav", 8_000, 1),
        ("stereo16.flac", 44_100, 2),
        ("mono24.flac", 22_050, 1),
    ] {
        let tensor = prepare(name, &decode(rate, channels)).unwrap();
        compare(&tensor, &format!("{name}.decoded"), |_, _| 0.0);
    }
}

#[test]
fn mp3_files_decode_as_by_mpg123() {
    for (name, rate, channels) in [("mono.mp3", 16_000, 1), ("stereo.mp3", 44_100, 2)] {
        let tensor = prepare(name, &decode(rate, channels)).unwrap();
        compare(&tensor, &format!("{name}.decoded"), |_, _| 2e-5);
    }
}

#[test]
fn channels_are_mixed_as_by_librosa() {
    let tensor = prepare("stereo16.flac", &decode(44_100, 1)).unwrap();
    compare(&tensor, "stereo16.flac.mono", |_, _| 0.0);
}

#[test]
fn one_channel_is_repeated_and_other_numbers_are_refused() {
    let one = prepare("mono16.wav", &decode(16_000, 1)).unwrap();
    let two = prepare("mono16.wav", &decode(16_000, 2)).unwrap();
    assert_eq!(two.spec.axes(), [2, 8000]);
    assert_eq!(two.data, [&one.data[..], &one.data[..]].concat());
    let refused = prepare("stereo16.flac", &decode(44_100, 3));
    assert_eq!(refused, Err(Error::Channels { found: 2, wanted: 3 }));
}

#[test]
fn sound_is_resampled_as_by_torchaudio() {
    for (name, channels, rate) in [
        ("stereo16.flac", 2, 16_000),
        ("mono16.wav", 1, 44_100),
        ("mono24.flac", 1, 16_000),
        ("float.wav", 1, 16_000),
    ] {
        let tensor = prepare(name, &decode(rate, channels)).unwrap();
        compare(&tensor, &format!("{name}.{rate}"), |_, _| 4e-7);
    }
}

/// The tolerance for the power of a frequency, if its magnitude has a float32 error relative to the
/// largest magnitude.
fn of_power(expected: f32, largest: f32) -> f32 {
    1e-6 * expected + 3e-7 * (expected * largest).sqrt() + 1e-13 * largest
}

/// Like [`of_power`], for a magnitude.
fn of_magnitude(expected: f32, largest: f32) -> f32 {
    1e-6 * expected + 2e-7 * largest
}

#[test]
fn mel_spectrograms_equal_those_of_librosa() {
    let mel = |keys: &str| {
        let decode = decode(16_000, 1);
        let operations = format!("{decode}[[operation]]\nname = \"mel_spectrogram\"\n{keys}\n");
        prepare("mono16.wav", &operations).unwrap()
    };
    let presto = mel("n_fft = 320\nhop_length = 160");
    assert_eq!(presto.spec.axes(), [1, 80, 51]);
    compare(&presto, "presto", of_power);
    compare(&mel("n_fft = 400\nhop_length = 160\npad_mode = \"reflect\""), "whisper", of_power);
    let edges = "n_fft = 512\nwin_length = 400\nhop_length = 100\nn_mels = 40\nf_min = 50.0\n\
                 f_max = 7600.0\npower = 1\ncenter = false\nnorm = \"none\"";
    compare(&mel(edges), "edges", of_magnitude);
}

#[test]
fn mel_spectrograms_equal_those_of_torchaudio() {
    let keys = "n_fft = 400\nhop_length = 160\nn_mels = 64\nmel_scale = \"htk\"\n\
                norm = \"none\"\npad_mode = \"reflect\"";
    let decode = decode(16_000, 1);
    let operations = format!("{decode}[[operation]]\nname = \"mel_spectrogram\"\n{keys}\n");
    let tensor = prepare("mono16.wav", &operations).unwrap();
    compare(&tensor, "torchaudio", of_power);
}

#[test]
fn magnitudes_equal_those_of_librosa() {
    let decode = decode(16_000, 1);
    let keys = "n_fft = 1024\nhop_length = 512\npower = 1";
    let operations = format!("{decode}[[operation]]\nname = \"spectrogram\"\n{keys}\n");
    let tensor = prepare("mono16.wav", &operations).unwrap();
    compare(&tensor, "magnitude", of_magnitude);
}

#[test]
fn logarithms_equal_those_of_numpy_and_librosa() {
    let decode = decode(16_000, 1);
    let log = |keys: &str| {
        let operations = format!(
            "{decode}[[operation]]\nname = \"mel_spectrogram\"\nn_fft = 320\nhop_length = 160\n\
             [[operation]]\nname = \"log\"\n{keys}\n"
        );
        prepare("mono16.wav", &operations).unwrap()
    };
    compare(&log(""), "presto_log", |_, _| 1e-4);
    compare(&log("base = \"10\"\nmultiplier = 10.0"), "presto_db", |_, _| 4e-4);
}
