//! The columns of a batch from their names and the schema of a dataset.

use super::collate::Collate;
use super::limits::{AXES_MAX, VARIES};
use super::target::{StoredTarget, TargetColumn, needed, prepared};
use super::{
    BatchColumns, COLUMNS_MAX, Column, ColumnError, ColumnKind, ColumnSource, ElementType,
};
use crate::dataset::Columns;
use crate::recipe::{Recipe, TargetKind, TensorSpec};
use arrow_schema::{DataType, Field};
use meetpoint_diagnose::nearest;

impl BatchColumns {
    /// The columns with these names, in this order: `image` (or the name that the dataset gives its
    /// content), `label`, `key`, `sample`, or a further column of the dataset.
    ///
    /// With views, the names of the views replace `image`.
    ///
    /// `spec` is the recipe's result, or that of its first view. Columns that are targets of the
    /// recipe have their transformed type, and labels the type that operations on batches produce.
    ///
    /// If `collate` accepts pictures of different sizes, height and width of `spec` are
    /// [`super::VARIES`], pictures and masks have the form that `collate` determines, and
    /// `image_size` and, for padded pictures, `padding_mask` are also columns; those of a view are
    /// prefixed with its name.
    ///
    /// # Panics
    ///
    /// If a view has no fixed shape.
    pub fn select(
        names: &[String],
        dataset: &Columns,
        (recipe, spec): (&Recipe, &TensorSpec),
        collate: Collate,
    ) -> Result<Self, ColumnError> {
        if names.is_empty() {
            return Err(ColumnError::Empty { available: available(dataset, recipe) });
        }
        if names.len() > COLUMNS_MAX {
            return Err(ColumnError::TooMany { count: names.len() });
        }
        let columns = names.iter().map(|name| match of_pictures(name, dataset, recipe, collate)? {
            Some(column) => Ok(column),
            None => column(name, dataset, (recipe, spec), collate),
        });
        let columns = Self::new(columns.collect::<Result<_, _>>()?)?;
        for Column { name, source, .. } in columns.as_slice() {
            let index = match *source {
                ColumnSource::ImageSize(index) | ColumnSource::PaddingMask(index) => index,
                ColumnSource::Image
                | ColumnSource::View(_)
                | ColumnSource::Label
                | ColumnSource::Key
                | ColumnSource::Sample
                | ColumnSource::Further(_)
                | ColumnSource::Target(_) => continue,
            };
            if columns.position_of(of_recipe(recipe, index)).is_none() {
                let (name, image) = (name.clone(), recipe.images()[index].column.clone());
                return Err(ColumnError::SizeWithoutImage { name, image });
            }
        }
        columns.targets(dataset, (recipe, spec), collate)?;
        Ok(columns)
    }

    /// The targets of the recipe that batches with these columns need.
    pub fn targets(
        &self,
        dataset: &Columns,
        (recipe, spec): (&Recipe, &TensorSpec),
        collate: Collate,
    ) -> Result<Vec<TargetColumn>, ColumnError> {
        needed(self, recipe, (spec, collate), |name, kind| {
            let index = further(name, dataset, recipe)?;
            Ok((index, stored_of(&dataset.extra.fields()[index], kind)?))
        })
    }
}

/// Names that can be selected.
fn available(dataset: &Columns, recipe: &Recipe) -> Vec<String> {
    let own = [Column::LABEL, Column::KEY, Column::SAMPLE].map(str::to_owned);
    let images = recipe.images().iter().map(|images| images.column.clone());
    let mut names: Vec<String> = images.chain(own).collect();
    let further = dataset.extra.fields().iter().map(|field| field.name().clone());
    let further: Vec<String> = further.filter(|name| !names.contains(name)).collect();
    names.extend(further);
    names
}

fn column(
    name: &str,
    dataset: &Columns,
    (recipe, spec): (&Recipe, &TensorSpec),
    collate: Collate,
) -> Result<Column, ColumnError> {
    let fields = dataset.extra.fields();
    if let Some(column) = images(name, dataset, (recipe, spec), collate)? {
        return Ok(Column { kind: column.kind.collated(collate), ..column });
    }
    match name {
        Column::LABEL => return Ok(recipe.labels().map_or_else(Column::label, Column::soft_label)),
        Column::KEY => return Ok(Column::key()),
        Column::SAMPLE if fields.iter().any(|field| field.name() == name) => {
            return Err(ColumnError::Ambiguous { name: name.to_owned() });
        }
        Column::SAMPLE => return Ok(Column::sample()),
        _ => {}
    }
    let index = further(name, dataset, recipe)?;
    let name = name.to_owned();
    match recipe.targets().iter().find(|target| target.column == name) {
        Some(target) => {
            let stored = stored_of(&fields[index], &target.kind)?;
            let kind = prepared(&name, &target.kind, &stored, (spec, collate))?;
            Ok(Column { name, kind, source: ColumnSource::Target(index) })
        }
        None => {
            let kind = kind_of(&fields[index])?;
            Ok(Column { name, kind, source: ColumnSource::Further(index) })
        }
    }
}

/// The source of the column of [`Recipe::images`] with an index.
fn of_recipe(recipe: &Recipe, index: usize) -> ColumnSource {
    if recipe.views().is_empty() { ColumnSource::Image } else { ColumnSource::View(index) }
}

/// The column that describes the size or padding of pictures, if it has this name.
fn of_pictures(
    name: &str,
    dataset: &Columns,
    recipe: &Recipe,
    collate: Collate,
) -> Result<Option<Column>, ColumnError> {
    if recipe.images().iter().any(|images| images.column == name) {
        return Ok(None);
    }
    let mut all = recipe.images().iter().enumerate();
    let column = all.find_map(|(index, images)| match collate {
        Collate::Stack => None,
        Collate::Pad(_) if images.padding_column() == name => {
            Some(Column::padding_of(index, images))
        }
        Collate::Pad(_) | Collate::List(_) => {
            (images.size_column() == name).then(|| Column::size_of(index, images))
        }
    });
    let Some(column) = column else { return Ok(None) };
    if dataset.extra.fields().iter().any(|field| field.name() == name) {
        return Err(ColumnError::SizeAmbiguous { name: name.to_owned() });
    }
    Ok(Some(column))
}

/// The column with the pictures of a recipe, or of one of its views, if it has this name.
fn images(
    name: &str,
    dataset: &Columns,
    (recipe, spec): (&Recipe, &TensorSpec),
    collate: Collate,
) -> Result<Option<Column>, ColumnError> {
    let is_content = name == Column::IMAGE || name == dataset.content_name();
    if recipe.views().is_empty() {
        let column = Column::images(&recipe.images()[0], spec, ColumnSource::Image);
        return Ok(is_content.then(|| Column { name: name.to_owned(), ..column }));
    }
    let Some(index) = recipe.images().iter().position(|images| images.column == name) else {
        let views = || recipe.views().iter().map(|view| view.column.clone()).collect();
        return match is_content {
            true => Err(ColumnError::Views { name: name.to_owned(), views: views() }),
            false => Ok(None),
        };
    };
    if dataset.extra.fields().iter().any(|field| field.name() == name) {
        return Err(ColumnError::ViewAmbiguous { name: name.to_owned() });
    }
    let images = &recipe.images()[index];
    let spec = match collate {
        Collate::Stack => {
            images.spec().expect("who selects has checked that views have a fixed shape")
        }
        Collate::Pad(_) | Collate::List(_) => images.result.tensor((VARIES, VARIES)),
    };
    Ok(Some(Column::images(images, &spec, ColumnSource::View(index))))
}

/// The index of a further column.
fn further(name: &str, dataset: &Columns, recipe: &Recipe) -> Result<usize, ColumnError> {
    let found = dataset.extra.fields().iter().position(|field| field.name() == name);
    found.ok_or_else(|| {
        let available = available(dataset, recipe);
        let known: Vec<&str> = available.iter().map(String::as_str).collect();
        let nearest = nearest(name, &known).map(str::to_owned);
        ColumnError::Unknown { name: name.to_owned(), nearest, available }
    })
}

/// What a column of a dataset holds for a target. Masks and saliency maps may be files, one for
/// each object.
fn stored_of(field: &Field, target: &TargetKind) -> Result<StoredTarget, ColumnError> {
    let is_file_per_object = match (target, field.data_type()) {
        (
            TargetKind::Mask(_) | TargetKind::Saliency(_),
            DataType::List(child) | DataType::LargeList(child),
        ) => matches!(child.data_type(), DataType::Binary | DataType::LargeBinary),
        (
            TargetKind::Mask(_)
            | TargetKind::Saliency(_)
            | TargetKind::Boxes(_)
            | TargetKind::Keypoints(_),
            _,
        ) => false,
    };
    let kind = if is_file_per_object { ColumnKind::Bytes } else { kind_of(field)? };
    Ok(StoredTarget { kind, is_file_per_object })
}

/// The form that a column of a dataset has in a batch.
fn kind_of(field: &Field) -> Result<ColumnKind, ColumnError> {
    use DataType as T;
    let refuse = |why| {
        let (name, found) = (field.name().clone(), field.data_type().to_string());
        Err(ColumnError::Type { name, found, why })
    };
    let kind = match field.data_type() {
        T::Utf8 | T::LargeUtf8 => ColumnKind::Text,
        T::Binary | T::LargeBinary => ColumnKind::Bytes,
        T::List(child) | T::LargeList(child) => match fixed(child.data_type()) {
            Ok((element, inner)) => ColumnKind::Ragged { element, inner },
            Err(why) => return refuse(why),
        },
        other => match fixed(other) {
            Ok((element, shape)) => ColumnKind::Tensor { element, shape },
            Err(why) => return refuse(why),
        },
    };
    Ok(kind)
}

/// Element type and axes of a type whose values all have the same shape.
fn fixed(data_type: &DataType) -> Result<(ElementType, Vec<u32>), &'static str> {
    use DataType as T;
    let mut axes = Vec::new();
    let mut inner = data_type;
    loop {
        let (length, child) = match inner {
            T::FixedSizeList(child, length) => (*length, Some(child.data_type())),
            T::FixedSizeBinary(length) => (*length, None),
            plain => break Ok((element_of(plain)?, axes)),
        };
        match u32::try_from(length) {
            Ok(length) if length > 0 => axes.push(length),
            _ => return Err("an axis has length 0"),
        }
        if axes.len() > AXES_MAX {
            return Err("a sample has at most 6 axes");
        }
        match child {
            Some(child) => inner = child,
            None => break Ok((ElementType::Uint8, axes)),
        }
    }
}

fn element_of(data_type: &DataType) -> Result<ElementType, &'static str> {
    use DataType as T;
    match data_type {
        T::Boolean => Ok(ElementType::Bool),
        T::UInt8 => Ok(ElementType::Uint8),
        T::Int8 => Ok(ElementType::Int8),
        T::UInt16 => Ok(ElementType::Uint16),
        T::Int16 => Ok(ElementType::Int16),
        T::UInt32 => Ok(ElementType::Uint32),
        T::Int32 => Ok(ElementType::Int32),
        T::UInt64 => Ok(ElementType::Uint64),
        T::Int64 => Ok(ElementType::Int64),
        T::Float16 => Ok(ElementType::Float16),
        T::Float32 => Ok(ElementType::Float32),
        T::Float64 => Ok(ElementType::Float64),
        T::List(_)
        | T::LargeList(_)
        | T::ListView(_)
        | T::LargeListView(_)
        | T::FixedSizeList(..)
        | T::FixedSizeBinary(_) => Err("an inner axis has variable length"),
        T::Utf8 | T::LargeUtf8 | T::Utf8View => Err("texts in lists have no form"),
        T::Binary | T::LargeBinary | T::BinaryView => Err("byte strings in lists have no form"),
        T::Struct(_) | T::Union(..) | T::Map(..) => Err("fields of a structure are not columns"),
        T::Null => Err("it contains only nulls"),
        T::Dictionary(..) | T::RunEndEncoded(..) => Err("its values are stored indirectly"),
        T::Timestamp(..) | T::Date32 | T::Date64 | T::Time32(_) | T::Time64(_) => {
            Err("times are not numbers")
        }
        T::Duration(_) | T::Interval(_) => Err("durations are not numbers"),
        T::Decimal32(..) | T::Decimal64(..) | T::Decimal128(..) | T::Decimal256(..) => {
            Err("decimals have no element type")
        }
    }
}
