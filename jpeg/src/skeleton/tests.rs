//! Files are restored byte for byte from skeleton and coefficients, and damaged skeletons are
//! errors.

use super::{Skeleton, assemble, dismantle};
use crate::Error;
use crate::coefficient_reader::tests::golden_files;
use crate::random::shape;
use crate::{Process, Restarts, Rewrite, rewrite};
use proptest::prelude::*;

impl Skeleton {
    /// A skeleton whose scans all end as those of libjpeg.
    pub(crate) fn plain(outside: Vec<u8>) -> Self {
        Self { outside, endings: Vec::new() }
    }
}

/// Splits a file, restores it and returns the length of the skeleton.
fn comes_back(file: &[u8]) -> usize {
    let (skeleton, coefficients) = dismantle(file).unwrap();
    let bytes = skeleton.to_bytes();
    assert_eq!(Skeleton::from_bytes(&bytes).unwrap(), skeleton);
    assert_eq!(assemble(&skeleton, &coefficients).unwrap(), file);
    bytes.len()
}

/// The end of the last scan.
fn end_of_scan(file: &[u8]) -> usize {
    file.windows(2).rposition(|two| two == [0xff, 0xd9]).unwrap()
}

#[test]
fn files_of_libjpeg_are_restored_from_small_skeletons() {
    for (name, file, _) in golden_files() {
        let length = comes_back(&file);
        let scans = file.windows(2).filter(|two| *two == [0xff, 0xda]).count();
        assert!(length <= 60 + 24 * scans, "{name}: {length}");
    }
}

#[test]
fn tables_that_are_not_optimal_are_stored() {
    // Restart markers change how often symbols occur, and leave the tables as they are.
    let (_, file, _) = golden_files().swap_remove(5);
    let best = rewrite(&file, &Rewrite::default()).unwrap();
    let how = Rewrite { process: Process::Progressive, ..Rewrite::default() };
    let progressive = rewrite(&file, &how).unwrap();
    comes_back(&best);
    comes_back(&progressive);
    // A code for a symbol that does not occur, so the table is not optimal.
    let table = best.windows(2).position(|two| two == [0xff, 0xc4]).unwrap();
    let mut odd = best.clone();
    let length = usize::from(odd[table + 3]);
    let last = (0..16).rposition(|index| odd[table + 5 + index] > 0).unwrap();
    // Of the next length: among the codes of the last one only that of all ones is free.
    odd[table + 5 + last + 1] += 1;
    odd[table + 3] += 1;
    odd.insert(table + 2 + length, 11);
    assert!(comes_back(&odd) > comes_back(&best));
}

#[test]
fn garbage_and_fill_bytes_are_restored() {
    for (_, file, _) in golden_files() {
        let end = end_of_scan(&file);
        comes_back(&[&file, b"trailing \xff\xd8\xff\xd9\xff".as_slice()].concat());
        comes_back(&[&file, file.as_slice()].concat());
        let restarts = file.windows(2).any(|two| two == [0xff, 0xdd]);
        for tail in [b"\0\0".as_slice(), b"\xff\xff", b"\xff\0", b"\xff\xd0", b"\xff\xd0\0\xff"] {
            let odd = [&file[..end], tail, &file[end..]].concat();
            if restarts && tail.contains(&0xd0) {
                // No interval follows, and the decoder of pixels would refuse it too.
                let reason = dismantle(&odd).unwrap_err().to_string();
                assert!(reason.contains("more restart markers than intervals"), "{reason}");
            } else {
                comes_back(&odd);
            }
        }
        comes_back(&[&file[..2], b"\xff\xff\xfe\x00\x03!garbage", &file[2..]].concat());
    }
}

#[test]
fn other_padding_is_restored() {
    let mut padded = 0;
    for (_, file, _) in golden_files() {
        for restarts in [Restarts::Remove, Restarts::EveryMcus(1)] {
            let mut file = rewrite(&file, &Rewrite { restarts, ..Rewrite::default() }).unwrap();
            for at in (1..file.len() - 1).rev() {
                let is_end = file[at] == 0xff && (0xd0..=0xd9).contains(&file[at + 1]);
                if is_end && file[at - 1] & 1 == 1 && file[at - 1] != 0xff {
                    // A bit of padding or of data becomes zero: both are handled.
                    file[at - 1] ^= 1;
                    padded += usize::from(dismantle(&file).is_ok());
                    match dismantle(&file) {
                        Ok(_) => drop(comes_back(&file)),
                        Err(Error::NotReproducible { .. } | Error::Damaged { .. }) => (),
                        Err(error) => panic!("{error}"),
                    }
                }
            }
        }
    }
    assert!(padded > 20);
}

#[test]
fn a_file_that_libjpeg_would_write_differently_is_refused() {
    // A grey block whose 63 zeros are three runs of 16 and an end of block.
    let (_, file, _) = golden_files().swap_remove(0);
    let scan = file.windows(2).position(|two| two == [0xff, 0xda]).unwrap() + 10;
    // Standard tables: difference 0 is 00, the run 11111111001, the end 1010.
    let bits = format!("00{}1010", "11111111001".repeat(3));
    let bits = format!("{bits:1<40}");
    let bytes = bits.as_bytes().chunks(8);
    let bytes: Vec<u8> = bytes
        .map(|eight| u8::from_str_radix(std::str::from_utf8(eight).unwrap(), 2).unwrap())
        .flat_map(|byte| if byte == 0xff { vec![0xff, 0] } else { vec![byte] })
        .collect();
    let odd = [&file[..scan], &bytes, b"\xff\xd9"].concat();
    match dismantle(&odd) {
        Err(Error::NotReproducible { offset }) => assert!((scan..odd.len()).contains(&offset)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn coefficients_of_another_picture_are_refused() {
    let files = golden_files();
    let (skeleton, _) = dismantle(&files[4].1).unwrap();
    let (_, other) = dismantle(&files[6].1).unwrap();
    assert!(matches!(assemble(&skeleton, &other), Err(Error::Skeleton { .. })));
}

#[test]
fn a_skeleton_cut_short_is_an_error() {
    for (_, file, _) in golden_files() {
        let (skeleton, _) = dismantle(&file).unwrap();
        let bytes = skeleton.to_bytes();
        for length in 0..bytes.len() {
            assert!(Skeleton::from_bytes(&bytes[..length]).is_err());
        }
    }
}

#[test]
fn few_bytes_cannot_cause_large_allocations() {
    // 2^28 bytes: a start marker and a segment as they are, then as many copies of the segment.
    let mut bytes = vec![1, 0x80, 0x80, 0x80, 0x80, 1, 12];
    bytes.extend(b"\xff\xd8\xff\xfe\x00\x02");
    bytes.extend([0xf5, 0xff, 0xff, 0xff, 1, 4]);
    assert_eq!(
        Skeleton::from_bytes(&bytes).err(),
        Some(Error::Skeleton { reason: "a copy reaches too far" })
    );
}

#[test]
fn long_repetitions_are_restored() {
    for length in [65_000, 65_536, 65_537, 70_000, 200_000] {
        let skeleton = Skeleton::plain(vec![7; length]);
        assert_eq!(Skeleton::from_bytes(&skeleton.to_bytes()).unwrap(), skeleton);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn random_files_are_restored(shape in shape()) {
        comes_back(&shape.file().0);
    }

    #[test]
    fn any_bytes_outside_scans_are_encoded(outside in prop::collection::vec(0..3u8, 0..600)) {
        let skeleton = Skeleton::plain(outside);
        prop_assert_eq!(Skeleton::from_bytes(&skeleton.to_bytes()).unwrap(), skeleton);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn damaged_skeletons_never_panic(
        file in 0..golden_files().len(),
        changes in prop::collection::vec((0.0..1.0f64, any::<u8>()), 1..4),
    ) {
        let (_, file, _) = golden_files().swap_remove(file);
        let (skeleton, coefficients) = dismantle(&file).unwrap();
        let mut bytes = skeleton.to_bytes();
        let mut outside = skeleton.outside.clone();
        for (at, value) in changes {
            let place = |length: usize| (at * length as f64) as usize;
            let (one, other) = (place(bytes.len()), place(outside.len()));
            bytes[one] = value;
            outside[other] = value;
        }
        let damaged = Skeleton { outside, endings: skeleton.endings };
        for skeleton in Skeleton::from_bytes(&bytes).into_iter().chain([damaged]) {
            // Any result is valid, but no panic.
            drop(assemble(&skeleton, &coefficients));
        }
    }
}
