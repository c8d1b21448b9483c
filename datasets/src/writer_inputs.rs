//! The inputs that determine the bytes of a writer, and their comparison.

use crate::message::Message;
use meetpoint_diagnose::Setting;
use serde::{Deserialize, Serialize};
use std::fmt;

/// An input that determines the written rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WriterInput {
    /// The folder or file that is read.
    Source,
    /// The files that it contains.
    SourceFiles,
    /// Whether the content stays in the files of the source.
    InPlace,
    /// The operation on datasets, with its options.
    Operation,
    /// The datasets that it reads.
    Parents,
    /// The value of an option.
    Option(Setting),
}

/// The value of an input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// True or false.
    Flag(bool),
    /// A whole number.
    Number(u64),
    /// A text.
    Text(String),
    /// Several texts in order.
    List(Vec<String>),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => write!(f, "{text:?}"),
            Self::List(texts) => f.write_str(&texts.join(",")),
        }
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

/// All inputs that determine the written rows: a writer resumes only if all of them are the same.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WriterInputs(Vec<(WriterInput, Value)>);

impl WriterInputs {
    /// Adds the value of an input.
    #[must_use]
    pub fn with(mut self, input: WriterInput, value: impl Into<Value>) -> Self {
        self.0.push((input, value.into()));
        self
    }

    /// Adds the value of an option, if it is set.
    #[must_use]
    pub fn option(self, setting: Setting, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.with(WriterInput::Option(setting), value),
            None => self,
        }
    }

    fn value(&self, input: WriterInput) -> Option<&Value> {
        self.0.iter().find(|(name, _)| *name == input).map(|(_, value)| value)
    }

    /// The first input whose value differs in `now`.
    pub(crate) fn difference(&self, now: &Self) -> Option<ResumeConflict> {
        let inputs = now.0.iter().chain(&self.0).map(|(input, _)| *input);
        let values = |input| (self.value(input).cloned(), now.value(input).cloned());
        inputs
            .map(|input| (input, values(input)))
            .find(|(_, (before, now))| before != now)
            .map(|(input, (before, now))| ResumeConflict::Input { input, before, now })
    }
}

/// Why an interrupted command cannot resume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResumeConflict {
    /// Another version of the program started it.
    Tool {
        /// The version that started it.
        before: String,
        /// The current version.
        now: String,
    },
    /// An input that determines the written rows.
    Input {
        /// The input.
        input: WriterInput,
        /// Its value when the command started; `None` if not set.
        before: Option<Value>,
        /// Its value now.
        now: Option<Value>,
    },
    /// Its journal cannot be read.
    Journal {
        /// The cause.
        problem: String,
    },
}

impl ResumeConflict {
    /// What differs, with both values.
    pub fn message(&self) -> Message {
        let shown = |value: &Option<Value>| {
            value.as_ref().map_or_else(|| "not given".to_owned(), Value::to_string)
        };
        match self {
            Self::Tool { before, now } => format!("it was begun by {before}, this is {now}").into(),
            Self::Journal { problem } => format!("its journal cannot be read: {problem}").into(),
            Self::Input { input, before, now } => {
                let what = match input {
                    WriterInput::Source => "the source".into(),
                    WriterInput::SourceFiles => {
                        return "the files of the source have changed".into();
                    }
                    WriterInput::InPlace => "indexing in place".into(),
                    WriterInput::Operation => "the operation".into(),
                    WriterInput::Parents => "the datasets read".into(),
                    WriterInput::Option(setting) => Message::default().name(*setting),
                };
                what + format!(" was {}, is {} now", shown(before), shown(now))
            }
        }
    }
}
