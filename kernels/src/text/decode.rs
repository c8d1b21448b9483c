//! Decodes text from its encoding.

use crate::Error;
use crate::series::Pause;
use meetpoint_format::recipe::{DecodeText, DecodingErrors, Encoding, PIXELS_MAX};

/// Bytes decoded between two calls of `pause`.
const PIECE: usize = 1 << 16;

/// Replaces a text by the decoded bytes, without a byte order mark.
pub(crate) fn decode(
    DecodeText { encoding, errors }: DecodeText,
    encoded: &[u8],
    text: &mut String,
    pause: Pause<'_>,
) -> Result<(), Error> {
    text.clear();
    if encoded.len() as u64 > PIXELS_MAX {
        return Err(Error::LongText { bytes: encoded.len(), limit: PIXELS_MAX });
    }
    pause()?;
    let wrong = |offset: usize| Error::Characters { encoding: encoding.name(), offset };
    match encoding {
        Encoding::Utf8 => {
            let encoded = encoded.strip_prefix(b"\xef\xbb\xbf").unwrap_or(encoded);
            match (std::str::from_utf8(encoded), errors) {
                (Ok(valid), _) => text.push_str(valid),
                (Err(error), DecodingErrors::Strict) => return Err(wrong(error.valid_up_to())),
                (Err(_), DecodingErrors::Replace) => {
                    text.push_str(&String::from_utf8_lossy(encoded));
                }
            }
        }
        Encoding::Utf16Le => utf16(u16::from_le_bytes, encoded, (errors, &wrong), text, pause)?,
        Encoding::Utf16Be => utf16(u16::from_be_bytes, encoded, (errors, &wrong), text, pause)?,
        Encoding::Latin1 => {
            for piece in encoded.chunks(PIECE) {
                text.extend(piece.iter().copied().map(char::from));
                pause()?;
            }
        }
    }
    Ok(())
}

/// Like [`decode`], for UTF-16 with units read by `unit`.
fn utf16(
    unit: fn([u8; 2]) -> u16,
    encoded: &[u8],
    (errors, wrong): (DecodingErrors, &dyn Fn(usize) -> Error),
    text: &mut String,
    pause: Pause<'_>,
) -> Result<(), Error> {
    const BYTE_ORDER_MARK: char = '\u{feff}';
    let (units, rest) = encoded.as_chunks::<2>();
    let mut units = units.iter().copied().map(unit).peekable();
    units.next_if_eq(&(BYTE_ORDER_MARK as u16));
    let mut offset = encoded.len() - rest.len() - 2 * units.len();
    for (index, character) in char::decode_utf16(units).enumerate() {
        match (character, errors) {
            (Ok(character), _) => {
                offset += 2 * character.len_utf16();
                text.push(character);
            }
            (Err(_), DecodingErrors::Strict) => return Err(wrong(offset)),
            (Err(_), DecodingErrors::Replace) => {
                offset += 2;
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        if index % PIECE == 0 {
            pause()?;
        }
    }
    match (rest, errors) {
        ([], _) => Ok(()),
        (_, DecodingErrors::Strict) => Err(wrong(encoded.len() - rest.len())),
        (_, DecodingErrors::Replace) => {
            text.push(char::REPLACEMENT_CHARACTER);
            Ok(())
        }
    }
}
