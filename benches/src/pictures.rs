//! A packed dataset to measure on: the pictures of a folder, or generated ones.

use anyhow::Context;
use meetpoint_datasets::{OnError, PackOptions, pack};
use std::path::{Path, PathBuf};

/// Packs the pictures below `source`, or `count` generated ones, into `folder/bench.set`.
pub fn dataset(folder: &Path, source: Option<&Path>, count: u32) -> anyhow::Result<PathBuf> {
    let made = folder.join("pictures");
    let source = match source {
        Some(source) => source,
        None => {
            std::fs::create_dir_all(&made).context("making a folder for pictures")?;
            for index in 0..count {
                std::fs::write(
                    made.join(format!("{index}.jpg")),
                    meetpoint_jpeg_benches::encoded_picture(index)?,
                )?;
            }
            &made
        }
    };
    let packed = folder.join("bench.set");
    let options = PackOptions { on_error: OnError::Fail, ..PackOptions::default() };
    pack(source, &packed, &options, &mut |_| ()).context("packing the pictures")?;
    Ok(packed)
}
