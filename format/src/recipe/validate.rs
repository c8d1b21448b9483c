//! Checks that each operation can follow the ones before it, and derives the result's shape.

use super::error::Problem;
use super::{Dtype, Layout, Operation, Size};
use crate::random::OPERATIONS_MAX;

/// Largest height or width that a recipe can ask for, in pixels: that of a JPEG.
const SIDE_MAX: u32 = 65535;

/// Most pixels of a picture, before, between and after operations: the limit of the kernels.
pub const PIXELS_MAX: u64 = 1 << 28;

/// Channels of every picture.
const CHANNELS: u32 = 3;

/// Shape, element type and layout of one prepared sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TensorSpec {
    /// Rows.
    pub height: u32,
    /// Columns.
    pub width: u32,
    /// Channels: 3.
    pub channels: u32,
    /// Element type.
    pub dtype: Dtype,
    /// Order of the axes.
    pub layout: Layout,
}

impl TensorSpec {
    /// Bytes of one sample.
    pub fn bytes(&self) -> usize {
        self.elements() * self.dtype.bytes()
    }

    /// Elements of one sample.
    pub fn elements(&self) -> usize {
        self.height as usize * self.width as usize * self.channels as usize
    }

    /// The axes of a batch of `samples`, outermost first.
    pub fn batch_shape(&self, samples: u32) -> [u32; 4] {
        match self.layout {
            Layout::Nhwc => [samples, self.height, self.width, self.channels],
            Layout::Nchw => [samples, self.channels, self.height, self.width],
        }
    }
}

/// Shape, type and layout after all operations, where the shape is the same for every picture.
pub(super) fn output(operations: &[Operation]) -> Option<TensorSpec> {
    let mut shape = None;
    let (mut dtype, mut layout) = (Dtype::Uint8, Layout::Nhwc);
    for operation in operations {
        match *operation {
            Operation::Resize { size, .. } => {
                shape = match (size, shape) {
                    (Size::Exact { height, width }, _) => Some((height, width)),
                    (Size::ShorterSide(_), Some((height, width))) => {
                        Some(size.resolve(height, width))
                    }
                    (Size::ShorterSide(_), None) => None,
                }
            }
            Operation::CenterCrop { height, width }
            | Operation::RandomResizedCrop { height, width, .. } => shape = Some((height, width)),
            Operation::ToDtype { dtype: to, .. } => dtype = to,
            Operation::Layout { layout: to } => layout = to,
            Operation::Decode(_)
            | Operation::RandomHorizontalFlip { .. }
            | Operation::Normalize { .. } => (),
        }
    }
    let (height, width) = shape?;
    Some(TensorSpec { height, width, channels: CHANNELS, dtype, layout })
}

/// Checks a whole recipe; the first problem in the order of the operations is the one reported.
pub(super) fn check(operations: &[Operation]) -> Result<(), Problem> {
    if operations.is_empty() {
        return Err(Problem::of_recipe(
            "the recipe has no operations",
            "begin with an operation named \"decode\"",
        ));
    }
    if operations.len() > OPERATIONS_MAX as usize {
        return Err(Problem::of_recipe(
            format!("the recipe has {} operations", operations.len()),
            format!("at most {OPERATIONS_MAX}"),
        ));
    }
    let mut state = State { dtype: Dtype::Uint8, pixels_end: None, layout: false };
    for (index, operation) in operations.iter().enumerate() {
        let place = Place { index, name: operation.name() };
        check_values(place, operation)?;
        state.follow(place, operation)?;
        check_pixels(place, &operations[..=index])?;
    }
    Ok(())
}

/// Which operation is being checked.
#[derive(Clone, Copy)]
struct Place {
    index: usize,
    name: &'static str,
}

impl Place {
    /// A problem of the operation as a whole.
    fn problem(self, problem: impl Into<String>, remedy: impl Into<String>) -> Problem {
        Problem {
            operation: Some(self.index),
            key: None,
            problem: format!("operation {} ({}): {}", self.index + 1, self.name, problem.into()),
            remedy: remedy.into(),
        }
    }

    /// A problem of the value of one key.
    fn value(
        self,
        key: &'static str,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Problem {
        let problem = format!("`{key}` {}", problem.into());
        Problem { key: Some(key), ..self.problem(problem, remedy) }
    }
}

/// What the operations so far have made of the sample.
struct State {
    dtype: Dtype,
    /// Name of the first operation after which no operation on pixels can come.
    pixels_end: Option<&'static str>,
    /// Whether the layout was set.
    layout: bool,
}

impl State {
    /// Checks that `operation` can come next, and takes it into account.
    fn follow(&mut self, place: Place, operation: &Operation) -> Result<(), Problem> {
        match (place.index, operation) {
            (0, Operation::Decode(_)) => return Ok(()),
            (0, _) => {
                return Err(place.problem(
                    "comes before the picture is decoded",
                    "the first operation must be \"decode\"",
                ));
            }
            (_, Operation::Decode(_)) => {
                return Err(place.problem(
                    "the picture is decoded already",
                    "remove it: a recipe decodes once, at its beginning",
                ));
            }
            _ => (),
        }
        match *operation {
            Operation::Decode(_) => (),
            Operation::Resize { .. }
            | Operation::CenterCrop { .. }
            | Operation::RandomResizedCrop { .. }
            | Operation::RandomHorizontalFlip { .. } => {
                if let Some(earlier) = self.pixels_end {
                    return Err(place.problem(
                        format!("works on decoded pixels and cannot follow `{earlier}`"),
                        format!("move it up, before `{earlier}`"),
                    ));
                }
                return Ok(());
            }
            Operation::ToDtype { dtype, .. } => {
                if dtype == Dtype::Uint8 && self.dtype != Dtype::Uint8 {
                    return Err(place.value(
                        "dtype",
                        format!("is \"uint8\", but the values are {} here", self.dtype.name()),
                        "leave out the earlier conversion, or this one",
                    ));
                }
                self.dtype = dtype;
            }
            Operation::Normalize { mean, std } => self.normalize(place, mean, std)?,
            Operation::Layout { .. } => {
                if self.layout {
                    return Err(place.problem("the layout is set already", "keep one of the two"));
                }
                self.layout = true;
            }
        }
        self.pixels_end.get_or_insert(place.name);
        Ok(())
    }

    /// A normalisation computes in the current element type, so its numbers must exist there.
    fn normalize(&self, place: Place, mean: [f64; 3], std: [f64; 3]) -> Result<(), Problem> {
        // Numbers become float32 first. A float16 is zero up to half of its smallest step, and
        // infinite from half a step past its largest number.
        let (zero_to, infinite_from) = match self.dtype {
            Dtype::Uint8 => {
                return Err(place.problem(
                    "needs a floating type, but the values are uint8 here",
                    "put to_dtype with dtype = \"float32\" (and scale = true) before it",
                ));
            }
            Dtype::Float16 => (f64::powi(2.0, -25), 65520.0),
            Dtype::Float32 => (0.0, f64::INFINITY),
        };
        let rounded = |value: &f64| f64::from(*value as f32).abs();
        // NaN is in no range.
        let finite = |value: &f64| (0.0..infinite_from).contains(&rounded(value));
        let name = self.dtype.name();
        if let Some(value) = mean.iter().find(|value| !finite(value)) {
            let problem = format!("holds {value:?}, which is no finite {name}");
            return Err(place.value("mean", problem, "three finite numbers, one a channel"));
        }
        let bad = |value: &&f64| !finite(value) || rounded(value) <= zero_to;
        if let Some(value) = std.iter().find(bad) {
            let problem = format!("holds {value:?}, which is zero or not finite as {name}");
            let remedy = "three finite numbers other than zero, one a channel";
            return Err(place.value("std", problem, remedy));
        }
        Ok(())
    }
}

/// Checks the values of one operation that can be judged by themselves.
fn check_values(place: Place, operation: &Operation) -> Result<(), Problem> {
    match *operation {
        Operation::Resize { size: Size::ShorterSide(side), .. } => check_side(place, side),
        Operation::Resize { size: Size::Exact { height, width }, .. }
        | Operation::CenterCrop { height, width } => {
            check_side(place, height)?;
            check_side(place, width)
        }
        Operation::RandomResizedCrop { height, width, scale, ratio, .. } => {
            check_side(place, height)?;
            check_side(place, width)?;
            check_scale(place, scale)?;
            check_ratio(place, ratio)
        }
        Operation::RandomHorizontalFlip { p } => {
            if (0.0..=1.0).contains(&p) {
                return Ok(());
            }
            Err(place.value("p", format!("is {p:?}"), "a probability from 0 to 1"))
        }
        Operation::Decode(_)
        | Operation::ToDtype { .. }
        | Operation::Normalize { .. }
        | Operation::Layout { .. } => Ok(()),
    }
}

fn check_side(place: Place, side: u32) -> Result<(), Problem> {
    if (1..=SIDE_MAX).contains(&side) {
        return Ok(());
    }
    Err(place.value("size", format!("holds {side}"), format!("pixels from 1 to {SIDE_MAX}")))
}

/// Checks what the last of `operations` gives, where that is the same for every picture.
fn check_pixels(place: Place, operations: &[Operation]) -> Result<(), Problem> {
    let Some(TensorSpec { height, width, .. }) = output(operations) else { return Ok(()) };
    let pixels = u64::from(height) * u64::from(width);
    if pixels <= PIXELS_MAX {
        return Ok(());
    }
    let problem = format!("asks for {height} x {width}, which are {pixels} pixels");
    Err(place.value("size", problem, format!("at most {PIXELS_MAX} pixels")))
}

fn check_scale(place: Place, (low, high): (f64, f64)) -> Result<(), Problem> {
    if 0.0 < low && low <= high && high <= 1.0 {
        return Ok(());
    }
    let problem = format!("is [{low:?}, {high:?}]");
    Err(place.value("scale", problem, "[low, high] with 0 < low <= high <= 1"))
}

fn check_ratio(place: Place, (low, high): (f64, f64)) -> Result<(), Problem> {
    if 0.0 < low && low <= high && high.is_finite() {
        return Ok(());
    }
    let problem = format!("is [{low:?}, {high:?}]");
    Err(place.value("ratio", problem, "[low, high], width over height, with 0 < low <= high"))
}
