//! Splits text into words like GPT-2.
//!
//! They are the matches of the expression of its `encoder.py`:
//!
//! ```text
//! 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//! ```

use regex_syntax::hir::{Class, HirKind};
use std::sync::LazyLock;

/// The class of a character in the expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Letter,
    Number,
    Space,
    Other,
}

/// Contractions that start with an apostrophe.
const ENDINGS: [&str; 7] = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d"];

/// The characters of a class, as sorted ranges.
fn ranges(class: &str) -> Vec<(char, char)> {
    let parsed = regex_syntax::parse(class).expect("a class of characters");
    match parsed.into_kind() {
        HirKind::Class(Class::Unicode(class)) => {
            class.iter().map(|range| (range.start(), range.end())).collect()
        }
        other => panic!("{class} is {other:?}"),
    }
}

/// Characters below this are looked up in a table.
const TABLE: usize = 1 << 16;

struct Kinds {
    table: Box<[Kind]>,
    letters: Vec<(char, char)>,
    numbers: Vec<(char, char)>,
}

static KINDS: LazyLock<Kinds> = LazyLock::new(|| {
    let mut kinds =
        Kinds { table: Box::new([]), letters: ranges(r"\p{L}"), numbers: ranges(r"\p{N}") };
    let kind = |code| char::from_u32(code).map_or(Kind::Other, |it| kinds.search(it));
    kinds.table = (0..TABLE as u32).map(kind).collect();
    kinds
});

impl Kinds {
    fn of(&self, character: char) -> Kind {
        let entry = self.table.get(character as usize);
        entry.copied().unwrap_or_else(|| self.search(character))
    }

    fn search(&self, character: char) -> Kind {
        let is_in = |ranges: &[(char, char)]| {
            let next = ranges.partition_point(|(_, end)| *end < character);
            ranges.get(next).is_some_and(|(start, _)| *start <= character)
        };
        if is_in(&self.letters) {
            Kind::Letter
        } else if is_in(&self.numbers) {
            Kind::Number
        } else if character.is_whitespace() {
            Kind::Space
        } else {
            Kind::Other
        }
    }
}

/// Iterates over the words of a text, whose concatenation is the text.
pub(super) struct Words<'a> {
    rest: &'a str,
    kinds: &'static Kinds,
}

impl<'a> Words<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        Self { rest: text, kinds: &KINDS }
    }

    /// Number of bytes at the start of a text that belong to a class.
    fn run(&self, text: &str, kind: Kind) -> usize {
        let ends = |character: char| self.kinds.of(character) != kind;
        text.find(ends).unwrap_or(text.len())
    }

    /// Number of bytes of the next word.
    fn next_length(&self, first: char) -> usize {
        let rest = self.rest;
        if first == '\''
            && let Some(ending) = ENDINGS.iter().find(|ending| rest.starts_with(**ending))
        {
            return ending.len();
        }
        let kind = self.kinds.of(first);
        if kind != Kind::Space {
            return self.run(rest, kind);
        }
        if first == ' '
            && let Some(second) = rest[1..].chars().next()
        {
            let kind = self.kinds.of(second);
            if kind != Kind::Space {
                return 1 + self.run(&rest[1..], kind);
            }
        }
        let spaces = self.run(rest, Kind::Space);
        // The last white space character belongs to the next word, unless it is the only one.
        match rest[..spaces].char_indices().next_back() {
            Some((last, _)) if spaces < rest.len() && last > 0 => last,
            _ => spaces,
        }
    }
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let first = self.rest.chars().next()?;
        let (word, rest) = self.rest.split_at(self.next_length(first));
        self.rest = rest;
        Some(word)
    }
}

#[cfg(test)]
mod tests {
    use super::{KINDS, Kind, Words};
    use proptest::prelude::*;
    use tokenizers::pre_tokenizers::byte_level::ByteLevel;
    use tokenizers::{OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer};

    fn assert_equal(text: &str) {
        let mut split = PreTokenizedString::from(text);
        ByteLevel::new(false, false, true).pre_tokenize(&mut split).unwrap();
        let pieces = split.get_splits(OffsetReferential::Original, OffsetType::Byte);
        let expected: Vec<&str> =
            pieces.into_iter().map(|(_, (start, end), _)| &text[start..end]).collect();
        assert_eq!(Words::of(text).collect::<Vec<_>>(), expected, "{text:?}");
    }

    #[test]
    fn words_are_the_matches_of_the_expression() {
        for text in [
            "",
            " ",
            "  ",
            "\n",
            "a",
            " a",
            "  a",
            "\n a",
            "a \n",
            "a's",
            "'sa",
            "''s",
            "a '",
            "it's  we've\t\tI'll\n\n\n",
            "a1 b 2c!d ?!",
            "\u{a0}\u{a0}x",
            " \u{2003} x",
            "½٣Ⅷ",
        ] {
            assert_equal(text);
        }
    }

    /// A run of letters, of numbers or of other characters is one word, so that tables of different
    /// Unicode versions are detected.
    #[test]
    fn every_character_is_of_the_kind_that_the_library_sees() {
        let of = |kind| ('\0'..=char::MAX).filter(move |it| KINDS.of(*it) == kind);
        for kind in [Kind::Letter, Kind::Number, Kind::Other] {
            for run in of(kind).collect::<Vec<_>>().chunks(256) {
                let run = String::from_iter(run);
                assert_eq!(Words::of(&run).count(), 1, "{run:?}");
                assert_equal(&run);
            }
        }
        for space in of(Kind::Space) {
            assert_equal(&format!("{space}{space}a"));
        }
    }

    proptest! {
        #[test]
        fn words_of_random_texts_are_those_of_the_library(
            text in "[ \n\t'a-zA-Z0-9stremvld!?.,\u{a0}é日½\u{301}]{0,40}",
            any in any::<String>(),
        ) {
            assert_equal(&text);
            assert_equal(&any);
        }
    }
}
