//! Measures recipes on one picture in one thread, for comparisons with other libraries.
//!
//! `operation-times [--cpu NAME] PICTURE RECIPE.toml…` prints a line for each recipe: its path, a
//! tab, and the least CPU time of a sample in nanoseconds, over rounds in which every recipe has a
//! turn. `--cpu` chooses another instruction set than the best one.

use anyhow::{Context, ensure};
use meetpoint_format::recipe::Recipe;
use meetpoint_jpeg_benches::thread_ns;
use meetpoint_kernels::{Cpu, SampleId, SamplePreparer};
use std::hint::black_box;

/// Turns of each recipe, of which the fastest counts.
const ROUNDS: u32 = 15;
/// Tensors that are written in turns, as those of a batch: together they exceed the caches.
const TENSORS: usize = 32;
/// Where the memory of a batch begins: at a multiple of this.
const ALIGNMENT: usize = 4096;
/// Least time of a turn.
const TURN_NS: u64 = 4_000_000;

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1).peekable();
    let wanted = arguments.next_if(|it| it == "--cpu").and_then(|_| arguments.next());
    let picture =
        arguments.next().context("usage: operation-times [--cpu NAME] PICTURE RECIPE.toml…")?;
    let picture = std::fs::read(&picture).with_context(|| picture)?;
    let cpu = match wanted {
        Some(name) => Cpu::available().find(|cpu| cpu.name() == name).context(name)?,
        None => Cpu::detect(),
    };
    let (mut recipes, mut largest) = (Vec::new(), 0);
    for path in arguments {
        let text = std::fs::read_to_string(&path).with_context(|| path.clone())?;
        let recipe = Recipe::from_toml(&text).with_context(|| path.clone())?;
        let mut preparer = SamplePreparer::new(&recipe, cpu);
        let id = SampleId { seed: 7, epoch: 0, sample: 0 };
        let tensor = preparer.prepare_tensor(picture.as_slice().into(), id);
        let bytes = tensor.with_context(|| path.clone())?.spec.bytes();
        largest = largest.max(bytes);
        recipes.push((path, preparer, bytes, u64::MAX));
    }
    ensure!(!recipes.is_empty(), "no recipe is named");
    let mut memory = vec![0; TENSORS * largest + ALIGNMENT];
    let start = memory.as_ptr().align_offset(ALIGNMENT);
    for round in 0..ROUNDS {
        for (path, preparer, bytes, best) in &mut recipes {
            let (started, mut samples) = (thread_ns(), 0);
            while thread_ns() - started < TURN_NS {
                let id = SampleId { seed: 7, epoch: round, sample: samples };
                let slot = start + samples as usize % TENSORS * *bytes;
                let out = &mut memory[slot..slot + *bytes];
                let prepared = preparer.prepare(picture.as_slice().into(), id, out, &mut || ());
                prepared.with_context(|| path.clone())?;
                black_box(out);
                samples += 1;
            }
            *best = (*best).min((thread_ns() - started) / samples);
        }
    }
    for (path, _, _, best) in recipes {
        println!("{path}\t{best}");
    }
    Ok(())
}
