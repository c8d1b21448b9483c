//! Enumeration, decisions, files and measurements.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod decisions;
mod enumeration;
mod files;
mod gpu;
mod gpu_plans;
mod measuring;
mod plans;
mod preparing;

use meetpoint_format::recipe::Recipe;
use meetpoint_planner::results::CacheDrop;
use meetpoint_planner::{Cache, Codec, Form, Measured};

/// A recipe of operations written `name key = value;key = value`.
fn recipe(operations: &[&str]) -> Recipe {
    let tables = operations.iter().map(|operation| {
        let (name, keys) = operation.split_once(' ').unwrap_or((operation, ""));
        format!("[[operation]]\nname = \"{name}\"\n{}\n", keys.replace(';', "\n"))
    });
    Recipe::from_toml(&tables.collect::<String>()).unwrap()
}

/// A measured strategy without spread on a dataset of 1000 samples.
fn measured(form: Form, offline: f64, cold: f64, warm: f64, stored: f64) -> Measured {
    let (operations, operation) = match form {
        Form::Prepared | Form::Jpeg => (2, "resize".to_owned()),
        Form::Files | Form::Packed | Form::CoefficientsFast | Form::CoefficientsCompact => {
            (0, String::new())
        }
    };
    Measured {
        form,
        operations,
        operation,
        codec: Codec::None,
        threads: 4,
        cache: Cache::Page,
        dataset_samples: 1000,
        dataset_bytes: 100_000,
        samples: 100,
        runs: 3,
        offline_seconds: offline,
        offline_error: 0.0,
        process_seconds: offline * 0.75,
        save_seconds: offline * 0.25,
        stored_bytes: stored,
        stored_error: 0.0,
        cached_bytes: 2.0 * stored,
        cold_per_second: cold,
        cold_deviation: 0.0,
        per_second: warm,
        per_second_deviation: 0.0,
        sampling_error: 0.0,
        cpu_seconds: 0.01,
        context_switches: 1.5,
        peak_memory_bytes: 1 << 20,
        disk_bytes_per_second: None,
        cache_drop: CacheDrop::Dropped,
        joules: None,
        gpu: None,
        gpu_seconds: None,
        gpu_joules: None,
    }
}
