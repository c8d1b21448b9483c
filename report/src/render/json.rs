//! `report.json`: the complete report, for programs.

use super::Renderer;
use crate::Report;

/// The document that docs/report-schema.md describes.
pub(super) struct Json;

impl Renderer for Json {
    fn name(&self) -> &'static str {
        "json"
    }

    fn file_name(&self) -> &'static str {
        "report.json"
    }

    fn describe(&self) -> &'static str {
        "everything, for programs"
    }

    fn render(&self, report: &Report) -> String {
        let json = serde_json::to_string_pretty(report);
        json.expect("a report has text keys and finite numbers only") + "\n"
    }
}
