//! The visible text of an HTML document. `docs/formats.md` has the rules.

use super::Document;
use crate::Error;
use crate::series::Pause;
use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Span, Tokenizer};
use meetpoint_format::recipe::PIXELS_MAX;

/// Elements that are dropped with their content.
const DROPPED: [&[u8]; 18] = [
    b"audio",
    b"canvas",
    b"iframe",
    b"math",
    b"noembed",
    b"noframes",
    b"noscript",
    b"object",
    b"script",
    b"select",
    b"style",
    b"svg",
    b"template",
    b"textarea",
    b"title",
    b"video",
    b"frameset",
    b"datalist",
];

/// Dropped foreign elements, which may be self-closed by `/>`.
const FOREIGN: [&[u8]; 2] = [b"math", b"svg"];

/// Elements that begin and end a line.
const BLOCKS: [&[u8]; 53] = [
    b"address",
    b"article",
    b"aside",
    b"blockquote",
    b"body",
    b"br",
    b"caption",
    b"center",
    b"dd",
    b"details",
    b"dialog",
    b"dir",
    b"div",
    b"dl",
    b"dt",
    b"fieldset",
    b"figcaption",
    b"figure",
    b"footer",
    b"form",
    b"h1",
    b"h2",
    b"h3",
    b"h4",
    b"h5",
    b"h6",
    b"header",
    b"hgroup",
    b"hr",
    b"html",
    b"legend",
    b"li",
    b"listing",
    b"main",
    b"menu",
    b"nav",
    b"ol",
    b"optgroup",
    b"option",
    b"p",
    b"plaintext",
    b"pre",
    b"search",
    b"section",
    b"summary",
    b"table",
    b"tbody",
    b"tfoot",
    b"thead",
    b"tr",
    b"ul",
    b"xmp",
    b"head",
];

/// Elements in which line feeds start lines.
const PREFORMATTED: [&[u8]; 4] = [b"listing", b"plaintext", b"pre", b"xmp"];

/// Elements that begin and end with a space.
const CELLS: [&[u8]; 2] = [b"td", b"th"];

/// Tags processed between two calls of `pause`.
const TAGS: usize = 1 << 10;

/// Receives tags and text, and writes the visible text.
#[derive(Debug, Default)]
pub(crate) struct HtmlReader {
    text: String,
    /// The open dropped element, and its nesting depth.
    dropped: Option<(&'static [u8], usize)>,
    /// Number of open elements in which line feeds start lines.
    preformatted: usize,
    /// The current tag.
    opened: Opened,
    /// Whether the next character begins a line.
    begins_line: bool,
    /// Whether the next character follows a space.
    follows_space: bool,
}

/// The type of the current tag.
#[derive(Debug, Clone, Copy, Default)]
enum Opened {
    #[default]
    Other,
    Dropped(&'static [u8]),
    Block,
    Preformatted,
    Cell,
}

impl Opened {
    fn of(name: &[u8]) -> Self {
        if let Some(dropped) = DROPPED.iter().find(|it| **it == name) {
            Self::Dropped(dropped)
        } else if PREFORMATTED.contains(&name) {
            Self::Preformatted
        } else if BLOCKS.contains(&name) {
            Self::Block
        } else if CELLS.contains(&name) {
            Self::Cell
        } else {
            Self::Other
        }
    }
}

impl HtmlReader {
    /// Replaces a document by its visible text.
    pub(crate) fn read(document: &mut Document, pause: Pause<'_>) -> Result<(), Error> {
        let mut reader = Self { text: std::mem::take(&mut document.spare), ..Self::default() };
        reader.text.clear();
        let take = |event: CallbackEvent<'_>, _span: Span<()>| {
            reader.take(&event);
            matches!(event, CallbackEvent::OpenStartTag { .. }).then_some(())
        };
        let mut emitter = CallbackEmitter::new(take);
        emitter.naively_switch_states(true);
        let events = Tokenizer::new_with_emitter(&document.text, emitter);
        for (index, Ok(())) in events.enumerate() {
            if index % TAGS == 0 {
                pause()?;
            }
        }
        let text = reader.text;
        document.spare = std::mem::replace(&mut document.text, text);
        match document.text.len() {
            bytes if bytes as u64 > PIXELS_MAX => Err(Error::LongText { bytes, limit: PIXELS_MAX }),
            _ => Ok(()),
        }
    }

    fn take(&mut self, event: &CallbackEvent<'_>) {
        match *event {
            CallbackEvent::OpenStartTag { name } => self.opened = Opened::of(name),
            CallbackEvent::CloseStartTag { self_closing } => self.start(self_closing),
            CallbackEvent::EndTag { name } => self.end(Opened::of(name)),
            CallbackEvent::String { value } if self.dropped.is_none() => {
                match std::str::from_utf8(value) {
                    Ok(text) => self.put(text),
                    Err(_) => self.put(&String::from_utf8_lossy(value)),
                }
            }
            CallbackEvent::String { .. }
            | CallbackEvent::AttributeName { .. }
            | CallbackEvent::AttributeValue { .. }
            | CallbackEvent::Comment { .. }
            | CallbackEvent::Doctype { .. }
            | CallbackEvent::Error(_) => {}
        }
    }

    fn start(&mut self, is_self_closing: bool) {
        match (&mut self.dropped, self.opened) {
            (_, Opened::Dropped(name)) if is_self_closing && FOREIGN.contains(&name) => {}
            (Some((open, depth)), Opened::Dropped(name)) => *depth += usize::from(*open == name),
            (dropped @ None, Opened::Dropped(name)) => *dropped = Some((name, 1)),
            (Some(_), Opened::Other | Opened::Block | Opened::Preformatted | Opened::Cell)
            | (None, Opened::Other) => {}
            (None, Opened::Block) => self.begin_line(),
            (None, Opened::Preformatted) => {
                self.preformatted += 1;
                self.begin_line();
            }
            (None, Opened::Cell) => self.follows_space = true,
        }
    }

    fn end(&mut self, ended: Opened) {
        match (&mut self.dropped, ended) {
            (Some((open, depth)), Opened::Dropped(name)) => {
                *depth -= usize::from(*open == name);
                if *depth == 0 {
                    self.dropped = None;
                }
            }
            (None, Opened::Other | Opened::Dropped(_))
            | (Some(_), Opened::Other | Opened::Block | Opened::Preformatted | Opened::Cell) => {}
            (None, Opened::Block) => self.begin_line(),
            (None, Opened::Preformatted) => {
                self.preformatted = self.preformatted.saturating_sub(1);
                self.begin_line();
            }
            (None, Opened::Cell) => self.follows_space = true,
        }
    }

    fn begin_line(&mut self) {
        self.begins_line = true;
    }

    /// Appends text, with white space handled according to the rules. Zero bytes are dropped.
    fn put(&mut self, text: &str) {
        let is_space = |byte: u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\x0c' | b'\r');
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            match bytes[at] {
                b'\n' if self.preformatted > 0 => {
                    self.begin_line();
                    at += 1;
                }
                byte if is_space(byte) => {
                    self.follows_space = true;
                    at += 1;
                }
                0 => at += 1,
                _ => {
                    let is_end = |byte: &u8| is_space(*byte) || *byte == 0;
                    let rest = &bytes[at..];
                    let length = rest.iter().position(is_end).unwrap_or(rest.len());
                    self.put_word(&text[at..at + length]);
                    at += length;
                }
            }
        }
    }

    fn put_word(&mut self, word: &str) {
        match (self.text.is_empty(), self.begins_line, self.follows_space) {
            (true, _, _) | (false, false, false) => {}
            (false, true, _) => self.text.push('\n'),
            (false, false, true) => self.text.push(' '),
        }
        (self.begins_line, self.follows_space) = (false, false);
        self.text.push_str(word);
    }
}
