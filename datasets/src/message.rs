//! Text that names options, which the command line and Python spell in their own way.

use crate::words::{Setting, Words};
use std::fmt;
use std::ops::Add;

/// Text, and the options that it names, in order.
///
/// ```
/// use meetpoint_datasets::{Message, Setting, Words};
///
/// let message = Message::from("no column `age` (") + Setting::Columns + ")";
/// assert_eq!(message.to_string(), "no column `age` (--columns)");
/// assert_eq!(message.in_words(Words::Python), "no column `age` (columns=)");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Message {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// Its bare name.
    Name(Setting),
    /// How it is set.
    Setting(Setting),
    /// How it is set to a value.
    SetTo(Setting, String),
    /// What has another name in each.
    Either {
        command_line: &'static str,
        python: &'static str,
    },
}

impl Message {
    /// The text as the command line or Python spells it.
    pub fn in_words(&self, words: Words) -> String {
        let spelled = self.pieces.iter().map(|piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Name(setting) => setting.named(words),
            Piece::Setting(setting) => setting.spelled(words),
            Piece::SetTo(setting, value) => setting.set_to(value, words),
            Piece::Either { command_line, python } => match words {
                Words::CommandLine => (*command_line).to_owned(),
                Words::Python => (*python).to_owned(),
            },
        });
        spelled.collect()
    }

    /// Appends the bare name of a setting.
    #[must_use]
    pub fn name(mut self, setting: Setting) -> Self {
        self.pieces.push(Piece::Name(setting));
        self
    }

    /// Appends how a setting is set to a value.
    #[must_use]
    pub fn set_to(mut self, setting: Setting, value: impl Into<String>) -> Self {
        self.pieces.push(Piece::SetTo(setting, value.into()));
        self
    }

    /// Appends what the command line and Python call by different names.
    #[must_use]
    pub(crate) fn either(mut self, command_line: &'static str, python: &'static str) -> Self {
        self.pieces.push(Piece::Either { command_line, python });
        self
    }
}

/// As on the command line.
impl fmt::Display for Message {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.in_words(Words::CommandLine))
    }
}

impl From<String> for Message {
    fn from(text: String) -> Self {
        Self { pieces: vec![Piece::Text(text)] }
    }
}

impl From<&str> for Message {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<Setting> for Message {
    fn from(setting: Setting) -> Self {
        Self { pieces: vec![Piece::Setting(setting)] }
    }
}

/// Appends text, a setting or another message.
impl<T: Into<Self>> Add<T> for Message {
    type Output = Self;

    fn add(mut self, next: T) -> Self {
        self.pieces.extend(next.into().pieces);
        self
    }
}

/// As on the command line: a stored message is text.
impl serde::Serialize for Message {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Message {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::{Message, Setting, Words};

    #[test]
    fn a_message_is_spelled_for_its_reader() {
        let message = Message::from("leave it out with ").set_to(Setting::Without, "a")
            + format!(" or {}, ", 7)
            + Setting::FollowLinks
            + "; "
            + Message::default().name(Setting::Split).either(" command", " call");
        assert_eq!(
            message.in_words(Words::CommandLine),
            "leave it out with --without a or 7, --follow-links; --split command"
        );
        assert_eq!(
            message.in_words(Words::Python),
            "leave it out with without=\"a\" or 7, follow_links=True; split call"
        );
        assert_eq!(message.to_string(), message.in_words(Words::CommandLine));
        let stored = serde_json::to_string(&message).unwrap();
        let read: Message = serde_json::from_str(&stored).unwrap();
        assert_eq!(read.to_string(), message.to_string());
    }
}
