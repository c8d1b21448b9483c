//! Tracks the double quotes of a CSV file by the rules of the crate `csv`, which does not report a
//! file that ends inside a quoted field.

/// The UTF-8 byte order mark, which is not part of the first field.
const MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

/// A quoted field that is not closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a double quote opens a field and is not closed")]
pub(super) struct OpenQuote {
    /// The line of the quote, from 1.
    pub(super) line: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum QuoteState {
    FieldStart,
    Unquoted,
    Quoted,
    /// After a quote in a quoted field: the end of the field, or the first of two that denote one.
    AfterQuote,
}

/// The state of the reader within a CSV file.
#[derive(Debug)]
pub(super) struct Quotes {
    separator: u8,
    place: QuoteState,
    position: usize,
    line: u64,
    opened: u64,
}

impl Quotes {
    /// At the start of a file.
    pub(super) fn new(separator: u8) -> Self {
        Self { separator, place: QuoteState::FieldStart, position: 0, line: 1, opened: 0 }
    }

    /// Processes the next bytes.
    pub(super) fn follow(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if MARK.get(self.position) != Some(&byte) {
                self.step(byte);
            }
            self.position += 1;
            self.line += u64::from(byte == b'\n');
        }
    }

    fn step(&mut self, byte: u8) {
        let ends_field = byte == self.separator || byte == b'\r' || byte == b'\n';
        self.place = match (self.place, byte) {
            (QuoteState::Quoted, b'"') => QuoteState::AfterQuote,
            (QuoteState::Quoted, _) | (QuoteState::AfterQuote, b'"') => QuoteState::Quoted,
            (QuoteState::FieldStart, b'"') => {
                self.opened = self.line;
                QuoteState::Quoted
            }
            _ if ends_field => QuoteState::FieldStart,
            _ => QuoteState::Unquoted,
        };
    }

    /// The open quote, if there is one.
    pub(super) fn open(&self) -> Option<OpenQuote> {
        (self.place == QuoteState::Quoted).then_some(OpenQuote { line: self.opened })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn open(text: &str) -> Option<u64> {
        let mut quotes = Quotes::new(b',');
        quotes.follow(text.as_bytes());
        quotes.open().map(|open| open.line)
    }

    #[test]
    fn a_quote_that_is_not_closed_is_known_by_its_line() {
        assert_eq!(open("a,\"b\n"), Some(1));
        assert_eq!(open("\u{feff}\"a,b\n"), Some(1));
        assert_eq!(open("a,b\n1,\"x\"\n2,\"y\n3,z\n"), Some(3));
        assert_eq!(open("a,\"b\"\"\"\n1,5\" x\n"), None);
        assert_eq!(open("a,\"b\"\"\n"), Some(1));
        assert_eq!(open("\"a\"x\"\n"), None);
    }

    proptest! {
        #[test]
        fn it_agrees_with_the_reader_on_whether_a_field_is_open(text in "[a,\"\n\r]{0,16}") {
            // An open field includes all that follows, also separators and new lines.
            let longer = format!("{text},\n");
            let fields = |text: &str| -> usize {
                let mut builder = csv::ReaderBuilder::new();
                let builder = builder.has_headers(false).flexible(true);
                let records = builder.from_reader(text.as_bytes()).into_byte_records();
                records.map(|record| record.unwrap().len()).sum()
            };
            let ends_open = fields(&longer) == fields(&text) && !text.is_empty();
            prop_assert_eq!(open(&text).is_some(), ends_open);
        }
    }
}
