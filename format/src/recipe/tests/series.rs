//! Recipes of sound and signals: the type of their result, and operations that cannot follow each
//! other.

use crate::recipe::{Dtype, Layout, Recipe, RecipeError, ValueKind};

const AUDIO: &str = "decode_audio sample_rate = 16000";

fn recipe(operations: &[&str]) -> Result<Recipe, RecipeError> {
    let tables = operations.iter().map(|keys| {
        let (name, rest) = keys.split_once(' ').unwrap_or((keys, ""));
        format!("[[operation]]\nname = \"{name}\"\n{}\n", rest.replace(';', "\n"))
    });
    Recipe::from_toml(&tables.collect::<String>())
}

fn shape(operations: &[&str]) -> Option<Vec<u32>> {
    let recipe = recipe(operations).unwrap_or_else(|error| panic!("{error}"));
    recipe.output().map(|spec| spec.axes())
}

#[test]
fn the_shape_is_known_as_soon_as_the_length_is() {
    assert_eq!(shape(&[AUDIO]), None);
    assert_eq!(shape(&[AUDIO, "fix_length length = 16000"]), Some(vec![1, 16_000]));
    let mel = "mel_spectrogram n_fft = 320;hop_length = 160";
    assert_eq!(shape(&[AUDIO, mel]), None);
    assert_eq!(shape(&[AUDIO, mel, "fix_length length = 300"]), Some(vec![1, 80, 300]));
    assert_eq!(shape(&[AUDIO, "fix_length length = 16000", mel]), Some(vec![1, 80, 101]));
    let edges = format!("{mel};center = false");
    assert_eq!(shape(&[AUDIO, "fix_length length = 16000", &edges]), Some(vec![1, 80, 99]));
    let spectrogram = "spectrogram n_fft = 400;hop_length = 160";
    let stereo = format!("{AUDIO};num_channels = 2");
    let crop = "random_time_crop length = 16000";
    assert_eq!(shape(&[&stereo, crop, spectrogram]), Some(vec![2, 201, 101]));
    let signal = "decode_signal num_channels = 2";
    let length = "fix_length length = 64000";
    let features = "power_features period = 128";
    assert_eq!(shape(&[signal, length, features]), Some(vec![4, 500]));
    let select = "select_channels channels = [3, 0]";
    assert_eq!(shape(&[signal, length, features, select]), Some(vec![2, 500]));
}

#[test]
fn a_spectrogram_is_normalised_and_converted_as_a_tensor() {
    let operations = [
        AUDIO,
        "fix_length length = 16000",
        "mel_spectrogram n_fft = 320;hop_length = 160",
        "log",
        "normalize mean = [-4.0];std = [4.0]",
        "to_dtype dtype = \"float16\"",
    ];
    let recipe = recipe(&operations).unwrap();
    let result = recipe.result();
    assert_eq!((result.kind, result.dtype), (ValueKind::Tensor, Dtype::Float16));
    let spec = recipe.output().unwrap();
    assert_eq!((spec.layout, spec.batch_shape(7)), (Layout::Nchw, vec![7, 1, 80, 101]));
    assert!(recipe.is_deterministic());
}

#[test]
fn what_cannot_follow_names_both_types() {
    let refused = |operations: &[&str], words: &[&str]| {
        let error = recipe(operations).unwrap_err();
        let error = format!("{error} ({})", error.remedy);
        for word in words {
            assert!(error.contains(word), "{word:?} is missing in: {error}");
        }
    };
    refused(&[AUDIO, "resize size = 8"], &["takes image", "`decode_audio`, which gives audio"]);
    refused(
        &["decode", "log"],
        &["takes audio or spectrogram or signal", "which gives an image", "decode_audio"],
    );
    let mel = "mel_spectrogram n_fft = 320;hop_length = 160";
    refused(
        &["decode_signal num_channels = 1", mel],
        &["takes audio", "`decode_signal`, which gives a signal", "begin with \"decode_audio\""],
    );
    refused(&[AUDIO, mel, mel], &["takes audio", "which gives a spectrogram", "move it up"]);
    refused(&[AUDIO, "power_features period = 8"], &["takes signal", "which gives audio"]);
    refused(
        &["decode_signal num_channels = 3", "power_features period = 8"],
        &["takes signal with 2 channels, and there are 3", "select_channels"],
    );
    refused(&[mel], &["comes before the sample is decoded", "\"decode_audio\""]);
    refused(&["decode_signal num_channels = 2", AUDIO], &["the sample is decoded already"]);
    refused(&[AUDIO, "layout layout = \"NCHW\""], &["layout"]);
}

#[test]
fn values_that_do_not_fit_the_sound_are_refused_where_they_are() {
    let refused = |operations: &[&str], words: &[&str]| {
        let error = recipe(operations).unwrap_err();
        let error = format!("{error} ({})", error.remedy);
        for word in words {
            assert!(error.contains(word), "{word:?} is missing in: {error}");
        }
    };
    let mel = |keys: &str| format!("mel_spectrogram hop_length = 160;{keys}");
    refused(&[AUDIO, &mel("n_fft = 441")], &["`n_fft`", "even number"]);
    refused(&[AUDIO, &mel("n_fft = 14")], &["`n_fft`", "prime factors"]);
    refused(&[AUDIO, &mel("n_fft = 320;win_length = 400")], &["`win_length`", "at most 320"]);
    refused(&[AUDIO, &mel("n_fft = 320;f_max = 9000.0")], &["`f_max`", "at most 8000.0"]);
    refused(&[AUDIO, &mel("n_fft = 320;f_min = 8000.0")], &["`f_min`", "less than 8000.0"]);
    let short = [AUDIO, "fix_length length = 100", &mel("n_fft = 320;center = false")];
    refused(&short, &["`n_fft`", "100 available samples"]);
    let signal = "decode_signal num_channels = 2";
    let short = [signal, "fix_length length = 100", "power_features period = 128"];
    refused(&short, &["`period`", "100 samples"]);
    refused(&[signal, "select_channels channels = [2]"], &["`channels`", "2 channels", "0 to 1"]);
}

#[test]
fn sound_has_no_targets_and_no_views() {
    let operations = "[[operation]]\nname = \"decode_audio\"\nsample_rate = 8000\n";
    let target = format!("{operations}[targets.mask]\nkind = \"mask\"\n");
    assert!(Recipe::from_toml(&target).unwrap_err().to_string().contains("decode_audio"));
    let view = format!(
        "{operations}[[views]]\ncolumn = \"a\"\n[[views.operations]]\nname = \"fix_length\"\n\
         length = 8\n"
    );
    assert!(Recipe::from_toml(&view).unwrap_err().to_string().contains("views"));
}

#[test]
fn a_recipe_of_sound_is_cut_after_every_deterministic_operation() {
    let mel = "mel_spectrogram n_fft = 320;hop_length = 160";
    let recipe = recipe(&[AUDIO, mel, "log", "random_time_crop length = 100"]).unwrap();
    for count in 1..=3 {
        assert_eq!(recipe.refusal_of_cut(count), None);
    }
    assert!(recipe.refusal_of_cut(4).is_some());
}
