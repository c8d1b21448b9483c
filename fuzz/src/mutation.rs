//! Changes to files: bits, bytes, lengths, and the parts of a JPEG.

use meetpoint_format::split_mix::SplitMix64;

/// Maximum number of changes of an input.
const CHANGES_MAX: usize = 6;

/// A file of the corpus after a few changes, or sometimes unchanged, with at most `bytes_max`
/// bytes, followed by random bytes.
pub fn mutated(
    corpus: &[Vec<u8>],
    choice_bytes: usize,
    bytes_max: usize,
    random: &mut Random,
) -> Vec<u8> {
    let mut bytes = corpus[random.below(corpus.len())].clone();
    // If the trailing bytes select something, intact files are tried as well.
    let sound = choice_bytes > 0 && random.below(2) == 0;
    let changes = if sound { 0 } else { random.below(CHANGES_MAX) };
    for _ in 0..changes {
        change(&mut bytes, corpus, random);
    }
    // Large inputs are slow, so there are few of them.
    if !sound && random.below(32) == 0 {
        enlarge(&mut bytes, bytes_max, random);
    }
    bytes.truncate(bytes_max);
    bytes.extend((0..choice_bytes).map(|_| random.byte()));
    bytes
}

fn change(bytes: &mut Vec<u8>, corpus: &[Vec<u8>], random: &mut Random) {
    let length = bytes.len();
    if length == 0 {
        return;
    }
    let at = random.below(length);
    // Headers are short and matter most.
    let early = random.below(length.min(700));
    match random.below(18) {
        0 => bytes[at] ^= 1 << random.below(8),
        1 => bytes[early] ^= 1 << random.below(8),
        2 => bytes[early] = random.byte(),
        3 => bytes[at] = random.byte(),
        4 => bytes[early] = [0, 1, 2, 0x7f, 0x80, 0xfe, 0xff][random.below(7)],
        5 => bytes.truncate(at),
        6 => {
            // A marker.
            let code = 0xc0 + random.below(0x40) as u8;
            bytes.splice(at..at, [0xff, code]);
        }
        7 => {
            let end = at + random.below(40).min(length - at);
            bytes.drain(at..end);
        }
        8 => {
            let end = at + random.below(80).min(length - at);
            let copy = bytes[at..end].to_vec();
            let to = random.below(length);
            bytes.splice(to..to, copy);
        }
        9 => {
            // The beginning of this file and the end of another one.
            let other = &corpus[random.below(corpus.len())];
            let from = random.below(other.len().max(1)).min(other.len());
            bytes.truncate(at);
            bytes.extend_from_slice(&other[from..]);
        }
        10 => {
            let end = at + random.below(16).min(length - at);
            let byte = random.byte();
            bytes[at..end].fill(byte);
        }
        11 => bytes.swap(at, early),
        12 | 13 => change_field(bytes, random),
        14 => add_segment(bytes, &corpus[random.below(corpus.len())], random),
        15 => {
            let segments = segments(bytes);
            if !segments.is_empty() {
                bytes.drain(segments[random.below(segments.len())].clone());
            }
        }
        16 => change_restart(bytes, random),
        _ => {
            // Increases or decreases a number slightly.
            let step = [1, 2, 0xff, 0xfe][random.below(4)];
            bytes[early] = bytes[early].wrapping_add(step);
        }
    }
}

/// Repeats a segment of a JPEG, or any range of bytes, up to a random size of at most `bytes_max`.
pub fn enlarge(bytes: &mut Vec<u8>, bytes_max: usize, random: &mut Random) {
    let segments = segments(bytes);
    let range = if segments.is_empty() || random.below(4) == 0 {
        let at = random.below(bytes.len());
        at..at + random.below(4096).min(bytes.len() - at)
    } else {
        segments[random.below(segments.len())].clone()
    };
    let size = random.below(bytes_max + 1);
    let count = size.saturating_sub(bytes.len()) / range.len().max(1);
    let repeated = bytes[range.clone()].repeat(count);
    bytes.splice(range.end..range.end, repeated);
}

/// The segments of a JPEG before its first data, each with its leading 0xff.
fn segments(bytes: &[u8]) -> Vec<std::ops::Range<usize>> {
    let (mut found, mut at) = (Vec::new(), 2);
    while let Some([0xff, code, high, low]) = bytes.get(at..at + 4) {
        let end = at + 2 + usize::from(u16::from_be_bytes([*high, *low]));
        if end > bytes.len() || !(0xc0..=0xfe).contains(code) {
            break;
        }
        found.push(at..end);
        at = end;
    }
    found
}

/// Changes a byte near the beginning of a segment: sizes, factors, names of tables, counts of
/// codes.
fn change_field(bytes: &mut [u8], random: &mut Random) {
    let segments = segments(bytes);
    if segments.is_empty() {
        return;
    }
    let segment = segments[random.below(segments.len())].clone();
    let at = segment.start + 1 + random.below((segment.len() - 1).min(24));
    let value = random.byte();
    bytes[at] = match random.below(4) {
        0 => value,
        1 => value & 0x33,
        2 => bytes[at] ^ 1 << (value & 7),
        _ => bytes[at].wrapping_add(if value & 1 == 0 { 1 } else { 0xff }),
    };
}

/// Inserts a segment of another file before one of this file.
fn add_segment(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let (here, there) = (segments(bytes), segments(other));
    if !here.is_empty() && !there.is_empty() {
        let to = here[random.below(here.len())].start;
        let from = there[random.below(there.len())].clone();
        bytes.splice(to..to, other[from].iter().copied());
    }
}

/// Changes the number of a restart marker, removes it, or duplicates it.
fn change_restart(bytes: &mut Vec<u8>, random: &mut Random) {
    let is_marker = |two: &[u8]| two[0] == 0xff && (0xd0..=0xd7).contains(&two[1]);
    let found: Vec<_> =
        bytes.windows(2).enumerate().filter(|(_, two)| is_marker(two)).map(|(at, _)| at).collect();
    if found.is_empty() {
        return;
    }
    let at = found[random.below(found.len())];
    match random.below(3) {
        0 => bytes[at + 1] = 0xd0 + random.below(8) as u8,
        1 => drop(bytes.drain(at..at + 2)),
        _ => drop(bytes.splice(at..at, [0xff, 0xd0 + random.below(8) as u8])),
    }
}

/// Seeded random numbers, one stream for each input.
#[derive(Debug)]
pub struct Random(SplitMix64);

impl Random {
    /// The stream of an input.
    pub fn new(seed: u64, number: u64) -> Self {
        let number = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self(SplitMix64::new(seed.rotate_left(32) ^ number))
    }

    fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `count`, or 0.
    pub fn below(&mut self, count: usize) -> usize {
        (self.next() % count.max(1) as u64) as usize
    }

    fn byte(&mut self) -> u8 {
        self.next() as u8
    }
}
