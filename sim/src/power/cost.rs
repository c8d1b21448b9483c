//! The cost of an epoch in money.

use serde::Serialize;

use super::energy::ModelledEnergy;
use super::{BYTES_PER_TB, DAYS_PER_YEAR, JOULES_PER_KWH, PowerModel, SECONDS_PER_DAY};
use super::{SECONDS_PER_HOUR, wear::Wear};

/// Money for an epoch by the model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cost {
    /// Currency from the power file, such as `USD`.
    pub currency: String,
    /// Price of the node for this time.
    pub node: f64,
    /// Electricity of the whole node.
    pub energy: f64,
    /// Price of the devices above that of plain drives, spread over their life.
    pub device_premium: f64,
    /// Price of the drive, multiplied by the share of its rated life that was used up.
    pub flash_wear: f64,
    /// The sum of the four.
    pub total: f64,
    /// Keys of prices that are only examples, such as `prices.drive`.
    pub examples: Vec<String>,
    /// Keys of values without a verified source.
    pub unverified: Vec<String>,
}

impl PowerModel {
    /// The cost of an epoch of a given number of seconds on `nodes` nodes with `devices` devices;
    /// `None` if the file has no prices.
    ///
    /// The price of a rented node includes its electricity, so its file has `per_kwh = 0`.
    pub fn cost(
        &self,
        epoch_s: f64,
        nodes: u32,
        devices: u32,
        energy: &ModelledEnergy,
        wear: Option<&Wear>,
    ) -> Option<Cost> {
        let prices = self.file.prices.as_ref()?;
        let life_s = prices.value("device_life_years") * DAYS_PER_YEAR * SECONDS_PER_DAY;
        let node = f64::from(nodes) * prices.value("node_per_hour") * epoch_s / SECONDS_PER_HOUR;
        let electricity = prices.value("per_kwh") * energy.total_j / JOULES_PER_KWH;
        let device_premium = f64::from(devices) * prices.value("device_premium") * epoch_s / life_s;
        let flash_wear = wear.map_or(0.0, |wear| self.flash_wear(wear.bytes_per_epoch));
        let numbers = self.numbers();
        let examples = numbers
            .iter()
            .filter(|number| number.is_example && number.key.starts_with("prices"))
            .map(|number| number.key.clone());
        Some(Cost {
            currency: prices.currency.clone().unwrap_or_default(),
            node,
            energy: electricity,
            device_premium,
            flash_wear,
            total: node + electricity + device_premium + flash_wear,
            examples: examples.collect(),
            unverified: self.unverified(&["prices"]),
        })
    }

    /// The price of the drive, multiplied by the share of its rated life that `bytes` use up; 0 if
    /// the file has no prices or no flash section.
    pub fn flash_wear(&self, bytes: u64) -> f64 {
        let (Some(prices), Some(flash)) = (&self.file.prices, &self.file.flash) else { return 0.0 };
        prices.value("drive") * bytes as f64 / (flash.value("rated_tbw") * BYTES_PER_TB)
    }
}
