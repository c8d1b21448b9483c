//! Forms that are stored in `tests/golden/forms.txt`; `read_form.py` beside it reads them too.

use super::{BlockContent, FORMS, coefficients, frame};
use crate::Coefficients;
use crate::form::{FormError, Frame, pack, unpack_all};
use crate::golden::{bytes, instruction_sets, sha256};

pub(super) const STORED: &str = include_str!("../../../tests/golden/forms.txt");

/// The pictures by name.
fn pictures() -> Vec<(&'static str, Frame, Coefficients)> {
    let made = |name, width, height, sampling: &[(u8, u8)], content, seed| {
        let frame = frame(width, height, sampling);
        let coefficients = coefficients(&frame, content, seed);
        (name, frame, coefficients)
    };
    let full = [(1, 1); 3];
    let half = [(2, 2), (1, 1), (1, 1)];
    vec![
        made("one-pixel", 1, 1, &[(1, 1)], BlockContent::Sparse, 1),
        made("grey-photo", 40, 17, &[(1, 1)], BlockContent::Photo, 2),
        made("full-photo", 33, 20, &full, BlockContent::Photo, 3),
        made("half-photo", 50, 40, &half, BlockContent::Photo, 4),
        made("half-sparse-wide", 300, 10, &half, BlockContent::Sparse, 5),
        made("full-extreme", 20, 9, &full, BlockContent::Extreme, 6),
        made("four-dense", 9, 9, &[(1, 1), (2, 1), (1, 1), (2, 1)], BlockContent::Dense, 7),
    ]
}

/// SHA-256 of all coefficients, natural order, little-endian, plane after plane.
fn hash(coefficients: &Coefficients) -> String {
    let blocks = coefficients.planes.iter().flat_map(|plane| &plane.blocks);
    let bytes: Vec<u8> =
        blocks.flat_map(|block| block.0).flat_map(|value| value.to_le_bytes()).collect();
    sha256(&bytes)
}

#[test]
fn stored_forms_are_read_and_written_unchanged() {
    let mut lines = String::new();
    for (name, frame, coefficients) in pictures() {
        for form in FORMS {
            let packed = pack(form, &frame, &coefficients, b"skeleton").unwrap();
            let digits: String = packed.iter().map(|byte| format!("{byte:02x}")).collect();
            lines += &format!("{name} {form:?} : {digits} {}\n", hash(&coefficients));
        }
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/forms.txt");
        std::fs::write(path, &lines).unwrap();
        return;
    }
    assert!(lines == STORED, "pack() writes other bytes; UPDATE_GOLDEN=1 if they must change");
    for (_, words) in crate::golden::lines(STORED) {
        for cpu in instruction_sets() {
            let (coefficients, skeleton) = unpack_all(&bytes(words[0]), cpu).unwrap();
            assert_eq!(hash(&coefficients), words[1]);
            assert_eq!(skeleton, b"skeleton");
        }
    }
}

#[test]
fn both_forms_are_recognised_by_their_first_bytes() {
    for (before, words) in crate::golden::lines(STORED) {
        let form = crate::form_of(&bytes(words[0]));
        assert_eq!(form.map(|form| format!("{form:?}")).as_deref(), Some(before[1]));
    }
}

#[test]
fn a_form_of_a_later_version_is_refused_with_its_version() {
    for (_, words) in crate::golden::lines(STORED) {
        let mut stored = bytes(words[0]);
        stored[8] = 3;
        assert!(crate::form_of(&stored).is_some());
        let newer = FormError::Newer { version: 3, newest: 2 };
        assert_eq!(unpack_all(&stored, crate::Cpu::Portable), Err(newer));
    }
}

#[test]
fn a_form_of_version_1_is_refused_with_advice_to_pack_again() {
    for (_, words) in crate::golden::lines(STORED) {
        let mut stored = bytes(words[0]);
        stored[8] = 1;
        assert!(crate::form_of(&stored).is_some());
        let older = FormError::Older { version: 1, read: 2 };
        assert_eq!(unpack_all(&stored, crate::Cpu::Portable), Err(older.clone()));
        assert_eq!(crate::size(&stored), Err(crate::Error::Form(older.clone())));
        assert!(older.to_string().contains("version 1") && older.to_string().contains("version 2"));
    }
}
