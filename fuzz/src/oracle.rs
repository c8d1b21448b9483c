//! libjpeg-turbo's result for the same file.

use crate::tally;
use meetpoint_jpeg_benches::libjpeg::{Mode, Turbo, TurboError};
use meetpoint_kernels::{Error, Picture};

/// Maximum sum of the magnitudes of all coefficients of a block. The inverse transform then stays
/// within 500 of the middle; beyond that, libjpeg's C code and its vector code differ.
const BLOCK_SUM_MAX: u32 = 2000;

/// Compares pixels with libjpeg's if both accept a file; acceptance itself is only counted.
pub(crate) fn compare(data: &[u8], ours: Result<&Picture, &Error>) {
    let mut turbo = Turbo::new();
    let mut theirs = Picture::default();
    let result = turbo.decode(data, Mode::default(), &mut theirs);
    let ours = match (ours, result) {
        (Ok(ours), Ok(())) => ours,
        (Ok(_), Err(TurboError::Damaged)) => return tally::add("decoded, libjpeg warns"),
        (Ok(_), Err(_)) => return tally::add("decoded, libjpeg refuses"),
        (Err(error), Ok(())) => {
            let reason = without_numbers(error);
            return tally::add(&format!("refused, libjpeg decodes without a warning: {reason}"));
        }
        (Err(_), Err(_)) => return tally::add("refused, libjpeg refuses or warns"),
    };
    let Ok(planes) = turbo.coefficients(data) else { return };
    let plausible = planes.iter().all(|plane| {
        plane.blocks.iter().all(|block| {
            let sizes = block.iter().zip(&plane.quantisation);
            let sum: u32 =
                sizes.map(|(value, step)| u32::from(value.unsigned_abs()) * u32::from(*step)).sum();
            sum <= BLOCK_SUM_MAX
        })
    });
    if !is_complete(data) {
        // libjpeg compensates for missing scans by smoothing between blocks.
        tally::add(if *ours == theirs {
            "decoded, libjpeg's pixels though scans are missing"
        } else {
            "decoded, other pixels where scans are missing"
        });
    } else if plausible {
        assert!(*ours == theirs, "libjpeg gives other pixels");
        tally::add("decoded, libjpeg's pixels");
    } else if *ours == theirs {
        tally::add("decoded, libjpeg's pixels though no picture");
    } else {
        tally::add("decoded, other pixels of what is not a picture");
    }
}

/// Compares filled-in pixels with libjpeg's.
pub(crate) fn compare_damaged(data: &[u8], ours: Result<&Picture, &Error>) {
    let mut turbo = Turbo::new();
    let mut theirs = Picture::default();
    let result = turbo.decode_damaged(data, Mode::default(), &mut theirs);
    match (ours, result) {
        (Ok(ours), Ok(warnings)) => {
            assert!(*ours == theirs, "libjpeg gives other pixels");
            tally::add(if warnings == 0 { "libjpeg's pixels" } else { "libjpeg's, with warnings" });
        }
        (Ok(_), Err(error)) => tally::add(&format!("decoded, {}", without_numbers(&error))),
        (Err(error), Ok(_)) => {
            tally::add(&format!("refused, libjpeg decodes: {}", without_numbers(&error)));
        }
        (Err(_), Err(_)) => tally::add("refused by both"),
    }
}

/// A message without positions and numbers, which would otherwise give a line for each file.
fn without_numbers(error: &dyn std::fmt::Display) -> String {
    error.to_string().replace(|letter: char| letter.is_ascii_digit(), "")
}

/// Whether the scans of a progressive file contain all bits of all coefficients.
fn is_complete(data: &[u8]) -> bool {
    // By identifier of the component: whether the last bit of a coefficient was seen.
    let mut complete = std::collections::BTreeMap::<u8, [bool; 64]>::new();
    let mut at = 2;
    while let Some([0xff, code, rest @ ..]) = data.get(at..) {
        if matches!(code, 0xff) {
            at += 1;
            continue;
        }
        if matches!(code, 0 | 1 | 0xd0..=0xd8) {
            at += 2;
            continue;
        }
        let Some((&[high, low], content)) = rest.split_first_chunk::<2>() else { break };
        let length = usize::from(u16::from_be_bytes([high, low]));
        match code {
            0xc0 | 0xc1 => return true,
            0xd9 => break,
            0xc2 => {
                let components = content.get(6..length - 2).unwrap_or_default().chunks_exact(3);
                complete.extend(components.map(|component| (component[0], [false; 64])));
            }
            0xda => {
                let Some((count, content)) = content.split_first() else { break };
                let parts = 2 * usize::from(*count);
                let Some(&[first, last, bits]) = content.get(parts..parts + 3) else { break };
                for part in content[..parts].chunks_exact(2).filter(|_| bits & 15 == 0) {
                    let Some(complete) = complete.get_mut(&part[0]) else { continue };
                    for index in first..=last.min(63) {
                        complete[usize::from(index)] = true;
                    }
                }
            }
            _ => (),
        }
        at += 2 + length;
        // Data, or bytes that belong to no segment.
        while data.get(at).is_some_and(|byte| *byte != 0xff) {
            at += 1;
        }
        while let Some([0xff, 0 | 0xd0..=0xd7, ..]) = data.get(at..) {
            at += 2;
            while data.get(at).is_some_and(|byte| *byte != 0xff) {
                at += 1;
            }
        }
    }
    complete.values().flatten().all(|complete| *complete)
}
