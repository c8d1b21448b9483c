//! Packs a folder of pictures into a dataset, then reads its samples.
//!
//! ```text
//! cargo run --release -p meetpoint-datasets --example pack_and_read -- pictures photos.set
//! ```

use meetpoint_datasets::{PackOptions, pack};
use meetpoint_prepare::{Dataset, OnDamage, SampleReader};
use meetpoint_storage::{EngineKind, open_engine};
use std::path::PathBuf;
use std::sync::Arc;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let paths: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [pictures, destination] = paths.as_slice() else {
        return Err("usage: pack_and_read PICTURES DATASET".into());
    };

    let summary = pack(pictures, destination, &PackOptions::default(), &mut |_progress| {})?;
    println!("{} samples in {} parts", summary.samples, summary.parts);

    // Each sample is compared with its checksum before the closure gets it.
    let dataset = Arc::new(Dataset::open(destination)?);
    let engine = open_engine(EngineKind::Auto, 32)?.engine;
    let mut reader = SampleReader::new(Arc::clone(&dataset), engine, OnDamage::Fail)?;
    let read = reader.read(&mut (0..dataset.len()), &mut |sample, location, stored| {
        let key = dataset.key(sample)?;
        println!("{key}: label {:?}, {} bytes as stored", location.label, stored.len());
        Ok(())
    })?;
    println!("{} samples, {} bytes, {} reads", read.samples, read.bytes, read.reads);
    Ok(())
}
