//! `report.html`: one page with tables and pictures.

use super::Renderer;
use crate::{Report, html};

/// A self-contained page.
pub(super) struct Html;

impl Renderer for Html {
    fn name(&self) -> &'static str {
        "html"
    }

    fn file_name(&self) -> &'static str {
        "report.html"
    }

    fn describe(&self) -> &'static str {
        "one page with tables and pictures"
    }

    fn render(&self, report: &Report) -> String {
        html::of_report(report)
    }
}
