//! Generates recipes with an operation from its declaration, with random values of its keys.

use meetpoint_format::recipe::{
    Bounds, DECLARATIONS, Declaration, Described, InputType, Key, KeyType, Phase, Presence, Recipe,
    Value, ValueKind,
};
use meetpoint_format::split_mix::SplitMix64;

/// Attempts to find compatible random keys before the example is used.
const ATTEMPTS: u32 = 12;

/// Largest number for a key without bounds or with wide bounds, since the pictures are small.
const NUMBER_MAX: f64 = 6.0;
const WHOLE_MAX: u32 = 60;

/// Random numbers from a seed.
pub(crate) struct Chance(SplitMix64);

impl Chance {
    /// The generator for a seed and a name.
    pub(crate) fn new(seed: u64, name: &str) -> Self {
        let mix = |hash: u64, byte| hash.wrapping_mul(31).wrapping_add(u64::from(byte));
        Self(SplitMix64::new(name.bytes().fold(seed, mix)))
    }

    fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A whole number from 0 to `most`.
    pub(crate) fn up_to(&mut self, most: u32) -> u32 {
        (self.next() % (u64::from(most) + 1)) as u32
    }

    fn is_lucky(&mut self, of: u32) -> bool {
        self.up_to(of - 1) == 0
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.up_to(all.len() as u32 - 1) as usize]
    }

    fn number(&mut self, bounds: Bounds) -> f64 {
        let least = bounds.least.max(-100.0);
        let most = bounds.most.unwrap_or(least + NUMBER_MAX).min(least + 400.0);
        let share = (1 + self.up_to(999)) as f64 / 1000.0;
        match self.up_to(9) {
            0 if !bounds.is_least_excluded => least,
            1 => most,
            // Small numbers are typical.
            2..=4 => least + share * (most - least).min(1.0),
            _ => least + share * (most - least),
        }
    }

    fn whole(&mut self, least: u32, most: u32) -> u32 {
        least + self.up_to(most.min(least + WHOLE_MAX) - least)
    }
}

/// A recipe.
pub(crate) struct Case {
    pub(crate) recipe: Recipe,
    /// The text of the recipe.
    pub(crate) text: String,
    /// The kind of file that it decodes.
    pub(crate) content: Content,
    /// Whether its keys are random, not those of the declaration.
    pub(crate) has_random_keys: bool,
}

/// A random value of a key; `None` to omit the key.
fn value(key: &Key, chance: &mut Chance) -> Option<Value> {
    let value = match key.kind {
        KeyType::Switch => Value::Switch(chance.is_lucky(2)),
        KeyType::Word { choices } => Value::Word(chance.of(choices)),
        KeyType::SwitchOrWord { choices } => match chance.up_to(2) {
            0 => Value::Word(chance.of(choices)),
            word => Value::Switch(word == 1),
        },
        KeyType::Size { least, most, .. } => match chance.is_lucky(2) {
            true => Value::Whole(chance.whole(least, most)),
            false => Value::Sides([chance.whole(least, most), chance.whole(least, most)]),
        },
        KeyType::Whole { choices } => Value::Whole(chance.of(choices)),
        KeyType::Number(bounds) => Value::Number(chance.number(bounds)),
        KeyType::Interval { bounds, .. } => {
            let mut ends = [chance.number(bounds), chance.number(bounds)];
            ends.sort_by(f64::total_cmp);
            Value::Numbers(ends.to_vec().into())
        }
        KeyType::PerChannel => {
            let channels = chance.of(&[1, 3, 3, 4]);
            let positive = Bounds { least: 0.1, is_least_excluded: true, most: Some(1.0) };
            let numbers: Vec<f64> = (0..channels).map(|_| chance.number(positive)).collect();
            Value::Numbers(numbers.into())
        }
        KeyType::WholeIn { least, most } => Value::Whole(chance.whole(least, most)),
        KeyType::WholeOrWord { least, most, choices } => match chance.is_lucky(3) {
            true => Value::Word(chance.of(choices)),
            false => Value::Whole(chance.whole(least, most)),
        },
        KeyType::WholeList { count_max, least, most } => {
            let count = 1 + chance.up_to(count_max.min(3) as u32 - 1);
            Value::Wholes((0..count).map(|_| chance.whole(least, most)).collect())
        }
        KeyType::Wholes { counts, least, most } => {
            let count = chance.of(counts);
            Value::Wholes((0..count).map(|_| chance.whole(least, most)).collect())
        }
        KeyType::Numbers { counts, bounds } => {
            let count = chance.of(counts);
            Value::Numbers((0..count).map(|_| chance.number(bounds)).collect())
        }
        KeyType::Operations => {
            let count = 1 + chance.up_to(2);
            Value::Operations((0..count).map(|_| contained(chance)).collect())
        }
        // Their values depend on other keys, or on columns.
        KeyType::Weights
        | KeyType::Names
        | KeyType::Pairs { .. }
        | KeyType::File
        | KeyType::Sha256 => return None,
    };
    Some(value)
}

/// An operation on pictures inside of another.
fn contained(chance: &mut Chance) -> Described {
    let is_on_pictures = |it: &&&Declaration| match it.phase {
        Phase::Geometry | Phase::Pixels | Phase::Picture => after(it).is_empty(),
        Phase::Decode
        | Phase::Series
        | Phase::Text
        | Phase::Elements
        | Phase::Tensor
        | Phase::Choice
        | Phase::Batch => false,
    };
    let all: Vec<&Declaration> = DECLARATIONS.iter().filter(is_on_pictures).copied().collect();
    let declaration = chance.of(&all);
    let keys = declaration.keys.iter().filter_map(|key| match &key.presence {
        Presence::Example(value) => Some((key.name, value.clone())),
        Presence::Default(_) if chance.is_lucky(3) => Some((key.name, value(key, chance)?)),
        Presence::Default(_) => None,
    });
    let keys: Vec<(&str, Value)> = keys.collect();
    Described { name: declaration.name, keys: keys.into() }
}

/// The table of an operation, with the keys of the declaration's example or random ones.
fn table(declaration: &Declaration, chance: Option<&mut Chance>) -> String {
    let mut text = format!("[[operation]]\nname = \"{}\"\n", declaration.name);
    let mut put = |key: &Key, value: &Value| {
        text.push_str(&format!("{} = {}\n", key.name, value.to_toml()));
    };
    match chance {
        None => {
            for key in declaration.keys {
                if let Presence::Example(example) = &key.presence {
                    put(key, example);
                }
            }
        }
        Some(chance) => {
            for key in declaration.keys {
                let is_random = chance.up_to(3) > 0;
                match (&key.presence, is_random.then(|| value(key, chance)).flatten()) {
                    (_, Some(value)) => put(key, &value),
                    (Presence::Example(example), None) => put(key, example),
                    (Presence::Default(_), None) => (),
                }
            }
        }
    }
    text
}

/// The target without which an operation is refused.
pub(crate) fn after(declaration: &Declaration) -> &'static str {
    match declaration.name {
        "random_iou_crop" => "[targets.boxes]\nkind = \"boxes\"\nformat = \"xyxy\"\n",
        _ => "",
    }
}

/// The content of the file that a recipe decodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content {
    /// A picture, with alpha or without.
    Picture { has_alpha: bool },
    /// A recording of one channel.
    Sound,
    /// Measurements in two channels.
    Signal,
    /// Words and tags.
    Text,
}

/// The operations before one whose input is sound, a spectrogram, a signal, text or tokens, and the
/// kind of file that they decode; empty for a decoder.
fn before_series(declaration: &Declaration, takes: ValueKind) -> Option<(&'static str, Content)> {
    let sound = "[[operation]]\nname = \"decode_audio\"\nsample_rate = 8000\n";
    let spectrogram = "[[operation]]\nname = \"decode_audio\"\nsample_rate = 8000\n\
                       [[operation]]\nname = \"spectrogram\"\nn_fft = 64\nhop_length = 16\n";
    let signal = "[[operation]]\nname = \"decode_signal\"\nnum_channels = 2\n";
    let text = "[[operation]]\nname = \"decode_text\"\n";
    let tokens = "[[operation]]\nname = \"decode_text\"\n\
                  [[operation]]\nname = \"tokenize\"\ntokenizer = \"tokenizer.json\"\n";
    let padded = "[[operation]]\nname = \"decode_text\"\n\
                  [[operation]]\nname = \"tokenize\"\ntokenizer = \"tokenizer.json\"\n\
                  [[operation]]\nname = \"pad_sequence\"\nlength = 64\n\
                  planes = \"ids_segments_positions\"\n";
    match (takes, declaration.gives.kind) {
        (ValueKind::Encoded, ValueKind::Audio) => Some(("", Content::Sound)),
        (ValueKind::Encoded, ValueKind::Signal) => Some(("", Content::Signal)),
        (ValueKind::Audio, _) => Some((sound, Content::Sound)),
        (ValueKind::Spectrogram, _) => Some((spectrogram, Content::Sound)),
        (ValueKind::Signal, _) => Some((signal, Content::Signal)),
        (ValueKind::Encoded, ValueKind::Text) => Some(("", Content::Text)),
        (ValueKind::Text, _) => Some((text, Content::Text)),
        (ValueKind::Tokens, ValueKind::Batch) => Some((padded, Content::Text)),
        (ValueKind::Tokens, _) => Some((tokens, Content::Text)),
        _ => None,
    }
}

/// A recipe with an operation. Others precede it, as its input requires, and may follow it.
pub(crate) fn case(declaration: &Declaration, chance: &mut Chance) -> Case {
    let all: Vec<&InputType> = declaration.takes.iter().collect();
    for attempt in (0..=ATTEMPTS).rev() {
        let has_random_keys = attempt > 0;
        let takes = if has_random_keys { chance.of(&all) } else { all[0] };
        let mut text = String::new();
        let mut content = Content::Picture { has_alpha: false };
        let before = before_series(declaration, takes.kind);
        if let Some((operations, of_series)) = before {
            text.push_str(operations);
            content = of_series;
        } else if takes.kind != ValueKind::Encoded {
            let mode = match chance.up_to(5) {
                _ if !has_random_keys => "rgb",
                0 if takes.channels.contains(&1) => "gray",
                1 if takes.channels.contains(&4) => "rgba",
                _ => "rgb",
            };
            content = Content::Picture { has_alpha: mode == "rgba" };
            text.push_str(&format!("[[operation]]\nname = \"decode\"\nmode = \"{mode}\"\n"));
        }
        let is_mixed = declaration.phase == Phase::Batch && before.is_none();
        if is_mixed {
            text.push_str("[[operation]]\nname = \"resize\"\nsize = [37, 29]\n");
        }
        let is_converted = is_mixed && chance.is_lucky(2);
        if is_converted || matches!(takes.kind, ValueKind::Tensor | ValueKind::Batch) {
            let dtype = match takes.dtypes.contains(&"uint8") && chance.is_lucky(3) {
                true => "uint8",
                false => chance.of(&["float16", "float32"]),
            };
            text.push_str(&format!("[[operation]]\nname = \"to_dtype\"\ndtype = \"{dtype}\"\n"));
            text.push_str(match dtype {
                "uint8" => "",
                _ => "scale = true\n",
            });
            if chance.is_lucky(2) {
                text.push_str("[[operation]]\nname = \"layout\"\nlayout = \"NCHW\"\n");
            }
        }
        text.push_str(&table(declaration, has_random_keys.then_some(&mut *chance)));
        let gives_image = declaration.gives.kind == ValueKind::Image;
        if gives_image && chance.is_lucky(3) {
            text.push_str("[[operation]]\nname = \"resize\"\nsize = [23, 31]\n");
        }
        if gives_image && chance.is_lucky(3) {
            text.push_str(
                "[[operation]]\nname = \"to_dtype\"\ndtype = \"float32\"\nscale = true\n",
            );
        }
        text.push_str(after(declaration));
        match Recipe::from_toml(&text) {
            Ok(recipe) => return Case { recipe, text, content, has_random_keys },
            Err(error) if attempt == 0 => panic!("{error}\n{text}"),
            Err(_) => (),
        }
    }
    unreachable!("the last attempt succeeds or panics")
}
