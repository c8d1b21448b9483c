//! Standard output: text or one JSON document, and a reader that may exit early.

use super::fault::Fault;
use meetpoint_diagnose::Remedy;
use meetpoint_report::grid::Style;
use serde::Serialize;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a document was printed: standard output has at most one.
static DOCUMENT_PRINTED: AtomicBool = AtomicBool::new(false);

/// Prints the result of a command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    json: bool,
}

impl Output {
    /// Text, or one JSON document under `--json`.
    pub(crate) fn new(json: bool) -> Self {
        Self { json }
    }

    /// Whether the result is printed as one JSON document.
    pub(crate) fn is_json(self) -> bool {
        self.json
    }

    /// Prints the command's result: `document` with `--json`, otherwise `text`.
    pub(crate) fn result(
        self,
        document: &impl Serialize,
        text: impl FnOnce() -> String,
    ) -> anyhow::Result<()> {
        let mut text = if self.json { serde_json::to_string_pretty(document)? } else { text() };
        if !text.ends_with('\n') {
            text.push('\n');
        }
        DOCUMENT_PRINTED.store(true, Ordering::SeqCst);
        write_all(&text)
    }

    /// Prints one of many results: with `--json` a document on a separate line, otherwise a line of
    /// text.
    pub(crate) fn stream(
        self,
        document: &impl Serialize,
        line: impl FnOnce() -> String,
    ) -> anyhow::Result<()> {
        let text = if self.json { serde_json::to_string(document)? } else { line() };
        DOCUMENT_PRINTED.store(true, Ordering::SeqCst);
        write_all(&format!("{text}\n"))
    }

    /// Prints a line during the work; nothing with `--json`.
    ///
    /// A closed pipe or a full disk does not end the work: printing the result reports it.
    pub(crate) fn line(self, text: &str) {
        if !self.json {
            let _ = write_all(&format!("{text}\n"));
        }
    }
}

/// Prints `document`, unless a result was printed before.
pub(crate) fn failure_document(document: &impl Serialize) {
    if DOCUMENT_PRINTED.load(Ordering::SeqCst) {
        return;
    }
    if let Ok(text) = serde_json::to_string_pretty(document) {
        // The same failure is printed on standard error.
        let _ = write_all(&format!("{text}\n"));
    }
}

/// Prints a note on standard error.
pub(crate) fn notice(text: &str) {
    // If standard error is closed, the note is lost.
    let _ = writeln!(std::io::stderr().lock(), "note: {text}");
}

/// Whether colour may be used on standard error.
pub(crate) fn colour_on_stderr() -> bool {
    std::io::stderr().is_terminal() && colour_is_welcome()
}

/// How tables are drawn on standard output.
pub(crate) fn table_style() -> Style {
    if colour_on_stdout() { Style::Terminal } else { Style::Plain }
}

/// Whether colour may be used on standard output.
pub(crate) fn colour_on_stdout() -> bool {
    std::io::stdout().is_terminal() && colour_is_welcome()
}

/// See <https://no-color.org>.
fn colour_is_welcome() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    !refused && !dumb
}

/// Standard output was closed by its reader, as `head` does. The program ends without a message.
#[derive(Debug, thiserror::Error)]
#[error("standard output was closed")]
pub(crate) struct Closed;

fn write_all(text: &str) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    match written {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Err(Closed.into()),
        Err(error) => Err(anyhow::Error::new(error).context(Fault::new(
            "output_not_written",
            "failed to write to standard output",
            Remedy::advice("free space").or("redirect it elsewhere"),
        ))),
    }
}
