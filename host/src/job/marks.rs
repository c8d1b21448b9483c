//! The location of each value in a job file, for faults that are detected only when the job starts.

use super::table::Source;
use std::collections::BTreeMap;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Line and column of every value by its full name: `seed`, `device.core`, `host_cores[1]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Marks(BTreeMap<String, (usize, usize)>);

impl Marks {
    /// The locations in a whole file.
    pub(super) fn of(source: Source<'_>, file: &DeTable<'_>) -> Self {
        let mut marks = Self::default();
        marks.enter_table(source, "", file);
        marks
    }

    /// The location of a value; `None` if the file does not contain it.
    pub(super) fn of_key(&self, name: &str) -> Option<(usize, usize)> {
        self.0.get(name).copied()
    }

    /// Removes a key and the keys below it, because their values come from elsewhere.
    pub(super) fn forget(&mut self, name: &str) {
        let below = |other: &str| {
            other
                .strip_prefix(name)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        self.0.retain(|other, _| !below(other));
    }

    fn enter_table(&mut self, source: Source<'_>, before: &str, table: &DeTable<'_>) {
        for (key, value) in table {
            self.enter(source, format!("{before}{}", key.get_ref()), value);
        }
    }

    fn enter(&mut self, source: Source<'_>, name: String, value: &Spanned<DeValue<'_>>) {
        match value.get_ref() {
            DeValue::Table(table) => self.enter_table(source, &format!("{name}."), table),
            // The recipe's own parser locates the faults of a recipe.
            DeValue::Array(elements) if !name.starts_with("recipe") => {
                for (index, element) in elements.iter().enumerate() {
                    self.enter(source, format!("{name}[{index}]"), element);
                }
            }
            _ => {}
        }
        self.0.insert(name, source.place(value.span().start));
    }
}
