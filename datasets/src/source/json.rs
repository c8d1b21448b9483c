//! JSON as Python writes it: `NaN`, `Infinity` and `-Infinity` are numbers.
//!
//! The JSON standard has no such numbers and neither has [`Value`], so a marked text stands for
//! one; [`non_finite`] recognises it.

use serde_json::Value;

/// The tokens of Python's `json` module, the marked text for each as JSON and as a string, and the
/// number. The marked text starts with U+0000, which no field of a table starts with.
const TOKENS: [(&[u8], &[u8], &str, f64); 3] = [
    (b"NaN", b"\"\\u0000float NaN\"", "\0float NaN", f64::NAN),
    (b"Infinity", b"\"\\u0000float Infinity\"", "\0float Infinity", f64::INFINITY),
    (b"-Infinity", b"\"\\u0000float -Infinity\"", "\0float -Infinity", f64::NEG_INFINITY),
];

/// Parses a JSON text in which numbers may be infinite or NaN.
pub(super) fn parse(text: &[u8]) -> Result<Value, serde_json::Error> {
    serde_json::from_slice(text).or_else(|error| match marked(text) {
        Some(marked) => serde_json::from_slice(&marked),
        None => Err(error),
    })
}

/// The number that a value stands for, if it is infinite or NaN.
pub(super) fn non_finite(value: &Value) -> Option<f64> {
    let text = value.as_str()?;
    TOKENS.iter().find(|(_, _, marked, _)| *marked == text).map(|(.., number)| *number)
}

/// Whether a value is a number that is not whole, so that a column with it does not contain labels.
pub(super) fn has_fraction(value: &Value) -> bool {
    non_finite(value).is_some() || value.as_f64().is_some_and(|number| number.fract() != 0.0)
}

/// The whole number of 32 bits that a text or a number stands for: `7`, `7.0`.
pub(super) fn whole_number(text: &str) -> Option<i32> {
    text.parse().ok().or_else(|| {
        let number: f64 = text.parse().ok()?;
        let range = f64::from(i32::MIN)..=f64::from(i32::MAX);
        (number.fract() == 0.0 && range.contains(&number)).then_some(number as i32)
    })
}

/// The text with each token replaced by its marked text; `None` if there is none, or if a field has
/// that name.
fn marked(text: &[u8]) -> Option<Vec<u8>> {
    let mut marked = Vec::with_capacity(text.len() + 64);
    let mut has_token = false;
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if let Some((token, json, ..)) = TOKENS.iter().find(|(token, ..)| rest.starts_with(token)) {
            let after = rest[token.len()..].trim_ascii_start();
            if after.starts_with(b":") {
                return None;
            }
            has_token = true;
            marked.extend_from_slice(json);
            at += token.len();
            continue;
        }
        let bytes = if text[at] == b'"' { string_bytes(rest) } else { 1 };
        marked.extend_from_slice(&rest[..bytes]);
        at += bytes;
    }
    has_token.then_some(marked)
}

/// Length of the string at the start of a JSON text, with its quotes.
fn string_bytes(text: &[u8]) -> usize {
    let mut is_escaped = false;
    for (index, byte) in text.iter().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return index + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_that_only_python_writes_are_read_at_any_depth() {
        let text = br#"{"a": NaN, "b": [1, -Infinity, {"c": Infinity}], "d": "NaN \" Infinity"}"#;
        let value = parse(text).unwrap();
        assert!(non_finite(&value["a"]).unwrap().is_nan());
        assert_eq!(non_finite(&value["b"][1]), Some(f64::NEG_INFINITY));
        assert_eq!(non_finite(&value["b"][2]["c"]), Some(f64::INFINITY));
        assert_eq!((&value["b"][0], &value["d"]), (&json!(1), &json!("NaN \" Infinity")));
        assert_eq!((non_finite(&value["b"][0]), non_finite(&value["d"])), (None, None));
    }

    #[test]
    fn other_texts_that_are_not_json_stay_errors() {
        for text in ["{NaN: 1}", "{\"a\": NaN", "nan", "{\"a\": 1NaN}", "+Infinity", "NaNNaN", "\""]
        {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
