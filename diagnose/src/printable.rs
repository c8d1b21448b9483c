//! Text and paths as messages show them: a terminal interprets nothing in them, and they cannot
//! begin a line of a log.

use std::fmt::{self, Display, Write};
use std::path::Path;

/// Maximum number of characters shown of a name; a path can have 4,096 bytes.
const SHOWN_MAX: usize = 400;

/// A name from a file or a peer as messages show it: control characters are escaped, since a
/// terminal would interpret them, and a very long name is shortened to its start and end.
///
/// ```
/// use meetpoint_diagnose::printable;
///
/// assert_eq!(printable("a\u{1b}[31m\nb.jpg"), "a\\u{1b}[31m\\nb.jpg");
/// ```
pub fn printable(name: &str) -> String {
    let escaped = |letter: char| -> String {
        if is_active(letter) { letter.escape_default().collect() } else { letter.into() }
    };
    let letters = name.chars().count();
    if letters <= SHOWN_MAX {
        return name.chars().map(escaped).collect();
    }
    let begin: String = name.chars().take(SHOWN_MAX / 2).map(escaped).collect();
    let end: String = name.chars().skip(letters - SHOWN_MAX / 2).map(escaped).collect();
    format!("{begin}[{} more]{end}", letters - SHOWN_MAX / 2 * 2)
}

/// Several lines of text for a terminal: as [`printable`], but line breaks and tabs stay, and the
/// text is not shortened.
///
/// ```
/// use meetpoint_diagnose::printable_lines;
///
/// assert_eq!(printable_lines("a\u{1b}[31m\nb"), "a\\u{1b}[31m\nb");
/// ```
pub fn printable_lines(text: &str) -> String {
    let escaped = |letter: char| -> String {
        match letter {
            '\n' | '\t' => letter.into(),
            _ if is_active(letter) => letter.escape_default().collect(),
            _ => letter.into(),
        }
    };
    text.chars().map(escaped).collect()
}

/// A path as messages show it, in one line, with control characters escaped and bytes that are not
/// UTF-8 replaced. Unlike a name that a peer sends, it is never shortened: a user copies it.
///
/// ```
/// use meetpoint_diagnose::shown;
/// use std::path::Path;
///
/// assert_eq!(shown(Path::new("/data/a\nb")).to_string(), "/data/a\\nb");
/// ```
pub fn shown(path: &Path) -> Shown<'_> {
    Shown(path)
}

/// The result of [`shown`].
#[derive(Debug, Clone, Copy)]
pub struct Shown<'a>(&'a Path);

impl Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for letter in self.0.to_string_lossy().chars() {
            match is_active(letter) {
                true => write!(f, "{}", letter.escape_default())?,
                false => f.write_char(letter)?,
            }
        }
        Ok(())
    }
}

/// Whether a terminal acts on a character instead of showing it: control characters, and those that
/// reverse the direction of the characters after them.
fn is_active(letter: char) -> bool {
    letter.is_control() || matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::{printable, printable_lines, shown};
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;

    #[test]
    fn control_characters_in_names_are_escaped_and_long_names_shortened() {
        assert_eq!(
            printable("c\u{1b}[31mX\u{7}\nerror: é.jpg"),
            "c\\u{1b}[31mX\\u{7}\\nerror: é.jpg"
        );
        assert_eq!(printable("a\u{202e}gpj.exe"), "a\\u{202e}gpj.exe");
        let long = printable(&format!("begin{}end", "é".repeat(6000)));
        assert!(long.starts_with("beginé") && long.ends_with("éend") && long.len() < 900);
        assert!(long.contains("[5608 more]"));
    }

    #[test]
    fn lines_stay_lines_and_everything_else_is_escaped() {
        assert_eq!(printable_lines("a\n\tb\r\u{9b}31m"), "a\n\tb\\r\\u{9b}31m");
    }

    #[test]
    fn a_path_is_one_line_of_any_length() {
        let path = OsStr::from_bytes(b"/d\xff\x1b]0;t\x07\n/p");
        let text = "/d\u{fffd}\\u{1b}]0;t\\u{7}\\n/p";
        assert_eq!(shown(Path::new(path)).to_string(), text);
        let long = "é/".repeat(2000);
        assert_eq!(shown(Path::new(&long)).to_string(), long);
    }
}
