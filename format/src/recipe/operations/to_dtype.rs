//! `to_dtype`: converts to another element type.

use super::Data;
use crate::recipe::declaration::{
    Declaration, InputType, Key, KeyType, Needs, OnTargets, OutputType, Phase, Property,
};
use crate::recipe::error::Fault;
use crate::recipe::value::{Value, Values};
use crate::recipe::{Dtype, SampleType, Scale};

/// The word for [`Scale::Divide`].
const DIVIDE: &str = "divide";

/// `torchvision.transforms.v2.ToDtype`.
///
/// Between float types it changes only the type (rounded to nearest, ties to even). Float types
/// cannot be converted to integers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ToDtype {
    /// Element type of the result.
    pub dtype: Dtype,
    /// How integers are scaled when they become floats.
    pub scale: Scale,
}

impl Data for ToDtype {
    const DECLARATION: &'static Declaration = &Declaration {
        name: "to_dtype",
        about: "converts to another element type",
        phase: Phase::Elements,
        targets: OnTargets::Leaves,
        takes: &[
            InputType::ANY_IMAGE,
            InputType::TENSOR,
            InputType::FEW_AUDIO,
            InputType::FEW_SPECTROGRAM,
            InputType::FEW_SIGNAL,
        ],
        gives: OutputType { dtype: Property::Key("dtype"), ..OutputType::TENSOR },
        needs: Needs::All,
        random: &[],
        keys: &[
            Key::required(
                "dtype",
                KeyType::Word { choices: Dtype::CONVERTIBLE },
                Value::Word(Dtype::Float32.name()),
                "the element type",
            ),
            Key::optional(
                "scale",
                KeyType::SwitchOrWord { choices: &[DIVIDE] },
                Value::Switch(false),
                "whether integers become 0 to 1 in a float type: multiplied by 1/255 (uint16: \
                 1/65535), or divided by 255 (65535)",
            ),
        ],
    };

    fn read(values: &Values) -> Self {
        let scale = match values.switch_or_word("scale") {
            Some(false) => Scale::None,
            Some(true) => Scale::Multiply,
            None => Scale::Divide,
        };
        Self { dtype: values.named("dtype", Dtype::from_name), scale }
    }

    fn values(&self) -> Vec<Value> {
        let scale = match self.scale {
            Scale::None => Value::Switch(false),
            Scale::Multiply => Value::Switch(true),
            Scale::Divide => Value::Word(DIVIDE),
        };
        vec![Value::Word(self.dtype.name()), scale]
    }

    fn follow(&self, sample: &mut SampleType) -> Result<(), Fault> {
        if self.dtype.largest().is_some() && sample.dtype != self.dtype {
            let (wanted, found) = (self.dtype.name(), sample.dtype.name());
            return Err(Fault::of_value(
                "dtype",
                format!("is \"{wanted}\", but the values are {found} here"),
                "leave out the earlier conversion, or this one",
            ));
        }
        sample.dtype = self.dtype;
        Ok(())
    }
}
