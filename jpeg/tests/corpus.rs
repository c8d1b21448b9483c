//! Small JPEGs of every kind decode to the bytes of libjpeg-turbo, whole and by region.
//!
//! golden/jpeg/make.py writes the files and the list of expected results, and explains both. A test
//! names every file that fails, not only the first.

use meetpoint_jpeg::{
    Cpu, DecodeOptions, DecodeScale, Decoder, Encoded, Error, Form, OnDamage, OutputColour,
    Picture, Region, Spacing, entry_points, from_form, size, to_form,
};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

const EXACT: DecodeOptions = DecodeOptions {
    scale: DecodeScale::Eight,
    on_damage: OnDamage::Fail,
    colour: OutputColour::Rgb,
};

/// A line of the index.
struct Entry {
    name: String,
    kind: Kind,
    size: (u32, u32),
    /// SHA-256 of the whole picture.
    whole: String,
    /// Regions and the prefix of the SHA-256 of each.
    regions: Vec<(Region, String)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Rgb,
    /// Coefficients that no picture has, as libjpeg-turbo's SIMD code transforms them.
    Simd,
    Error,
    /// Damaged: an error, or filled in.
    Filled,
    /// So damaged that libjpeg refuses it.
    Lost,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/jpeg")
}

fn entries() -> Vec<Entry> {
    let index = std::fs::read_to_string(folder().join("index.txt")).expect("the index reads");
    let entries: Vec<_> = index.lines().filter(|line| !line.starts_with('#')).map(entry).collect();
    assert!(entries.len() > 100);
    entries
}

fn entry(line: &str) -> Entry {
    let (before, after) = line.split_once(':').expect("a line has a colon");
    let before: Vec<_> = before.split_whitespace().collect();
    let mut after = after.split_whitespace().map(str::to_owned);
    let kind = match before[1] {
        "rgb" => Kind::Rgb,
        "simd" => Kind::Simd,
        "error" => Kind::Error,
        "filled" => Kind::Filled,
        "lost" => Kind::Lost,
        other => panic!("no kind {other}"),
    };
    Entry {
        name: before[0].to_owned(),
        kind,
        size: (number(before[2]), number(before[3])),
        whole: after.next().unwrap_or_default(),
        regions: after.map(|word| region(&word)).collect(),
    }
}

fn number(word: &str) -> u32 {
    word.parse().expect("a number")
}

fn region(word: &str) -> (Region, String) {
    let words: Vec<_> = word.split(',').collect();
    let [x, y, width, height] = [0, 1, 2, 3].map(|at| number(words[at]));
    (Region { x, y, width, height }, words[4].to_owned())
}

fn read(entry: &Entry) -> Vec<u8> {
    std::fs::read(folder().join(format!("{}.jpg", entry.name))).expect("the file reads")
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What is wrong with the decode of a region, if anything.
fn fault(encoded: &[u8], region: Option<Region>, expected: &str) -> Option<String> {
    fault_with(&EXACT, encoded, region, expected)
}

fn fault_with(
    options: &DecodeOptions,
    encoded: &[u8],
    region: Option<Region>,
    expected: &str,
) -> Option<String> {
    Cpu::available().find_map(|cpu| {
        let mut out = Picture::default();
        let mut decoder = Decoder::with_cpu(cpu);
        if let Err(error) = decoder.decode_into(encoded.into(), region, options, &mut out) {
            return Some(format!("{}: {error}", cpu.name()));
        }
        let wrong = !sha256(&out.pixels).starts_with(expected);
        wrong.then(|| format!("{}: other pixels", cpu.name()))
    })
}

/// The faults of all files of a kind, one line each.
fn faults(kind: Kind, mut check: impl FnMut(&Entry, &[u8]) -> Option<String>) -> Vec<String> {
    let entries = entries();
    let of_kind = entries.iter().filter(|entry| entry.kind == kind);
    of_kind
        .filter_map(|entry| {
            let fault = check(entry, &read(entry))?;
            Some(format!("{}: {fault}", entry.name))
        })
        .collect()
}

fn assert_none(faults: &[String]) {
    assert!(faults.is_empty(), "{} files:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn every_file_has_the_size_that_libjpeg_reports() {
    assert_none(&faults(Kind::Rgb, |entry, encoded| match size(encoded) {
        Ok(size) if size == entry.size => None,
        other => Some(format!("{other:?}")),
    }));
}

#[test]
fn whole_pictures_equal_those_of_libjpeg() {
    assert_none(&faults(Kind::Rgb, |entry, encoded| fault(encoded, None, &entry.whole)));
}

#[test]
fn regions_equal_those_of_libjpeg() {
    assert_none(&faults(Kind::Rgb, |entry, encoded| {
        assert_eq!(entry.regions.len(), 5);
        entry.regions.iter().find_map(|(region, expected)| {
            let fault = fault(encoded, Some(*region), expected)?;
            Some(format!("{region:?}: {fault}"))
        })
    }));
}

#[test]
fn impossible_coefficients_equal_the_simd_code_of_libjpeg() {
    assert_none(&faults(Kind::Simd, |entry, encoded| fault(encoded, None, &entry.whole)));
}

#[test]
fn damaged_and_unsupported_files_are_refused() {
    assert_none(&faults(Kind::Error, |_, encoded| {
        let mut out = Picture::default();
        let result = Decoder::new().decode_into(encoded.into(), None, &EXACT, &mut out);
        result.is_ok().then(|| format!("accepted, {}x{}", out.width, out.height))
    }));
}

const LENIENT: DecodeOptions = DecodeOptions { on_damage: OnDamage::FillIn, ..EXACT };

#[test]
fn damaged_files_are_filled_in_as_by_libjpeg() {
    let mut refused = 0;
    assert_none(&faults(Kind::Filled, |entry, encoded| {
        let mut out = Picture::default();
        match Decoder::new().decode_into(encoded.into(), None, &EXACT, &mut out) {
            Ok(()) if sha256(&out.pixels) != entry.whole => return Some("taken".to_owned()),
            Ok(()) => (),
            Err(_) => refused += 1,
        }
        let parts = entry.regions.iter().map(|(region, expected)| (Some(*region), expected));
        std::iter::once((None, &entry.whole)).chain(parts).find_map(|(region, expected)| {
            let fault = fault_with(&LENIENT, encoded, region, expected)?;
            Some(format!("{region:?}: {fault}"))
        })
    }));
    assert!(refused > 30, "{refused} are refused by default");
}

#[test]
fn files_that_libjpeg_gives_up_on_are_refused() {
    assert_none(&faults(Kind::Lost, |_, encoded| {
        let mut out = Picture::default();
        let result = Decoder::new().decode_into(encoded.into(), None, &LENIENT, &mut out);
        result.is_ok().then(|| "taken".to_owned())
    }));
}

#[test]
fn a_sound_file_is_not_filled_in() {
    assert_none(&faults(Kind::Rgb, |entry, encoded| {
        let mut decoder = Decoder::new();
        let mut out = Picture::default();
        let result = decoder.decode_into(encoded.into(), None, &LENIENT, &mut out);
        let same = result.is_ok() && sha256(&out.pixels) == entry.whole;
        (!same || decoder.is_filled_in()).then(|| format!("{result:?}"))
    }));
}

/// The coefficient forms of a file decode to the same pixels, whole and in parts, and restore the
/// file byte for byte.
#[test]
fn coefficient_forms_are_equivalent_to_their_file() {
    let mut kept = Vec::new();
    let faults = faults(Kind::Rgb, |entry, encoded| {
        [Form::Fast, Form::Compact].into_iter().find_map(|form| {
            let stored = match to_form(encoded, form) {
                Ok(stored) => stored,
                Err(Error::NotReproducible { .. }) => {
                    kept.push((entry.name.clone(), form));
                    return None;
                }
                Err(error) => return Some(format!("{form:?}: {error}")),
            };
            if from_form(&stored).as_deref() != Ok(encoded) {
                return Some(format!("{form:?}: another file is restored"));
            }
            let parts = entry.regions.iter().map(|(region, expected)| (Some(*region), expected));
            std::iter::once((None, &entry.whole)).chain(parts).find_map(|(region, expected)| {
                Some(format!("{form:?}: {region:?}: {}", fault(&stored, region, expected)?))
            })
        })
    });
    assert_none(&faults);
    // The number of fill bytes before a restart marker is not stored in a form.
    let odd = "fill-bytes".to_owned();
    assert_eq!(kept, [(odd.clone(), Form::Fast), (odd, Form::Compact)]);
}

#[test]
fn entry_points_change_no_pixel() {
    assert_none(&faults(Kind::Rgb, |entry, encoded| {
        let points = entry_points(encoded, Spacing::Mcus(3)).map(Option::unwrap_or_default);
        let points = match points {
            Ok(points) => points,
            Err(error) => return Some(error.to_string()),
        };
        entry.regions.iter().find_map(|(region, expected)| {
            let encoded = Encoded { entry_points: &points, ..Encoded::from(encoded) };
            let mut out = Picture::default();
            let result = Decoder::new().decode_into(encoded, Some(*region), &EXACT, &mut out);
            let same = result.is_ok() && sha256(&out.pixels).starts_with(expected);
            (!same).then(|| format!("{region:?}: {result:?}"))
        })
    }));
}
