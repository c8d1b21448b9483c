//! `html_to_text`.

use crate::Error;
use crate::series::Pause;
use crate::text::{Document, HtmlReader, TextOperation};
use meetpoint_format::recipe::HtmlToText;

impl TextOperation for HtmlToText {
    fn apply(&self, document: &mut Document, pause: Pause<'_>) -> Result<(), Error> {
        HtmlReader::read(document, pause)
    }
}
