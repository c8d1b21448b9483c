//! Reads the values that tests/golden/formats.py computed from the documentation.

/// Lines of one type, each as the words before and after its colon.
pub(crate) fn lines(kind: &str) -> Vec<(Vec<&'static str>, Vec<&'static str>)> {
    let words = |text: &'static str| text.split_whitespace().collect::<Vec<_>>();
    let found: Vec<_> = include_str!("../tests/golden/formats.txt")
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(before, after)| (words(before), words(after)))
        .filter(|(before, _)| before[0] == kind)
        .map(|(before, after)| (before[1..].to_vec(), after))
        .collect();
    assert!(!found.is_empty(), "formats.txt has no lines of kind {kind}");
    found
}

/// The two numbers of a word such as `3=17`.
pub(crate) fn pair(word: &str) -> (u64, u64) {
    let (left, right) = word.split_once('=').unwrap();
    (left.parse().unwrap(), right.parse().unwrap())
}

/// The bytes of a word of hexadecimal digits.
pub(crate) fn bytes(word: &str) -> Vec<u8> {
    word.as_bytes()
        .chunks(2)
        .map(|digits| u8::from_str_radix(str::from_utf8(digits).unwrap(), 16).unwrap())
        .collect()
}
