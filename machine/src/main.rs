//! The real runtime on a simulated machine: host, devices, their link and their storage. A seed
//! determines clock, threads, network and faults.
//!
//! ```text
//! meetpoint-machine --seed 7              # one simulation, with its trace
//! meetpoint-machine --seeds 500           # seeds 0 to 499
//! meetpoint-machine --seeds 500 --first 9000
//! ```
//!
//! The code of `host`, `device`, `link`, `prepare` and `storage`, and the libraries below them, run
//! unchanged: this program defines the functions of the C library through which they access clocks,
//! threads, sockets and files. Every simulation runs in a separate process, a fork of this one with
//! the dataset in memory.
//!
//! In reading order: `machine` (clock, threads, processes), `calls` (the replaced functions),
//! `world` (a training and its faults), `campaign` (many seeds).

mod calls;
mod campaign;
mod machine;
mod real;
mod world;

use campaign::Campaign;
use clap::Parser;

/// Runs trainings on a simulated machine, with faults determined by seeds.
#[derive(Debug, Parser)]
struct Options {
    /// Runs this seed alone and prints its trace.
    #[arg(long, conflicts_with_all = ["seeds", "first"])]
    seed: Option<u64>,
    /// With `--seed`, prints only the result, without the trace.
    #[arg(long, requires = "seed")]
    quiet: bool,
    /// Number of seeds.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// Simulations at the same time; by default one for each processor.
    #[arg(long)]
    jobs: Option<usize>,
    /// Continues after a failure.
    #[arg(long)]
    keep_going: bool,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let campaign = Campaign {
        first: options.seed.unwrap_or(options.first),
        seeds: options.seed.map_or(options.seeds, |_| 1),
        jobs: options.jobs.unwrap_or(processors).max(1),
        is_printed: options.seed.is_some() && !options.quiet,
        keeps_going: options.keep_going,
    };
    if campaign.run()? {
        return Ok(());
    }
    std::process::exit(1);
}
