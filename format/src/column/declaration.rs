//! The declaration of a column, and the columns of a batch in the order in which they were named.

use super::limits::{AXES_MAX, COLUMNS_MAX};
use super::{ColumnError, ElementType};
use crate::recipe::{IMAGE_COLUMN, Images, OWN_COLUMNS, Recipe, SoftLabels, TensorSpec};
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

/// What a column holds for a sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnKind {
    /// A tensor whose shape is the same for every sample.
    Tensor {
        /// Type of its elements.
        element: ElementType,
        /// Axes of one sample, outermost first; none for a number.
        shape: Vec<u32>,
    },
    /// A tensor whose first axis has a length of its own for every sample.
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
}

impl ColumnKind {
    /// Its name in reports.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Tensor { .. } => "tensor",
            Self::Ragged { .. } => "ragged",
            Self::Bytes => "bytes",
            Self::Text => "text",
        }
    }

    /// The number that stands for it in the header of a slot.
    pub fn code(&self) -> u16 {
        match self {
            Self::Tensor { .. } => 1,
            Self::Ragged { .. } => 2,
            Self::Bytes => 3,
            Self::Text => 4,
        }
    }

    /// Type of its elements; bytes and texts consist of uint8.
    pub fn element(&self) -> ElementType {
        match self {
            Self::Tensor { element, .. } | Self::Ragged { element, .. } => *element,
            Self::Bytes | Self::Text => ElementType::Uint8,
        }
    }

    /// The axes whose length does not depend on the sample, outermost first.
    pub fn axes(&self) -> &[u32] {
        match self {
            Self::Tensor { shape, .. } => shape,
            Self::Ragged { inner, .. } => inner,
            Self::Bytes | Self::Text => &[],
        }
    }

    /// Whether values of different samples may have different lengths.
    pub fn is_variable(&self) -> bool {
        match self {
            Self::Tensor { .. } => false,
            Self::Ragged { .. } | Self::Bytes | Self::Text => true,
        }
    }

    /// Bytes of one row: a sample's tensor, or one step along the axis of variable length. `None`
    /// where 64 bits cannot hold them.
    pub fn row_bytes(&self) -> Option<u64> {
        let element = self.element().bytes();
        self.axes().iter().try_fold(element, |bytes, axis| bytes.checked_mul(u64::from(*axis)))
    }
}

impl fmt::Display for ColumnKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tensor { element, shape } => write!(f, "tensor of {element} {shape:?}"),
            Self::Ragged { element, inner } => write!(f, "ragged tensor of {element} {inner:?}"),
            Self::Bytes | Self::Text => f.write_str(self.name()),
        }
    }
}

/// Where the values of a column come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ColumnSource {
    /// The content of the sample, prepared by the recipe.
    Image,
    /// A view of it, by its index among those of the recipe.
    View(usize),
    /// The label: an index into the dataset's label names, -1 where the sample has none; or a row
    /// of float32.
    Label,
    /// The key.
    Key,
    /// The number of the sample in the dataset.
    Sample,
    /// A further column of the dataset, by its index among those.
    Further(usize),
    /// Such a column that the recipe moves with the image.
    Target(usize),
}

impl ColumnSource {
    /// Whether the values are pictures that the recipe prepares.
    pub fn is_picture(self) -> bool {
        match self {
            Self::Image | Self::View(_) => true,
            Self::Label | Self::Key | Self::Sample | Self::Further(_) | Self::Target(_) => false,
        }
    }
}

/// One column of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// What it holds for a sample.
    pub kind: ColumnKind,
    /// Where its values come from.
    pub source: ColumnSource,
}

impl Column {
    /// Name of the column with the images that the recipe prepares.
    pub const IMAGE: &'static str = IMAGE_COLUMN;
    /// Name of the column with labels.
    pub const LABEL: &'static str = OWN_COLUMNS[0];
    /// Name of the column with keys.
    pub const KEY: &'static str = OWN_COLUMNS[1];
    /// Name of the column with the numbers of the samples.
    pub const SAMPLE: &'static str = OWN_COLUMNS[2];

    /// The images of a recipe that makes one picture of each sample.
    pub fn image(spec: &TensorSpec) -> Self {
        let [_, axes @ ..] = spec.batch_shape(1);
        let kind = ColumnKind::Tensor { element: spec.dtype.into(), shape: axes.to_vec() };
        Self { name: Self::IMAGE.to_owned(), kind, source: ColumnSource::Image }
    }

    /// What a recipe makes of the picture of a sample, in pictures of `spec`.
    pub fn images(images: &Images, spec: &TensorSpec, source: ColumnSource) -> Self {
        let kind = ColumnKind::Tensor { element: spec.dtype.into(), shape: images.axes(spec) };
        Self { name: images.column.clone(), kind, source }
    }

    /// Labels: int64, -1 where a sample has none.
    pub fn label() -> Self {
        let kind = ColumnKind::Tensor { element: ElementType::Int64, shape: Vec::new() };
        Self { name: Self::LABEL.to_owned(), kind, source: ColumnSource::Label }
    }

    /// Labels as rows of float32, which an operation on batches has made of them.
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

    /// Numbers of the samples in the dataset: int64.
    pub fn sample() -> Self {
        let kind = ColumnKind::Tensor { element: ElementType::Int64, shape: Vec::new() };
        Self { name: Self::SAMPLE.to_owned(), kind, source: ColumnSource::Sample }
    }
}

/// Names of the columns of a batch, in order. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnNames(Arc<[String]>);

impl Default for ColumnNames {
    /// Images and labels.
    fn default() -> Self {
        Self([Column::IMAGE, Column::LABEL].map(str::to_owned).into())
    }
}

impl ColumnNames {
    /// The columns of a batch where none are named: all pictures of a recipe, and labels.
    pub fn of(recipe: &Recipe) -> Self {
        let images = recipe.images().iter().map(|images| images.column.as_str());
        images.chain([Column::LABEL]).map(str::to_owned).collect::<Vec<_>>().into()
    }
}

impl From<Vec<String>> for ColumnNames {
    fn from(names: Vec<String>) -> Self {
        Self(names.into())
    }
}

impl std::ops::Deref for ColumnNames {
    type Target = [String];

    fn deref(&self) -> &[String] {
        &self.0
    }
}

/// The columns of a batch, in the order in which they were named: at least one, each once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchColumns {
    columns: Vec<Column>,
}

impl BatchColumns {
    /// Columns of which none is there twice, each with rows of fewer than 2^64 bytes.
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
            if kind.axes().contains(&0) {
                return refuse("an axis has length 0");
            }
            if kind.row_bytes().is_none() {
                return refuse("a value has 2^64 bytes or more");
            }
        }
        Ok(Self { columns })
    }

    /// What a batch holds unless other columns are named: images and labels.
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
