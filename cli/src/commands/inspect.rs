//! `meetpoint inspect`: a summary of a dataset.

use crate::surface::{Output, Stop, StoreArguments, units};
use meetpoint_datasets::{Inspection, inspect_with};
use meetpoint_diagnose::{Surface, printable, shown};
use meetpoint_format::dataset::{Codec, ContentKind, EntryPointSpacing, Form, Prepared, Stored};
use meetpoint_host::StoreSettings;
use meetpoint_prepare::KeyLookup;
use std::path::PathBuf;

/// Labels that the text lists; `--json` has them all.
const LABELS_LISTED: usize = 20;

/// Summarise a dataset: samples, labels, formats, sizes, parts, provenance.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  meetpoint inspect photos.set
  meetpoint inspect s3://bucket/photos.set")]
pub(crate) struct Arguments {
    /// Folder of the dataset, or its URL.
    dataset: PathBuf,
    #[command(flatten)]
    store: StoreArguments,
}

pub(super) fn run(arguments: &Arguments, output: Output) -> anyhow::Result<()> {
    let stop = Stop::install()?;
    let options = arguments.store.options(&StoreSettings::default(), &stop);
    let inspection = inspect_with(&arguments.dataset, &options)?;
    output.result(&inspection, || text(&inspection))
}

fn text(inspection: &Inspection) -> String {
    let mean = inspection.image_bytes / inspection.samples.max(1);
    let provenance = &inspection.provenance;
    let mut text = format!(
        "dataset      {} (version {})\nsamples      {}, {} of {}, mean {}, longest {}\n",
        shown(&inspection.path),
        inspection.version,
        inspection.samples,
        units::bytes(inspection.image_bytes),
        content(inspection),
        units::bytes(mean),
        units::bytes(inspection.image_bytes_max)
    );
    text.push_str(&format!(
        "packed by    {} from {}, {} left out\nidentity     {}\n",
        provenance.tool, provenance.source, provenance.skipped, inspection.manifest_sha256
    ));
    let prepared = inspection.content.prepared.as_ref();
    if let Some(prepared) = prepared {
        text.push_str(&prepared_words(prepared));
    } else if let Some(stored) = &inspection.stored {
        text.push_str(&form(inspection.samples, stored));
    }
    if inspection.content.kind == ContentKind::Image {
        text.push_str(&images(inspection));
    }
    text.push_str(&columns(inspection));
    match inspection.labels.len() {
        0 => text.push_str("labels       none\n"),
        count => text.push_str(&format!("labels       {count}\n")),
    }
    for label in inspection.labels.iter().take(LABELS_LISTED) {
        text.push_str(&format!("  {:>8}  {}\n", label.samples, printable(&label.name)));
    }
    if inspection.labels.len() > LABELS_LISTED {
        let more = inspection.labels.len() - LABELS_LISTED;
        text.push_str(&format!("  and {more} more; --json lists all\n"));
    }
    if !inspection.labels.is_empty() && inspection.unlabelled > 0 {
        text.push_str(&format!("  {:>8}  without a label\n", inspection.unlabelled));
    }
    text.push_str(&format!(
        "parts        {}, {} together\n",
        inspection.parts.len(),
        units::bytes(inspection.file_bytes)
    ));
    for part in &inspection.parts {
        let bytes = units::bytes(part.bytes);
        text.push_str(&format!("  {:>8}  {}, {bytes}\n", part.samples, part.file));
    }
    if let Some(root) = &inspection.content_root {
        text.push_str(&format!("content      stays in {}\n", shown(root)));
    }
    text.push_str(&match &inspection.keys {
        KeyLookup::Index { bytes } => format!("keys         indexed, {}\n", units::bytes(*bytes)),
        KeyLookup::Scan => {
            "keys         found by a scan; `meetpoint index --keys` indexes them\n".to_owned()
        }
        KeyLookup::Unusable { problem, remedy } => {
            let remedy = remedy.spelled(Surface::CommandLine);
            format!("keys         {problem}\n             remedy: {remedy}\n")
        }
    });
    text
}

/// What the samples are called, in the plural if it exists.
fn content(inspection: &Inspection) -> &'static str {
    match inspection.content.kind {
        _ if inspection.content.prepared.is_some() => "prepared samples",
        ContentKind::Image => "images",
        ContentKind::None => "content",
        kind => kind.name(),
    }
}

/// The further columns, one per line.
fn columns(inspection: &Inspection) -> String {
    if inspection.columns.is_empty() {
        return String::new();
    }
    let mut text = format!("columns      {} beside the content\n", inspection.columns.len());
    for column in &inspection.columns {
        text.push_str(&format!("  {}: {}", column.name, column.type_words));
        if let Some(kind) = &column.kind {
            text.push_str(&format!(" ({kind})"));
        }
        text.push('\n');
    }
    text
}

/// Which operations were executed before samples were stored, and how they are stored.
fn prepared_words(prepared: &Prepared) -> String {
    let operations = prepared.beginning().map_or_else(
        |problem| problem,
        |recipe| {
            let names: Vec<&str> = recipe.operations().iter().map(|it| it.name()).collect();
            names.join(", ")
        },
    );
    let stored = match (prepared.jpeg_quality, prepared.codec) {
        (Some(quality), _) => format!("as JPEG of quality {quality}, which loses detail"),
        (None, Codec::None) => "as arrays (.npy)".to_owned(),
        (None, codec) => format!("as arrays (.npy), each compressed by {}", codec.name()),
    };
    let (count, hash) = (prepared.operations, &prepared.recipe_sha256);
    format!(
        "prepared     by {}: {operations}; {stored}\n{:13}recipe {hash}\n",
        units::count(u64::from(count), "operation"),
        ""
    )
}

/// The form of the pictures, and how many files were converted.
fn form(samples: u64, stored: &Stored) -> String {
    let entry_points = &stored.entry_points;
    let mut what = vec![stored.form.name().to_owned()];
    if stored.form != Form::Jpeg {
        what.push(format!("{} converted", stored.converted));
    }
    if stored.rewritten > 0 {
        let (rewritten, transcoded) = (stored.rewritten, stored.transcoded);
        what.push(format!("{rewritten} re-written ({transcoded} from progressive)"));
    }
    let kept = stored.kept.iter();
    what.extend(kept.map(|(reason, count)| format!("{count} as they were: {}", reason.words())));
    let spacing = match entry_points.spacing {
        None => "none".to_owned(),
        Some(EntryPointSpacing::McuRow) => "each row of MCUs".to_owned(),
        Some(EntryPointSpacing::Mcus(count)) => format!("every {count} MCUs"),
    };
    let percent = 100.0 * entry_points.bytes as f64 / stored.source_bytes.max(1) as f64;
    format!(
        "form         {}; {} of files packed\n\
         entry points {spacing}; {} of {samples} samples, {} ({percent:.2} % of the files)\n",
        what.join(", "),
        units::bytes(stored.source_bytes),
        entry_points.samples,
        units::bytes(entry_points.bytes)
    )
}

/// Statistics from the headers of the pictures.
fn images(inspection: &Inspection) -> String {
    let images = &inspection.images;
    let share = if images.is_complete { "all" } else { "of those checked" };
    let formats: Vec<String> =
        images.formats.iter().map(|(format, count)| format!("{count} {format}")).collect();
    let (width, height) = (images.width, images.height);
    let sizes: Vec<String> = images
        .megapixels
        .iter()
        .filter(|class| class.images > 0)
        .map(|class| match class.below {
            Some(limit) => format!("{} below {limit} MP", class.images),
            None => format!("{} larger", class.images),
        })
        .collect();
    format!(
        "pictures     {} headers read ({share}): {}\n\
         pixels       width {} to {}, mean {:.0}; height {} to {}, mean {:.0}\n\
         {:13}{}; {:.2} bits a pixel\n",
        images.probed,
        formats.join(", "),
        width.min,
        width.max,
        width.mean,
        height.min,
        height.max,
        height.mean,
        "",
        sizes.join(", "),
        images.bits_per_pixel
    )
}
