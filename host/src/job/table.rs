//! Typed access to one table of a job file; every error has its line and column.

use crate::job_error::{CAUSE, JobError};
use meetpoint_diagnose::{Remedy, nearest};
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A file's name and text, to locate errors.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source<'t> {
    pub(super) file: &'t Path,
    pub(super) text: &'t str,
}

impl Source<'_> {
    /// Line and column of a byte, from 1; columns count characters.
    pub(super) fn place(&self, offset: usize) -> (usize, usize) {
        // The parser's offsets are between characters.
        let before = self.text.get(..offset).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }

    pub(super) fn fault(
        &self,
        offset: usize,
        problem: impl Into<String>,
        remedy: impl Into<Remedy>,
    ) -> JobError {
        JobError {
            file: self.file.to_path_buf(),
            place: Some(self.place(offset)),
            cause: CAUSE,
            problem: problem.into(),
            remedy: remedy.into(),
        }
    }
}

/// One table.
#[derive(Debug, Clone)]
pub(super) struct Table<'t> {
    pub(super) source: Source<'t>,
    /// `device` for `[device]`, `device[1]` for the second `[[device]]`; empty for the file itself.
    name: String,
    start: usize,
    entries: &'t DeTable<'t>,
}

impl<'t> Table<'t> {
    pub(super) fn of_file(source: Source<'t>, entries: &'t DeTable<'t>) -> Self {
        Self { source, name: String::new(), start: 0, entries }
    }

    /// The full name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// A table inside this one.
    pub(super) fn table(&self, key: &str) -> Result<Option<Table<'t>>, JobError> {
        let Some(value) = self.entries.get(key) else { return Ok(None) };
        let DeValue::Table(entries) = value.get_ref() else {
            return Err(self.wrong(key, value, format!("a table: [{key}] on a line of its own")));
        };
        let start = value.span().start;
        Ok(Some(Table { source: self.source, name: self.full_name(key), start, entries }))
    }

    /// The tables of an array: `[[key]]`, each on its own line.
    pub(super) fn tables(&self, key: &str) -> Result<Vec<Table<'t>>, JobError> {
        let Some(value) = self.entries.get(key) else { return Ok(Vec::new()) };
        let remedy = format!("tables: [[{key}]], with two brackets");
        let DeValue::Array(elements) = value.get_ref() else {
            return Err(self.wrong(key, value, remedy));
        };
        let read = |(index, element): (usize, &'t Spanned<DeValue<'t>>)| {
            let DeValue::Table(entries) = element.get_ref() else {
                return Err(self.wrong(key, element, &remedy));
            };
            let name = format!("{}[{index}]", self.full_name(key));
            Ok(Table { source: self.source, name, start: element.span().start, entries })
        };
        elements.iter().enumerate().map(read).collect()
    }

    /// The keys that it contains.
    pub(super) fn keys(&self) -> impl Iterator<Item = &'t str> + use<'t> {
        self.entries.keys().map(|key| key.get_ref().as_ref())
    }

    pub(super) fn value(&self, key: &str) -> Option<&'t Spanned<DeValue<'t>>> {
        self.entries.get(key)
    }

    /// Refuses keys that are not `known`.
    pub(super) fn allow(&self, known: &[&str]) -> Result<(), JobError> {
        let stranger = self
            .entries
            .keys()
            .filter(|key| !known.contains(&key.get_ref().as_ref()))
            .min_by_key(|key| key.span().start);
        let Some(key) = stranger else { return Ok(()) };
        let problem = format!("unknown key `{}`", self.full_name(key.get_ref()));
        let remedy = match known {
            [] => "leave it out: this table has no keys".to_owned(),
            _ => meetpoint_diagnose::known(key.get_ref(), known),
        };
        Err(self.source.fault(key.span().start, problem, remedy))
    }

    /// A string; `None` if the key is absent.
    pub(super) fn text(&self, key: &str, remedy: &str) -> Result<Option<&'t str>, JobError> {
        match self.entries.get(key) {
            None => Ok(None),
            Some(value) => match value.get_ref() {
                DeValue::String(text) => Ok(Some(text.as_ref())),
                _ => Err(self.wrong(key, value, remedy)),
            },
        }
    }

    /// A whole number within a range.
    pub(super) fn whole(
        &self,
        key: &str,
        range: RangeInclusive<u64>,
    ) -> Result<Option<u64>, JobError> {
        let Some(value) = self.entries.get(key) else { return Ok(None) };
        let remedy = match (*range.start(), *range.end()) {
            (least, u64::MAX) => format!("a whole number, at least {least}"),
            (least, most) => format!("a whole number from {least} to {most}"),
        };
        self.whole_of(value)
            .filter(|number| range.contains(number))
            .map(Some)
            .ok_or_else(|| self.wrong(key, value, remedy))
    }

    /// The whole number under a key; `None` if it is anything else, or negative.
    pub(super) fn whole_at(&self, key: &str) -> Option<u64> {
        self.whole_of(self.entries.get(key)?)
    }

    fn whole_of(&self, value: &Spanned<DeValue<'_>>) -> Option<u64> {
        let DeValue::Integer(number) = value.get_ref() else { return None };
        u64::from_str_radix(number.as_str(), number.radix()).ok()
    }

    /// A whole number of 32 bits, with a default.
    pub(super) fn small(
        &self,
        key: &str,
        range: RangeInclusive<u32>,
        default: u32,
    ) -> Result<u32, JobError> {
        let range = u64::from(*range.start())..=u64::from(*range.end());
        let number = self.whole(key, range)?.unwrap_or(u64::from(default));
        Ok(u32::try_from(number).expect("the range has 32 bits"))
    }

    /// A boolean, with a default.
    pub(super) fn flag(&self, key: &str, default: bool) -> Result<bool, JobError> {
        match self.entries.get(key) {
            None => Ok(default),
            Some(value) => match value.get_ref() {
                DeValue::Boolean(flag) => Ok(*flag),
                _ => Err(self.wrong(key, value, "true or false")),
            },
        }
    }

    /// A number above 0 and at most `most`.
    pub(super) fn share(&self, key: &str, most: f64) -> Result<Option<f64>, JobError> {
        let Some(value) = self.entries.get(key) else { return Ok(None) };
        self.number_of(value)
            .filter(|&number| number > 0.0 && number <= most)
            .map(Some)
            .ok_or_else(|| self.wrong(key, value, format!("a number above 0 and at most {most}")))
    }

    /// A number within a range.
    pub(super) fn number(
        &self,
        key: &str,
        range: RangeInclusive<f64>,
    ) -> Result<Option<f64>, JobError> {
        let Some(value) = self.entries.get(key) else { return Ok(None) };
        let remedy = match (*range.start(), *range.end()) {
            (f64::MIN, f64::MAX) => "a finite number".to_owned(),
            (least, f64::MAX) => format!("a finite number, at least {least}"),
            (least, most) => format!("a number from {least} to {most}"),
        };
        self.number_of(value)
            .filter(|number| range.contains(number))
            .map(Some)
            .ok_or_else(|| self.wrong(key, value, remedy))
    }

    fn number_of(&self, value: &Spanned<DeValue<'_>>) -> Option<f64> {
        match value.get_ref() {
            DeValue::Float(number) => number.as_str().replace('_', "").parse::<f64>().ok(),
            DeValue::Integer(number) => {
                let parsed = i64::from_str_radix(number.as_str(), number.radix()).ok();
                parsed.map(|number| number as f64)
            }
            _ => None,
        }
    }

    /// A quantity in a string, such as `512MiB`.
    pub(super) fn quantity<T>(
        &self,
        key: &str,
        parse: fn(&str) -> Option<T>,
        remedy: &str,
    ) -> Result<Option<T>, JobError> {
        let Some(text) = self.text(key, remedy)? else { return Ok(None) };
        parse(text).map(Some).ok_or_else(|| self.wrong_at(key, remedy))
    }

    /// One of several words.
    pub(super) fn word<T: Clone>(
        &self,
        key: &str,
        words: &[(&str, T)],
    ) -> Result<Option<T>, JobError> {
        let known: Vec<String> = words.iter().map(|(word, _)| format!("\"{word}\"")).collect();
        let remedy = format!("one of {}", known.join(", "));
        let Some(text) = self.text(key, &remedy)? else { return Ok(None) };
        let found = words.iter().find(|(word, _)| *word == text);
        let wrong = || {
            let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            match nearest(text, &known) {
                Some(near) => self.wrong_at(key, format!("\"{near}\", or another {remedy}")),
                None => self.wrong_at(key, remedy.clone()),
            }
        };
        found.map(|(_, value)| Some(value.clone())).ok_or_else(wrong)
    }

    /// An array whose elements `read` parses.
    pub(super) fn list<T>(
        &self,
        key: &str,
        read: impl Fn(&Self, &Spanned<DeValue<'t>>) -> Option<T>,
        remedy: &str,
    ) -> Result<Option<Vec<T>>, JobError> {
        let Some(value) = self.entries.get(key) else { return Ok(None) };
        let DeValue::Array(elements) = value.get_ref() else {
            return Err(self.wrong(key, value, remedy));
        };
        let read = |element| read(self, element).ok_or_else(|| self.wrong(key, element, remedy));
        elements.iter().map(read).collect::<Result<_, _>>().map(Some)
    }

    /// A list of whole numbers.
    pub(super) fn wholes(&self, key: &str, remedy: &str) -> Result<Option<Vec<usize>>, JobError> {
        let read = |table: &Self, value: &Spanned<DeValue<'t>>| {
            table.whole_of(value).and_then(|number| usize::try_from(number).ok())
        };
        self.list(key, read, remedy)
    }

    /// A list of strings.
    pub(super) fn texts(&self, key: &str, remedy: &str) -> Result<Option<Vec<String>>, JobError> {
        let read = |_: &Self, value: &Spanned<DeValue<'t>>| match value.get_ref() {
            DeValue::String(text) => Some(text.as_ref().to_owned()),
            _ => None,
        };
        self.list(key, read, remedy)
    }

    /// The error for a missing required key.
    pub(super) fn missing(&self, key: &str, takes: impl Display) -> JobError {
        let name = self.full_name(key);
        let problem = format!("the key `{name}` is missing");
        self.source.fault(self.start, problem, format!("set `{name}` to {takes}"))
    }

    /// The error for a key with an invalid value.
    pub(super) fn wrong_at(&self, key: &str, takes: impl Display) -> JobError {
        match self.entries.get(key) {
            Some(value) => self.wrong(key, value, takes),
            None => self.missing(key, takes),
        }
    }

    /// The error for the value of a key.
    pub(super) fn fault_at(
        &self,
        key: &str,
        problem: impl Into<String>,
        remedy: impl Into<Remedy>,
    ) -> JobError {
        let offset = self.value(key).map_or(self.start, |value| value.span().start);
        self.source.fault(offset, problem, remedy)
    }

    /// The error for one element of a list.
    pub(super) fn fault_in(
        &self,
        key: &str,
        index: usize,
        problem: impl Into<String>,
        remedy: impl Into<Remedy>,
    ) -> JobError {
        let list = self.value(key).map(Spanned::get_ref);
        let value = match list {
            Some(DeValue::Array(values)) => values.get(index),
            _ => None,
        };
        let offset = value.map_or(self.start, |value| value.span().start);
        self.source.fault(offset, problem, remedy)
    }

    fn wrong(&self, key: &str, value: &Spanned<DeValue<'_>>, takes: impl Display) -> JobError {
        let name = self.full_name(key);
        let problem = format!("`{name}` holds {}", kind(value.get_ref()));
        self.source.fault(value.span().start, problem, format!("set `{name}` to {takes}"))
    }

    fn full_name(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }
}

/// The type of a value, in words.
fn kind(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("the text {text:?}"),
        DeValue::Integer(number) => format!("the whole number {number}"),
        DeValue::Float(number) => format!("the number {number}"),
        DeValue::Boolean(flag) => format!("{flag}"),
        DeValue::Datetime(_) => "a date or time".to_owned(),
        DeValue::Array(_) => "an array".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}
