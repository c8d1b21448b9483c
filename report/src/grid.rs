//! Tables of text, and how they are drawn for a terminal.

use comfy_table::{Attribute, Cell, CellAlignment, ContentArrangement, Table, presets};

/// A table of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grid {
    /// Names of the columns.
    pub head: Vec<String>,
    /// Rows as long as the head.
    pub rows: Vec<Vec<String>>,
    /// First column with numbers, which are right-aligned.
    numbers_from: usize,
    /// First column after them, with text again.
    words_from: usize,
}

/// How a table is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Characters only.
    Plain,
    /// For a terminal: within its width, with bold names.
    Terminal,
}

impl Grid {
    /// An empty table; columns in `numbers` are right-aligned.
    pub fn new(head: &[&str], numbers: std::ops::Range<usize>) -> Self {
        let head = head.iter().map(|&name| name.to_owned()).collect();
        Self { head, rows: Vec::new(), numbers_from: numbers.start, words_from: numbers.end }
    }

    /// Whether a column holds numbers.
    pub fn is_number(&self, column: usize) -> bool {
        (self.numbers_from..self.words_from).contains(&column)
    }

    /// Drawn with characters.
    pub fn text(&self, style: Style) -> String {
        let mut table = Table::new();
        let mut lines = presets::UTF8_HORIZONTAL_ONLY;
        lines.row_separator = presets::NOTHING.row_separator;
        table.load_style(lines);
        table.set_content_arrangement(ContentArrangement::Dynamic);
        if style == Style::Plain {
            table.force_no_tty();
        }
        let bold = |name: &String| Cell::new(name).add_attribute(Attribute::Bold);
        table.set_header(self.head.iter().map(bold));
        for row in &self.rows {
            table.add_row(row);
        }
        for (column, style) in table.column_iter_mut().enumerate() {
            if self.is_number(column) {
                style.set_cell_alignment(CellAlignment::Right);
            }
        }
        format!("{table}\n")
    }
}

/// The text of an unknown figure.
pub(crate) fn unknown() -> String {
    "–".to_owned()
}
