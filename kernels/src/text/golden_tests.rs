//! Text against Python, html5lib and tokenizers; `text.py` wrote the files.

use super::tests::{attach, file, prepare, recipe, text_of, tokens_of};
use crate::{Cpu, Error, SampleId, SamplePreparer};
use half::f16;
use meetpoint_format::npy;
use meetpoint_format::recipe::Recipe;
use serde_json::Value;

const ID: SampleId = SampleId { seed: 1, epoch: 0, sample: 0 };

fn expected(part: &str) -> Vec<Value> {
    let all: Value = serde_json::from_slice(&file("expected.json")).unwrap();
    all[part].as_array().unwrap_or_else(|| panic!("no {part}")).clone()
}

#[test]
fn characters_are_decoded_as_by_python() {
    let from_hex = |hex: &str| -> Vec<u8> {
        let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
        (0..hex.len()).step_by(2).map(byte).collect()
    };
    for case in expected("characters") {
        let [bytes, encoding, errors] = [0, 1, 2].map(|at| case[at].as_str().unwrap());
        let keys = format!("encoding = \"{encoding}\"\nerrors = \"{errors}\"\n");
        let recipe = recipe(&[("decode_text", &keys)]);
        match (prepare(&recipe, &from_hex(bytes)), case[3].as_str()) {
            (Ok(tensor), Some(text)) => assert_eq!(text_of(&tensor), text, "{case}"),
            (Err(Error::Characters { .. }), None) => {}
            (got, _) => panic!("{case}: {got:?}"),
        }
    }
}

#[test]
fn visible_text_is_that_of_the_tree_of_html5lib() {
    let recipe = recipe(&[("decode_text", ""), ("html_to_text", "")]);
    for case in expected("html") {
        let [html, text] = [0, 1].map(|at| case[at].as_str().unwrap());
        let got = prepare(&recipe, html.as_bytes()).unwrap();
        assert_eq!(text_of(&got), text, "{html}");
    }
}

/// A recipe that ends with the tokens of a file.
fn tokenizing(name: &str, special_tokens: bool) -> Recipe {
    let keys = format!("tokenizer = \"{name}.json\"\nspecial_tokens = {special_tokens}\n");
    attach(recipe(&[("decode_text", ""), ("tokenize", &keys)]))
}

#[test]
fn tokens_are_those_of_the_tokenizers_library() {
    let all: Value = serde_json::from_slice(&file("expected.json")).unwrap();
    let texts = expected("texts");
    for name in ["byte_level", "prefixed", "word_piece"] {
        for special_tokens in [false, true] {
            let recipe = tokenizing(name, special_tokens);
            let mut preparer = SamplePreparer::new(&recipe, Cpu::detect());
            // The second run uses the cache of the first.
            for _ in 0..2 {
                for (index, text) in texts.iter().enumerate() {
                    let text = text.as_str().unwrap();
                    let got = preparer.prepare_tensor(text.as_bytes().into(), ID).unwrap();
                    let ids = &all["tokens"][name][index][usize::from(special_tokens)];
                    let ids: Vec<i32> = ids
                        .as_array()
                        .unwrap()
                        .iter()
                        .map(|it| it.as_i64().unwrap() as i32)
                        .collect();
                    assert_eq!(got.spec.axes(), [ids.len() as u32]);
                    assert_eq!(tokens_of(&got), ids, "{name} {special_tokens}: {text:?}");
                }
            }
        }
    }
}

#[test]
fn vectors_are_the_rows_of_the_table() {
    let table = file("table.npy");
    let header = npy::decode(&table).unwrap();
    let rows: Vec<f32> =
        table[header.data].as_chunks::<4>().0.iter().copied().map(f32::from_le_bytes).collect();
    let halves = file("table16.npy");
    let header = npy::decode(&halves).unwrap();
    let halves: Vec<f16> =
        halves[header.data].as_chunks::<2>().0.iter().copied().map(f16::from_le_bytes).collect();
    let text = "bada b\u{e9} 12 <|endoftext|>";
    let tokens = tokens_of(&prepare(&tokenizing("byte_level", false), text.as_bytes()).unwrap());
    assert!(tokens.contains(&0), "the row with special numbers: {tokens:?}");
    for name in ["table.npy", "table16.npy", "table.safetensors"] {
        for dtype in ["float32", "float16"] {
            let keys = format!("table = \"{name}\"\ndim = 6\ndtype = \"{dtype}\"\n");
            let vocabulary = ("tokenize", "tokenizer = \"byte_level.json\"\n");
            let recipe = recipe(&[("decode_text", ""), vocabulary, ("embed", &keys)]);
            let got = prepare(&attach(recipe), text.as_bytes()).unwrap();
            assert_eq!(got.spec.axes(), [tokens.len() as u32, 6]);
            let at = tokens.iter().flat_map(|token| (0..6).map(|it| *token as usize * 6 + it));
            let expected: Vec<u8> = at
                .flat_map(|at| match (name, dtype) {
                    ("table16.npy", "float32") => halves[at].to_f32().to_le_bytes().to_vec(),
                    (_, "float32") => rows[at].to_le_bytes().to_vec(),
                    // NumPy rounded the expected values.
                    (_, _) => halves[at].to_le_bytes().to_vec(),
                })
                .collect();
            assert_eq!(got.data, expected, "{name} {dtype}");
        }
    }
}
