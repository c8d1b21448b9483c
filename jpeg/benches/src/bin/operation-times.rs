//! Measures recipes on one picture in one thread, for comparisons with other libraries.
//!
//! `operation-times [--cpu NAME] [--mean] PICTURE RECIPE.toml…` prints a line for each recipe: its
//! path, a tab, and the least CPU time of a sample in nanoseconds, over rounds in which every
//! recipe has a turn. For a recipe that mixes batches, it is the time of mixing alone, divided by
//! the samples of a batch. `--mean` prints the mean over all samples instead, the mixing included:
//! for recipes that choose other operations for each sample. `--cpu` selects an instruction set
//! instead of the best one.

use anyhow::Context;
use meetpoint_format::recipe::{FileContent, NamedFile, Recipe};
use meetpoint_jpeg_benches::thread_ns;
use meetpoint_kernels::{BatchId, BatchMixer, BatchTensors, Cpu, SampleId, SamplePreparer};
use std::hint::black_box;

/// Turns of each recipe, of which the fastest counts.
const ROUNDS: u32 = 61;
/// Tensors that are written in turns, as those of a batch: together they exceed the caches.
const TENSORS: usize = 32;
/// Where the memory of a batch begins: at a multiple of this.
const ALIGNMENT: usize = 4096;
/// Least time of a turn.
const TURN_NS: u64 = 2_000_000;

/// A recipe and the state of its measurement.
struct Measured {
    path: String,
    preparer: SamplePreparer,
    mixer: Option<BatchMixer>,
    bytes: usize,
    best_ns: u64,
    /// Samples of all turns of `--mean`, and their time.
    samples: u64,
    all_ns: u64,
}

impl Measured {
    fn new(path: String, picture: &[u8], cpu: Cpu) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(&path).with_context(|| path.clone())?;
        let recipe = Recipe::from_toml(&text).with_context(|| path.clone())?;
        let recipe = recipe.with_files(|_, file| {
            let content = Some(FileContent::new(std::fs::read(&file.path)?));
            anyhow::Ok(NamedFile { content, ..file.clone() })
        })?;
        let mut preparer = SamplePreparer::new(&recipe, cpu);
        let id = SampleId { seed: 7, epoch: 0, sample: 0 };
        let spec = preparer.prepare_tensor(picture.into(), id).with_context(|| path.clone())?.spec;
        let mut mixer = BatchMixer::new(&recipe, spec);
        if let Some(mixer) = &mut mixer {
            mixer.set_cpu(cpu);
        }
        let bytes = spec.bytes();
        Ok(Self { path, preparer, mixer, bytes, best_ns: u64::MAX, samples: 0, all_ns: 0 })
    }

    /// A turn: nanoseconds of a sample. `memory` holds [`TENSORS`] tensors.
    fn turn(&mut self, picture: &[u8], epoch: u32, memory: &mut [u8]) -> anyhow::Result<u64> {
        let bytes = self.bytes;
        let mut samples = 0;
        if let Some(mixer) = &mut self.mixer {
            let mut labels =
                vec![0; mixer.labels().map_or(0, |it| 4 * it.classes as usize * TENSORS)];
            let started = thread_ns();
            while thread_ns() - started < TURN_NS {
                let (images, labels) = (&mut memory[..TENSORS * bytes], &mut labels[..]);
                let tensors = BatchTensors { samples: TENSORS, images, labels };
                let id = BatchId { seed: 7, epoch, batch: samples };
                mixer.mix(id, tensors, &mut || ())?;
                samples += TENSORS as u64;
            }
            return Ok((thread_ns() - started) / samples);
        }
        let started = thread_ns();
        while thread_ns() - started < TURN_NS {
            let id = SampleId { seed: 7, epoch, sample: samples };
            let out = &mut memory[samples as usize % TENSORS * bytes..][..bytes];
            self.preparer.prepare(picture.into(), id, out, &mut || ())?;
            black_box(out);
            samples += 1;
        }
        Ok((thread_ns() - started) / samples)
    }

    /// A batch for `--mean`: its samples, then their mixing.
    fn batch(&mut self, picture: &[u8], epoch: u32, memory: &mut [u8]) -> anyhow::Result<()> {
        let (bytes, images) = (self.bytes, &mut memory[..TENSORS * self.bytes]);
        let started = thread_ns();
        for (sample, out) in images.chunks_exact_mut(bytes).enumerate() {
            let id = SampleId { seed: 7, epoch, sample: sample as u64 };
            self.preparer.prepare(picture.into(), id, out, &mut || ())?;
        }
        if let Some(mixer) = &mut self.mixer {
            let classes = mixer.labels().map_or(0, |labels| labels.classes as usize);
            let mut labels = vec![0; 4 * classes * TENSORS];
            let tensors = BatchTensors { samples: TENSORS, images, labels: &mut labels };
            mixer.mix(BatchId { seed: 7, epoch, batch: 0 }, tensors, &mut || ())?;
        }
        self.all_ns += thread_ns() - started;
        self.samples += TENSORS as u64;
        black_box(memory);
        Ok(())
    }
}

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1).peekable();
    let wanted = arguments.next_if(|it| it == "--cpu").and_then(|_| arguments.next());
    let is_mean = arguments.next_if(|it| it == "--mean").is_some();
    let usage = "usage: operation-times [--cpu NAME] [--mean] PICTURE RECIPE.toml…";
    let picture = arguments.next().context(usage)?;
    let picture = std::fs::read(&picture).with_context(|| picture)?;
    let cpu = match wanted {
        Some(name) => Cpu::available().find(|cpu| cpu.name() == name).context(name)?,
        None => Cpu::detect(),
    };
    let recipes = arguments.map(|path| Measured::new(path, &picture, cpu));
    let mut recipes = recipes.collect::<anyhow::Result<Vec<_>>>()?;
    let largest = recipes.iter().map(|it| it.bytes).max().context("no recipe is named")?;
    let mut memory = vec![0; TENSORS * largest + ALIGNMENT];
    let start = memory.as_ptr().align_offset(ALIGNMENT);
    for round in 0..ROUNDS {
        for recipe in &mut recipes {
            if is_mean {
                let memory = &mut memory[start..];
                recipe.batch(&picture, round, memory).with_context(|| recipe.path.clone())?;
                continue;
            }
            let ns = recipe.turn(&picture, round, &mut memory[start..]);
            recipe.best_ns = recipe.best_ns.min(ns.with_context(|| recipe.path.clone())?);
        }
    }
    for Measured { path, best_ns, samples, all_ns, .. } in recipes {
        let ns = all_ns.checked_div(samples).unwrap_or(best_ns);
        println!("{path}\t{ns}");
    }
    Ok(())
}
