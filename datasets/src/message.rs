//! Text that names options, which the command line and Python spell differently, with a remedy.

use meetpoint_diagnose::{Remedy, Setting, Surface};
use std::fmt;
use std::ops::Add;

/// Text with the options that it names, in order, and an optional remedy.
///
/// ```
/// use meetpoint_datasets::Message;
/// use meetpoint_diagnose::{Setting, Surface};
///
/// let message = Message::from("no column `age` (") + Setting::Columns + ")";
/// assert_eq!(message.to_string(), "no column `age` (--columns)");
/// assert_eq!(message.in_words(Surface::Python), "no column `age` (columns=)");
/// let message = message.remedy("leave it out");
/// assert_eq!(message.to_string(), "no column `age` (--columns); leave it out");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Message {
    pieces: Vec<Piece>,
    remedy: Option<Remedy>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    /// The bare name of a setting.
    Name(Setting),
    /// How a setting is set.
    Setting(Setting),
    /// How a setting is set to a value.
    SetTo(Setting, String),
}

impl Message {
    /// The text as the command line or Python spells it, without the remedy.
    pub fn in_words(&self, surface: Surface) -> String {
        let spelled = self.pieces.iter().map(|piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Name(setting) => setting.name(surface).to_owned(),
            Piece::Setting(setting) => setting.spelled(surface),
            Piece::SetTo(setting, value) => setting.set_to(value, surface),
        });
        spelled.collect()
    }

    /// The text and the remedy as the command line or Python spells them.
    pub fn in_full(&self, surface: Surface) -> String {
        let text = self.in_words(surface);
        match &self.remedy {
            Some(remedy) => format!("{text}; {}", remedy.spelled(surface)),
            None => text,
        }
    }

    /// The remedy.
    pub fn advice(&self) -> Option<&Remedy> {
        self.remedy.as_ref()
    }

    /// Adds a remedy.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<Remedy>) -> Self {
        self.remedy = Some(remedy.into());
        self
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
}

/// As on the command line, with the remedy.
impl fmt::Display for Message {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.in_full(Surface::CommandLine))
    }
}

impl From<String> for Message {
    fn from(text: String) -> Self {
        Self { pieces: vec![Piece::Text(text)], remedy: None }
    }
}

impl From<&str> for Message {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<Setting> for Message {
    fn from(setting: Setting) -> Self {
        Self { pieces: vec![Piece::Setting(setting)], remedy: None }
    }
}

/// Appends text, a setting, or another message with its remedy.
impl<T: Into<Self>> Add<T> for Message {
    type Output = Self;

    fn add(mut self, next: T) -> Self {
        let next = next.into();
        self.pieces.extend(next.pieces);
        self.remedy = next.remedy.or(self.remedy);
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
    use super::Message;
    use meetpoint_diagnose::{Change, Remedy, Setting, Surface};

    #[test]
    fn a_message_has_the_spelling_of_its_surface() {
        let remedy = Remedy::by("leave the links out", Setting::FollowLinks, Change::On);
        let message = Message::from("without ").set_to(Setting::Without, "a")
            + format!(" or {}", 7)
            + Message::from(": no ").name(Setting::Split).remedy(remedy);
        assert_eq!(message.in_words(Surface::CommandLine), "without --without a or 7: no --split");
        assert_eq!(
            message.in_full(Surface::Python),
            "without without=\"a\" or 7: no split; leave the links out with follow_links=True"
        );
        assert_eq!(message.to_string(), message.in_full(Surface::CommandLine));
        let stored = serde_json::to_string(&message).unwrap();
        let read: Message = serde_json::from_str(&stored).unwrap();
        assert_eq!(read.to_string(), message.to_string());
    }
}
