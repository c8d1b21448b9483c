//! Where a recipe is divided between the host and the GPU that receives its batches: before bytes
//! become elements, and before samples of a batch are mixed.

use crate::LoaderConfig;
use crate::split_refusal::SplitRefusal;
use meetpoint_format::column::{Collate, ElementType};
use meetpoint_format::recipe::{
    Dtype, Images, Layout, OneHot, Operation, Phase, Recipe, RecipeParts, TensorSpec, ValueKind,
};
use meetpoint_gpu::GpuIndex;
use meetpoint_gpu::delivery::{Arithmetic, Conversion, ElementBytes, Float, Order};
use meetpoint_kernels::element_table;
use meetpoint_prepare::{Dataset, DatasetPaths};
use std::sync::Arc;

/// A recipe, divided between the host and a GPU.
#[derive(Debug, Clone, PartialEq)]
pub struct Split {
    /// The operations that the host and its devices execute.
    pub head: Recipe,
    /// The conversions of bytes to elements on the GPU, for each column of [`Recipe::images`] that
    /// needs one; or why the host executes them.
    pub conversions: Result<Vec<Option<SplitConversion>>, SplitRefusal>,
    /// The operations on batches that the GPU executes; `None` if there are none, or if the host
    /// executes them.
    pub mixing: Option<SplitMixing>,
}

/// A conversion on the GPU.
#[derive(Debug, Clone, PartialEq)]
pub struct SplitConversion {
    /// The conversion of the bytes that the host prepares.
    pub conversion: Conversion,
    /// Pictures of each sample.
    pub pictures: usize,
    /// Element type of the result.
    pub element: GpuElement,
    /// Whether the conversion gives float32, which is rounded to `element` after samples are mixed.
    pub is_rounded: bool,
}

/// Operations on batches on the GPU.
#[derive(Debug, Clone, PartialEq)]
pub struct SplitMixing {
    /// The whole recipe, whose operations on batches mix samples.
    pub recipe: Recipe,
    /// The tensor of a sample before and after.
    pub spec: TensorSpec,
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
    /// Bytes of an element.
    pub fn bytes(self) -> usize {
        match self {
            Self::Host(element) => element.bytes() as usize,
            Self::Bfloat16 => 2,
        }
    }

    /// As users write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Host(element) => element.name(),
            Self::Bfloat16 => "bfloat16",
        }
    }
}

impl Split {
    /// A recipe that the host executes completely, for a reason.
    pub fn refused(recipe: &Recipe, reason: SplitRefusal) -> Self {
        Self { head: recipe.clone(), conversions: Err(reason), mixing: None }
    }

    /// Divides a recipe for a dataset. An error of the dataset is left to those who use it.
    pub fn for_dataset(recipe: &Recipe, collate: &Collate, dataset: &DatasetPaths) -> Self {
        let opened = Dataset::open_for_samples(dataset).ok();
        let prepared = opened.as_ref().and_then(|dataset| dataset.manifest().prepared());
        Self::of(recipe, collate, prepared.map_or(0, |prepared| prepared.operations as usize))
    }

    /// Divides a recipe whose pictures are collated in a way, and whose first `prepared` operations
    /// were executed when the dataset was prepared.
    pub fn of(recipe: &Recipe, collate: &Collate, prepared: usize) -> Self {
        let is_mixed = recipe.mixes_tensors();
        let are_bytes = recipe.images().iter().all(|it| it.result.dtype == Dtype::Uint8);
        if are_bytes && !is_mixed {
            return Self::refused(recipe, SplitRefusal::Bytes);
        }
        if *collate != Collate::Stack {
            return Self::refused(recipe, SplitRefusal::DifferentSizes);
        }
        let mixing = mixing(recipe);
        if is_mixed && mixing.is_none() {
            return Self::refused(recipe, not_bytes(recipe.result().dtype));
        }
        let divided: Result<Vec<_>, _> =
            recipe.images().iter().map(|it| divided(it, prepared)).collect();
        let (heads, conversions): (Vec<_>, _) = match divided {
            _ if are_bytes => (undivided(recipe), Err(SplitRefusal::Bytes)),
            Err(reason) => (undivided(recipe), Err(reason)),
            Ok(divided) => {
                let (heads, conversions) = divided.into_iter().unzip();
                (heads, Ok(conversions))
            }
        };
        let head = head(recipe, &heads, mixing.is_some());
        Self { head, conversions, mixing }
    }

    /// The same with bfloat16 on the GPU, rounded from float32; `None` if the GPU does not convert
    /// the pictures to float32.
    pub fn to_bfloat16(&self) -> Option<Self> {
        let is_rounded = self.mixing.is_some();
        let rounded = |it: &SplitConversion| {
            if it.element != GpuElement::Host(ElementType::Float32) {
                return None;
            }
            let mut conversion = it.conversion.clone();
            if !is_rounded {
                conversion.elements = conversion.elements.to_bfloat16()?;
            }
            let (element, pictures) = (GpuElement::Bfloat16, it.pictures);
            Some(SplitConversion { conversion, pictures, element, is_rounded })
        };
        let conversions = self.conversions.as_ref().ok()?.iter();
        let conversions: Option<Vec<_>> =
            conversions.map(|it| it.as_ref().and_then(rounded).map(Some)).collect();
        Some(Self { conversions: Ok(conversions?), ..self.clone() })
    }

    /// Lets a loader prepare the head of this recipe for a GPU.
    pub fn apply(&self, config: &mut LoaderConfig, gpu: GpuIndex) {
        config.delivers_to = Some(gpu);
        config.recipe = Arc::new(self.head.clone());
        let (on_samples, _) = self.head.split();
        let operations = config.cache.as_mut().and_then(|cache| cache.operations.as_mut());
        // Operations that the GPU executes have the same result in every epoch, so nothing is lost.
        operations.into_iter().for_each(|it| *it = on_samples.len().min(*it));
    }

    /// Why the host executes the conversions.
    pub fn undivided(&self) -> Option<&SplitRefusal> {
        self.conversions.as_ref().err()
    }
}

fn not_bytes(dtype: Dtype) -> SplitRefusal {
    SplitRefusal::NotBytes { dtype: dtype.name().to_owned() }
}

/// The operations on batches, if the GPU can execute them.
fn mixing(recipe: &Recipe) -> Option<SplitMixing> {
    let spec = recipe.output()?;
    let is_known = matches!(spec.dtype, Dtype::Uint8 | Dtype::Float16 | Dtype::Float32);
    (recipe.mixes_tensors() && is_known).then(|| SplitMixing { recipe: recipe.clone(), spec })
}

/// The operations on samples of each column of pictures.
fn undivided(recipe: &Recipe) -> Vec<Vec<Operation>> {
    recipe.images().iter().map(|images| images.operations.clone()).collect()
}

/// The recipe for the host: operations on samples for each column of pictures, and those on batches
/// unless the GPU executes them.
fn head(recipe: &Recipe, operations: &[Vec<Operation>], is_mixed: bool) -> Recipe {
    let (common, on_batches) = recipe.split();
    let mut parts = RecipeParts {
        operations: common.to_vec(),
        views: recipe.views().to_vec(),
        targets: recipe.targets().to_vec(),
    };
    match &mut parts.views[..] {
        [] => parts.operations.clone_from(&operations[0]),
        views => {
            for (view, operations) in views.iter_mut().zip(operations) {
                view.operations = operations[common.len()..].to_vec();
            }
        }
    }
    match recipe.labels() {
        // Labels become rows on the host, and are mixed on the GPU.
        Some(labels) if is_mixed => parts.operations.push(Operation::OneHot(OneHot { labels })),
        _ => parts.operations.extend_from_slice(on_batches),
    }
    Recipe::from_parts(parts).expect("it does less than a valid recipe")
}

/// The operations on samples of a column of pictures for the host, and the conversion for the GPU;
/// none if they give bytes.
fn divided(
    images: &Images,
    prepared: usize,
) -> Result<(Vec<Operation>, Option<SplitConversion>), SplitRefusal> {
    let Images { operations, result, .. } = images;
    if result.dtype == Dtype::Uint8 {
        return Ok((operations.clone(), None));
    }
    let not_bytes = || not_bytes(result.dtype);
    let is_conversion = |it: &Operation| matches!(it, Operation::ToDtype(_));
    let first = operations.iter().position(is_conversion).ok_or_else(not_bytes)?;
    if prepared > first {
        return Err(SplitRefusal::PreparedOffline);
    }
    let (before, tail) = operations.split_at(first);
    // Operations that are left out come last, so that the numbers of the others, from which their
    // random parameters follow, stay the same.
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
    let prepared = Recipe::new(head.clone()).map_err(|_| not_bytes())?;
    let bytes = prepared.result();
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
    let (pictures, element, is_rounded) = (images.pictures(), element.into(), false);
    Ok((head, Some(SplitConversion { conversion, pictures, element, is_rounded })))
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
    use super::{GpuElement, Split, SplitConversion, SplitRefusal};
    use meetpoint_format::column::{Collate, ElementType, Pad};
    use meetpoint_format::recipe::{Dtype, Recipe};
    use meetpoint_gpu::delivery::{Conversion, ElementBytes, Float, Order};

    fn split(operations: &str) -> Split {
        let recipe = Recipe::from_toml(&format!("operation = [{operations}]")).unwrap();
        Split::of(&recipe, &Collate::Stack, 0)
    }

    /// The conversion of a recipe without views.
    fn only(split: &Split) -> SplitConversion {
        let [Some(conversion)] = &split.conversions.as_ref().unwrap()[..] else {
            panic!("{split:?}")
        };
        conversion.clone()
    }

    fn names(split: &Split) -> Vec<&'static str> {
        split.head.operations().iter().map(|it| it.name()).collect()
    }

    const HEAD: &str = "{name = 'decode'}, {name = 'random_resized_crop', size = 8},
        {name = 'random_horizontal_flip'}";
    const FLOAT: &str = "{name = 'to_dtype', dtype = 'float32', scale = true}";
    const NORMALIZE: &str =
        "{name = 'normalize', mean = [0.485, 0.456, 0.406], std = [0.229, 0.224, 0.225]}";

    #[test]
    fn the_usual_recipe_is_divided_before_its_elements() {
        let divided =
            split(&format!("{HEAD}, {FLOAT}, {NORMALIZE}, {{name = 'layout', layout = 'NCHW'}}"));
        let expected = ["decode", "random_resized_crop", "random_horizontal_flip", "layout"];
        assert_eq!(names(&divided), expected);
        let conversion = only(&divided);
        assert_eq!(conversion.element, GpuElement::Host(ElementType::Float32));
        let Conversion { elements, order, channels } = conversion.conversion;
        assert_eq!((order, channels), (Order::Planes, 3));
        assert!(matches!(elements, ElementBytes::Arithmetic(_, Float::Float32)));
        let rounded = divided.to_bfloat16().unwrap();
        assert_eq!(rounded.to_bfloat16(), None);
        let rounded = only(&rounded);
        assert_eq!((rounded.element, rounded.is_rounded), (GpuElement::Bfloat16, false));
        let half = "{name = 'to_dtype', dtype = 'float16', scale = true}";
        let divided = split(&format!("{HEAD}, {half}, {NORMALIZE}"));
        let conversion = only(&divided).conversion;
        assert_eq!(conversion.order, Order::Pixels);
        assert!(matches!(conversion.elements, ElementBytes::Table16(_)));
        assert_eq!(divided.to_bfloat16(), None);
        // Two normalisations in a row are no single arithmetic.
        let divided = split(&format!("{HEAD}, {FLOAT}, {NORMALIZE}, {NORMALIZE}"));
        let conversion = only(&divided).conversion;
        assert!(matches!(conversion.elements, ElementBytes::Table32(_)));
    }

    #[test]
    fn samples_are_mixed_on_the_gpu_after_the_conversion() {
        let mix = "{name = 'mix_up', num_classes = 5, label_smoothing = 0.1}";
        let recipe = format!("{HEAD}, {FLOAT}, {NORMALIZE}, {mix}");
        let divided = split(&recipe);
        let expected = ["decode", "random_resized_crop", "random_horizontal_flip", "one_hot"];
        assert_eq!(names(&divided), expected);
        let mixing = divided.mixing.as_ref().unwrap();
        assert_eq!(mixing.recipe, Recipe::from_toml(&format!("operation = [{recipe}]")).unwrap());
        assert_eq!(divided.head.labels(), mixing.recipe.labels());
        // Its bfloat16 is rounded after the mix of float32.
        let rounded = only(&divided.to_bfloat16().unwrap());
        assert_eq!((rounded.element, rounded.is_rounded), (GpuElement::Bfloat16, true));
        assert!(matches!(rounded.conversion.elements, ElementBytes::Arithmetic(_, Float::Float32)));
        // Without a conversion.
        let erasing = "{name = 'random_erasing'}";
        let divided = split(&format!("{HEAD}, {FLOAT}, {erasing}, {mix}"));
        assert!(matches!(divided.undivided(), Some(SplitRefusal::FollowedBy { position: 5, .. })));
        assert!(divided.mixing.is_some());
        assert_eq!(names(&divided)[4..], ["random_erasing", "one_hot"]);
        let bytes = split(&format!("{HEAD}, {mix}"));
        assert_eq!((bytes.undivided(), bytes.mixing.is_some()), (Some(&SplitRefusal::Bytes), true));
        // Nothing is mixed.
        let one_hot = split(&format!("{HEAD}, {FLOAT}, {{name = 'one_hot', num_classes = 5}}"));
        assert_eq!((one_hot.undivided(), one_hot.mixing.is_some()), (None, false));
        assert_eq!(names(&one_hot)[3..], ["one_hot"]);
    }

    #[test]
    fn each_view_and_each_crop_is_converted() {
        let tail = |size| {
            format!("operations = [{{name = 'random_resized_crop', size = {size}}}, {FLOAT}]")
        };
        let text = format!(
            "operation = [{{name = 'decode'}}]
            views = [{{column = 'global', count = 2, {}}}, {{column = 'local', count = 6, {}}},
                {{column = 'bytes', operations = [{{name = 'center_crop', size = 4}}]}}]",
            tail(8),
            tail(4)
        );
        let recipe = Recipe::from_toml(&text).unwrap();
        let divided = Split::of(&recipe, &Collate::Stack, 0);
        let [Some(global), Some(local), None] = &divided.conversions.as_ref().unwrap()[..] else {
            panic!("{divided:?}")
        };
        assert_eq!((global.pictures, local.pictures), (2, 6));
        let heads: Vec<_> = divided.head.images().iter().map(|it| it.result.dtype).collect();
        assert_eq!(heads, [Dtype::Uint8; 3]);
        let of_view = |recipe: &Recipe| recipe.images()[1].first_view;
        assert_eq!(of_view(&divided.head), of_view(&recipe));
        // Bytes are not bfloat16.
        assert_eq!(divided.to_bfloat16(), None);
        let crops =
            split(&format!("{{name = 'decode'}}, {{name = 'ten_crop', size = 4}}, {FLOAT}"));
        assert_eq!(only(&crops).pictures, 10);
        assert_eq!(names(&crops), ["decode", "ten_crop"]);
    }

    #[test]
    fn a_recipe_that_is_not_divided_has_a_reason() {
        let refusal = |operations: &str| split(operations).undivided().cloned();
        assert_eq!(refusal(HEAD), Some(SplitRefusal::Bytes));
        let erasing = refusal(&format!("{HEAD}, {FLOAT}, {{name = 'random_erasing'}}"));
        let operation = "random_erasing".to_owned();
        assert_eq!(erasing, Some(SplitRefusal::FollowedBy { operation, position: 5 }));
        let text = "operation 5, `random_erasing`, needs the finished tensor";
        assert_eq!(erasing.unwrap().to_string(), text);
        let wide = "{name = 'decode', mode = 'rgb16'}, {name = 'center_crop', size = 8}";
        let wide = refusal(&format!("{wide}, {FLOAT}"));
        assert_eq!(wide, Some(SplitRefusal::NotBytes { dtype: "float32".to_owned() }));
        let recipe = Recipe::from_toml(&format!("operation = [{HEAD}, {FLOAT}]")).unwrap();
        let prepared = |operations| Split::of(&recipe, &Collate::Stack, operations);
        assert_eq!(prepared(3).undivided(), None);
        assert_eq!(prepared(4).undivided(), Some(&SplitRefusal::PreparedOffline));
        assert_eq!(prepared(4).head, recipe);
        let padded = Split::of(&recipe, &Collate::Pad(Pad::default()), 0);
        assert_eq!(padded.undivided(), Some(&SplitRefusal::DifferentSizes));
    }
}
