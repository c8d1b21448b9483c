//! TOML to recipe: every word, type and value is checked where it stands.

use super::error::Problem;
use super::keys::{Keys, line_and_column};
use super::nearest::nearest;
use super::{
    Decode, Dtype, Interpolation, Layout, OnError, Operation, Recipe, RecipeError, Size, validate,
};
use toml::de::{DeTable, DeValue};

/// The key that holds the operations.
const OPERATIONS: &str = "operation";

/// Names of the operations.
const NAMES: [&str; 8] = [
    "decode",
    "resize",
    "center_crop",
    "random_resized_crop",
    "random_horizontal_flip",
    "to_dtype",
    "normalize",
    "layout",
];

pub(super) fn from_toml(text: &str) -> Result<Recipe, RecipeError> {
    let at = |offset: usize| Some(line_and_column(text, offset));
    let document = DeTable::parse(text).map_err(|error| RecipeError {
        place: error.span().and_then(|span| at(span.start)),
        problem: format!("the recipe is not TOML: {}", error.message().replace('\n', ", ")),
        remedy: "correct the text; https://toml.io has the grammar".to_owned(),
    })?;
    let tables = operation_tables(text, document.get_ref())?;
    let operations =
        tables.iter().map(|keys| operation(keys)).collect::<Result<Vec<_>, RecipeError>>()?;
    validate::check(&operations).map_err(|problem| {
        let place = match problem.operation.and_then(|index| tables.get(index)) {
            Some(keys) => keys.offset_of(problem.key.unwrap_or("name")),
            None => 0,
        };
        problem.at(at(place))
    })?;
    Ok(Recipe { operations })
}

/// The tables of `[[operation]]`, each with a name that exists and no unknown key.
fn operation_tables<'t>(
    text: &'t str,
    document: &'t DeTable<'t>,
) -> Result<Vec<Keys<'t>>, RecipeError> {
    let fault = |offset: usize, problem: String, remedy: &str| {
        Problem::of_recipe(problem, remedy).at(Some(line_and_column(text, offset)))
    };
    let remedy = "a recipe holds [[operation]] tables and nothing else";
    let stranger = document.iter().filter(|(key, _)| key.get_ref() != OPERATIONS);
    if let Some((key, _)) = stranger.min_by_key(|(key, _)| key.span().start) {
        let problem = format!("unknown key `{}`", key.get_ref());
        return Err(fault(key.span().start, problem, remedy));
    }
    let Some(value) = document.get(OPERATIONS) else {
        return Ok(vec![]);
    };
    let DeValue::Array(tables) = value.get_ref() else {
        let problem = format!("`operation` is {}", super::keys::kind(value.get_ref()));
        return Err(fault(value.span().start, problem, "write [[operation]], with two brackets"));
    };
    let read = |(index, table): (usize, &'t toml::Spanned<DeValue<'t>>)| {
        let DeValue::Table(entries) = table.get_ref() else {
            let problem = format!("operation {} is no table", index + 1);
            return Err(fault(table.span().start, problem, remedy));
        };
        Keys::new(text, index, table.span().start, entries)
    };
    tables.iter().enumerate().map(read).collect()
}

/// One operation, with torchvision's defaults for what is left out.
fn operation(keys: &Keys<'_>) -> Result<Operation, RecipeError> {
    match keys.name {
        "decode" => {
            keys.allow(&["scaled", "orient", "on_error"])?;
            let Decode { scaled, orient, on_error } = Decode::EXACT;
            let known = [OnError::Fail, OnError::Lenient].map(|it| (it.name(), it));
            Ok(Operation::Decode(Decode {
                scaled: keys.switch("scaled", scaled)?,
                orient: keys.switch("orient", orient)?,
                on_error: keys.one_of("on_error", &known, Some(on_error))?,
            }))
        }
        "resize" => {
            keys.allow(&["size", "interpolation", "antialias"])?;
            let size = match keys.size()? {
                (side, None) => Size::ShorterSide(side),
                (height, Some(width)) => Size::Exact { height, width },
            };
            Ok(Operation::Resize {
                size,
                interpolation: interpolation(keys)?,
                antialias: keys.switch("antialias", true)?,
            })
        }
        "center_crop" => {
            keys.allow(&["size"])?;
            let (height, width) = keys.size()?;
            Ok(Operation::CenterCrop { height, width: width.unwrap_or(height) })
        }
        "random_resized_crop" => random_resized_crop(keys),
        "random_horizontal_flip" => {
            keys.allow(&["p"])?;
            Ok(Operation::RandomHorizontalFlip { p: keys.number("p", 0.5)? })
        }
        "to_dtype" => {
            keys.allow(&["dtype", "scale"])?;
            let known = [Dtype::Uint8, Dtype::Float16, Dtype::Float32];
            let dtype = keys.one_of("dtype", &known.map(|dtype| (dtype.name(), dtype)), None)?;
            Ok(Operation::ToDtype { dtype, scale: keys.scale()? })
        }
        "normalize" => {
            keys.allow(&["mean", "std"])?;
            let remedy = "three numbers, one a channel, such as [0.485, 0.456, 0.406]";
            Ok(Operation::Normalize {
                mean: keys.numbers("mean", None, remedy)?,
                std: keys.numbers("std", None, remedy)?,
            })
        }
        "layout" => {
            keys.allow(&["layout"])?;
            let known = [Layout::Nhwc, Layout::Nchw].map(|layout| (layout.name(), layout));
            Ok(Operation::Layout { layout: keys.one_of("layout", &known, None)? })
        }
        name => {
            let guess = nearest(name, &NAMES).map(|near| format!("did you mean \"{near}\"? "));
            let remedy = format!("{}known are {}", guess.unwrap_or_default(), NAMES.join(", "));
            Err(keys.fault(keys.offset_of("name"), "unknown operation", &remedy))
        }
    }
}

fn random_resized_crop(keys: &Keys<'_>) -> Result<Operation, RecipeError> {
    keys.allow(&["size", "scale", "ratio", "interpolation", "antialias"])?;
    let (height, width) = keys.size()?;
    let [scale_low, scale_high] =
        keys.numbers("scale", Some([0.08, 1.0]), "[low, high], shares of the picture's area")?;
    let [ratio_low, ratio_high] =
        keys.numbers("ratio", Some([3.0 / 4.0, 4.0 / 3.0]), "[low, high], width over height")?;
    Ok(Operation::RandomResizedCrop {
        height,
        width: width.unwrap_or(height),
        scale: (scale_low, scale_high),
        ratio: (ratio_low, ratio_high),
        interpolation: interpolation(keys)?,
        antialias: keys.switch("antialias", true)?,
    })
}

fn interpolation(keys: &Keys<'_>) -> Result<Interpolation, RecipeError> {
    let all = [Interpolation::Bilinear, Interpolation::Bicubic, Interpolation::Nearest];
    let known = all.map(|it| (it.name(), it));
    keys.one_of("interpolation", &known, Some(Interpolation::Bilinear))
}
