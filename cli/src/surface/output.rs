//! Standard output: text or one JSON document, and a reader that may exit early.

use super::fault::Fault;
use meetpoint_diagnose::{Remedy, printable_lines};
use meetpoint_report::grid::Style;
use serde::Serialize;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether a document was printed: standard output has at most one.
static DOCUMENT_PRINTED: AtomicBool = AtomicBool::new(false);

/// The start of a sequence that sets a colour. Other sequences start with it too.
const COLOUR: &str = "\u{1b}[";

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
        let mut text = match self.json {
            true => serde_json::to_string_pretty(document)?,
            false => for_stdout(&text()),
        };
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
        let text = match self.json {
            true => serde_json::to_string(document)?,
            false => for_stdout(&line()),
        };
        DOCUMENT_PRINTED.store(true, Ordering::SeqCst);
        write_all(&format!("{text}\n"))
    }

    /// Prints a line during the work; nothing with `--json`.
    ///
    /// A closed pipe or a full disk does not end the work: printing the result reports it.
    pub(crate) fn line(self, text: &str) {
        if !self.json {
            let _ = write_all(&format!("{}\n", for_stdout(text)));
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
    let line = format!("note: {}\n", printable_lines(&continued(text)));
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}

/// Indents all lines of a message but the first, so that quoted text cannot look like another
/// message.
pub(crate) fn continued(text: &str) -> String {
    let mut lines = text.split('\n');
    let mut whole = lines.next().unwrap_or_default().to_owned();
    for line in lines {
        let is_apart = line.is_empty() || line.starts_with("  ");
        whole.extend(["\n", if is_apart { "" } else { "  " }, line]);
    }
    whole
}

/// Prints an error on standard error. Its causes may quote files, peers and libraries.
pub(crate) fn error(title: &str, text: &str) {
    // If standard error is closed, the message is lost.
    let _ =
        std::io::stderr().lock().write_all((title.to_owned() + &printable_lines(text)).as_bytes());
}

/// Prints an error of usage on standard error: `text` with its colours, or `plain` without.
pub(crate) fn usage_error(text: &str, plain: &str) {
    let text = if colour_on_stderr() { with_colours(text) } else { printable_lines(plain) };
    // If standard error is closed, the message is lost.
    let _ = std::io::stderr().lock().write_all(text.as_bytes());
}

/// Text for standard output: control characters in it are escaped, except the colours of tables on
/// a terminal.
fn for_stdout(text: &str) -> String {
    if colour_on_stdout() { with_colours(text) } else { printable_lines(text) }
}

/// Escapes control characters, except in `ESC [ NUMBERS m`, which sets colours and nothing else.
fn with_colours(text: &str) -> String {
    let mut rest = text;
    let mut printed = String::with_capacity(text.len());
    while let Some((before, after)) = rest.split_once(COLOUR) {
        let numbers = after.find(|it: char| !it.is_ascii_digit() && it != ';');
        let end = numbers.filter(|end| after[*end..].starts_with('m')).map_or(0, |end| end + 1);
        printed.push_str(&printable_lines(before));
        match end {
            0 => printed.push_str(&printable_lines(COLOUR)),
            _ => printed.extend([COLOUR, &after[..end]]),
        }
        rest = &after[end..];
    }
    printed + &printable_lines(rest)
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

#[cfg(test)]
mod tests {
    use super::{continued, with_colours};

    #[test]
    fn lines_within_a_message_are_indented() {
        assert_eq!(continued("a\nnote: b\n  c\n"), "a\n  note: b\n  c\n");
    }

    #[test]
    fn colours_reach_a_terminal_and_other_sequences_do_not() {
        let table = "\u{1b}[1;32mok\u{1b}[0m\tno\n";
        assert_eq!(with_colours(table), table);
        for (text, printed) in [
            ("a\u{1b}[2Jb", "a\\u{1b}[2Jb"),
            ("\u{1b}]0;title\u{7}", "\\u{1b}]0;title\\u{7}"),
            ("\u{1b}[31", "\\u{1b}[31"),
            ("\u{1b}[\u{1b}[31m", "\\u{1b}[\u{1b}[31m"),
            ("a\r", "a\\r"),
        ] {
            assert_eq!(with_colours(text), printed);
        }
    }
}
