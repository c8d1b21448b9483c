//! The keys of one operation's table, read by their declarations; each error has line and column.

use super::declaration::{Key, KeyType, Presence, WholeSize};
use super::error::{Fault, RecipeError};
use super::named_file::NamedFile;
use super::targets::{KIND, ROTATED_FORMATS};
use super::value::{Described, Value};
use super::{DECLARATIONS, TARGET_DECLARATIONS};
use meetpoint_diagnose::nearest;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Maximum depth of operations that contain each other.
const NESTING_MAX: usize = 8;

/// One `[[operation]]` table, one of the key `operations` of such a table, or one of `targets`.
pub(super) struct Keys<'t> {
    text: &'t str,
    /// The column, for a table of `targets`.
    pub(super) target: Option<&'t str>,
    /// Index and column of the view, for an operation of a view.
    view: Option<(usize, &'t str)>,
    index: usize,
    /// Index and name of the operations that contain this one, the outermost first.
    outer: Vec<(usize, &'t str)>,
    /// Where the table begins in the text.
    start: usize,
    /// Value of the key `name`, or `kind` of a target.
    pub(super) name: &'t str,
    entries: &'t DeTable<'t>,
}

impl<'t> Keys<'t> {
    /// A table that has a name.
    pub(super) fn new(
        text: &'t str,
        index: usize,
        start: usize,
        entries: &'t DeTable<'t>,
    ) -> Result<Self, RecipeError> {
        Self { text, target: None, view: None, index, outer: vec![], start, name: "?", entries }
            .named()
    }

    /// The table of an operation of a view, which has an index and a column.
    pub(super) fn of_view(
        text: &'t str,
        view: (usize, &'t str),
        (index, start): (usize, usize),
        entries: &'t DeTable<'t>,
    ) -> Result<Self, RecipeError> {
        let view = Some(view);
        Self { text, target: None, view, index, outer: vec![], start, name: "?", entries }.named()
    }

    /// The table of a column's target, which has a kind.
    pub(super) fn of_target(
        text: &'t str,
        column: &'t str,
        start: usize,
        entries: &'t DeTable<'t>,
    ) -> Result<Self, RecipeError> {
        let target = Some(column);
        Self { text, target, view: None, index: 0, outer: vec![], start, name: "?", entries }
            .named()
    }

    /// The key whose value selects what the table describes.
    fn naming(&self) -> &'static str {
        if self.target.is_some() { KIND } else { "name" }
    }

    /// The table with its name.
    fn named(self) -> Result<Self, RecipeError> {
        let (entries, naming, keys) = (self.entries, self.naming(), self);
        let remedy = match keys.target {
            Some(_) => "kind = \"...\", such as kind = \"mask\"",
            None => "name = \"...\", such as name = \"decode\"",
        };
        let value = entries.get(naming).ok_or_else(|| keys.missing(naming, remedy))?;
        let DeValue::String(name) = value.get_ref() else {
            return Err(keys.wrong_type(naming, value, remedy));
        };
        Ok(Self { name, ..keys })
    }

    /// The operation that the table describes, with the values of all its keys.
    pub(super) fn read(&self) -> Result<Described, RecipeError> {
        let declaration = DECLARATIONS.iter().find(|declaration| declaration.name == self.name);
        let Some(declaration) = declaration else {
            let known: Vec<&str> = DECLARATIONS.iter().map(|it| it.name).collect();
            let guess = nearest(self.name, &known).map(|near| format!("did you mean \"{near}\"? "));
            let remedy = format!("{}known are {}", guess.unwrap_or_default(), known.join(", "));
            return Err(self.fault(self.offset_of("name"), "unknown operation", &remedy));
        };
        let keys = self.values(declaration.keys)?.into();
        Ok(Described { name: declaration.name, keys })
    }

    /// The kind of target that the table describes, with the values of all its keys.
    pub(super) fn read_target(&self) -> Result<Described, RecipeError> {
        let found = TARGET_DECLARATIONS.iter().find(|declaration| declaration.name == self.name);
        let Some(declaration) = found else {
            let known: Vec<&str> = TARGET_DECLARATIONS.iter().map(|it| it.name).collect();
            let guess = nearest(self.name, &known).map(|near| format!("did you mean \"{near}\"? "));
            let remedy = format!("{}known are {}", guess.unwrap_or_default(), known.join(", "));
            return Err(self.fault(self.offset_of(KIND), "unknown kind of target", &remedy));
        };
        for key in ["format", "to_format"] {
            let Some(value) = self.entries.get(key) else { continue };
            if let DeValue::String(word) = value.get_ref()
                && ROTATED_FORMATS.contains(&word.as_ref())
            {
                let problem = format!(
                    "`{key}` is {word:?}: rotated boxes are not supported, because a box is the \
                     rectangle around its transformed corners, which has no angle"
                );
                let remedy = "convert them to the boxes around them, in xyxy, xywh or cxcywh, or \
                              store the four corners of each as keypoints";
                return Err(self.fault(value.span().start, &problem, remedy));
            }
        }
        let keys = self.values(declaration.keys)?.into();
        Ok(Described { name: declaration.name, keys })
    }

    /// Refuses a key that is neither `name` nor one of `known`.
    fn allow(&self, known: &[&str]) -> Result<(), RecipeError> {
        let stranger = self
            .entries
            .keys()
            .filter(|key| {
                key.get_ref() != self.naming() && !known.contains(&key.get_ref().as_ref())
            })
            .min_by_key(|key| key.span().start);
        let Some(key) = stranger else {
            return Ok(());
        };
        let guess = nearest(key.get_ref(), known).map(|near| format!("did you mean `{near}`? "));
        let known = match known {
            [] => format!("it has no keys but `{}`", self.naming()),
            _ => format!("its keys are {}", known.join(", ")),
        };
        let problem = format!("unknown key `{}`", key.get_ref());
        let remedy = guess.unwrap_or_default() + &known;
        Err(self.fault(key.span().start, &problem, &remedy))
    }

    /// The position of a key's value or, if the key is missing, of the name or the table.
    pub(super) fn offset_of(&self, key: &str) -> usize {
        let value = self.entries.get(key).or_else(|| self.entries.get(self.naming()));
        value.map_or(self.start, |value| value.span().start)
    }

    /// The tables of the operations in the value of a key.
    pub(super) fn inner(&self, key: &str) -> Result<Vec<Self>, RecipeError> {
        let remedy = "an array of tables, each with a name";
        let Some(value) = self.entries.get(key) else { return Ok(vec![]) };
        let DeValue::Array(tables) = value.get_ref() else {
            return Err(self.wrong_type(key, value, remedy));
        };
        if self.outer.len() + 1 >= NESTING_MAX {
            let problem = format!("`{key}` is inside of {} operations", self.outer.len());
            let remedy = format!("operations may be nested {NESTING_MAX} deep");
            return Err(self.fault(value.span().start, &problem, &remedy));
        }
        let outer = [&self.outer[..], &[(self.index, self.name)]].concat();
        let read = |(index, table): (usize, &'t Spanned<DeValue<'t>>)| {
            let DeValue::Table(entries) = table.get_ref() else {
                let problem = format!("`{key}` holds {} at {}", kind(table.get_ref()), index + 1);
                return Err(self.fault(table.span().start, &problem, remedy));
            };
            let start = table.span().start;
            let (text, outer) = (self.text, outer.clone());
            let view = self.view;
            Self { text, target: None, view, index, outer, start, name: "?", entries }.named()
        };
        tables.iter().enumerate().map(read).collect()
    }

    /// The values of the declared keys, with defaults, each of its declared type. Ranges are not
    /// checked, except where a type cannot hold a value.
    fn values(&self, declared: &'static [Key]) -> Result<Vec<(&'static str, Value)>, RecipeError> {
        let names: Vec<&str> = declared.iter().map(|key| key.name).collect();
        self.allow(&names)?;
        let read = |key: &'static Key| {
            let value = match (self.entries.get(key.name), &key.presence) {
                (Some(value), _) => self.value(key, value)?,
                (None, Presence::Default(default)) => default.clone(),
                (None, Presence::Example(_)) => {
                    return Err(self.missing(key.name, &key.instruction()));
                }
            };
            Ok((key.name, value))
        };
        declared.iter().map(read).collect()
    }

    /// A value of the type that the key declares.
    fn value(&self, key: &Key, value: &Spanned<DeValue<'_>>) -> Result<Value, RecipeError> {
        let wrong_type = || Err(self.wrong_type(key.name, value, &key.instruction()));
        let found = value.get_ref();
        match key.kind {
            KeyType::Switch => match found {
                DeValue::Boolean(on) => Ok(Value::Switch(*on)),
                _ => wrong_type(),
            },
            KeyType::Word { choices } => match found {
                DeValue::String(word) => self.word(key, value, word, choices),
                _ => wrong_type(),
            },
            KeyType::SwitchOrWord { choices } => match found {
                DeValue::Boolean(on) => Ok(Value::Switch(*on)),
                DeValue::String(word) => self.word(key, value, word, choices),
                _ => wrong_type(),
            },
            KeyType::Size { whole, .. } => match found {
                DeValue::Integer(_) => {
                    let side = self.whole(key, value)?;
                    Ok(match whole {
                        WholeSize::ShorterSide => Value::Whole(side),
                        WholeSize::Square => Value::Sides([side, side]),
                    })
                }
                DeValue::Array(sides) => match &sides[..] {
                    [height, width] => {
                        let height = self.whole(key, height)?;
                        Ok(Value::Sides([height, self.whole(key, width)?]))
                    }
                    _ => Err(self.wrong_length(key, value, sides.len())),
                },
                _ => wrong_type(),
            },
            KeyType::Whole { .. } => self.whole(key, value).map(Value::Whole),
            KeyType::Number(_) => self.number(key, value).map(Value::Number),
            KeyType::Interval { bounds, middle } => match (found, middle) {
                (DeValue::Integer(_) | DeValue::Float(_), Some(middle)) => {
                    let side = self.number(key, value)?;
                    let is_beyond = bounds.most.is_some_and(|most| middle + side > most);
                    if side.is_nan() || side < 0.0 || is_beyond {
                        let problem = format!("`{}` is {side:?}", key.name);
                        return Err(self.fault(value.span().start, &problem, &key.instruction()));
                    }
                    Ok((bounds.least.max(middle - side), middle + side).into())
                }
                _ => self.numbers(key, value, Some(&[2])),
            },
            KeyType::WholeIn { least, most } => {
                self.whole_in(key, value, (least, most)).map(Value::Whole)
            }
            KeyType::WholeOrWord { least, most, choices } => match found {
                DeValue::String(word) => self.word(key, value, word, choices),
                _ => self.whole_in(key, value, (least, most)).map(Value::Whole),
            },
            KeyType::WholeList { count_max, least, most } => {
                let elements = match found {
                    DeValue::Array(elements) => &elements[..],
                    _ => std::slice::from_ref(value),
                };
                if elements.is_empty() || elements.len() > count_max {
                    return Err(self.wrong_length(key, value, elements.len()));
                }
                let wholes = elements.iter().map(|it| self.whole_in(key, it, (least, most)));
                Ok(Value::Wholes(wholes.collect::<Result<Vec<_>, _>>()?.into()))
            }
            KeyType::Wholes { counts, least, most } => match found {
                DeValue::Integer(_) if counts.contains(&1) => {
                    Ok(Value::Wholes(vec![self.whole_in(key, value, (least, most))?].into()))
                }
                DeValue::Array(elements) if counts.contains(&elements.len()) => {
                    let whole = |element| self.whole_in(key, element, (least, most));
                    let wholes = elements.iter().map(whole);
                    Ok(Value::Wholes(wholes.collect::<Result<Vec<_>, _>>()?.into()))
                }
                DeValue::Array(elements) => Err(self.wrong_length(key, value, elements.len())),
                _ => wrong_type(),
            },
            KeyType::Numbers { counts, .. } => match found {
                DeValue::Integer(_) | DeValue::Float(_) if counts.contains(&1) => {
                    Ok(Value::Numbers(vec![self.number(key, value)?].into()))
                }
                _ => self.numbers(key, value, Some(counts)),
            },
            KeyType::PerChannel => self.numbers(key, value, Some(&[1, 3, 4])),
            KeyType::Weights => self.numbers(key, value, None),
            KeyType::Names => {
                let DeValue::Array(elements) = found else { return wrong_type() };
                let name = |element: &Spanned<DeValue<'_>>| match element.get_ref() {
                    DeValue::String(name) => Ok(name.to_string()),
                    _ => Err(self.wrong_type(key.name, element, &key.instruction())),
                };
                let names: Result<Vec<String>, _> = elements.iter().map(name).collect();
                Ok(Value::Names(names?.into()))
            }
            KeyType::Pairs { .. } => {
                let DeValue::Array(elements) = found else { return wrong_type() };
                let pair = |element: &Spanned<DeValue<'_>>| match element.get_ref() {
                    DeValue::Array(pair) => match &pair[..] {
                        [one, other] => Ok([self.whole(key, one)?, self.whole(key, other)?]),
                        _ => Err(self.wrong_length(key, element, pair.len())),
                    },
                    _ => Err(self.wrong_type(key.name, element, &key.instruction())),
                };
                let pairs: Result<Vec<_>, _> = elements.iter().map(pair).collect();
                Ok(Value::Pairs(pairs?.into()))
            }
            KeyType::File => match found {
                DeValue::String(path) if !path.is_empty() => {
                    Ok(Value::File(path.to_string().into()))
                }
                _ => wrong_type(),
            },
            KeyType::Sha256 => match found {
                DeValue::String(digits) if NamedFile::is_digest(digits) => {
                    Ok(Value::Digest(digits.to_string().into()))
                }
                _ => wrong_type(),
            },
            KeyType::Operations => {
                let inner = self.inner(key.name)?;
                let read: Result<Vec<_>, _> = inner.iter().map(Self::read).collect();
                Ok(Value::Operations(read?.into()))
            }
        }
    }

    /// An array of numbers; `counts`, if given, lists its permitted lengths.
    fn numbers(
        &self,
        key: &Key,
        value: &Spanned<DeValue<'_>>,
        lengths: Option<&[usize]>,
    ) -> Result<Value, RecipeError> {
        let DeValue::Array(elements) = value.get_ref() else {
            return Err(self.wrong_type(key.name, value, &key.instruction()));
        };
        let numbers: Vec<f64> =
            elements.iter().map(|element| self.number(key, element)).collect::<Result<_, _>>()?;
        if lengths.is_some_and(|lengths| !lengths.contains(&numbers.len())) {
            return Err(self.wrong_length(key, value, numbers.len()));
        }
        Ok(Value::Numbers(numbers.into()))
    }

    /// One of some words.
    fn word(
        &self,
        key: &Key,
        value: &Spanned<DeValue<'_>>,
        found: &str,
        choices: &'static [&'static str],
    ) -> Result<Value, RecipeError> {
        if let Some(word) = choices.iter().find(|word| **word == found) {
            return Ok(Value::Word(word));
        }
        let guess = nearest(found, choices).map(|near| format!("did you mean \"{near}\"? "));
        let problem = format!("`{}` is {found:?}", key.name);
        let remedy = guess.unwrap_or_default() + &key.instruction();
        Err(self.fault(value.span().start, &problem, &remedy))
    }

    /// A fault of this operation at a position in the text.
    pub(super) fn fault(&self, offset: usize, problem: &str, remedy: &str) -> RecipeError {
        let fault = Fault::new(problem, remedy);
        let problem = match self.target {
            Some(column) => fault.of_target(column, self.name),
            None => fault.of_operation(self.index, self.name),
        };
        let outer = self.outer.iter().rev();
        let problem = outer.fold(problem, |problem, (index, name)| problem.inside(*index, name));
        match self.view {
            Some((index, column)) => problem.in_view(0, index, column),
            None => problem,
        }
        .at(Some(line_and_column(self.text, offset)))
    }

    fn missing(&self, key: &str, remedy: &str) -> RecipeError {
        self.fault(self.offset_of(self.naming()), &format!("the key `{key}` is missing"), remedy)
    }

    /// A whole number that fits into 32 bits.
    fn whole(&self, key: &Key, value: &Spanned<DeValue<'_>>) -> Result<u32, RecipeError> {
        let DeValue::Integer(number) = value.get_ref() else {
            return Err(self.wrong_type(key.name, value, &key.instruction()));
        };
        u32::from_str_radix(number.as_str(), number.radix()).map_err(|_| {
            let problem = format!("`{}` holds {number}", key.name);
            self.fault(value.span().start, &problem, &key.instruction())
        })
    }

    /// A whole number in a range. It is checked here because operations store some of them in types
    /// that cannot hold other values.
    fn whole_in(
        &self,
        key: &Key,
        value: &Spanned<DeValue<'_>>,
        (least, most): (u32, u32),
    ) -> Result<u32, RecipeError> {
        let number = self.whole(key, value)?;
        if (least..=most).contains(&number) {
            return Ok(number);
        }
        let problem = format!("`{}` holds {number}", key.name);
        Err(self.fault(value.span().start, &problem, &key.instruction()))
    }

    /// A float, or an integer in place of one.
    fn number(&self, key: &Key, value: &Spanned<DeValue<'_>>) -> Result<f64, RecipeError> {
        match value.get_ref() {
            DeValue::Float(number) => number.as_str().parse().ok(),
            DeValue::Integer(number) => {
                i64::from_str_radix(number.as_str(), number.radix()).ok().map(|it| it as f64)
            }
            _ => None,
        }
        .ok_or_else(|| self.wrong_type(key.name, value, &key.instruction()))
    }

    fn wrong_type(&self, key: &str, value: &Spanned<DeValue<'_>>, remedy: &str) -> RecipeError {
        let problem = format!("`{key}` holds {}", kind(value.get_ref()));
        self.fault(value.span().start, &problem, remedy)
    }

    fn wrong_length(&self, key: &Key, value: &Spanned<DeValue<'_>>, got: usize) -> RecipeError {
        let problem = format!("`{}` is an array of {got}", key.name);
        self.fault(value.span().start, &problem, &key.instruction())
    }
}

/// What a value is, in words.
pub(super) fn kind(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("the text {text:?}"),
        DeValue::Integer(number) => format!("the whole number {number}"),
        DeValue::Float(number) => format!("the number {number}"),
        DeValue::Boolean(on) => on.to_string(),
        DeValue::Datetime(date) => format!("the date {date}"),
        DeValue::Array(_) => "an array".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

/// Line and column of a byte of the text, both counted from 1, columns in characters.
pub(super) fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = &text.as_bytes()[..offset.min(text.len())];
    let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    // Every character has exactly one byte that is not a continuation byte.
    let column = before[line_start..].iter().filter(|byte| (**byte & 0xc0) != 0x80).count() + 1;
    (line, column)
}
