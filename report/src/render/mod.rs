//! The formats of a report: each has one file, and one line in [`RENDERERS`].

mod csv;
mod html;
mod json;
mod markdown;
mod table;

use crate::Report;
use std::panic::RefUnwindSafe;

/// A format of a report.
pub trait Renderer: Sync + RefUnwindSafe {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// The file name in the folder of a report.
    fn file_name(&self) -> &'static str;

    /// Its purpose, in a few words.
    fn describe(&self) -> &'static str;

    /// The report in this format. Text ends with a newline.
    fn render(&self, report: &Report) -> String;
}

/// Every format.
pub const RENDERERS: [&dyn Renderer; 5] =
    [&json::Json, &html::Html, &csv::Csv, &markdown::Markdown, &table::Table];

/// Names of the default formats.
pub const DEFAULT_NAMES: [&str; 2] = ["html", "json"];

/// The format of this name.
pub fn renderer(name: &str) -> Option<&'static dyn Renderer> {
    RENDERERS.into_iter().find(|renderer| renderer.name() == name)
}

#[cfg(test)]
mod tests {
    use super::{DEFAULT_NAMES, RENDERERS, renderer};
    use crate::made_up;
    use std::collections::BTreeSet;

    #[test]
    fn every_format_has_a_name_and_a_file_of_its_own_and_names_every_strategy() {
        let report = made_up::report(8);
        for renderer in RENDERERS {
            let text = renderer.render(&report);
            assert!(text.ends_with('\n') && !renderer.describe().is_empty(), "{}", renderer.name());
            for run in &report.runs {
                assert!(text.contains(&run.strategy), "{}: {}", renderer.name(), run.strategy);
            }
        }
        let names: BTreeSet<&str> = RENDERERS.iter().map(|renderer| renderer.name()).collect();
        let files: BTreeSet<&str> = RENDERERS.iter().map(|renderer| renderer.file_name()).collect();
        assert_eq!((names.len(), files.len()), (RENDERERS.len(), RENDERERS.len()));
        assert!(DEFAULT_NAMES.iter().all(|name| renderer(name).is_some()));
        assert!(renderer("pdf").is_none());
    }
}
