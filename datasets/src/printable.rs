//! Names from a source as messages show them.

/// Maximum number of characters shown of a name; a path can have 4,096 bytes.
const SHOWN_MAX: usize = 400;

/// A name from a source as messages show it: control characters are escaped, since a terminal would
/// interpret them, and a very long name is shortened to its start and end.
pub fn printable(name: &str) -> String {
    let escaped = |letter: char| -> String {
        if letter.is_control() { letter.escape_default().collect() } else { letter.into() }
    };
    let letters = name.chars().count();
    if letters <= SHOWN_MAX {
        return name.chars().map(escaped).collect();
    }
    let begin: String = name.chars().take(SHOWN_MAX / 2).map(escaped).collect();
    let end: String = name.chars().skip(letters - SHOWN_MAX / 2).map(escaped).collect();
    format!("{begin}[{} more]{end}", letters - SHOWN_MAX / 2 * 2)
}

#[cfg(test)]
mod tests {
    use super::printable;

    #[test]
    fn control_characters_in_names_are_escaped_and_long_names_shortened() {
        assert_eq!(
            printable("c\u{1b}[31mX\u{7}\nerror: é.jpg"),
            "c\\u{1b}[31mX\\u{7}\\nerror: é.jpg"
        );
        let long = printable(&format!("begin{}end", "é".repeat(6000)));
        assert!(long.starts_with("beginé") && long.ends_with("éend") && long.len() < 900);
        assert!(long.contains("[5608 more]"));
    }
}
