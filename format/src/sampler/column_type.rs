//! The types of columns in samplers and expressions.

/// The type of a column for a sampler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnType {
    /// Integers of at most 64 bits, signed.
    Whole,
    /// Other numbers.
    Number,
    /// Texts.
    Text,
    /// True or false.
    Flag,
    /// A type that samplers cannot use, in words.
    Other(String),
}

impl ColumnType {
    /// The type in words.
    pub fn words(&self) -> &str {
        match self {
            Self::Whole => "whole numbers",
            Self::Number => "numbers",
            Self::Text => "texts",
            Self::Flag => "true and false",
            Self::Other(words) => words,
        }
    }
}
