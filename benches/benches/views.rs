//! Views from one decode against a decode for each picture: samples a second of one core.
//!
//! The peer prepares the same pictures by recipes of one view, each of which decodes the region
//! that it needs. Rounds of both alternate; medians count.

use anyhow::{Context, ensure};
use meetpoint_benches::{Options, Report, Row, Target, median, pictures};
use meetpoint_format::recipe::{Recipe, RecipeParts};
use meetpoint_kernels::{Cpu, SampleId, SamplePreparer};
use meetpoint_prepare::Dataset;
use std::time::Instant;

/// The crops and flips of DINO: what its colours cost is the same either way.
const DINO: &str = r#"
[[operation]]
name = "decode"
[[views]]
column = "global"
count = 2
[[views.operations]]
name = "random_resized_crop"
size = 224
scale = [0.32, 1.0]
interpolation = "bicubic"
[[views.operations]]
name = "random_horizontal_flip"
[[views]]
column = "local"
count = 8
[[views.operations]]
name = "random_resized_crop"
size = 96
scale = [0.05, 0.32]
interpolation = "bicubic"
[[views.operations]]
name = "random_horizontal_flip"
"#;

const SIMCLR: &str = r#"
[[operation]]
name = "decode"
[[views]]
column = "view"
count = 2
[[views.operations]]
name = "random_resized_crop"
size = 224
[[views.operations]]
name = "random_horizontal_flip"
"#;

fn main() -> anyhow::Result<()> {
    let options = Options::from_args(&["dir"])?;
    let folder = tempfile::tempdir().context("making a temporary folder")?;
    let source = options.path("dir");
    let path =
        pictures::dataset(folder.path(), source.as_deref(), if options.quick { 16 } else { 200 })?;
    let dataset = Dataset::open(&path)?;
    let encoded: Vec<Vec<u8>> =
        (0..dataset.len()).map(|sample| dataset.read_sample(sample)).collect::<Result<_, _>>()?;
    let mut report = Report::new("views", &options);
    let rounds = if options.quick { 1 } else { 7 };
    for (name, text, target) in [("DINO, 10 views", DINO, 1.5), ("SimCLR, 2 views", SIMCLR, 1.0)] {
        let recipe = Recipe::from_toml(text)?;
        let alone = one_by_one(&recipe)?;
        let (mut once, mut often) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            once.push(with_views(&encoded, &recipe)?);
            often.push(without_views(&encoded, &recipe, &alone)?);
        }
        report.row(
            Row::alone(format!("{name}: one decode"), median(&once), "samples/s")
                .against("a decode for each picture", median(&often))
                .target(Target::RatioAtLeast(target)),
        );
    }
    report.finish(&options)
}

/// A recipe without views for each view.
fn one_by_one(recipe: &Recipe) -> anyhow::Result<Vec<Recipe>> {
    let views = recipe.images().iter().map(|images| -> anyhow::Result<Recipe> {
        let operations = images.operations.clone();
        Ok(Recipe::from_parts(RecipeParts { operations, ..RecipeParts::default() })?)
    });
    views.collect()
}

fn id(sample: usize) -> SampleId {
    SampleId { seed: 0, epoch: 0, sample: sample as u64 }
}

/// Samples a second.
fn with_views(encoded: &[Vec<u8>], recipe: &Recipe) -> anyhow::Result<f64> {
    let mut preparer = SamplePreparer::new(recipe, Cpu::detect());
    let mut memory = Vec::new();
    for images in recipe.images() {
        let spec = images.spec().context("views have a fixed shape")?;
        memory.push(vec![0; images.bytes(&spec)]);
    }
    let started = Instant::now();
    for (sample, file) in encoded.iter().enumerate() {
        let mut outs: Vec<&mut [u8]> = memory.iter_mut().map(|it| &mut it[..]).collect();
        preparer.prepare_columns(file.into(), &[], id(sample), &mut outs, &mut || ())?;
        std::hint::black_box(&memory);
    }
    Ok(encoded.len() as f64 / started.elapsed().as_secs_f64())
}

/// Samples a second.
fn without_views(encoded: &[Vec<u8>], recipe: &Recipe, alone: &[Recipe]) -> anyhow::Result<f64> {
    ensure!(alone.len() == recipe.views().len(), "a recipe for each view");
    let mut preparers = Vec::new();
    for (one, view) in alone.iter().zip(recipe.views()) {
        let bytes = one.output().context("views have a fixed shape")?.bytes();
        preparers.push((SamplePreparer::new(one, Cpu::detect()), vec![0; bytes], view.count));
    }
    let started = Instant::now();
    for (sample, file) in encoded.iter().enumerate() {
        for (preparer, out, count) in &mut preparers {
            for copy in 0..*count as usize {
                preparer.prepare(file.into(), id(sample + copy), out, &mut || ())?;
                std::hint::black_box(&out);
            }
        }
    }
    Ok(encoded.len() as f64 / started.elapsed().as_secs_f64())
}
