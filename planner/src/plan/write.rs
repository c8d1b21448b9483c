//! The plan as a job file; a comment gives the reason for each value.

use super::Request;
use super::choose::PlanChoice;
use super::explain::{reasons, sentences};
use crate::vocabulary::{Codec, Form};
use meetpoint_format::recipe::Recipe;
use meetpoint_host::job::{PLAN_VERSION, Predicted, operations_in_words};
use meetpoint_prepare::Dataset;
use meetpoint_scheduler::StrategyName;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Maximum columns of a comment line.
const COLUMNS: usize = 100;

/// The inputs of a plan.
#[derive(Debug, Clone)]
pub struct Origin<'a> {
    /// The dataset.
    pub dataset: &'a Dataset,
    /// Its folder, as an absolute path.
    pub path: &'a Path,
    /// The recipe.
    pub recipe: &'a Recipe,
    /// Its file as an absolute path, or the name of a recipe that comes with Meetpoint.
    pub recipe_name: &'a str,
    /// Seed of order and augmentation.
    pub seed: u64,
    /// The table of the device in TOML, with its heading; empty without one.
    pub device: &'a str,
}

/// A quoted string of TOML.
fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// Quotes a word for the shell if necessary.
fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@%,".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// Appends a sentence as comment lines.
fn comment(to: &mut String, sentence: &str) {
    let mut line = String::from("#");
    for word in sentence.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > COLUMNS {
            to.push_str(&line);
            to.push('\n');
            line = String::from("#");
        }
        line.push(' ');
        line.push_str(word);
    }
    to.push_str(&line);
    to.push('\n');
}

/// The folder of the prepared dataset: next to the source.
fn prepared_path(source: &Path, chosen: &PlanChoice) -> PathBuf {
    let best = &chosen.best().alternative;
    let stem = source.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let codec = match best.codec {
        Codec::None => String::new(),
        Codec::Lz4 | Codec::Zstd => format!("-{}", best.codec.name()),
    };
    source.with_file_name(format!("{stem}.{}{codec}.set", best.point))
}

/// The command that creates the stored form of the best plan; `None` if the dataset is used
/// unchanged.
pub fn command(origin: &Origin<'_>, chosen: &PlanChoice) -> Option<String> {
    let best = &chosen.best().alternative;
    if best.is_as_it_is {
        return None;
    }
    let destination = prepared_path(origin.path, chosen);
    let places = format!(
        "{} {}",
        word(&origin.path.display().to_string()),
        word(&destination.display().to_string())
    );
    let recipe = word(origin.recipe_name);
    let cut = best.point.operations;
    Some(match best.point.form {
        Form::Files | Form::Packed => format!("meetpoint pack {places}"),
        Form::CoefficientsFast => format!("meetpoint pack {places} --form fast"),
        Form::CoefficientsCompact => format!("meetpoint pack {places} --form compact"),
        Form::Prepared => {
            format!("meetpoint prepare {recipe} {places} --cut {cut} --codec {}", best.codec.name())
        }
        Form::Jpeg => format!("meetpoint prepare {recipe} {places} --cut {cut} --lossy-jpeg"),
    })
}

/// The predictions for the best plan, in the form of a job.
pub fn predicted(request: &Request, chosen: &PlanChoice) -> Predicted {
    let best = chosen.best();
    let prediction = &best.prediction;
    let batches = prediction.later.host_batches + prediction.later.device_batches;
    let of_host = prediction.later.host_batches / batches.max(1.0);
    let hits = best.alternative.cache.as_ref().map_or(0.0, |cache| cache.hit_share);
    Predicted {
        first_epoch_seconds: prediction.first.seconds,
        epoch_seconds: prediction.later.seconds,
        host_core_seconds: prediction.later.host_core_seconds,
        host_threads: f64::from(best.alternative.workers.max(1)),
        device_seconds: prediction.later.device_seconds,
        gpu_seconds: prediction.later.gpu_seconds,
        read_bytes: prediction.later.read_bytes,
        read_wait_seconds: prediction.later.read_wait_seconds,
        accelerator_seconds: batches * request.step_ns as f64 * 1e-9,
        cache_hit_share: if of_host > 0.0 { hits } else { 0.0 },
    }
}

/// The text of the plan.
pub fn write(request: &Request, chosen: &PlanChoice, origin: &Origin<'_>) -> String {
    let best = &chosen.best().alternative;
    let reasons = reasons(request, chosen);
    let mut text = String::new();
    comment(
        &mut text,
        "A plan that `meetpoint plan` made. It is a job: `meetpoint run --plan FILE`.",
    );
    comment(&mut text, "Every value may be changed; the predictions are those of the values here.");
    text.push_str("#\n");
    for sentence in sentences(request, chosen) {
        comment(&mut text, &sentence);
    }
    let mut value = |reason: &str, line: String| {
        text.push('\n');
        comment(&mut text, reason);
        text.push_str(&line);
        text.push('\n');
    };
    let made = (!best.is_as_it_is).then(|| prepared_path(origin.path, chosen));
    let dataset = made.as_deref().unwrap_or(origin.path).display().to_string();
    value(&reasons.stored, format!("dataset = {}", quoted(&dataset)));
    let sampler = if request.shuffle { "" } else { "\nshuffle = false" };
    value(
        "As given to `meetpoint plan`.",
        format!(
            "recipe = {}\nbatch_size = {}\nepochs = {}\nseed = {}{sampler}",
            quoted(origin.recipe_name),
            request.batch_size,
            request.epochs,
            origin.seed
        ),
    );
    value(&reasons.strategy, format!("strategy = {}", quoted(best.strategy.as_str())));
    value(&reasons.workers, format!("workers = {}", best.workers));
    value(&reasons.prefetch, format!("prefetch = {}", best.prefetch));
    match &best.cache {
        None => value(&format!("No cache. {}", reasons.cache), String::new()),
        Some(cache) => value(
            &reasons.cache,
            format!("cache = \"{}B\"\ncache_after = {}", cache.bytes, cache.point.operations),
        ),
    }
    match (best.gpu, &reasons.gpu) {
        (Some(gpu), reason) => {
            let reason = reason.as_deref().unwrap_or_default();
            value(reason, format!("gpu_decode = {}", quoted(&gpu.to_string())));
        }
        (None, Some(reason)) => value(&format!("No GPU. {reason}"), String::new()),
        (None, None) => {}
    }
    if best.strategy != StrategyName::HostOnly {
        let _ = write!(text, "\n{}", origin.device);
    }
    if request.step_ns > 0 {
        let _ = write!(text, "\n[accelerator]\nstep = \"{}ns\"\n", request.step_ns);
    }
    let manifest = origin.dataset.manifest();
    let sha256: String =
        origin.dataset.manifest_sha256().iter().map(|byte| format!("{byte:02x}")).collect();
    let operations: Vec<String> = operations_in_words(origin.recipe)
        .iter()
        .map(|it| format!("    {},\n", quoted(it)))
        .collect();
    let _ = write!(
        text,
        "\n# The recipe and the dataset of the plan; it is refused for others.\n[plan]\nversion = \
         {PLAN_VERSION}\noperations = [\n{}]\nrecipe_sha256 = {}\nsource = {}\nsource_sha256 = \
         {}\nsamples = {}\n",
        operations.concat(),
        quoted(&origin.recipe.hash().to_string()),
        quoted(&origin.path.display().to_string()),
        quoted(&sha256),
        manifest.samples
    );
    if let Some(command) = command(origin, chosen) {
        let _ = write!(
            text,
            "\n[plan.offline]\nstored = {}\ncodec = {}\ncommand = {}\n",
            quoted(&best.point.to_string()),
            quoted(best.codec.name()),
            quoted(&command)
        );
    }
    text.push_str("\n# Modelled, of an epoch after the first unless the name says otherwise.\n");
    text.push_str("[plan.predicted]\n");
    for (name, value) in predicted(request, chosen).fields() {
        let _ = writeln!(text, "{name} = {value:?}");
    }
    text
}
