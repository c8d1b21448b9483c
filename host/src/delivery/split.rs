//! Where a recipe is divided between the host and a GPU: before bytes become elements.

use crate::split_refusal::SplitRefusal;
use meetpoint_format::column::{Collate, ElementType};
use meetpoint_format::recipe::{Dtype, Layout, Operation, Phase, Recipe, ValueKind};
use meetpoint_gpu::delivery::{Arithmetic, Conversion, ElementBytes, Float, Order};
use meetpoint_kernels::element_table;

/// A recipe that is divided: the host prepares bytes, the GPU converts them.
#[derive(Debug, Clone, PartialEq)]
pub struct Split {
    /// What the host and its devices prepare.
    pub head: Recipe,
    /// What the GPU computes.
    pub conversion: Conversion,
    /// Element type of the result.
    pub element: GpuElement,
}

/// Element type of values on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GpuElement {
    /// One that the host has too.
    Host(ElementType),
    /// The upper 16 bits of float32, rounded to nearest, ties to even.
    Bfloat16,
}

impl From<ElementType> for GpuElement {
    fn from(element: ElementType) -> Self {
        Self::Host(element)
    }
}

impl GpuElement {
    /// As users write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Host(element) => element.name(),
            Self::Bfloat16 => "bfloat16",
        }
    }
}

impl Split {
    /// The same with bfloat16 on the GPU, rounded from float32; `None`: the result is no float32.
    pub fn to_bfloat16(&self) -> Option<Self> {
        let elements = self.conversion.elements.to_bfloat16()?;
        let is_float32 = self.element == GpuElement::Host(ElementType::Float32);
        let conversion = Conversion { elements, ..self.conversion.clone() };
        let (head, element) = (self.head.clone(), GpuElement::Bfloat16);
        is_float32.then_some(Self { head, conversion, element })
    }

    /// Divides a recipe whose pictures are collated in a way.
    pub fn of(recipe: &Recipe, collate: &Collate) -> Result<Self, SplitRefusal> {
        let result = recipe.result();
        if result.dtype == Dtype::Uint8 && recipe.views().is_empty() {
            return Err(SplitRefusal::Bytes);
        }
        if !recipe.gives_one_picture() {
            return Err(SplitRefusal::SeveralPictures);
        }
        if *collate != Collate::Stack {
            return Err(SplitRefusal::DifferentSizes);
        }
        let operations = recipe.operations();
        let not_bytes = || SplitRefusal::NotBytes { dtype: result.dtype.name().to_owned() };
        let is_conversion = |it: &Operation| matches!(it, Operation::ToDtype(_));
        let first = operations.iter().position(is_conversion).ok_or_else(not_bytes)?;
        let (before, tail) = operations.split_at(first);
        // Operations that are left out come last, so that the numbers of the others, from which
        // their random parameters follow, stay the same.
        let mut head = before.to_vec();
        for (index, operation) in tail.iter().enumerate() {
            match operation {
                Operation::Layout(_) => head.push(operation.clone()),
                it if it.declaration().phase == Phase::Elements => {}
                it => {
                    let position = first + index + 1;
                    let operation = it.name().to_owned();
                    return Err(SplitRefusal::FollowedBy { operation, position });
                }
            }
        }
        let head =
            Recipe::with_targets(head, recipe.targets().to_vec()).map_err(|_| not_bytes())?;
        let bytes = head.result();
        let is_picture = bytes.kind == ValueKind::Image || bytes.kind == ValueKind::Tensor;
        let is_8_bit = before.iter().all(|operation| match operation {
            Operation::Decode(decode) => !decode.mode.is_wide(),
            _ => true,
        });
        let are_bytes = bytes.dtype == Dtype::Uint8 && matches!(bytes.channels, 1 | 3);
        if !is_picture || !is_8_bit || !are_bytes || bytes.series.is_some() {
            return Err(not_bytes());
        }
        let conversion = conversion(operations, bytes.channels).ok_or_else(not_bytes)?;
        let element = match result.dtype {
            Dtype::Uint8 | Dtype::Uint16 | Dtype::Int32 => return Err(not_bytes()),
            Dtype::Float16 => ElementType::Float16,
            Dtype::Float32 => ElementType::Float32,
        };
        Ok(Self { head, conversion, element: element.into() })
    }
}

/// What the operations on elements amount to.
fn conversion(operations: &[Operation], channels: u32) -> Option<Conversion> {
    let table = element_table(operations);
    let values = || (0..3).flat_map(|channel| (0..=255).map(move |byte| (channel, byte)));
    let elements = match table.dtype() {
        Dtype::Uint8 | Dtype::Uint16 | Dtype::Int32 => return None,
        Dtype::Float16 => {
            let mut bits = Box::new([0; 768]);
            for (bits, (channel, byte)) in bits.iter_mut().zip(values()) {
                *bits = half::f16::from_f32(table.element(channel, byte)).to_bits();
            }
            ElementBytes::Table16(bits)
        }
        Dtype::Float32 => match table.arithmetic() {
            Some(it) => {
                let meetpoint_kernels::tensor::Arithmetic { scale, divides, mean, std } = it;
                let arithmetic = Arithmetic { scale, divides, mean, std };
                ElementBytes::Arithmetic(arithmetic, Float::Float32)
            }
            None => {
                let mut bits = Box::new([0; 768]);
                for (bits, (channel, byte)) in bits.iter_mut().zip(values()) {
                    *bits = table.element(channel, byte).to_bits();
                }
                ElementBytes::Table32(bits)
            }
        },
    };
    // The host writes bytes in the order of the result, which costs it nothing.
    let order = match table.layout() {
        Layout::Nchw | Layout::Nct => Order::Planes,
        Layout::Nhwc | Layout::Nt | Layout::Ntc => Order::Pixels,
    };
    Some(Conversion { elements, order, channels })
}

#[cfg(test)]
mod tests {
    use super::{GpuElement, Split, SplitRefusal};
    use meetpoint_format::column::{Collate, ElementType, Pad};
    use meetpoint_format::recipe::Recipe;
    use meetpoint_gpu::delivery::{ElementBytes, Order};

    fn split(operations: &str) -> Result<Split, SplitRefusal> {
        let recipe = Recipe::from_toml(&format!("operation = [{operations}]")).unwrap();
        Split::of(&recipe, &Collate::Stack)
    }

    const HEAD: &str = "{name = 'decode'}, {name = 'random_resized_crop', size = 8},
        {name = 'random_horizontal_flip'}";
    const FLOAT: &str = "{name = 'to_dtype', dtype = 'float32', scale = true}";
    const NORMALIZE: &str =
        "{name = 'normalize', mean = [0.485, 0.456, 0.406], std = [0.229, 0.224, 0.225]}";

    #[test]
    fn the_usual_recipe_is_divided_before_its_elements() {
        let divided =
            split(&format!("{HEAD}, {FLOAT}, {NORMALIZE}, {{name = 'layout', layout = 'NCHW'}}"))
                .unwrap();
        let names: Vec<&str> = divided.head.operations().iter().map(|it| it.name()).collect();
        assert_eq!(names, ["decode", "random_resized_crop", "random_horizontal_flip", "layout"]);
        assert_eq!(divided.element, GpuElement::Host(ElementType::Float32));
        let rounded = divided.to_bfloat16().unwrap();
        assert_eq!((rounded.element, rounded.to_bfloat16()), (GpuElement::Bfloat16, None));
        assert_eq!((divided.conversion.order, divided.conversion.channels), (Order::Planes, 3));
        assert!(matches!(divided.conversion.elements, ElementBytes::Arithmetic(..)));
        let half = "{name = 'to_dtype', dtype = 'float16', scale = true}";
        let divided = split(&format!("{HEAD}, {half}, {NORMALIZE}")).unwrap();
        assert_eq!(divided.conversion.order, Order::Pixels);
        assert!(matches!(divided.conversion.elements, ElementBytes::Table16(_)));
        assert_eq!(divided.to_bfloat16(), None);
        // Two normalisations in a row are no single arithmetic.
        let divided = split(&format!("{HEAD}, {FLOAT}, {NORMALIZE}, {NORMALIZE}")).unwrap();
        assert!(matches!(divided.conversion.elements, ElementBytes::Table32(_)));
    }

    #[test]
    fn a_recipe_that_is_not_divided_has_a_reason() {
        assert_eq!(split(HEAD).unwrap_err(), SplitRefusal::Bytes);
        let erasing = split(&format!("{HEAD}, {FLOAT}, {{name = 'random_erasing'}}")).unwrap_err();
        assert_eq!(
            erasing,
            SplitRefusal::FollowedBy { operation: "random_erasing".to_owned(), position: 5 }
        );
        let text = "operation 5, `random_erasing`, needs the finished tensor";
        assert_eq!(erasing.to_string(), text);
        let wide = "{name = 'decode', mode = 'rgb16'}, {name = 'center_crop', size = 8}";
        let wide = split(&format!("{wide}, {FLOAT}")).unwrap_err();
        assert_eq!(wide, SplitRefusal::NotBytes { dtype: "float32".to_owned() });
        let recipe = Recipe::from_toml(&format!("operation = [{HEAD}, {FLOAT}]")).unwrap();
        let padded = Split::of(&recipe, &Collate::Pad(Pad::default())).unwrap_err();
        assert_eq!(padded, SplitRefusal::DifferentSizes);
    }
}
