//! Expected values of tests: lines written by the scripts of `tests/golden`, and input pictures.

use crate::{Cpu, Picture};
use sha2::{Digest, Sha256};

/// The lines of a golden file, each as the words before and after its colon.
pub(crate) fn lines(text: &str) -> Vec<(Vec<&str>, Vec<&str>)> {
    let words = |text| str::split_whitespace(text).collect::<Vec<_>>();
    let found: Vec<_> = text
        .lines()
        .map(|line| line.split_once(" : ").expect("a golden line has a colon"))
        .map(|(before, after)| (words(before), words(after)))
        .collect();
    assert!(!found.is_empty());
    found
}

/// A word as a number.
pub(crate) fn number<T: std::str::FromStr<Err: std::fmt::Debug>>(word: &str) -> T {
    word.parse().unwrap()
}

/// The bytes of a word of hexadecimal digits.
pub(crate) fn bytes(word: &str) -> Vec<u8> {
    let digit = |digit: &u8| (*digit as char).to_digit(16).unwrap() as u8;
    word.as_bytes().chunks(2).map(|pair| digit(&pair[0]) << 4 | digit(&pair[1])).collect()
}

/// SHA-256 in hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An input picture by the names of the script: `noise` or `wave`.
pub(crate) fn picture(kind: &str, seed: u32, width: u32, height: u32) -> Picture {
    let pixels = match kind {
        "noise" => noise(seed, width * height * 3),
        "wave" => (0..height)
            .flat_map(|y| (0..width).flat_map(move |x| (0..3).map(move |c| (x, y, c))))
            .map(|(x, y, c)| (x * (seed + 3) + y * (2 * seed + 1) + c * 71) % 512)
            .map(|value| value.min(511 - value) as u8)
            .collect(),
        other => panic!("no pattern {other}"),
    };
    Picture { width, height, pixels }
}

fn noise(seed: u32, count: u32) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..count).map(|_| next()).collect()
}

/// Every instruction set that this machine has; stderr names the others with the reason.
#[expect(clippy::print_stderr, reason = "a skipped instruction set must be seen")]
pub(crate) fn instruction_sets() -> Vec<Cpu> {
    for (cpu, reason) in Cpu::ALL.iter().filter_map(|cpu| Some((cpu, cpu.unavailable()?))) {
        eprintln!("skipped: {} ({reason})", cpu.name());
    }
    Cpu::available().collect()
}
