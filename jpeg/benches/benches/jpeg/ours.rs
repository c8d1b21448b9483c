//! Our methods.
//!
//! A method is a name and a closure with its own scratch memory; main.rs lists what it is compared
//! with. What is stored beside a file (entry points, coefficient forms) belongs to `sets::Picture`.

use crate::methods::Method;
use crate::sets::{Picture, RECIPE};
use meetpoint_format::recipe::Recipe;
use meetpoint_jpeg::Block;
use meetpoint_jpeg::form::{FormReader, RowComponent, RowScratch};
use meetpoint_kernels::decode::{Decoder, Encoded};
use meetpoint_kernels::{Cpu, Picture as Pixels, SamplePreparer};

/// All of them.
pub(crate) fn methods(cpu: Cpu) -> anyhow::Result<Vec<Method>> {
    Ok(vec![
        whole(cpu),
        region(cpu, "region: ours", |picture| picture.encoded.as_slice().into()),
        region(cpu, "region: ours, entry points", with_entry_points),
        region(cpu, "region: ours, fast", |picture| picture.fast.as_slice().into()),
        region(cpu, "region: ours, compact", |picture| picture.compact.as_slice().into()),
        sample(cpu)?,
        sample_of(cpu, "sample: ours, entry points", with_entry_points)?,
        sample_of(cpu, "sample: ours, fast", |picture| picture.fast.as_slice().into())?,
        sample_of(cpu, "sample: ours, compact", |picture| picture.compact.as_slice().into())?,
        entropy(cpu, "entropy: ours, fast", |picture| &picture.fast),
        entropy(cpu, "entropy: ours, compact", |picture| &picture.compact),
    ])
}

/// As in a loader, which already knows the checksum of the file.
fn with_entry_points(picture: &Picture) -> Encoded<'_> {
    Encoded {
        bytes: &picture.encoded,
        entry_points: &picture.entry_points,
        crc32c: Some(picture.crc32c),
    }
}

fn whole(cpu: Cpu) -> Method {
    let (mut decoder, mut pixels) = (Decoder::new(cpu), Pixels::default());
    Method::new("whole: ours", move |picture, _, out| {
        std::mem::swap(&mut pixels.pixels, out);
        let result = decoder.decode_into(picture.encoded.as_slice().into(), None, &mut pixels);
        std::mem::swap(&mut pixels.pixels, out);
        Ok(result?)
    })
}

fn region(cpu: Cpu, name: &'static str, of: fn(&Picture) -> Encoded<'_>) -> Method {
    let (mut decoder, mut pixels) = (Decoder::new(cpu), Pixels::default());
    Method::new(name, move |picture, sweep, out| {
        let (region, _) = picture.draw(sweep);
        std::mem::swap(&mut pixels.pixels, out);
        let result = decoder.decode_into(of(picture), Some(region), &mut pixels);
        std::mem::swap(&mut pixels.pixels, out);
        Ok(result?)
    })
}

/// The whole recipe, from the file alone.
pub(crate) fn sample(cpu: Cpu) -> anyhow::Result<Method> {
    sample_of(cpu, "sample: ours", |picture| picture.encoded.as_slice().into())
}

fn sample_of(
    cpu: Cpu,
    name: &'static str,
    of: fn(&Picture) -> Encoded<'_>,
) -> anyhow::Result<Method> {
    let recipe = Recipe::from_toml(RECIPE)?;
    let bytes = recipe.output().map_or(0, |spec| spec.bytes());
    let mut preparer = SamplePreparer::new(&recipe, cpu);
    Ok(Method::new(name, move |picture, sweep, out| {
        out.resize(bytes, 0);
        Ok(preparer.prepare(of(picture), picture.id(sweep), out, &mut || ())?)
    }))
}

/// Unpacks all coefficients of a coefficient form, one row of MCUs at a time, into the same memory.
fn entropy(cpu: Cpu, name: &'static str, of: fn(&Picture) -> &[u8]) -> Method {
    let mut scratch = Some(RowScratch::default());
    let mut buffers: Vec<(Vec<Block>, Vec<u8>)> = Vec::new();
    Method::new(name, move |picture, _, _| {
        let kept = scratch.take().unwrap_or_default();
        let mut reader = FormReader::open_with(of(picture), cpu, kept)?;
        let (wide, high) = reader.frame().mcus();
        buffers.resize_with(reader.frame().components.len(), Default::default);
        for (component, (blocks, extents)) in reader.frame().components.iter().zip(&mut buffers) {
            let count =
                wide as usize * usize::from(component.horizontal) * usize::from(component.vertical);
            blocks.resize(count, Block::ZERO);
            extents.resize(count, 0);
        }
        let mut into: Vec<RowComponent<'_>> =
            buffers.iter_mut().map(|(blocks, extents)| RowComponent { blocks, extents }).collect();
        for row in 0..high {
            reader.row(row, 0..wide, &mut into)?;
        }
        scratch = Some(reader.into_scratch());
        Ok(())
    })
}
