//! Views: several pictures of one sample, each with separate operations after common ones.

use super::error::{Fault, Problem};
use super::sample_type::{SampleType, TensorSpec};
use super::sizes::SizeRange;
use super::{Operation, Target, validate};
use crate::recipe::declaration::{InputType, Phase};

/// Name of the column with the pictures of a recipe without views.
pub const IMAGE_COLUMN: &str = "image";

/// Name of the column that says which elements of padded pictures are padding.
const PADDING_MASK: &str = "padding_mask";

/// Names of the columns that every batch provides: label, key and sample index.
pub const OWN_COLUMNS: [&str; 3] = ["label", "key", "sample"];

/// Maximum number of views of a recipe.
pub const VIEWS_MAX: usize = 16;

/// Maximum number of pictures of one view.
pub const VIEW_COUNT_MAX: u32 = 256;

/// A view: a named column of a batch, with one picture of each sample or more.
///
/// Its operations follow the common ones of the recipe. Its pictures are numbered from 0 over all
/// views in their order. The number is part of the key of the random parameters of the view's own
/// operations; common operations are executed once for all views. So a picture is bit-identical to
/// the result of a recipe that consists of the common operations and those of the view, for its
/// number.
#[derive(Debug, Clone, PartialEq)]
pub struct View {
    /// Name of the column.
    pub column: String,
    /// Number of pictures of each sample, each with different random parameters.
    pub count: u32,
    /// The operations after the common ones.
    pub operations: Vec<Operation>,
}

/// One column of pictures that a recipe prepares from each sample.
#[derive(Debug, Clone, PartialEq)]
pub struct Images {
    /// Name of the column: the view's, or `image` in a recipe without views.
    pub column: String,
    /// Its operations on samples, the common ones first.
    pub operations: Vec<Operation>,
    /// How many of the first operations are executed once for all pictures.
    pub common: usize,
    /// Number of its first picture in the key of random parameters.
    pub first_view: u32,
    /// Number of pictures, each with different random parameters.
    pub count: u32,
    /// Type of one prepared picture, and how many pictures the operations produce for each of
    /// `count`.
    pub result: SampleType,
}

impl Images {
    /// Shape, type and layout of each picture, if they do not depend on the sample.
    pub fn spec(&self) -> Option<TensorSpec> {
        self.result.size.map(|size| self.result.tensor(size))
    }

    /// Number of pictures per sample.
    pub fn pictures(&self) -> usize {
        self.count as usize * self.result.pictures as usize
    }

    /// Bytes of the pictures of one sample, each with the shape `spec`.
    pub fn bytes(&self, spec: &TensorSpec) -> usize {
        self.pictures() * spec.bytes()
    }

    /// The axes of one sample, outermost first: [`Self::outer_axes`], then those of a picture.
    pub fn axes(&self, spec: &TensorSpec) -> Vec<u32> {
        [self.outer_axes(), spec.axes()].concat()
    }

    /// The axes that number several pictures: views and crops, each if its number is not 1.
    pub fn outer_axes(&self) -> Vec<u32> {
        let outer = [self.count, self.result.pictures];
        outer.into_iter().filter(|length| *length != 1).collect()
    }

    /// Name of the column with the heights and widths of the pictures, for pictures of different
    /// sizes.
    pub fn size_column(&self) -> String {
        format!("{}_size", self.column)
    }

    /// Name of the column that says which elements of padded pictures are padding: `padding_mask`,
    /// prefixed with the name of the view.
    pub fn padding_column(&self) -> String {
        match &self.column[..] {
            IMAGE_COLUMN => PADDING_MASK.to_owned(),
            view => format!("{view}_{PADDING_MASK}"),
        }
    }

    /// The possible sizes of a picture; `source`: height and width of the picture in its file, if
    /// known.
    pub fn sizes(&self, source: Option<(u32, u32)>) -> SizeRange {
        let from = source.map_or(SizeRange::ANY, SizeRange::exact);
        self.operations.iter().fold(from, |sizes, operation| operation.sizes(sizes))
    }
}

/// Checks the views of a recipe whose other operations and targets have been checked, and returns
/// what each column contains.
pub(super) fn check(
    operations: &[Operation],
    common: SampleType,
    views: &[View],
    targets: &[Target],
) -> Result<Vec<Images>, Problem> {
    if views.is_empty() {
        return Ok(vec![alone(operations, common)]);
    }
    if views.len() > VIEWS_MAX {
        let problem = format!("the recipe has {} views", views.len());
        return Err(Problem::of_recipe(problem, format!("at most {VIEWS_MAX}")));
    }
    for (index, operation) in operations.iter().enumerate() {
        let fault = check_common(operation);
        fault.map_err(|fault| fault.of_operation(index, operation.name()))?;
    }
    if common.series.is_some() {
        let problem = "gives no image, with which views begin";
        let fault = Fault::new(problem, "remove the views, or begin with `decode`");
        return Err(fault.of_operation(0, operations[0].name()));
    }
    let (dtype, channels) = (common.dtype.name(), common.channels);
    if !InputType::IMAGE.dtypes.contains(&dtype) || !InputType::IMAGE.channels.contains(&channels) {
        let problem = format!(
            "gives pictures of {dtype} with {channels} channels, but views take {} with 1 or 3",
            InputType::IMAGE.dtypes.join(" or ")
        );
        let fault = Fault::of_value("mode", problem, "set it to \"rgb\" or \"gray\"");
        return Err(fault.of_operation(0, operations[0].name()));
    }
    let mut found: Vec<Images> = Vec::new();
    let mut first_view = 0;
    for (index, view) in views.iter().enumerate() {
        let of_view = |fault: Fault| fault.of_view(index, &view.column);
        check_view(view, &views[..index]).map_err(of_view)?;
        if let Some(target) = targets.first() {
            let problem = format!(
                "the recipe has the target {:?}, which cannot move with several pictures",
                target.column
            );
            let fault = Fault::new(problem, "remove the views, or the targets of the recipe");
            return Err(of_view(fault));
        }
        let all = [operations, &view.operations].concat();
        let of_own = |problem: Problem| problem.in_view(operations.len(), index, &view.column);
        for (own, operation) in view.operations.iter().enumerate() {
            if operation.is_on_batches() {
                let problem = "takes a batch of one picture for each sample, and cannot be in a \
                               view";
                let remedy = "remove it, or mix the views in the training loop";
                let fault = Fault::new(problem, remedy);
                return Err(of_own(fault.of_operation(operations.len() + own, operation.name())));
            }
        }
        let result = validate::check(&all).map_err(of_own)?;
        let (column, count) = (view.column.clone(), view.count);
        let common = operations.len();
        found.push(Images { column, operations: all, common, first_view, count, result });
        first_view += count;
    }
    Ok(found)
}

/// The column of a recipe without views.
fn alone(operations: &[Operation], result: SampleType) -> Images {
    let on_batches = operations.iter().position(Operation::is_on_batches);
    let on_samples = &operations[..on_batches.unwrap_or(operations.len())];
    // The operations before one with several results are executed once for all of them.
    let common = on_samples.iter().position(|operation| operation.pictures() > 1);
    Images {
        column: IMAGE_COLUMN.to_owned(),
        operations: on_samples.to_vec(),
        common: common.unwrap_or(on_samples.len()),
        first_view: 0,
        count: 1,
        result,
    }
}

/// Checks that an operation before the views produces one picture.
fn check_common(operation: &Operation) -> Result<(), Fault> {
    let remedy = "move it to the operations of each view";
    match operation.declaration().phase {
        Phase::Series => {
            let problem = "takes sound or a signal, but views begin with an image";
            Err(Fault::new(problem, "remove the views"))
        }
        Phase::Text => {
            let problem = "takes text or tokens, but views begin with an image";
            Err(Fault::new(problem, "remove the views"))
        }
        Phase::Elements | Phase::Tensor => {
            Err(Fault::new("gives a tensor, but views begin with an image", remedy))
        }
        Phase::Batch => {
            let problem = "takes a batch of one picture for each sample, and the recipe has views";
            Err(Fault::new(problem, "remove it, or mix the views in the training loop"))
        }
        Phase::Choice if operation.is_on_batches() => {
            let problem = "takes a batch of one picture for each sample, and the recipe has views";
            Err(Fault::new(problem, "remove it, or mix the views in the training loop"))
        }
        Phase::Decode | Phase::Geometry | Phase::Pixels | Phase::Picture | Phase::Choice => {
            match operation.pictures() {
                1 => Ok(()),
                count => {
                    let problem = format!("gives {count} pictures, but views begin with one");
                    Err(Fault::new(problem, remedy))
                }
            }
        }
    }
}

/// Checks the keys of a view against those before it.
fn check_view(view: &View, before: &[View]) -> Result<(), Fault> {
    let remedy = "such as column = \"global\"";
    if view.column.is_empty() {
        return Err(Fault::of_value("column", "is empty", remedy));
    }
    if OWN_COLUMNS.contains(&view.column.as_str()) {
        let problem = format!("is {:?}, a column that every batch can have", view.column);
        return Err(Fault::of_value("column", problem, "use another name"));
    }
    if before.iter().any(|other| other.column == view.column) {
        let problem = format!("is {:?}, which another view has", view.column);
        return Err(Fault::of_value("column", problem, "use another name, or a larger `count`"));
    }
    if !(1..=VIEW_COUNT_MAX).contains(&view.count) {
        let remedy = format!("a whole number from 1 to {VIEW_COUNT_MAX}");
        return Err(Fault::of_value("count", format!("holds {}", view.count), remedy));
    }
    Ok(())
}
