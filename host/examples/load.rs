//! Runs two epochs over a dataset, without a model: prints what each batch holds.
//!
//! ```text
//! cargo run --release -p meetpoint-host --example load -- photos.set
//! ```

use meetpoint_format::recipe::Recipe;
use meetpoint_host::{Loader, LoaderConfig};
use std::sync::Arc;

const RECIPE: &str = r#"
[[operation]]
name = "decode"
[[operation]]
name = "random_resized_crop"
size = 224
[[operation]]
name = "random_horizontal_flip"
"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dataset = std::env::args_os().nth(1).ok_or("usage: load DATASET")?;
    let recipe = Arc::new(Recipe::from_toml(RECIPE)?);
    let config = LoaderConfig { seed: 42, workers: 2, ..LoaderConfig::new(dataset, recipe, 32) };
    let mut loader = Loader::open(config)?;
    for number in 0..2 {
        let mut epoch = loader.start_epoch(number)?;
        while let Some(batch) = epoch.next_batch()? {
            // The pixels, row-major: `batch.bytes()`, of `batch.shape()` and `batch.dtype()`.
            println!("epoch {number}, batch {}: {:?}", batch.index(), batch.shape());
        }
        let stats = epoch.finish();
        println!("epoch {number}: {} batches in {} ns", stats.batches, stats.duration_ns);
    }
    Ok(())
}
