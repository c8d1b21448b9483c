//! Patterns of file names, as a shell expands them.

/// Maximum number of shards of a pattern.
const SHARDS_MAX: usize = 1 << 20;

/// Expands a pattern like a shell: `{000..010}` with leading zeros as in its bounds, `{a,b}`,
/// several braces in sequence or nested.
pub(crate) fn expand(pattern: &str) -> Result<Vec<String>, String> {
    let Some(open) = pattern.find('{') else {
        return match pattern.contains('}') {
            true => Err("the pattern has a } without a {".to_owned()),
            false => Ok(vec![pattern.to_owned()]),
        };
    };
    let close = matching(&pattern[open..]).ok_or("the pattern has a { without a }")? + open;
    let inside = &pattern[open + 1..close];
    let tails = expand(&pattern[close + 1..])?;
    let mut middles = Vec::new();
    if let Some(range) = range(inside)? {
        middles = range;
    } else {
        for choice in split_at_commas(inside) {
            middles.extend(expand(choice)?);
        }
    }
    if middles.len().saturating_mul(tails.len()) > SHARDS_MAX {
        return Err(format!("the pattern names more than {SHARDS_MAX} files"));
    }
    let head = &pattern[..open];
    let with_tails = |middle: &String| -> Vec<String> {
        tails.iter().map(|tail| format!("{head}{middle}{tail}")).collect()
    };
    Ok(middles.iter().flat_map(with_tails).collect())
}

/// The position of the brace that closes the one at the start of the text.
fn matching(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (index, character) in text.char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth == 1 => return Some(index),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

fn split_at_commas(text: &str) -> Vec<&str> {
    let (mut depth, mut begin, mut pieces) = (0_usize, 0, Vec::new());
    for (index, character) in text.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                pieces.push(&text[begin..index]);
                begin = index + 1;
            }
            _ => {}
        }
    }
    pieces.push(&text[begin..]);
    pieces
}

/// The numbers of `000..010`, or `None` if the text is not a range.
fn range(text: &str) -> Result<Option<Vec<String>>, String> {
    let Some((first, last)) = text.split_once("..").filter(|_| !text.contains([',', '{'])) else {
        return Ok(None);
    };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(first) || !is_number(last) {
        return Err(format!("{{{text}}} is no range of numbers such as {{000..010}}"));
    }
    let number = |text: &str| text.parse::<u64>().map_err(|_| format!("{text} is too large"));
    let (from, to) = (number(first)?, number(last)?);
    if from.abs_diff(to) >= SHARDS_MAX as u64 {
        return Err(format!("{{{text}}} names more than {SHARDS_MAX} files"));
    }
    let has_zeros = |text: &str| text.len() > 1 && text.starts_with('0');
    let width = if has_zeros(first) || has_zeros(last) { first.len().max(last.len()) } else { 0 };
    let name = |number: u64| format!("{number:0width$}");
    Ok(Some(match from <= to {
        true => (from..=to).map(name).collect(),
        false => (to..=from).rev().map(name).collect(),
    }))
}

#[cfg(test)]
mod tests {
    use super::expand;

    #[test]
    fn patterns_expand_as_in_a_shell() {
        assert_eq!(expand("a.tar").unwrap(), ["a.tar"]);
        assert_eq!(expand("s-{008..010}.tar").unwrap(), ["s-008.tar", "s-009.tar", "s-010.tar"]);
        assert_eq!(expand("{9..11}").unwrap(), ["9", "10", "11"]);
        assert_eq!(expand("{2..0}").unwrap(), ["2", "1", "0"]);
        assert_eq!(
            expand("{a,b{1..2}}-{x,}").unwrap(),
            ["a-x", "a-", "b1-x", "b1-", "b2-x", "b2-"]
        );
    }

    #[test]
    fn an_invalid_or_too_broad_pattern_is_an_error() {
        for bad in ["{", "a}", "{0..x}", "{0..99999999999999999999}", "{0..99999999}", "{1..}"] {
            assert!(expand(bad).is_err(), "{bad}");
        }
        let many = "{0..1023}".repeat(3);
        assert!(expand(&many).unwrap_err().contains("more than"), "{many}");
    }
}
