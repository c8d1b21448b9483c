//! Enumerates the legal materialisation points of a recipe, and all strategies. It reads no files.

use crate::vocabulary::{Cache, Codec, Form, GpuIndex, Point};
use meetpoint_format::recipe::{CutRefusal, Operation, Recipe, ValueKind};
use serde::Serialize;

/// The stored form, its codec, and how it is read.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Strategy {
    /// The stored form.
    pub point: Point,
    /// Compression of each stored sample.
    pub codec: Codec,
    /// Threads that prepare samples.
    pub threads: usize,
    /// Where epochs after the first read stored samples from.
    pub cache: Cache,
    /// GPU that prepares a share of each batch; `None`: the CPU alone.
    #[serde(serialize_with = "crate::vocabulary::gpu_name::serialize")]
    pub gpu: Option<GpuIndex>,
}

impl Strategy {
    /// Whether a GPU can prepare a share of the samples: from files and coefficient forms without a
    /// codec, but not from an application cache.
    pub fn suits_gpu(&self) -> bool {
        let Self { point, codec, cache, .. } = self;
        point.form.suits_gpu(*codec) && *cache != Cache::Application
    }
}

/// The values that are combined to strategies, besides points and caches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Codecs of stored samples.
    pub codecs: Vec<Codec>,
    /// Numbers of threads.
    pub threads: Vec<usize>,
}

/// A cut that is not legal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RefusedPoint {
    /// Operations before the cut.
    pub operations: usize,
    /// The last of these operations.
    pub operation: &'static str,
    /// The reason.
    #[serde(flatten)]
    pub because: CutRefusal,
}

/// The materialisation points of a recipe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Points {
    /// In the order of the recipe, "nothing offline" first.
    pub legal: Vec<Point>,
    /// Cuts that are not legal, in the order of the recipe.
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
        if let Some(because) = recipe.refusal_of_cut(count) {
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

/// Whether the first `count` operations produce a picture that a JPEG can store: of 8 bits, without
/// alpha, in RGB or grey.
pub(crate) fn gives_picture(operations: &[Operation], count: usize) -> bool {
    let is_wide = |it: &Operation| matches!(it, Operation::Decode(it) if it.mode.is_wide());
    let is_converted = |it: &Operation| matches!(it, Operation::ConvertColor(_));
    let is_refused = |it: &Operation| is_wide(it) || is_converted(it);
    let is_image = operations[count - 1].declaration().gives.kind == ValueKind::Image;
    is_image && !operations[..count].iter().any(is_refused)
}

/// The strategies for these points: each with every codec, number of threads and cache, and then
/// with `gpu`, if it can take part. Unchanged files have no codec.
pub fn enumerate(points: &[Point], settings: &Settings, gpu: Option<GpuIndex>) -> Vec<Strategy> {
    let mut strategies = Vec::new();
    for point in points {
        let codecs = match point.is_nothing_offline() {
            true => &[Codec::None][..],
            false => &settings.codecs,
        };
        for &codec in codecs {
            for &threads in &settings.threads {
                let of_gpu = |gpu: Option<GpuIndex>| {
                    let of_cache = move |&cache: &Cache| Strategy {
                        point: point.clone(),
                        codec,
                        threads,
                        cache,
                        gpu,
                    };
                    Cache::ALL.iter().map(of_cache)
                };
                strategies.extend(of_gpu(None));
                if gpu.is_some() {
                    strategies.extend(of_gpu(gpu).filter(Strategy::suits_gpu));
                }
            }
        }
    }
    strategies
}
