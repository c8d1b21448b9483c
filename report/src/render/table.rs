//! `report.txt`: the tables of a terminal.

use super::Renderer;
use crate::grid::Style;
use crate::{Report, table};

/// Tables drawn with characters, without colours.
pub(super) struct Table;

impl Renderer for Table {
    fn name(&self) -> &'static str {
        "table"
    }

    fn file_name(&self) -> &'static str {
        "report.txt"
    }

    fn describe(&self) -> &'static str {
        "the tables of the terminal"
    }

    fn render(&self, report: &Report) -> String {
        table::text(report, Style::Plain)
    }
}
