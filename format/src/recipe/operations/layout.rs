//! `layout`: the order of the axes.

use super::Data;
use crate::recipe::declaration::{
    Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase,
};
use crate::recipe::error::Fault;
use crate::recipe::value::{Value, Values};
use crate::recipe::{Layout, SampleType};

/// Order of the axes of the result; its position in the recipe has no effect.
impl Data for Layout {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "layout",
        about: "sets the order of the axes of the result",
        phase: Phase::Elements,
        targets: OnTargets::Leaves,
        takes: &[InputType::ANY_IMAGE, InputType::TENSOR],
        gives: OutputType::TENSOR,
        needs: Needs::All,
        random: &[],
        keys: &[Key::required(
            "layout",
            KeyType::Word { choices: Layout::OF_IMAGES },
            Value::Word(Layout::Nchw.name()),
            "the axes of a batch; without this operation NHWC",
        )],
    };

    fn read(values: &Values) -> Self {
        values.named("layout", Self::from_name)
    }

    fn values(&self) -> Vec<Value> {
        vec![Value::Word(self.name())]
    }

    fn follow(&self, sample: &mut SampleType) -> Result<(), Fault> {
        if sample.layout.is_some() {
            return Err(Fault::new("the layout is set already", "leave out one of the two"));
        }
        sample.layout = Some(*self);
        Ok(())
    }
}
