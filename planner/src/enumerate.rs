//! Every legal materialisation point of a recipe, and every strategy. It reads no file.

use crate::vocabulary::{Cache, Codec, Form, Point};
use meetpoint_format::recipe::{
    Declaration, Needs, OnTargets, Operation, Place, Property, Recipe, ValueKind,
};
use serde::Serialize;

/// What is stored, in which codec, and how it is read.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Strategy {
    /// What is stored.
    pub point: Point,
    /// Compression of each stored sample.
    pub codec: Codec,
    /// Threads that prepare samples.
    pub threads: usize,
    /// Where epochs after the first find stored samples.
    pub cache: Cache,
}

/// The values that strategies are combined from, besides points and caches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Codecs of stored samples.
    pub codecs: Vec<Codec>,
    /// Numbers of threads.
    pub threads: Vec<usize>,
}

/// Why a recipe cannot be cut after an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum RefusedBecause {
    /// An operation up to here has random parameters, which differ in each epoch.
    Random {
        /// Its name.
        by: &'static str,
        /// Its position in the recipe, counted from 1.
        position: usize,
    },
    /// An operation up to here is on batches, of which no sample holds the result.
    OnBatches {
        /// Its name.
        by: &'static str,
        /// Its position in the recipe, counted from 1.
        position: usize,
    },
    /// The result of an operation up to here depends on a crop or resize after the cut.
    LooksAhead {
        /// Its name.
        by: &'static str,
        /// Its position in the recipe, counted from 1.
        position: usize,
    },
    /// An operation up to here moves targets of the recipe, which are stored as they were.
    Targets {
        /// Its name.
        by: &'static str,
        /// Its position in the recipe, counted from 1.
        position: usize,
    },
}

/// A cut that is not legal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RefusedPoint {
    /// Operations before the cut.
    pub operations: usize,
    /// The last of them.
    pub operation: &'static str,
    /// Why.
    #[serde(flatten)]
    pub because: RefusedBecause,
}

/// The materialisation points of a recipe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Points {
    /// In the order of the recipe, "nothing offline" first.
    pub legal: Vec<Point>,
    /// In the order of the recipe.
    pub refused: Vec<RefusedPoint>,
}

/// The materialisation points of a recipe. `has_jpegs`: whether the dataset has JPEGs, which can be
/// stored in a coefficient form.
///
/// All facts come from the declarations of the operations.
pub fn materialization_points(recipe: &Recipe, has_jpegs: bool) -> Points {
    let mut legal = vec![Point::encoded(Form::Files), Point::encoded(Form::Packed)];
    if has_jpegs {
        legal.push(Point::encoded(Form::CoefficientsFast));
        legal.push(Point::encoded(Form::CoefficientsCompact));
    }
    let mut refused = Vec::new();
    let operations = recipe.operations();
    for count in 1..=operations.len() {
        let operation = operations[count - 1].name();
        if let Some(because) = refusal(recipe, count) {
            refused.push(RefusedPoint { operations: count, operation, because });
            continue;
        }
        let name = operation.to_owned();
        let prepared = Point { form: Form::Prepared, operations: count, operation: name };
        if gives_picture(operations, count) {
            legal.push(prepared.clone());
            legal.push(Point { form: Form::Jpeg, ..prepared });
        } else {
            legal.push(prepared);
        }
    }
    Points { legal, refused }
}

/// Why a recipe cannot be cut after `count` operations; `None` where it can.
fn refusal(recipe: &Recipe, count: usize) -> Option<RefusedBecause> {
    let operations = recipe.operations();
    let before = &operations[..count];
    if let Some(index) = before.iter().position(Operation::is_random) {
        let by = before[index].name();
        return Some(RefusedBecause::Random { by, position: index + 1 });
    }
    let moves = |it: &Operation| it.declaration().targets == OnTargets::Moves;
    if !recipe.targets().is_empty()
        && let Some(index) = before.iter().position(moves)
    {
        let by = before[index].name();
        return Some(RefusedBecause::Targets { by, position: index + 1 });
    }
    if let Some(index) = before.iter().position(Operation::is_on_batches) {
        return Some(RefusedBecause::OnBatches { by: before[index].name(), position: index + 1 });
    }
    let index = before.iter().position(Operation::looks_ahead)?;
    let by = before[index].name();
    let is_between = count <= seen_to(operations, index)?;
    is_between.then_some(RefusedBecause::LooksAhead { by, position: index + 1 })
}

/// How far an operation that looks ahead sees: to the first that always resizes, else to the last
/// that may crop or resize.
fn seen_to(operations: &[Operation], from: usize) -> Option<usize> {
    let resizes = |operation: &Operation| {
        let Declaration { place, needs, gives, .. } = operation.declaration();
        let is_resize = *needs == Needs::All && gives.size != Property::Same;
        *place == Place::Geometry && is_resize && !operation.is_random()
    };
    let may_crop = |operation: &Operation| match operation.declaration().place {
        Place::Geometry | Place::Picture | Place::Choice => true,
        Place::Decode | Place::Pixels | Place::Elements | Place::Tensor | Place::Batch => false,
    };
    let after = || operations.iter().enumerate().skip(from + 1);
    let first = after().find(|(_, operation)| resizes(operation));
    let last = || after().rfind(|(_, operation)| may_crop(operation));
    first.or_else(last).map(|(index, _)| index)
}

/// Whether the first `count` operations give a uint8 picture, which a JPEG can hold.
fn gives_picture(operations: &[Operation], count: usize) -> bool {
    operations[count - 1].declaration().gives.kind == ValueKind::Image
}

/// The strategies of these points: each with every codec, number of threads and cache. Files are
/// unchanged, so they have no codec.
pub fn enumerate(points: &[Point], settings: &Settings) -> Vec<Strategy> {
    let mut strategies = Vec::new();
    for point in points {
        let codecs = match point.is_nothing_offline() {
            true => &[Codec::None][..],
            false => &settings.codecs,
        };
        for &codec in codecs {
            for &threads in &settings.threads {
                for &cache in Cache::ALL {
                    strategies.push(Strategy { point: point.clone(), codec, threads, cache });
                }
            }
        }
    }
    strategies
}
