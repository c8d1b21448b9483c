//! `tokenize`.

use super::Step;
use crate::text::Encoder;
use meetpoint_format::recipe::Tokenize;

impl From<&Tokenize> for Step {
    fn from(operation: &Tokenize) -> Self {
        Self::Text(Box::new(Encoder::new(operation)))
    }
}
