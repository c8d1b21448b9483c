//! The declarations are complete and agree with the operations and the documents.

use crate::recipe::{
    DECLARATIONS, Declaration, DecodeMode, Key, KeyType, Operation, OutputType, Planes, Presence,
    Property, Recipe, SampleType, TextTable, ValueKind, keys_table, operations_table, schema,
    target_keys_table, targets_table,
};
use std::collections::BTreeSet;

/// A recipe table with the required keys of an operation.
fn table(declaration: &Declaration) -> String {
    let required = declaration.keys.iter().filter_map(|key| match &key.presence {
        Presence::Example(value) => Some(format!("{} = {}\n", key.name, value.to_toml())),
        Presence::Default(_) => None,
    });
    format!("[[operation]]\nname = \"{}\"\n{}", declaration.name, required.collect::<String>())
}

const DECODE: &str = "[[operation]]\nname = \"decode\"\n";

const DECODE_AUDIO: &str = "[[operation]]\nname = \"decode_audio\"\nsample_rate = 16000\n";
const DECODE_SIGNAL: &str = "[[operation]]\nname = \"decode_signal\"\nnum_channels = 2\n";
const DECODE_TEXT: &str = "[[operation]]\nname = \"decode_text\"\n";
const TOKENIZE: &str = "[[operation]]\nname = \"tokenize\"\ntokenizer = \"tokenizer.json\"\n";
const PAD_SEQUENCE: &str = "[[operation]]\nname = \"pad_sequence\"\nlength = 8\n\
                            planes = \"ids_segments_positions\"\n";

/// Operations after which an operation can come.
fn before(declaration: &Declaration) -> String {
    match declaration.takes[0].kind {
        ValueKind::Encoded => String::new(),
        ValueKind::Image => DECODE.to_owned(),
        ValueKind::Audio => DECODE_AUDIO.to_owned(),
        ValueKind::Signal => DECODE_SIGNAL.to_owned(),
        ValueKind::Text => DECODE_TEXT.to_owned(),
        ValueKind::Tokens => {
            let padded = match declaration.takes[0].channels {
                [3] => PAD_SEQUENCE,
                _ => "",
            };
            format!("{DECODE_TEXT}{TOKENIZE}{padded}")
        }
        ValueKind::Spectrogram | ValueKind::Embedding | ValueKind::Same => {
            unreachable!("no operation takes it first")
        }
        ValueKind::Tensor | ValueKind::Batch => {
            format!("{DECODE}[[operation]]\nname = \"to_dtype\"\ndtype = \"float32\"\n")
        }
    }
}

/// The target that an operation needs.
fn after(declaration: &Declaration) -> &'static str {
    match declaration.name {
        "random_iou_crop" => "[targets.boxes]\nkind = \"boxes\"\nformat = \"xyxy\"\n",
        _ => "",
    }
}

/// A recipe that ends with an operation, and the type of the sample before it.
fn example(declaration: &Declaration) -> (Recipe, SampleType) {
    let before = before(declaration);
    let input = match &before[..] {
        "" => SampleType::ENCODED,
        before => Recipe::from_toml(before).unwrap().result(),
    };
    let text = format!("{before}{}{}", table(declaration), after(declaration));
    (Recipe::from_toml(&text).unwrap(), input)
}

#[test]
fn every_operation_reads_back_from_its_example() {
    for declaration in DECLARATIONS {
        let (recipe, _) = example(declaration);
        let operation = recipe.operations().last().unwrap();
        assert_eq!(operation.declaration(), *declaration);
        assert_eq!(Recipe::from_toml(&recipe.to_toml()).as_ref(), Ok(&recipe));
        assert_eq!(operation.values().len(), declaration.keys.len(), "{}", declaration.name);
    }
}

#[test]
fn names_of_operations_and_keys_are_unique() {
    let names: BTreeSet<_> = DECLARATIONS.iter().map(|it| it.name).collect();
    assert_eq!(names.len(), DECLARATIONS.len());
    for declaration in DECLARATIONS {
        let keys: BTreeSet<_> = declaration.keys.iter().map(|key| key.name).collect();
        assert_eq!(keys.len(), declaration.keys.len(), "{}", declaration.name);
        assert!(!keys.contains("name"), "{}", declaration.name);
    }
}

#[test]
fn the_declared_type_of_the_result_is_that_of_the_result() {
    for declaration in DECLARATIONS {
        let (recipe, input) = example(declaration);
        let (result, name) = (recipe.result(), declaration.name);
        let OutputType { kind, dtype, size, channels } = declaration.gives;
        let kind = if kind == ValueKind::Same { input.kind } else { kind };
        assert_eq!(result.kind, kind, "{name}");
        let values = recipe.operations().last().unwrap().values();
        let of_key = |key: &str| {
            let index = declaration.keys.iter().position(|it| it.name == key).expect(key);
            values[index].to_toml().replace('"', "")
        };
        let check = |property,
                     result: String,
                     input: String,
                     mode: &dyn Fn(DecodeMode) -> String| match property {
            Property::Same => assert_eq!(result, input, "{name}"),
            Property::Key(key) => {
                // A mode stands for a type and channels, a list for as many channels.
                let value = of_key(key);
                let value = if key == "channels" { "1".to_owned() } else { value };
                let planes = Planes::from_name(&value).map(|it| it.count().to_string());
                let value = planes.unwrap_or(value);
                let expected = DecodeMode::from_name(&value).map_or(value, mode);
                assert_eq!(result, expected, "{name}");
            }
            Property::Is(value) => assert_eq!(result, value, "{name}"),
            Property::Variable => panic!("{name}: only the size can depend on the file"),
        };
        let (of_result, of_input) = (result.dtype.name().to_owned(), input.dtype.name().to_owned());
        check(dtype, of_result, of_input, &|_| "uint8".to_owned());
        let (of_result, of_input) = (result.channels.to_string(), input.channels.to_string());
        check(channels, of_result, of_input, &|mode| mode.channels().to_string());
        match size {
            Property::Same => assert_eq!(result.size, input.size, "{name}"),
            Property::Variable => assert_eq!(result.size, None, "{name}"),
            Property::Key(key) => {
                // A switch, where the size then depends on random parameters.
                let is_size = |it: &Key| {
                    let kinds = matches!(
                        it.kind,
                        KeyType::Size { .. }
                            | KeyType::Switch
                            | KeyType::Wholes { .. }
                            | KeyType::WholeIn { .. }
                            | KeyType::Operations
                    );
                    it.name == key && kinds
                };
                assert!(declaration.keys.iter().any(is_size), "{name}");
            }
            Property::Is(_) => panic!("{name}: no size is always the same"),
        }
    }
}

#[test]
fn an_operation_that_takes_no_tensor_is_refused_after_one_and_the_error_names_both() {
    let before = format!("{DECODE}[[operation]]\nname = \"layout\"\nlayout = \"NCHW\"\n");
    for declaration in DECLARATIONS {
        let takes = |kind| declaration.takes.iter().any(|it| it.kind == kind);
        if !takes(ValueKind::Image) || takes(ValueKind::Tensor) {
            continue;
        }
        let error = Recipe::from_toml(&format!("{before}{}", table(declaration))).unwrap_err();
        assert_eq!(error.place, Some((7, 8)), "{error}");
        let problem = format!(
            "operation 3 ({}): takes an image and cannot follow `layout`, which gives a tensor",
            declaration.name
        );
        assert_eq!(error.located(), problem);
        assert_eq!(error.remedy, "move it up, before `layout`");
    }
}

#[test]
fn a_value_outside_its_declared_range_is_refused_where_it_is() {
    for declaration in DECLARATIONS {
        for key in declaration.keys {
            let outside = match key.kind {
                KeyType::Switch | KeyType::Word { .. } | KeyType::SwitchOrWord { .. } => {
                    "\"nonsense\""
                }
                KeyType::Size { .. } | KeyType::Whole { .. } => "0",
                KeyType::WholeIn { .. } | KeyType::Wholes { .. } | KeyType::WholeList { .. } => {
                    "-1"
                }
                KeyType::WholeOrWord { .. } => "\"nonsense\"",
                KeyType::Number(_) | KeyType::Numbers { .. } => "nan",
                KeyType::Interval { .. } => "[1.0, 0.0]",
                KeyType::PerChannel => "[1.0, 2.0]",
                KeyType::Weights => "[1.0, -1.0]",
                KeyType::Operations => "[]",
                KeyType::Names => "[3]",
                KeyType::Pairs { .. } => "[[1]]",
                KeyType::File => "\"\"",
                KeyType::Sha256 => "\"A1\"",
            };
            let text = format!("{}{} = {outside}\n", table(declaration), key.name);
            let lines: Vec<&str> = text.lines().collect();
            let is_key = |line: &&str| line.starts_with(&format!("{} = ", key.name));
            let (last, others) = lines.split_last().unwrap();
            let kept: Vec<&str> = others.iter().filter(|line| !is_key(line)).copied().collect();
            let line = kept.len() + 1;
            let table = [kept, vec![last]].concat().join("\n");
            let before = before(declaration);
            let error = Recipe::from_toml(&format!("{before}{table}\n")).unwrap_err();
            assert_eq!(error.place.unwrap().0, before.lines().count() + line, "{error}");
            assert!(error.problem.contains(&format!("`{}`", key.name)), "{error}");
        }
    }
}

/// A table in Markdown, with some columns as code.
fn markdown((header, rows): &TextTable, code: &[usize]) -> String {
    let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let mut text = row(header.iter().map(|cell| (*cell).to_owned()).collect());
    text.push_str(&format!("|{}\n", "---|".repeat(header.len())));
    for cells in rows {
        let cells = cells.iter().enumerate().map(|(column, cell)| {
            if code.contains(&column) && !cell.is_empty() && cell != "required" && cell != "none" {
                format!("`{cell}`")
            } else {
                cell.clone()
            }
        });
        text.push_str(&row(cells.collect()));
    }
    text.replace("|  |", "| |").replace("|  |", "| |")
}

#[test]
fn the_tables_of_the_documentation_are_those_of_the_declarations() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/formats.md");
    let document = std::fs::read_to_string(path).unwrap();
    let all = schema(None).unwrap();
    for table in [
        markdown(&operations_table(&all), &[0]),
        markdown(&keys_table(&all), &[0, 1, 3]),
        markdown(&targets_table(&all), &[0]),
        markdown(&target_keys_table(&all), &[0, 1, 3]),
    ] {
        assert!(document.contains(&table), "docs/formats.md lacks this table:\n{table}");
    }
}

#[test]
fn the_schema_serialises_with_every_key() {
    let schema = schema(Some("color_jitter")).unwrap();
    let text = toml::to_string(&schema).unwrap();
    let read: toml::Table = text.parse().unwrap();
    let operation = &read["operations"][0];
    assert_eq!(operation["phase"].as_str(), Some("pixels"));
    assert_eq!(operation["takes"][0]["kind"].as_str(), Some("image"));
    assert_eq!(operation["random"].as_array().unwrap().len(), 5);
    let hue = &operation["keys"][3];
    assert_eq!(hue["name"].as_str(), Some("hue"));
    assert_eq!(hue["type"].as_str(), Some("interval"));
    assert_eq!(hue["most"].as_float(), Some(0.5));
    assert_eq!(hue["default"].as_array().unwrap().len(), 2);
    assert!(super::super::schema(Some("colour_jitter")).is_none());
}

#[test]
fn a_number_stands_for_the_interval_around_the_neutral_factor() {
    let jitter = |keys: &str| {
        let text = format!(
            "[[operation]]\nname = \"decode\"\n[[operation]]\nname = \"color_jitter\"\n{keys}"
        );
        Recipe::from_toml(&text).map(|recipe| match recipe.operations()[1] {
            Operation::ColorJitter(it) => it,
            ref other => panic!("{other:?}"),
        })
    };
    let read = jitter("brightness = 0.4\ncontrast = 1.5\nhue = 0.1\n").unwrap();
    assert_eq!(read.brightness, (1.0 - 0.4, 1.4));
    assert_eq!(read.contrast, (0.0, 2.5));
    assert_eq!(read.saturation, (1.0, 1.0));
    assert_eq!(read.hue, (-0.1, 0.1));
    assert_eq!(read.factors()[2], None);
    for (keys, column) in [("brightness = -0.1", 14), ("hue = 0.6", 7), ("hue = [0.1, 0.6]", 7)] {
        assert_eq!(jitter(keys).unwrap_err().place, Some((5, column)), "{keys}");
    }
}
