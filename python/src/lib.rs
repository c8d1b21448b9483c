//! The module `meetpoint._native`: the runtime's interface to Python.
//!
//! It translates types and errors and lets other Python threads run while it waits; it contains no
//! logic. Anything that Python code can do as well (arguments, defaults, texts) is in the package
//! `meetpoint`, whose `_native.pyi` documents this module. Every function that Python calls is
//! `guarded`, so that a panic becomes an exception. In reading order: `exceptions`, `panics`,
//! `errors`, `recipe`, `preview`, `dlpack`, `tensor` and `batch` (memory of batches), `settings`,
//! `ranks` (how they connect), `engine` (the thread that owns the loader), `damage`, `devices`
//! (emulated ones), `exporter` (of metrics), `energy`, `loader`, `dataset`, `table` (its columns),
//! `options` and `work` (of commands), `commands`, `operations` (on datasets), `writer`, `program`
//! (the command line).

mod batch;
mod commands;
mod damage;
mod dataset;
mod devices;
mod dlpack;
mod energy;
mod engine;
mod errors;
mod exceptions;
mod exporter;
mod gpu;
mod loader;
mod loader_state;
mod operations;
mod options;
mod panics;
mod plan;
mod preview;
mod program;
mod ranks;
mod recipe;
mod sampler;
mod settings;
mod shards;
mod stores;
mod table;
mod tensor;
mod work;
mod writer;

use meetpoint_python_macros::guarded;
use pyo3::prelude::*;

#[pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use super::batch::Batch;
    #[pymodule_export]
    use super::commands::{convert, index, index_keys, pack, parse_bytes, prepare, unpack, verify};
    #[pymodule_export]
    use super::dataset::Dataset;
    #[pymodule_export]
    use super::devices::{device_addresses, emulation_limits, serve_arguments};
    #[pymodule_export]
    use super::energy::Energy;
    #[pymodule_export]
    use super::exporter::MetricsExporter;
    #[pymodule_export]
    use super::gpu::check_gpu;
    #[pymodule_export]
    use super::loader::Loader;
    #[pymodule_export]
    use super::operations::{
        RowReader, diff, merge, repair, sample, select, shuffle, split, stats,
    };
    #[pymodule_export]
    use super::plan::read_plan;
    #[pymodule_export]
    use super::preview::contact_sheet;
    #[pymodule_export]
    use super::program::{declaration, main, version};
    #[pymodule_export]
    use super::ranks::{RankListener, rank_token};
    #[pymodule_export]
    use super::recipe::{
        describe_recipe, load_recipe, recipe_schema, shipped_recipe, shipped_recipes,
    };
    #[pymodule_export]
    use super::shards::{commit_shards, open_shards, plan_shards, run_shard};
    #[pymodule_export]
    use super::tensor::Tensor;
    #[cfg(debug_assertions)]
    #[pymodule_export]
    use super::work::panic_for_tests;
    #[pymodule_export]
    use super::writer::Writer;
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(_module: &Bound<'_, PyModule>) -> PyResult<()> {
        super::panics::remember();
        Ok(())
    }
}
