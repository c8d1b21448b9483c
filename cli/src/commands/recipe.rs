//! `meetpoint recipe check`: whether a recipe can be followed, and what it gives.

use crate::surface::Output;
use anyhow::{Context, anyhow};
use meetpoint_format::recipe::Recipe;
use std::path::{Path, PathBuf};

/// Look at recipes.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Check a recipe and print its canonical form, the shape it gives, and its hash.
    ///
    /// Operations have the names and semantics of torchvision.transforms.v2: decode, resize,
    /// center_crop, random_resized_crop, random_horizontal_flip, to_dtype, normalize, layout.
    #[command(after_help = "Example: meetpoint recipe check train.toml")]
    Check {
        /// Recipe in TOML.
        file: PathBuf,
    },
}

pub(super) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<()> {
    let Command::Check { file } = &arguments.command;
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
        format!("failed to read recipe {}; name a TOML file that can be read", path.display())
    })?;
    Recipe::from_toml(&text).map_err(|error| anyhow!("{}: {error}", path.display()))
}
