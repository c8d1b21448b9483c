//! `embed`.

use super::Step;
use crate::text::Embedder;
use meetpoint_format::recipe::Embed;

impl From<&Embed> for Step {
    fn from(operation: &Embed) -> Self {
        Self::Text(Box::new(Embedder::new(operation)))
    }
}
