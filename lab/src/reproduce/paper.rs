//! Published figures of DDLP (arXiv 2407.00005), and a list of those that we do not know.
//!
//! Every row is from the abstract or a public summary. The paper's tables are not available to us,
//! so missing rows are listed in [`UNKNOWN`] and never estimated.

use serde::Serialize;

/// Source of the published figures.
pub const SOURCE: &str = "DDLP, arXiv 2407.00005, abstract";

/// ImageNet: maximum gain in learning speed.
pub const IMAGENET_GAIN: f64 = 0.235;
/// CIFAR-10: maximum gain in learning speed.
pub const CIFAR_GAIN: f64 = 0.276;
/// Reduction of energy.
pub const ENERGY_LESS: f64 = 0.197;
/// Reduction of CPU and DRAM usage.
pub const USAGE_LESS: f64 = 0.376;

/// A published figure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Figure {
    /// The quantity that the authors measured.
    pub quantity: &'static str,
    /// The value as printed.
    pub value: &'static str,
    /// Its source.
    pub source: &'static str,
}

/// Every published figure that is available to us.
pub const FIGURES: [Figure; 5] = [
    Figure { quantity: "ImageNet, learning speed", value: "up to +23.5 %", source: SOURCE },
    Figure { quantity: "CIFAR-10, learning speed", value: "up to +27.6 %", source: SOURCE },
    Figure { quantity: "ImageNet, energy", value: "-19.7 %", source: SOURCE },
    Figure { quantity: "ImageNet, CPU and DRAM usage", value: "-37.6 %", source: SOURCE },
    Figure {
        quantity: "together with NVIDIA DALI",
        value: "complementary gains (no figure)",
        source: "a machine-generated summary of version 2; not seen in the paper",
    },
];

/// Rows and figures that the paper has or may have, but that we do not know.
pub const UNKNOWN: [&str; 10] = [
    "which models and which GPUs and accelerators, and the figure of each",
    "which row the headline is: strategy (MTE or WRR), number of workers (w = 0 or 16), batch size",
    "whether +23.5 % is throughput or time",
    "t_c, t_g, t_s and the step time of any row, in seconds",
    "whether -19.7 % and -37.6 % are of the same row as +23.5 %",
    "energy and usage on CIFAR-10",
    "the meter, and whether energy is of the whole node or of the preparation alone",
    "how the usage of CPU and of DRAM was measured, and each by itself",
    "the gain over DALI, and which of its back ends",
    "figures with several accelerators, and the accuracy that was reached",
];

/// Results that would refute this analysis, if they were published or measured.
pub fn falsifiers() -> Vec<String> {
    use super::region::Reading;
    let bound = |reading: Reading, gain: f64| format!("{:.2}", reading.slowest_device(gain));
    vec![
        format!(
            "A device with t_s above {} t_c (or, if the figures are times, above {} t_c) at the \
             ImageNet headline, or above {} t_c ({} t_c) at CIFAR-10's: no strategy of the paper \
             can gain so much from it, whatever t_g.",
            bound(Reading::Throughput, IMAGENET_GAIN),
            bound(Reading::Time, IMAGENET_GAIN),
            bound(Reading::Throughput, CIFAR_GAIN),
            bound(Reading::Time, CIFAR_GAIN)
        ),
        "A row whose gain is above (t_c - t_g)/t_s of its own times (w = 0): it would need a \
         third source of work."
            .to_owned(),
        "A row whose saved CPU usage is above its device's share n_s/N = T/t_s of the batches: \
         then usage is saved by something else than by not preparing on the host."
            .to_owned(),
        "A row of MTE (equal finish) that is faster than WRR at the same constant times: the drain \
         of the device's part at the end costs MTE t_g(t_c - t_g)/(t_s(t_s + t_c)) of WRR's time."
            .to_owned(),
        "A gain with w = 16 in a row whose gain with w = 0 implies t_g/t_c above 1/17 (workers \
         that scale): 16 workers then keep up with the accelerator, and there is nothing to gain."
            .to_owned(),
        "An energy below the time's share by more than the saved work of the CPU is worth, by the \
         machine's own idle and busy watts."
            .to_owned(),
        "For us: a simulated time more than 5 % off a measured one that is not INVALID \
         (meetpoint validate)."
            .to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::{FIGURES, UNKNOWN, falsifiers};

    #[test]
    fn every_published_row_has_a_source_and_the_bounds_are_those_of_the_notes() {
        assert!(FIGURES.iter().all(|figure| !figure.source.is_empty()));
        assert!(UNKNOWN.len() >= 8);
        let first = &falsifiers()[0];
        for bound in ["4.26", "3.26", "3.62", "2.62"] {
            assert!(first.contains(bound), "{bound} in {first}");
        }
    }
}
