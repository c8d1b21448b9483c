//! The module `meetpoint._native`: the runtime as Python sees it.
//!
//! It translates types and errors and lets other Python threads run while it waits; it decides
//! nothing. What Python code can do as well (arguments, defaults, words) is in the package
//! `meetpoint`, whose `_native.pyi` documents this module. In reading order: `errors`, `recipe`,
//! `tensor` and `dlpack` (memory of batches), `settings`, `ranks` (where they meet), `engine` (the
//! thread that has the loader), `damage`, `exporter` (of metrics), `energy`, `loader`, `dataset`,
//! `table` (its columns), `pack`, `writer`, `program` (the command line).

mod damage;
mod dataset;
mod dlpack;
mod energy;
mod engine;
mod errors;
mod exporter;
mod loader;
mod pack;
mod program;
mod ranks;
mod recipe;
mod settings;
mod table;
mod tensor;
mod writer;

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use super::dataset::Dataset;
    #[pymodule_export]
    use super::energy::Energy;
    #[pymodule_export]
    use super::exporter::MetricsExporter;
    #[pymodule_export]
    use super::loader::Loader;
    #[pymodule_export]
    use super::pack::pack;
    #[pymodule_export]
    use super::program::{main, version};
    #[pymodule_export]
    use super::ranks::RankListener;
    #[pymodule_export]
    use super::recipe::describe_recipe;
    #[pymodule_export]
    use super::tensor::{Batch, Tensor};
    #[pymodule_export]
    use super::writer::Writer;
}
