//! `meetpoint recipe`: checks a recipe, lists those that come with the program, and describes the
//! operations that recipes can hold.

use crate::surface::Output;
use crate::surface::fault::Fault;
use crate::surface::output::table_style;
use meetpoint_format::recipe::{
    Change, DECLARATIONS, Images, Recipe, SHIPPED, TARGET_DECLARATIONS, View, find_shipped,
    keys_table, operations_table, schema, target_keys_table, targets_table,
};
use meetpoint_prepare::{find_recipe, read_recipe_files};
use meetpoint_report::grid::Grid;
use std::path::{Path, PathBuf};

/// Check a recipe, list the recipes that come with the program, or the operations of recipes.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Check a recipe and print its canonical form, the shape of its result, and its hash.
    ///
    /// Operations have the names and semantics of torchvision.transforms.v2; `meetpoint recipe
    /// schema` lists them.
    #[command(after_help = "Examples:\n  meetpoint recipe check train.toml\n  \
                            meetpoint recipe check deit --set num_classes=10")]
    Check {
        /// Recipe in TOML, or the name of a shipped one.
        #[arg(value_name = "FILE|NAME")]
        recipe: PathBuf,
        /// Set a key of the recipe: KEY sets it in every operation that has it, OPERATION.KEY in
        /// one operation, VIEW.OPERATION.KEY in one view; VIEW.count is the number of pictures of a
        /// view.
        #[arg(long, value_name = "KEY=VALUE")]
        set: Vec<Change>,
    },
    /// List the recipes that come with the program.
    ///
    /// Use a name wherever a recipe file is expected: `deit`, or `deit@1` for a version, which
    /// never changes.
    List,
    /// Print a recipe that comes with the program as a recipe file.
    #[command(after_help = "Examples:\n  meetpoint recipe show imagenet-resnet@1\n  \
                            meetpoint recipe show deit --set num_classes=10 > train.toml")]
    Show {
        /// Name of the recipe, and its version; by default the latest.
        #[arg(value_name = "NAME[@VERSION]")]
        name: String,
        /// Set a key of the recipe: KEY sets it in every operation that has it, OPERATION.KEY in
        /// one operation, VIEW.OPERATION.KEY in one view; VIEW.count is the number of pictures of a
        /// view.
        #[arg(long, value_name = "KEY=VALUE")]
        set: Vec<Change>,
    },
    /// List the operations and the kinds of targets that a recipe can contain, with their keys,
    /// types, defaults and ranges.
    ///
    /// With --json, the list also contains the distributions of random parameters and the types of
    /// input and output.
    #[command(after_help = "Examples:\n  meetpoint recipe schema\n  \
                            meetpoint recipe schema color_jitter\n  \
                            meetpoint recipe schema boxes\n  \
                            meetpoint recipe schema --json")]
    Schema {
        /// Name of an operation or of a kind of target; without it, all of them.
        operation: Option<String>,
    },
}

pub(super) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<()> {
    match &arguments.command {
        Command::Check { recipe, set } => check(recipe, set, output),
        Command::List => list(output),
        Command::Show { name, set } => show(name, set, output),
        Command::Schema { operation } => print_schema(operation.as_deref(), output),
    }
}

fn print_schema(operation: Option<&str>, output: Output) -> anyhow::Result<()> {
    let Some(schema) = schema(operation) else {
        let targets = TARGET_DECLARATIONS.iter().map(|it| it.name);
        let known: Vec<&str> = DECLARATIONS.iter().map(|it| it.name).chain(targets).collect();
        let name = operation.unwrap_or_default();
        let message = format!("there is no operation {name:?}");
        return Err(Fault::new(
            "no_such_operation",
            message,
            meetpoint_diagnose::known(name, &known),
        )
        .into());
    };
    output.result(&schema, || {
        let tables = [
            operations_table(&schema),
            keys_table(&schema),
            targets_table(&schema),
            target_keys_table(&schema),
        ];
        let filled = tables.into_iter().filter(|(_, rows)| !rows.is_empty());
        let drawn = filled.map(|(header, rows)| {
            let mut grid = Grid::new(&header, 0..0);
            grid.rows = rows;
            grid.text(table_style())
        });
        drawn.collect::<Vec<_>>().join("\n")
    })
}

fn list(output: Output) -> anyhow::Result<()> {
    let recipes: Vec<serde_json::Value> = SHIPPED
        .iter()
        .map(|it| {
            serde_json::json!({
                "name": it.name, "version": it.version, "about": it.about, "source": it.source,
                "sha256": it.recipe().hash().to_string(),
            })
        })
        .collect();
    output.result(&serde_json::json!({ "recipes": recipes }), || {
        let mut grid = Grid::new(&["recipe", "purpose"], 0..0);
        grid.rows = SHIPPED.iter().map(|it| vec![it.to_string(), it.about.to_owned()]).collect();
        grid.text(table_style())
    })
}

fn show(name: &str, changes: &[Change], output: Output) -> anyhow::Result<()> {
    let shipped = find_shipped(name)?;
    let recipe = shipped.recipe().changed(changes)?;
    let text = match changes {
        [] => shipped.file(),
        _ => format!("# {shipped}, changed: {}.\n\n{}", shipped.about, recipe.to_toml()),
    };
    let document = serde_json::json!({
        "name": shipped.name, "version": shipped.version, "about": shipped.about,
        "source": shipped.source, "sha256": recipe.hash().to_string(), "toml": text,
    });
    output.result(&document, || text.clone())
}

fn check(name: &Path, changes: &[Change], output: Output) -> anyhow::Result<()> {
    let recipe = read(name, changes)?;
    let shapes: Vec<_> = recipe.images().iter().map(shape_of).collect();
    let shape = match &shapes[..] {
        [shape] if recipe.views().is_empty() => shape.clone(),
        _ => None,
    };
    let views = recipe.views().iter().zip(&shapes).map(|(view, shape)| {
        serde_json::json!({
            "column": view.column,
            "shape": shape.as_ref().map(|(shape, ..)| shape),
            "dtype": shape.as_ref().map(|(_, dtype, _)| dtype),
            "sample_bytes": shape.as_ref().map(|(.., bytes)| bytes),
        })
    });
    let views: Vec<_> = views.collect();
    let document = serde_json::json!({
        "canonical": recipe.to_toml(),
        "sha256": recipe.hash().to_string(),
        "deterministic": recipe.is_deterministic(),
        "shape": shape.as_ref().map(|(shape, ..)| shape),
        "dtype": shape.as_ref().map(|(_, dtype, _)| dtype),
        "sample_bytes": shape.as_ref().map(|(.., bytes)| bytes),
        "views": views,
    });
    output.result(&document, || {
        let result = match recipe.views() {
            [] => in_words(shapes[0].as_ref()),
            views => {
                let view = |(view, shape): (&View, &Option<Shape>)| {
                    format!("\n  {}: {}", view.column, in_words(shape.as_ref()))
                };
                views.iter().zip(&shapes).map(view).collect()
            }
        };
        let draws = if recipe.is_deterministic() { "no" } else { "yes" };
        format!(
            "{}\nresult: {result}\nrandom: {draws}\nsha256: {}",
            recipe.to_toml().trim_end(),
            recipe.hash()
        )
    })
}

/// Axes, element type and bytes of a column for one sample.
type Shape = (Vec<u32>, &'static str, usize);

fn shape_of(images: &Images) -> Option<Shape> {
    let spec = images.spec()?;
    Some((images.axes(&spec), spec.dtype.name(), images.bytes(&spec)))
}

fn in_words(shape: Option<&Shape>) -> String {
    match shape {
        Some((shape, dtype, bytes)) => {
            let shape: Vec<String> = shape.iter().map(u32::to_string).collect();
            format!("{dtype}, {}, {bytes} bytes a sample", shape.join(" x "))
        }
        None => {
            "no fixed shape: it cannot be batched; end it with a crop or an exact resize".to_owned()
        }
    }
}

/// The recipe of a file, or the shipped one of this name, with other values of some keys.
pub(crate) fn read(name: &Path, changes: &[Change]) -> anyhow::Result<Recipe> {
    let recipe = find_recipe(name, Path::new(""))?.changed(changes)?;
    Ok(read_recipe_files(recipe)?)
}
