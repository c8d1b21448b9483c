//! Files that are not pictures: recordings, arrays of measurements, texts, tables of vectors.

use crate::tally;
use meetpoint_format::recipe::{FileContent, NamedFile, Recipe};
use meetpoint_kernels::{Cpu, Error, SampleId, SamplePreparer, Tensor, check_files};
use std::convert::Infallible;
use std::sync::LazyLock;

/// Maximum bytes of a tensor: more takes time and shows nothing more.
const BYTES_MAX: u64 = 1 << 26;

const ID: SampleId = SampleId { seed: 3, epoch: 1, sample: 5 };

fn recipe(text: &str) -> Recipe {
    Recipe::from_toml(text).unwrap_or_else(|error| panic!("{error}"))
}

/// The result of a recipe, the same with every instruction set and with a preparer that was used
/// before.
fn prepared(recipe: &Recipe, data: &[u8]) -> Option<Result<Tensor, Error>> {
    let portable = SamplePreparer::new(recipe, Cpu::Portable);
    if portable.memory_bytes(data, ID).is_ok_and(|bytes| bytes > BYTES_MAX) {
        tally::add("too large");
        return None;
    }
    let mut first: Option<Result<Tensor, Error>> = None;
    for cpu in Cpu::available() {
        let mut preparer = SamplePreparer::new(recipe, cpu);
        // State left behind by a truncated file must have no effect.
        let _ = preparer.prepare_tensor((&data[..data.len() / 2]).into(), ID);
        let result = preparer.prepare_tensor(data.into(), ID);
        match &first {
            None => first = Some(result),
            Some(first) => assert!(*first == result, "{}: another result", cpu.name()),
        }
    }
    let result = first.expect("every machine has the portable one");
    tally::add(if result.is_ok() { "decoded" } else { "refused" });
    Some(result)
}

/// A WAV, FLAC or MP3 file is decoded, mixed and resampled, or refused.
pub fn audio(data: &[u8]) {
    static RECIPE: LazyLock<Recipe> =
        LazyLock::new(|| recipe("[[operation]]\nname = \"decode_audio\"\nsample_rate = 16000\n"));
    if let Some(Ok(tensor)) = prepared(&RECIPE, data) {
        let values = tensor.data.as_chunks::<4>().0.iter().copied().map(f32::from_le_bytes);
        assert_eq!(values.len(), tensor.spec.width as usize, "one channel");
    }
}

/// A NumPy file becomes a signal with the given number of channels, or is refused.
pub fn signal(data: &[u8]) {
    static RECIPE: LazyLock<Recipe> =
        LazyLock::new(|| recipe("[[operation]]\nname = \"decode_signal\"\nnum_channels = 2\n"));
    if let Some(Ok(tensor)) = prepared(&RECIPE, data) {
        assert_eq!(tensor.spec.channels, 2);
    }
}

/// A binary PGM or PPM file is decoded to the size in its header, or refused.
pub fn pnm(data: &[u8]) {
    if !data.starts_with(b"P5") && !data.starts_with(b"P6") {
        return tally::add("no PNM");
    }
    crate::pixels::any_decode(data);
}

/// Bytes become a text in every encoding; always, if invalid bytes are replaced.
pub fn text(data: &[u8]) {
    for encoding in ["utf-8", "utf-16-le", "utf-16-be", "latin-1"] {
        let of = |errors: &str| {
            let keys = format!("encoding = \"{encoding}\"\nerrors = \"{errors}\"\n");
            let recipe = recipe(&format!("[[operation]]\nname = \"decode_text\"\n{keys}"));
            prepared(&recipe, data)
        };
        let (Some(strict), Some(replaced)) = (of("strict"), of("replace")) else { return };
        let replaced = replaced.expect("every file has a text");
        assert!(std::str::from_utf8(&replaced.data).is_ok(), "UTF-8");
        if let Ok(strict) = strict {
            assert_eq!(strict, replaced, "{encoding}");
        }
    }
}

/// The text of a page has no empty lines, no spaces at the ends of a line, and no double spaces.
pub fn html(data: &[u8]) {
    static RECIPE: LazyLock<Recipe> = LazyLock::new(|| {
        recipe(
            "[[operation]]\nname = \"decode_text\"\nerrors = \"replace\"\n\
             [[operation]]\nname = \"html_to_text\"\n",
        )
    });
    let Some(Ok(tensor)) = prepared(&RECIPE, data) else { return };
    let text = String::from_utf8(tensor.data).expect("UTF-8");
    for line in text.split('\n').filter(|_| !text.is_empty()) {
        assert!(!line.is_empty() && !line.starts_with(' ') && !line.ends_with(' '), "{line:?}");
        assert!(!line.contains("  ") && !line.contains(['\t', '\r', '\x0c', '\0']), "{line:?}");
    }
}

/// A file that a recipe names is a tokenizer or a table, or is refused.
pub fn recipe_file(data: &[u8]) {
    static RECIPE: LazyLock<Recipe> = LazyLock::new(|| {
        recipe(
            "[[operation]]\nname = \"decode_text\"\n\
             [[operation]]\nname = \"tokenize\"\ntokenizer = \"t\"\n\
             [[operation]]\nname = \"embed\"\ntable = \"w\"\ndim = 6\n",
        )
    });
    for wanted in ["tokenize", "embed"] {
        let with = |operation: &'static str, file: &NamedFile| {
            let content = (operation == wanted).then(|| FileContent::new(data));
            Ok::<_, Infallible>(NamedFile { content, ..file.clone() })
        };
        let Ok(recipe) = RECIPE.clone().with_files(with);
        tally::add(if check_files(&recipe).is_ok() { "taken" } else { "refused" });
    }
}
