//! The declaration of a column, and the columns of a batch in the order in which they were named.

use super::limits::{AXES_MAX, COLUMNS_MAX, VARIES};
use super::{Collate, ColumnError, ElementType};
use crate::recipe::{IMAGE_COLUMN, Images, OWN_COLUMNS, Recipe, SoftLabels, TensorSpec};
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

/// The value of a column for one sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnKind {
    /// A tensor whose shape is the same for every sample.
    Tensor {
        /// Type of its elements.
        element: ElementType,
        /// Axes of one sample, outermost first; empty for a scalar.
        shape: Vec<u32>,
    },
    /// A tensor whose first axis has a different length for every sample.
    Ragged {
        /// Type of its elements.
        element: ElementType,
        /// The other axes, outermost first.
        inner: Vec<u32>,
    },
    /// A byte string of any length.
    Bytes,
    /// A text in UTF-8.
    Text,
    /// A tensor that is padded along some axes to a length common to the batch.
    Padded {
        /// Type of its elements.
        element: ElementType,
        /// Axes of one sample, outermost first; [`VARIES`] for those that are padded.
        axes: Vec<u32>,
    },
    /// A tensor whose first axis has a different length for every sample, and whose other axes may
    /// be padded to a common length in the batch.
    PaddedRagged {
        /// Type of its elements.
        element: ElementType,
        /// The other axes, outermost first; [`VARIES`] for those that are padded.
        inner: Vec<u32>,
    },
    /// A tensor with a different shape for every sample.
    Shaped {
        /// Type of its elements.
        element: ElementType,
        /// Axes of one sample, outermost first; [`VARIES`] for those without a common length.
        axes: Vec<u32>,
    },
}

impl ColumnKind {
    /// Its name in reports.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Tensor { .. } => "tensor",
            Self::Ragged { .. } => "ragged",
            Self::Bytes => "bytes",
            Self::Text => "text",
            Self::Padded { .. } => "padded tensor",
            Self::PaddedRagged { .. } => "padded ragged",
            Self::Shaped { .. } => "shaped",
        }
    }

    /// Its code in the header of a slot.
    pub fn code(&self) -> u16 {
        match self {
            Self::Tensor { .. } => 1,
            Self::Ragged { .. } => 2,
            Self::Bytes => 3,
            Self::Text => 4,
            Self::Padded { .. } => 5,
            Self::PaddedRagged { .. } => 6,
            Self::Shaped { .. } => 7,
        }
    }

    /// Type of its elements; bytes and texts consist of uint8.
    pub fn element(&self) -> ElementType {
        match self {
            Self::Tensor { element, .. }
            | Self::Ragged { element, .. }
            | Self::Padded { element, .. }
            | Self::PaddedRagged { element, .. }
            | Self::Shaped { element, .. } => *element,
            Self::Bytes | Self::Text => ElementType::Uint8,
        }
    }

    /// The axes after the sample axis, outermost first, without a first axis of variable length.
    /// [`VARIES`] marks a length that depends on the batch or on the sample.
    pub fn axes(&self) -> &[u32] {
        match self {
            Self::Tensor { shape, .. } => shape,
            Self::Ragged { inner, .. } | Self::PaddedRagged { inner, .. } => inner,
            Self::Padded { axes, .. } | Self::Shaped { axes, .. } => axes,
            Self::Bytes | Self::Text => &[],
        }
    }

    /// Whether batches with the same number of samples may have different numbers of bytes.
    pub fn is_variable(&self) -> bool {
        self.has_offsets() || self.is_padded()
    }

    /// Whether values of different samples may have different numbers of bytes, and are stored
    /// after their offsets.
    pub fn has_offsets(&self) -> bool {
        match self {
            Self::Tensor { .. } | Self::Padded { .. } => false,
            Self::Ragged { .. }
            | Self::Bytes
            | Self::Text
            | Self::PaddedRagged { .. }
            | Self::Shaped { .. } => true,
        }
    }

    /// Whether some axes have a length that depends on the batch.
    pub fn is_padded(&self) -> bool {
        match self {
            Self::Padded { .. } | Self::PaddedRagged { .. } => true,
            Self::Tensor { .. }
            | Self::Ragged { .. }
            | Self::Bytes
            | Self::Text
            | Self::Shaped { .. } => false,
        }
    }

    /// The form in which a batch stores pictures or masks of this kind.
    #[cfg(feature = "dataset")]
    pub(super) fn collated(self, collate: Collate) -> Self {
        match (collate, self) {
            (Collate::Pad(_), Self::Tensor { element, shape }) => {
                Self::Padded { element, axes: shape }
            }
            (Collate::Pad(_), Self::Ragged { element, inner }) => {
                Self::PaddedRagged { element, inner }
            }
            (Collate::List(_), Self::Tensor { element, shape }) => {
                Self::Shaped { element, axes: shape }
            }
            (Collate::List(_), Self::Ragged { element, inner }) => {
                Self::Shaped { element, axes: [&[VARIES], &inner[..]].concat() }
            }
            (Collate::Stack, kind)
            | (
                Collate::Pad(_) | Collate::List(_),
                kind @ (Self::Padded { .. }
                | Self::PaddedRagged { .. }
                | Self::Shaped { .. }
                | Self::Bytes
                | Self::Text),
            ) => kind,
        }
    }

    /// Number of axes in the shape of each sample, which is stored after the offsets.
    pub fn rank_of_shapes(&self) -> usize {
        match self {
            Self::Shaped { axes, .. } => axes.len(),
            Self::Tensor { .. }
            | Self::Ragged { .. }
            | Self::Bytes
            | Self::Text
            | Self::Padded { .. }
            | Self::PaddedRagged { .. } => 0,
        }
    }

    /// Bytes of one row: a sample's tensor, one step along the axis of variable length, or one
    /// element of a sample with a different shape. `None` if they exceed 64 bits. Axes that are
    /// padded count as 1.
    pub fn row_bytes(&self) -> Option<u64> {
        let lengths: Vec<u32> = self.axes().iter().map(|length| (*length).max(1)).collect();
        self.row_bytes_of(&lengths)
    }

    /// As [`Self::row_bytes`], where the axes have these lengths.
    pub fn row_bytes_of(&self, lengths: &[u32]) -> Option<u64> {
        let element = self.element().bytes();
        match self {
            Self::Shaped { .. } => Some(element),
            Self::Tensor { .. }
            | Self::Ragged { .. }
            | Self::Bytes
            | Self::Text
            | Self::Padded { .. }
            | Self::PaddedRagged { .. } => {
                lengths.iter().try_fold(element, |bytes, axis| bytes.checked_mul(u64::from(*axis)))
            }
        }
    }

    /// The lengths of the axes; `of_batch` gives those that depend on the batch.
    pub(crate) fn lengths(&self, of_batch: &[u32; AXES_MAX]) -> [u32; AXES_MAX] {
        let axes = self.axes();
        std::array::from_fn(|axis| match axes.get(axis) {
            None => 0,
            Some(&VARIES) if self.is_padded() => of_batch[axis],
            Some(length) => *length,
        })
    }
}

impl fmt::Display for ColumnKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tensor { element, shape } => write!(f, "tensor of {element} {shape:?}"),
            Self::Ragged { element, inner } => write!(f, "ragged tensor of {element} {inner:?}"),
            Self::Bytes | Self::Text => f.write_str(self.name()),
            Self::Padded { element, axes } => {
                write!(f, "padded tensor of {element} {}", Axes(axes))
            }
            Self::PaddedRagged { element, inner } => {
                write!(f, "padded ragged tensor of {element} {}", Axes(inner))
            }
            Self::Shaped { element, axes } => {
                write!(f, "tensor of any shape of {element} {}", Axes(axes))
            }
        }
    }
}

/// Axes as text, with `*` for one that varies.
struct Axes<'a>(&'a [u32]);

impl fmt::Display for Axes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |axis: &u32| if *axis == VARIES { "*".to_owned() } else { axis.to_string() };
        write!(f, "[{}]", self.0.iter().map(word).collect::<Vec<_>>().join(", "))
    }
}

/// The source of the values of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ColumnSource {
    /// The content of the sample, prepared by the recipe.
    Image,
    /// A view of it, by its index among the recipe's views.
    View(usize),
    /// The label: an index into the dataset's label names, -1 where the sample has none; or a row
    /// of float32.
    Label,
    /// The key.
    Key,
    /// The index of the sample in the dataset.
    Sample,
    /// A further column of the dataset, by its index among the further columns.
    Further(usize),
    /// A further column that the recipe transforms together with the image.
    Target(usize),
    /// Height and width of the pictures of a column, by its index in [`Recipe::images`].
    ImageSize(usize),
    /// Which elements of the padded pictures of a column are padding.
    PaddingMask(usize),
}

impl ColumnSource {
    /// Whether the values are pictures that the recipe prepares.
    pub fn is_picture(self) -> bool {
        self.images().is_some()
    }

    /// The index in [`Recipe::images`] of the pictures that are the values; `None` for other
    /// values.
    pub fn images(self) -> Option<usize> {
        match self {
            Self::Image => Some(0),
            Self::View(index) => Some(index),
            Self::Label
            | Self::Key
            | Self::Sample
            | Self::Further(_)
            | Self::Target(_)
            | Self::ImageSize(_)
            | Self::PaddingMask(_) => None,
        }
    }
}

/// One column of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its value for one sample.
    pub kind: ColumnKind,
    /// The source of its values.
    pub source: ColumnSource,
}

impl Column {
    /// Name of the column with the images that the recipe prepares.
    pub const IMAGE: &'static str = IMAGE_COLUMN;
    /// Name of the column with labels.
    pub const LABEL: &'static str = OWN_COLUMNS[0];
    /// Name of the column with keys.
    pub const KEY: &'static str = OWN_COLUMNS[1];
    /// Name of the column with the indices of the samples.
    pub const SAMPLE: &'static str = OWN_COLUMNS[2];

    /// The images of a recipe that produces one picture per sample.
    pub fn image(spec: &TensorSpec) -> Self {
        let kind = ColumnKind::Tensor { element: spec.dtype.into(), shape: spec.axes() };
        Self { name: Self::IMAGE.to_owned(), kind, source: ColumnSource::Image }
    }

    /// The column of a recipe's result, with pictures of `spec`.
    pub fn images(images: &Images, spec: &TensorSpec, source: ColumnSource) -> Self {
        let kind = ColumnKind::Tensor { element: spec.dtype.into(), shape: images.axes(spec) };
        Self { name: images.column.clone(), kind, source }
    }

    /// Labels: int64, -1 where a sample has none.
    pub fn label() -> Self {
        let kind = ColumnKind::Tensor { element: ElementType::Int64, shape: Vec::new() };
        Self { name: Self::LABEL.to_owned(), kind, source: ColumnSource::Label }
    }

    /// Labels as rows of float32, as converted by an operation on batches.
    pub fn soft_label(labels: SoftLabels) -> Self {
        let kind =
            ColumnKind::Tensor { element: ElementType::Float32, shape: vec![labels.classes] };
        Self { kind, ..Self::label() }
    }

    /// Keys.
    pub fn key() -> Self {
        let (name, kind) = (Self::KEY.to_owned(), ColumnKind::Text);
        Self { name, kind, source: ColumnSource::Key }
    }

    /// Height and width of each picture of a column of [`Recipe::images`], without padding: int64
    /// of shape `[2]`, after the axes that number several pictures.
    pub fn size_of(index: usize, images: &Images) -> Self {
        let shape = [&images.outer_axes()[..], &[2]].concat();
        let kind = ColumnKind::Tensor { element: ElementType::Int64, shape };
        Self { name: images.size_column(), kind, source: ColumnSource::ImageSize(index) }
    }

    /// For each pixel of each padded picture of a column, whether it is padding: bool [height,
    /// width], after the axes that number several pictures.
    pub fn padding_of(index: usize, images: &Images) -> Self {
        let axes = [&images.outer_axes()[..], &[VARIES; 2]].concat();
        let kind = ColumnKind::Padded { element: ElementType::Bool, axes };
        Self { name: images.padding_column(), kind, source: ColumnSource::PaddingMask(index) }
    }

    /// Indices of the samples in the dataset: int64.
    pub fn sample() -> Self {
        let kind = ColumnKind::Tensor { element: ElementType::Int64, shape: Vec::new() };
        Self { name: Self::SAMPLE.to_owned(), kind, source: ColumnSource::Sample }
    }
}

/// Names of the columns of a batch, in order, and how pictures of different sizes are combined.
/// Cheap to clone.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnNames {
    names: Arc<[String]>,
    collate: Collate,
}

impl Default for ColumnNames {
    /// Images and labels.
    fn default() -> Self {
        vec![Column::IMAGE.to_owned(), Column::LABEL.to_owned()].into()
    }
}

impl ColumnNames {
    /// The default columns of a batch: all pictures of a recipe, and labels.
    pub fn of(recipe: &Recipe) -> Self {
        let images = recipe.images().iter().map(|images| images.column.as_str());
        images.chain([Column::LABEL]).map(str::to_owned).collect::<Vec<_>>().into()
    }

    /// Like [`Self::of`], for pictures of different sizes: padded pictures also have a column with
    /// their sizes.
    pub fn of_collated(recipe: &Recipe, collate: Collate) -> Self {
        let mut names = Self::of(recipe).to_vec();
        if matches!(collate, Collate::Pad(_)) {
            let behind_images = names.len() - 1;
            let sizes = recipe.images().iter().map(Images::size_column);
            names.splice(behind_images..behind_images, sizes);
        }
        Self::from(names).collated(collate)
    }

    /// The same names, with another way to combine pictures.
    pub fn collated(self, collate: Collate) -> Self {
        Self { collate, ..self }
    }

    /// How pictures of different sizes are combined into a batch.
    pub fn collate(&self) -> Collate {
        self.collate
    }
}

impl From<Vec<String>> for ColumnNames {
    fn from(names: Vec<String>) -> Self {
        Self { names: names.into(), collate: Collate::Stack }
    }
}

impl std::ops::Deref for ColumnNames {
    type Target = [String];

    fn deref(&self) -> &[String] {
        &self.names
    }
}

/// The columns of a batch, in the order in which they were named: at least one, no duplicates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchColumns {
    columns: Vec<Column>,
}

impl BatchColumns {
    /// Columns without duplicates, each with rows of fewer than 2^64 bytes.
    pub fn new(columns: Vec<Column>) -> Result<Self, ColumnError> {
        let mut sources = HashSet::new();
        if columns.is_empty() {
            return Err(ColumnError::Empty { available: Vec::new() });
        }
        if columns.len() > COLUMNS_MAX {
            return Err(ColumnError::TooMany { count: columns.len() });
        }
        for Column { name, kind, source } in &columns {
            if !sources.insert(source) {
                return Err(ColumnError::Twice { name: name.clone() });
            }
            let refuse = |why| {
                let (name, found) = (name.clone(), kind.to_string());
                Err(ColumnError::Type { name, found, why })
            };
            if kind.axes().len() > AXES_MAX {
                return refuse("a sample has at most 6 axes");
            }
            let may_vary = kind.is_padded() || kind.rank_of_shapes() > 0;
            if !may_vary && kind.axes().contains(&0) {
                return refuse("an axis has length 0");
            }
            if kind.row_bytes().is_none() {
                return refuse("a value has 2^64 bytes or more");
            }
        }
        Ok(Self { columns })
    }

    /// The default columns of a batch: images and labels.
    pub fn image_and_label(spec: &TensorSpec) -> Self {
        Self { columns: vec![Column::image(spec), Column::label()] }
    }

    /// The columns, in order.
    pub fn as_slice(&self) -> &[Column] {
        &self.columns
    }

    /// Number of columns.
    #[expect(clippy::len_without_is_empty, reason = "there is at least one")]
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Index of the column with a name.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// Index of the column with a source.
    pub fn position_of(&self, source: ColumnSource) -> Option<usize> {
        self.columns.iter().position(|column| column.source == source)
    }

    /// Indices of the columns with pictures that the recipe prepares, in order.
    pub fn pictures(&self) -> impl Iterator<Item = usize> {
        let sources = self.columns.iter().map(|column| column.source).enumerate();
        sources.filter(|(_, source)| source.is_picture()).map(|(index, _)| index)
    }

    /// Whether a column has values of variable length.
    pub fn are_variable(&self) -> bool {
        self.columns.iter().any(|column| column.kind.is_variable())
    }

    /// Names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| column.name.as_str())
    }
}
