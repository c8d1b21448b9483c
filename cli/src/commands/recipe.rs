//! `meetpoint recipe`: checks a recipe, and describes the operations that recipes can hold.

use crate::surface::Output;
use crate::surface::fault::Fault;
use crate::surface::output::table_style;
use anyhow::Context;
use meetpoint_format::recipe::{
    DECLARATIONS, Recipe, TARGET_DECLARATIONS, keys_table, operations_table, schema,
    target_keys_table, targets_table,
};
use meetpoint_report::grid::Grid;
use std::path::{Path, PathBuf};

/// Check a recipe, or list the operations of recipes.
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
    #[command(after_help = "Example: meetpoint recipe check train.toml")]
    Check {
        /// Recipe in TOML.
        file: PathBuf,
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
        Command::Check { file } => check(file, output),
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

fn check(file: &Path, output: Output) -> anyhow::Result<()> {
    let recipe = read(file)?;
    let shape = recipe.output().map(|spec| {
        let [_, a, b, c] = spec.batch_shape(1);
        ([a, b, c], spec.dtype.name(), spec.bytes())
    });
    let document = serde_json::json!({
        "canonical": recipe.to_toml(),
        "sha256": recipe.hash().to_string(),
        "deterministic": recipe.is_deterministic(),
        "shape": shape.map(|(shape, ..)| shape),
        "dtype": shape.map(|(_, dtype, _)| dtype),
        "sample_bytes": shape.map(|(.., bytes)| bytes),
    });
    output.result(&document, || {
        let result = match shape {
            Some((shape, dtype, bytes)) => {
                let shape = shape.map(|axis| axis.to_string()).join(" x ");
                format!("{dtype}, {shape}, {bytes} bytes a sample")
            }
            None => "no fixed shape: it cannot be batched; end it with a crop or an exact resize"
                .to_owned(),
        };
        let draws = if recipe.is_deterministic() { "no" } else { "yes" };
        format!(
            "{}\nresult: {result}\nrandom: {draws}\nsha256: {}",
            recipe.to_toml().trim_end(),
            recipe.hash()
        )
    })
}

/// Reads and checks a recipe; the error names file, place and remedy.
pub(crate) fn read(path: &Path) -> anyhow::Result<Recipe> {
    let text = meetpoint_storage::files::read_text(path).with_context(|| {
        let message = format!("failed to read recipe {}", path.display());
        Fault::new("recipe_not_read", message, "name a TOML file that can be read")
    })?;
    Recipe::from_toml(&text).with_context(|| path.display().to_string())
}
