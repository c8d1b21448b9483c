//! Recipes for text: lengths, planes, resuming, and files that do not match.

use super::{TOKENIZED_BYTES_MAX, check_files};
use crate::{
    BatchId, BatchMixer, BatchTensors, Cpu, Error, Interrupt, SampleId, SamplePreparer, Tensor,
};
use meetpoint_format::recipe::{FileContent, NamedFile, Recipe};
use std::convert::Infallible;

const ID: SampleId = SampleId { seed: 1, epoch: 0, sample: 0 };

/// A golden file.
pub(super) fn file(name: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/text");
    std::fs::read(format!("{folder}/{name}")).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Operations with their keys in TOML.
pub(super) fn recipe(operations: &[(&str, &str)]) -> Recipe {
    let table = |(name, keys): &(&str, &str)| format!("[[operation]]\nname = \"{name}\"\n{keys}\n");
    let text: String = operations.iter().map(table).collect();
    Recipe::from_toml(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The recipe with its files, from the folder of golden files.
pub(super) fn attach(recipe: Recipe) -> Recipe {
    let with_content = |_: &'static str, named: &NamedFile| {
        let content = FileContent::new(file(&named.path));
        Ok::<_, Infallible>(NamedFile { content: Some(content), ..named.clone() })
    };
    recipe.with_files(with_content).unwrap()
}

pub(super) fn prepare(recipe: &Recipe, file: &[u8]) -> Result<Tensor, Error> {
    SamplePreparer::new(recipe, Cpu::detect()).prepare_tensor(file.into(), ID)
}

pub(super) fn text_of(tensor: &Tensor) -> &str {
    std::str::from_utf8(&tensor.data).unwrap()
}

pub(super) fn tokens_of(tensor: &Tensor) -> Vec<i32> {
    tensor.data.as_chunks::<4>().0.iter().copied().map(i32::from_le_bytes).collect()
}

const TOKENIZE: (&str, &str) = ("tokenize", "tokenizer = \"byte_level.json\"");

fn padded(keys: &str) -> Recipe {
    attach(recipe(&[("decode_text", ""), TOKENIZE, ("pad_sequence", keys)]))
}

#[test]
fn sequences_are_cut_or_padded_and_end_with_the_end_token() {
    let text = b"bada12";
    let all = tokens_of(&prepare(&padded("length = 64\npad_token = 9999"), text).unwrap());
    let real = all.iter().position(|token| *token == 9999).unwrap();
    assert!(real > 1 && all[real..].iter().all(|token| *token == 9999), "{all:?}");
    let tokens = |keys: &str| tokens_of(&prepare(&padded(keys), text).unwrap());
    assert_eq!(tokens(&format!("length = {real}")), all[..real]);
    assert_eq!(tokens("length = 1"), all[..1]);
    assert_eq!(tokens("length = 1\nend_token = 7"), [7]);
    let cut = format!("length = {real}\nend_token = 7");
    assert_eq!(tokens(&cut), [&all[..real - 1], &[7]].concat());
    let longer = format!("length = {}\nend_token = 7\nplanes = \"ids_mask\"", real + 2);
    let (ids, mask) = ([&all[..real], &[7, 0]].concat(), [vec![1; real + 1], vec![0]].concat());
    let got = prepare(&padded(&longer), text).unwrap();
    assert_eq!(got.spec.axes(), [2, real as u32 + 2]);
    assert_eq!(tokens_of(&got), [ids.clone(), mask.clone()].concat());
    let planes = longer.replace("ids_mask", "ids_segments_positions");
    let positions = (0..=real as i32).chain([0]).collect();
    assert_eq!(
        tokens_of(&prepare(&padded(&planes), text).unwrap()),
        [ids, mask, positions].concat()
    );
}

#[test]
fn a_document_without_text_is_padding_alone() {
    let keys = "length = 3\npad_token = 5\nplanes = \"ids_segments_positions\"";
    let html = attach(recipe(&[
        ("decode_text", ""),
        ("html_to_text", ""),
        TOKENIZE,
        ("pad_sequence", keys),
    ]));
    let got = prepare(&html, b"<script>x</script>").unwrap();
    assert_eq!(tokens_of(&got), [5, 5, 5, 0, 0, 0, 0, 0, 0]);
    let unpadded = attach(recipe(&[("decode_text", ""), TOKENIZE]));
    assert_eq!(prepare(&unpadded, b"").unwrap().spec.axes(), [0]);
}

#[test]
fn a_recipe_resumes_after_every_operation_with_the_same_bits() {
    let operations = [
        ("decode_text", "errors = \"replace\""),
        ("html_to_text", ""),
        TOKENIZE,
        ("pad_sequence", "length = 40\npad_token = 3"),
        ("embed", "table = \"table.npy\"\ndim = 6\ndtype = \"float16\""),
    ];
    let whole = attach(recipe(&operations));
    let html = "\u{feff}<p>bada <b>gu</b> 12\u{e9} \u{feff}x</p>".as_bytes();
    let expected = prepare(&whole, html).unwrap();
    for first in 1..=operations.len() {
        let beginning = attach(recipe(&operations[..first]));
        let stored = prepare(&beginning, html).unwrap();
        let mut preparer = SamplePreparer::new(&whole, Cpu::detect());
        let got = preparer.resume(first, (&stored.spec, &stored.data), ID).unwrap();
        assert_eq!(got, expected, "{first}");
    }
}

#[test]
fn packing_needs_no_labels_and_is_the_same_for_any_order_of_work() {
    let keys = "length = 16\npad_token = 1\nplanes = \"ids_segments_positions\"";
    let operations =
        [("decode_text", ""), TOKENIZE, ("pad_sequence", keys), ("pack_sequences", "")];
    let recipe = attach(recipe(&operations));
    assert_eq!(recipe.labels(), None);
    let spec = recipe.output().unwrap();
    let mut preparer = SamplePreparer::new(&recipe, Cpu::detect());
    let mut images = Vec::new();
    for text in ["ba", "da gu", "", "le 12"] {
        images.extend(preparer.prepare_tensor(text.as_bytes().into(), ID).unwrap().data);
    }
    let mut mixer = BatchMixer::new(&recipe, spec).unwrap();
    let tensors = BatchTensors { samples: 4, images: &mut images, labels: &mut [] };
    mixer.mix(BatchId { seed: 0, epoch: 0, batch: 0 }, tensors, &mut || ()).unwrap();
    let tokens: Vec<i32> =
        images.as_chunks::<4>().0.iter().copied().map(i32::from_le_bytes).collect();
    let segments = &tokens[16..32];
    assert_eq!(segments.iter().max(), Some(&3), "{segments:?}");
    assert!(tokens[48..].chunks(48).all(|row| row[..16] == [1; 16] && row[16..] == [0; 32]));
}

#[test]
fn bad_documents_and_files_are_errors_of_their_own() {
    let tokens = attach(recipe(&[("decode_text", ""), TOKENIZE]));
    assert!(matches!(
        prepare(&tokens, b"ab\xff"),
        Err(Error::Characters { encoding: "utf-8", offset: 2 })
    ));
    let long = vec![b'a'; TOKENIZED_BYTES_MAX + 1];
    assert!(
        matches!(prepare(&tokens, &long), Err(Error::LongText { bytes, .. }) if bytes == long.len())
    );
    let unread = recipe(&[("decode_text", ""), TOKENIZE]);
    assert!(matches!(
        prepare(&unread, b"a"),
        Err(Error::FileNotRead { operation: "tokenize", .. })
    ));
    let mut preparer = SamplePreparer::new(&tokens, Cpu::detect());
    preparer.set_interrupt(Interrupt::when(|| true));
    assert_eq!(preparer.prepare_tensor(b"a"[..].into(), ID), Err(Error::Interrupted));
}

/// The recipe with other contents of its files.
fn with_contents(recipe: Recipe, contents: &[&[u8]]) -> Recipe {
    let mut contents = contents.iter();
    let with_content = |_: &'static str, named: &NamedFile| {
        let content = contents.next().map(|bytes| FileContent::new(*bytes));
        Ok::<_, Infallible>(NamedFile { content, ..named.clone() })
    };
    recipe.with_files(with_content).unwrap()
}

#[test]
fn files_that_do_not_fit_are_refused_before_any_sample() {
    let embed = ("embed", "table = \"table.npy\"\ndim = 6");
    let operations = [("decode_text", ""), TOKENIZE, embed];
    let (vocabulary, table) = (file("byte_level.json"), file("table.npy"));
    let problem = |contents: &[&[u8]]| {
        let misfit = check_files(&with_contents(recipe(&operations), contents)).unwrap_err();
        (misfit.operation, misfit.problem)
    };
    assert_eq!(check_files(&attach(recipe(&operations))), Ok(()));
    assert_eq!(problem(&[b"{}", &table]).0, "tokenize");
    assert_eq!(problem(&[b"", &table]).0, "tokenize");
    let dropout = String::from_utf8(vocabulary.clone()).unwrap();
    let dropout = dropout.replace("\"dropout\":null", "\"dropout\":0.1");
    let dropout = dropout.replace("\"dropout\": null", "\"dropout\": 0.1");
    assert!(problem(&[dropout.as_bytes(), &table]).1.contains("dropout"));
    let malformed = String::from_utf8(vocabulary.clone()).unwrap();
    let begin = malformed.find("\"decoder\"").unwrap();
    let malformed =
        format!("{}{}", &malformed[..begin], malformed[begin..].replacen("true", "tr7e", 1));
    assert_eq!(problem(&[malformed.as_bytes(), &table]).0, "tokenize");
    assert_eq!(problem(&[&vocabulary, &table[..200]]).0, "embed");
    let mut doubles = table.clone();
    let at = doubles.windows(3).position(|it| it == b"<f4").unwrap();
    doubles[at + 2] = b'8';
    assert!(problem(&[&vocabulary, &doubles]).1.contains("<f8"));
    let few = npy_of(&[599, 6]);
    assert!(
        problem(&[&vocabulary, &few]).1.contains("599 rows"),
        "{:?}",
        problem(&[&vocabulary, &few])
    );
    let wide = npy_of(&[600, 7]);
    assert!(problem(&[&vocabulary, &wide]).1.contains("`dim` is 6"));
    let padding =
        [("decode_text", ""), TOKENIZE, ("pad_sequence", "length = 8\npad_token = 600"), embed];
    let misfit = check_files(&attach(recipe(&padding))).unwrap_err();
    assert!(misfit.problem.contains("`pad_token`"), "{misfit}");
    // Without the check, every sample is refused.
    let got = prepare(&attach(recipe(&padding)), b"a");
    assert!(matches!(got, Err(Error::NoVector { token: 600, rows: 600 })), "{got:?}");
}

fn npy_of(shape: &[u32]) -> Vec<u8> {
    let elements: u32 = shape.iter().product();
    let data = vec![0; 4 * elements as usize];
    meetpoint_format::npy::encode(shape, meetpoint_format::recipe::Dtype::Float32, &data)
}

#[test]
fn headers_of_safetensors_files_with_false_lengths_are_refused() {
    let sound = file("table.safetensors");
    let table = |bytes: &[u8]| super::table::Table::of(&FileContent::new(bytes)).map(|_| ());
    assert_eq!(table(&sound), Ok(()));
    for end in 0..sound.len().min(400) {
        assert!(table(&sound[..end]).is_err(), "{end}");
    }
    let mut huge = sound.clone();
    huge[..8].copy_from_slice(&u64::MAX.to_le_bytes());
    assert!(table(&huge).is_err());
    let replaced = |from: &str, to: &str| {
        let length = u64::from_le_bytes(sound[..8].try_into().unwrap()) as usize;
        let header = std::str::from_utf8(&sound[8..8 + length]).unwrap();
        assert!(header.contains(from), "{header}");
        let header = header.replace(from, to);
        [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &sound[8 + length..]].concat()
    };
    for (from, to) in [
        ("[600,6]", "[600,7]"),
        ("[600,6]", "[18446744073709551615,6]"),
        ("[0,14400]", "[4,14404]"),
        ("[0,14400]", "[14400,0]"),
        ("F32", "I32"),
        ("wte.weight", "__metadata__"),
    ] {
        assert!(table(&replaced(from, to)).is_err(), "{to}");
    }
}
