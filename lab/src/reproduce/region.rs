//! Which (t_c, t_g, t_s) yield a published gain: the formulas, solved for the device.
//!
//! x is t_g/t_c and y is t_s/t_c, without background workers, one device and one rank. Formulas:
//! T_mte/T0 = (y+x)/(y+1) and T_wrr/T0 = y/(y+1-x), for x < 1 and y ≥ x.

use serde::Serialize;

/// The two possible meanings of "faster by 23.5 %"; the abstract does not say which is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reading {
    /// More samples per second: T0/T - 1.
    Throughput,
    /// Less time: 1 - T/T0.
    Time,
}

impl Reading {
    /// Both interpretations.
    pub const ALL: [Self; 2] = [Self::Throughput, Self::Time];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Time => "time",
        }
    }

    /// The gain of an epoch that takes `ratio` = T/T0.
    pub fn gain(self, ratio: f64) -> f64 {
        match self {
            Self::Throughput => 1.0 / ratio - 1.0,
            Self::Time => 1.0 - ratio,
        }
    }

    /// T/T0 of a gain.
    pub fn ratio(self, gain: f64) -> f64 {
        match self {
            Self::Throughput => 1.0 / (1.0 + gain),
            Self::Time => 1.0 - gain,
        }
    }

    /// t_s/t_c of the slowest device that can reach the gain with any strategy of the paper, even
    /// if its batches cost nothing to consume: y at x = 0.
    pub fn slowest_device(self, gain: f64) -> f64 {
        border(Method::Wrr, self, gain, 0.0)
    }
}

/// A strategy with a closed form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Both ends move towards each other and finish at the same time.
    Mte,
    /// Weighted round robin.
    Wrr,
}

/// T/T0 at a point.
pub fn ratio(method: Method, x: f64, y: f64) -> f64 {
    match method {
        // A device faster than the step prepares every batch: T = N·t_g.
        Method::Wrr if y < x => x,
        Method::Wrr => y / (y + 1.0 - x),
        Method::Mte => (y + x) / (y + 1.0),
    }
}

/// y at which the gain is exactly this, for given x; faster devices gain more.
pub fn border(method: Method, reading: Reading, gain: f64, x: f64) -> f64 {
    let r = reading.ratio(gain);
    match method {
        // r = y/(y+1-x)
        Method::Wrr => (1.0 - x) * r / (1.0 - r),
        // r = (y+x)/(y+1)
        Method::Mte => (r - x) / (1.0 - r),
    }
}

/// n_s/N under `wrr`.
pub fn device_share(x: f64, y: f64) -> f64 {
    1.0 / (y + 1.0 - x)
}

/// The one point where `wrr` gives this gain and this share of batches at the device.
///
/// T = n_s·t_s gives y = (T/T0)/share; share = 1/(y+1-x) gives x.
pub fn point(reading: Reading, gain: f64, share: f64) -> (f64, f64) {
    let y = reading.ratio(gain) / share;
    (y + 1.0 - 1.0 / share, y)
}

/// E/E0 under `wrr`, in units of the constant power.
///
/// `host`, `device` and `accelerator` are the additional powers of a busy host core, device and
/// accelerator, as shares of P_base + Σ P_idle. The accelerator's work is the same in both epochs.
/// E = T + host·n_c·t_p + accelerator·N·t_t + device·n_s·t_s, E0 with n_s = 0, T0.
pub fn energy_ratio(x: f64, y: f64, watts: Watts) -> f64 {
    let share = device_share(x, y);
    let (preparation, step) = (1.0 - x, x);
    let alone = 1.0 + watts.host * preparation + watts.accelerator * step;
    let both = ratio(Method::Wrr, x, y)
        + watts.host * (1.0 - share) * preparation
        + watts.accelerator * step
        + watts.device * share * y;
    both / alone
}

/// Additional power of busy components, as shares of the constant power.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Watts {
    /// A busy core of the host.
    pub host: f64,
    /// A busy device.
    pub device: f64,
    /// A busy accelerator.
    pub accelerator: f64,
}

/// The additional power of the device at which E/E0 is exactly `energy`. A negative result means
/// that no device reaches it.
pub fn device_watts(x: f64, y: f64, energy: f64, host: f64, accelerator: f64) -> f64 {
    let without = Watts { host, device: 0.0, accelerator };
    let alone = 1.0 + host * (1.0 - x) + accelerator * x;
    (energy - energy_ratio(x, y, without)) * alone / (device_share(x, y) * y)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(left: f64, right: f64, within: f64) {
        assert!((left - right).abs() <= within, "{left} is not {right}");
    }

    #[test]
    fn the_headline_implies_the_points_of_the_notes() {
        let (x, y) = point(Reading::Time, 0.235, 0.376);
        near(x, 0.375, 0.001);
        near(y, 2.03, 0.006);
        near(1.0 - ratio(Method::Mte, x, y), 0.206, 0.001);
        let (x, y) = point(Reading::Throughput, 0.235, 0.376);
        near(x, 0.494, 0.001);
        near(y, 2.15, 0.006);
        near(1.0 - ratio(Method::Mte, x, y), 0.160, 0.001);
    }

    #[test]
    fn a_slow_device_cannot_give_the_headline() {
        near(Reading::Throughput.slowest_device(0.235), 4.26, 0.006);
        near(Reading::Time.slowest_device(0.235), 3.26, 0.006);
        near(Reading::Throughput.slowest_device(0.276), 3.62, 0.006);
        near(Reading::Time.slowest_device(0.276), 2.62, 0.006);
    }

    #[test]
    fn a_border_is_where_the_gain_is_what_it_was_solved_for() {
        for method in [Method::Mte, Method::Wrr] {
            for reading in Reading::ALL {
                for x in [0.0, 0.2, 0.5] {
                    let y = border(method, reading, 0.235, x);
                    near(reading.gain(ratio(method, x, y)), 0.235, 1e-12);
                }
            }
        }
    }

    #[test]
    fn the_time_of_wrr_is_what_the_device_takes_for_its_share() {
        for (x, y) in [(0.1, 3.0), (0.375, 2.0), (0.9, 1.0)] {
            near(ratio(Method::Wrr, x, y), y * device_share(x, y), 1e-12);
        }
        // All batches on the device.
        near(ratio(Method::Wrr, 0.5, 0.3), 0.5, 1e-12);
    }

    #[test]
    fn without_added_power_energy_is_time() {
        let idle = Watts { host: 0.0, device: 0.0, accelerator: 0.0 };
        let (x, y) = point(Reading::Throughput, 0.235, 0.376);
        near(energy_ratio(x, y, idle), 0.8097, 1e-3);
        // Of the notes: -19.7 % is a mean power of .992 of the host's alone.
        near(0.803 / ratio(Method::Wrr, x, y), 0.992, 1e-3);
        let (x, y) = point(Reading::Time, 0.235, 0.376);
        near(0.803 / ratio(Method::Wrr, x, y), 1.05, 1e-3);
    }

    #[test]
    fn the_devices_power_is_solved_for() {
        let (x, y) = point(Reading::Time, 0.235, 0.376);
        for host in [0.0, 0.3, 1.0] {
            let device = device_watts(x, y, 0.803, host, 0.2);
            let watts = Watts { host, device, accelerator: 0.2 };
            near(energy_ratio(x, y, watts), 0.803, 1e-12);
        }
    }
}
