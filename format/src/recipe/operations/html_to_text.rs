//! `html_to_text`: the visible text of an HTML document.

use super::Data;
use crate::recipe::declaration::{
    Declaration, InputType, Needs, OnTargets, OutputType, Phase, Property,
};
use crate::recipe::value::{Value, Values};

/// The text of an HTML document, with a line for each block.
///
/// The document is split into tags and text as the HTML standard says (WHATWG, 13.2.5), character
/// references included. Comments and some elements, such as script and style, are dropped with all
/// that they contain; others, such as p and li, begin and end a line. Each run of white space
/// becomes one space, but for line feeds in pre; spaces at both ends of a line and empty lines are
/// left out. Lines are joined by line feeds. `docs/formats.md` lists the elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HtmlToText;

impl Data for HtmlToText {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "html_to_text",
        about: "keeps the visible text of an HTML document, a line for each block",
        phase: Phase::Text,
        targets: OnTargets::Refuses,
        takes: &[InputType::TEXT],
        gives: OutputType { size: Property::Variable, ..OutputType::SERIES },
        needs: Needs::All,
        random: &[],
        keys: &[],
    };

    fn read(_values: &Values) -> Self {
        Self
    }

    fn values(&self) -> Vec<Value> {
        vec![]
    }

    fn size(&self, _input: Option<(u32, u32)>) -> Option<(u32, u32)> {
        None
    }
}
