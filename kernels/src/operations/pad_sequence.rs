//! `pad_sequence`.

use crate::Error;
use crate::series::Pause;
use crate::text::{Document, DocumentKind, TextOperation};
use meetpoint_format::recipe::{PadSequence, Planes};

impl TextOperation for PadSequence {
    fn apply(&self, document: &mut Document, pause: Pause<'_>) -> Result<(), Error> {
        pause()?;
        let length = self.length as usize;
        let tokens = &mut document.tokens;
        // Recipes allow no token above the range of int32.
        if let Some(end) = self.end_token.map(u32::cast_signed) {
            tokens.truncate(length - 1);
            tokens.push(end);
        }
        tokens.truncate(length);
        let real = tokens.len();
        tokens.resize(length, self.pad_token.cast_signed());
        match self.planes {
            Planes::Ids => {}
            Planes::IdsMask => push_ones(tokens, real, length),
            Planes::IdsSegmentsPositions => {
                push_ones(tokens, real, length);
                let positions = 0..i32::try_from(real).expect("at most LENGTH_MAX");
                tokens.extend(positions);
                tokens.resize(3 * length, 0);
            }
        }
        document.kind = DocumentKind::Tokens(self.planes.count() as usize);
        Ok(())
    }
}

/// Appends a plane with 1 for tokens and 0 for padding.
fn push_ones(tokens: &mut Vec<i32>, real: usize, length: usize) {
    let end = tokens.len() + length;
    tokens.resize(tokens.len() + real, 1);
    tokens.resize(end, 0);
}
