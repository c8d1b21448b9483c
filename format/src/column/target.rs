//! The columns that a recipe transforms together with the picture: which types they may have, and
//! which of them a batch needs.

use super::collate::Collate;
use super::{BatchColumns, Column, ColumnError, ColumnKind, ColumnSource, ElementType};
use crate::recipe::{Keypoints, Operation, Recipe, TargetKind, TensorSpec};

/// A target that a batch needs: as a column, for another column, or for an operation.
#[derive(Debug, Clone, PartialEq)]
pub struct TargetColumn {
    /// Name of the column.
    pub name: String,
    /// The target.
    pub target: TargetKind,
    /// Index among the further columns of the dataset.
    pub further: usize,
    /// What the dataset holds for a sample, or for each object.
    pub stored: ColumnKind,
    /// Whether the dataset holds a file for each object, as [`super::files_of`] reads them.
    pub is_file_per_object: bool,
    /// What a batch holds for a sample.
    pub prepared: ColumnKind,
    /// Indices of the columns of the batch that drop the rows of dropped boxes, starting with the
    /// target's own column.
    pub filtered: Vec<usize>,
}

/// Whether an operation, or one that it contains, depends on boxes.
pub(super) fn needs_boxes(operations: &[Operation]) -> bool {
    operations.iter().any(|it| it.needs_boxes() || needs_boxes(it.content()))
}

/// What a dataset holds for a target, per sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StoredTarget {
    pub(super) kind: ColumnKind,
    pub(super) is_file_per_object: bool,
}

/// The targets of a recipe that a batch with these columns needs. `find` returns the index of a
/// further column and what it holds for a target.
pub(super) fn needed(
    columns: &BatchColumns,
    recipe: &Recipe,
    (spec, collate): (&TensorSpec, Collate),
    find: impl Fn(&str, &TargetKind) -> Result<(usize, StoredTarget), ColumnError>,
) -> Result<Vec<TargetColumn>, ColumnError> {
    let mut found = Vec::new();
    for target in recipe.targets() {
        let name = &target.column;
        let own = columns.as_slice().iter().position(|column| {
            column.name == *name && matches!(column.source, ColumnSource::Target(_))
        });
        let mut filtered: Vec<usize> = Vec::new();
        let is_for_operation = match &target.kind {
            TargetKind::Boxes(boxes) => {
                if boxes.is_sanitized() {
                    filtered.extend(own);
                    filtered.extend(boxes.filters.iter().filter_map(|it| columns.position(it)));
                }
                needs_boxes(recipe.operations())
            }
            TargetKind::Mask(_) | TargetKind::Saliency(_) | TargetKind::Keypoints(_) => false,
        };
        let has_images = columns.pictures().next().is_some();
        match own.or(filtered.first().copied()) {
            Some(index) if !has_images => {
                let name = columns.as_slice()[index].name.clone();
                return Err(ColumnError::WithoutImage { name });
            }
            Some(_) => {}
            None if is_for_operation && has_images => {}
            None => continue,
        }
        for &index in &filtered {
            let column = &columns.as_slice()[index];
            check_filtered(column, name)?;
        }
        let (further, stored) = find(name, &target.kind)?;
        let prepared = prepared(name, &target.kind, &stored, (spec, collate))?;
        let (name, target) = (name.clone(), target.kind.clone());
        let StoredTarget { kind: stored, is_file_per_object } = stored;
        found.push(TargetColumn {
            name,
            target,
            further,
            stored,
            is_file_per_object,
            prepared,
            filtered,
        });
    }
    Ok(found)
}

/// Checks that a column has a row for each object.
fn check_filtered(column: &Column, boxes: &str) -> Result<(), ColumnError> {
    // Masks of objects are ragged in each of their forms.
    let is_ragged = match &column.kind {
        ColumnKind::Ragged { .. } | ColumnKind::PaddedRagged { .. } => true,
        ColumnKind::Shaped { axes, .. } => axes.len() == 3,
        ColumnKind::Tensor { .. }
        | ColumnKind::Padded { .. }
        | ColumnKind::Bytes
        | ColumnKind::Text => false,
    };
    let is_further = matches!(column.source, ColumnSource::Further(_) | ColumnSource::Target(_));
    if is_ragged && is_further {
        return Ok(());
    }
    let (name, boxes, found) = (column.name.clone(), boxes.to_owned(), column.kind.to_string());
    Err(ColumnError::NotFiltered { name, boxes, found })
}

/// What a batch holds for a target, per sample, if the dataset holds `stored`.
pub(super) fn prepared(
    name: &str,
    target: &TargetKind,
    stored: &StoredTarget,
    (spec, collate): (&TensorSpec, Collate),
) -> Result<ColumnKind, ColumnError> {
    let in_form = |kind: Result<ColumnKind, _>| kind.map(|kind| kind.collated(collate));
    let result = match target {
        TargetKind::Mask(mask) => {
            let png = ElementType::from(mask.dtype);
            in_form(mask_kind(stored, png, spec, &|element| match holds(element, mask.fill) {
                true => Ok(()),
                false => Err("its elements cannot hold `fill`"),
            }))
        }
        TargetKind::Saliency(_) => {
            in_form(mask_kind(stored, ElementType::Uint8, spec, &|element| match element {
                ElementType::Uint8 => Ok(()),
                _ => Err("the weights of a saliency map are uint8"),
            }))
        }
        TargetKind::Boxes(boxes) => boxes_kind(&stored.kind, boxes.is_sanitized()),
        TargetKind::Keypoints(points) => points_kind(&stored.kind, points),
    };
    result.map_err(|why| {
        let (name, found) = (name.to_owned(), stored.kind.to_string());
        ColumnError::Target { name, target: target.name(), found, why }
    })
}

fn mask_kind(
    stored: &StoredTarget,
    png: ElementType,
    spec: &TensorSpec,
    check: &dyn Fn(ElementType) -> Result<(), &'static str>,
) -> Result<ColumnKind, &'static str> {
    let shape = vec![spec.height, spec.width];
    match &stored.kind {
        ColumnKind::Bytes => {
            check(png)?;
            Ok(match stored.is_file_per_object {
                true => ColumnKind::Ragged { element: png, inner: shape },
                false => ColumnKind::Tensor { element: png, shape },
            })
        }
        ColumnKind::Tensor { element, shape: axes } if axes.len() == 2 => {
            check(*element)?;
            Ok(ColumnKind::Tensor { element: *element, shape })
        }
        ColumnKind::Ragged { element, inner } if inner.len() == 2 => {
            check(*element)?;
            Ok(ColumnKind::Ragged { element: *element, inner: shape })
        }
        ColumnKind::Tensor { .. }
        | ColumnKind::Ragged { .. }
        | ColumnKind::Text
        | ColumnKind::Padded { .. }
        | ColumnKind::PaddedRagged { .. }
        | ColumnKind::Shaped { .. } => {
            Err("it holds the bytes of a PNG, a tensor [height, width], or a list of these")
        }
    }
}

/// Whether the type can represent this number.
fn holds(element: ElementType, number: f64) -> bool {
    let whole = |least: f64, most: f64| number.fract() == 0.0 && (least..=most).contains(&number);
    match element {
        ElementType::Bool => whole(0.0, 1.0),
        ElementType::Uint8 => whole(0.0, f64::from(u8::MAX)),
        ElementType::Int8 => whole(f64::from(i8::MIN), f64::from(i8::MAX)),
        ElementType::Uint16 => whole(0.0, f64::from(u16::MAX)),
        ElementType::Int16 => whole(f64::from(i16::MIN), f64::from(i16::MAX)),
        ElementType::Uint32 | ElementType::Uint64 => whole(0.0, f64::from(u32::MAX)),
        ElementType::Int32 | ElementType::Int64 => whole(f64::from(i32::MIN), f64::from(i32::MAX)),
        ElementType::Float16 | ElementType::Float32 | ElementType::Float64 => true,
    }
}

const NUMBERS: &str = "coordinates are integers or floats";

fn boxes_kind(stored: &ColumnKind, is_sanitized: bool) -> Result<ColumnKind, &'static str> {
    if stored.element() == ElementType::Bool {
        return Err(NUMBERS);
    }
    let element = ElementType::Float32;
    match stored {
        ColumnKind::Ragged { inner, .. } if inner[..] == [4] => {
            Ok(ColumnKind::Ragged { element, inner: inner.clone() })
        }
        ColumnKind::Tensor { shape, .. } if matches!(shape[..], [4] | [_, 4]) => {
            if is_sanitized {
                return Err("boxes can be left out only of a list, of any length");
            }
            Ok(ColumnKind::Tensor { element, shape: shape.clone() })
        }
        ColumnKind::Tensor { .. }
        | ColumnKind::Ragged { .. }
        | ColumnKind::Bytes
        | ColumnKind::Text
        | ColumnKind::Padded { .. }
        | ColumnKind::PaddedRagged { .. }
        | ColumnKind::Shaped { .. } => Err("it holds a list of four numbers for each box"),
    }
}

fn points_kind(stored: &ColumnKind, points: &Keypoints) -> Result<ColumnKind, &'static str> {
    let axes = stored.axes();
    let shape = || axes.to_vec();
    let element = ElementType::Float32;
    let result = match stored {
        ColumnKind::Ragged { .. } => ColumnKind::Ragged { element, inner: shape() },
        ColumnKind::Tensor { .. } => ColumnKind::Tensor { element, shape: shape() },
        ColumnKind::Bytes
        | ColumnKind::Text
        | ColumnKind::Padded { .. }
        | ColumnKind::PaddedRagged { .. }
        | ColumnKind::Shaped { .. } => return Err("it holds lists of points"),
    };
    if stored.element() == ElementType::Bool {
        return Err(NUMBERS);
    }
    let (Some(2 | 3), before) = (axes.last(), &axes[..axes.len().saturating_sub(1)]) else {
        return Err("a point is two or three numbers, along the last axis");
    };
    let most = points.swap.iter().flatten().max();
    match (most, before.last(), stored.is_variable()) {
        (Some(most), Some(count), _) if most >= count => {
            Err("`swap` names a point that no object has")
        }
        (Some(_), None, false) => Err("`swap` needs several points for each object"),
        _ => Ok(result),
    }
}
