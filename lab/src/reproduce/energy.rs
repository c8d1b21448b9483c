//! Modelled energy at the points that the headline implies, for comparison with the published
//! figure.
//!
//! No meter is read. Only ratios are computed, because the paper's times, and so its joules, are
//! not known.

use super::experiments::{BATCHES, Setting};
use crate::Error;
use crate::simulate::constants::{Constants, Simulated};
use meetpoint_report::grid::Grid;
use meetpoint_report::units::signed_percent;
use meetpoint_scheduler::{AnyStrategy, HostOnly, Wrr};
use meetpoint_sim::power::{Activity, ModelledEnergy, PowerModel, presets};
use serde::Serialize;

/// Cores of the host; an assumption: as many as the paper's workers.
pub const HOST_CORES: u32 = 16;

/// Modelled energy of an epoch with one power preset.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// `modelled`, always.
    pub kind: &'static str,
    /// The setting's recipe.
    pub recipe: &'static str,
    /// How its headline is read.
    pub reading: super::region::Reading,
    /// `modelled(PROFILE@HASH)`.
    pub source: String,
    /// E/E0 of the whole node under `wrr`.
    pub modelled_node_ratio: f64,
    /// E/E0 of preparation: host cores, memory and device.
    pub modelled_preparation_ratio: f64,
    /// Keys of watts without a verified source.
    pub unverified_watts: Vec<String>,
}

/// Every preset at every ImageNet point; CIFAR-10's energy is not published.
pub fn rows(settings: &[Setting]) -> Result<Vec<Row>, Error> {
    let mut rows = Vec::new();
    for setting in settings.iter().filter(|setting| setting.recipe == "ImageNet-like") {
        let constants = Constants::serial(1.0, setting.x, setting.y, BATCHES);
        let alone = constants.simulate(AnyStrategy::HostOnly(HostOnly))?;
        let both = constants.simulate(AnyStrategy::Wrr(Wrr))?;
        for preset in presets() {
            let model = PowerModel::preset(preset.name).map_err(meetpoint_sim::Error::from)?;
            let (alone, both) = (of(&model, &alone), of(&model, &both));
            rows.push(Row {
                kind: "modelled",
                recipe: setting.recipe,
                reading: setting.reading,
                modelled_node_ratio: both.total_j / alone.total_j,
                modelled_preparation_ratio: both.preparation_j / alone.preparation_j,
                source: both.source,
                unverified_watts: both.unverified,
            });
        }
    }
    Ok(rows)
}

/// The drive is present in both. Memory traffic is left out, because its bytes are not known.
fn of(model: &PowerModel, run: &Simulated) -> ModelledEnergy {
    model.energy(&Activity {
        duration_s: run.total_ns / 1e9,
        host_cores: HOST_CORES,
        host_busy_core_s: run.host_busy_ns / 1e9,
        dram_bytes: 0,
        devices: 1,
        device_busy_s: run.device_busy_ns / 1e9,
        accelerators: 1,
        accelerator_busy_s: run.accelerator_busy_ns / 1e9,
    })
}

/// The rows as a table, which contains no measured figure.
pub fn grid(rows: &[Row]) -> Grid {
    let head = ["kind", "read as", "watts from", "whole node", "preparation only", "unverified"];
    let mut grid = Grid::new(&head, 3..5);
    for row in rows {
        grid.rows.push(vec![
            row.kind.to_owned(),
            row.reading.name().to_owned(),
            row.source.clone(),
            signed_percent(row.modelled_node_ratio - 1.0),
            signed_percent(row.modelled_preparation_ratio - 1.0),
            count(&row.unverified_watts),
        ]);
    }
    grid
}

fn count(unverified: &[String]) -> String {
    match unverified {
        [] => "none".to_owned(),
        [only] => only.clone(),
        many => format!("{} watts, as {}", many.len(), many[0]),
    }
}

#[cfg(test)]
mod tests {
    use super::rows;
    use crate::reproduce::experiments::settings;

    #[test]
    fn every_preset_saves_less_than_everything_and_says_that_it_is_modelled() {
        let rows = rows(&settings()).unwrap();
        assert_eq!(rows.len() % 2, 0);
        for row in rows {
            assert!(row.source.starts_with("modelled("), "{row:?}");
            assert!((0.3..1.3).contains(&row.modelled_node_ratio), "{row:?}");
        }
    }
}
