//! Integrates readings to the energy of an interval. Time is passed in.

use super::{MeterError, Reading};

const NANOSECONDS: f64 = 1e9;
const MICRO: f64 = 1e-6;

/// Integrates the readings of one meter.
#[derive(Debug, Clone, Default)]
pub(super) struct Integrator {
    last: Option<(u64, Reading)>,
    microjoules: u64,
    sampled_joules: f64,
    readings: u64,
}

impl Integrator {
    /// Takes a reading at a time, which must not decrease.
    ///
    /// The power between two readings is their mean. A counter that decreased has wrapped once, so
    /// readings must be more frequent than wraps.
    pub(super) fn add(&mut self, now_ns: u64, reading: Reading) -> Result<(), MeterError> {
        if let Reading::Power { watts } = reading
            && !(watts.is_finite() && watts >= 0.0)
        {
            return Err(MeterError::Impossible { watts: watts.to_string() });
        }
        match (self.last, reading) {
            (
                Some((_, Reading::Energy { microjoules: before, .. })),
                Reading::Energy { microjoules: now, range },
            ) => {
                let grown = grown(before, now, range)?;
                self.microjoules = self.microjoules.saturating_add(grown);
            }
            (Some((then, Reading::Power { watts: before })), Reading::Power { watts: now }) => {
                let seconds = now_ns.saturating_sub(then) as f64 / NANOSECONDS;
                self.sampled_joules += (before + now) / 2.0 * seconds;
            }
            // The first reading; a meter never changes its kind.
            _ => {}
        }
        self.last = Some((now_ns, reading));
        self.readings += 1;
        Ok(())
    }

    /// Joules between the first reading and the last; an error without readings.
    pub(super) fn joules(&self) -> Result<f64, MeterError> {
        let joules = self.microjoules as f64 * MICRO + self.sampled_joules;
        if joules > 0.0 {
            return Ok(joules);
        }
        Err(MeterError::NeverAdvanced { readings: self.readings })
    }

    /// Number of readings.
    pub(super) fn readings(&self) -> u64 {
        self.readings
    }
}

fn grown(before: u64, now: u64, range: Option<u64>) -> Result<u64, MeterError> {
    if now >= before {
        return Ok(now - before);
    }
    let rest = range.and_then(|range| range.checked_sub(before));
    rest.and_then(|rest| rest.checked_add(now)).ok_or(MeterError::WentBack { before, now })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;

    fn energy(microjoules: u64, range: Option<u64>) -> Reading {
        Reading::Energy { microjoules, range }
    }

    #[test]
    fn a_counter_gives_the_difference_also_over_its_end() {
        let mut sum = Integrator::default();
        for (second, counter) in [900, 950, 20, 70].into_iter().enumerate() {
            sum.add(second as u64 * SECOND, energy(counter, Some(1_000))).unwrap();
        }
        assert!((sum.joules().unwrap() - 170e-6).abs() < 1e-12, "{:?}", sum.joules());
        assert_eq!(sum.readings(), 4);
    }

    #[test]
    fn a_counter_without_an_end_must_not_fall() {
        let mut sum = Integrator::default();
        sum.add(0, energy(5, None)).unwrap();
        let error = sum.add(SECOND, energy(4, None)).unwrap_err();
        assert_eq!(error.to_string(), "the counter fell from 5 to 4 microjoules");
        let mut beyond = Integrator::default();
        beyond.add(0, energy(2_000, Some(1_000))).unwrap();
        assert!(beyond.add(SECOND, energy(4, Some(1_000))).is_err(), "it was beyond its end");
    }

    #[test]
    fn a_meter_that_never_advances_measures_nothing() {
        let mut counter = Integrator::default();
        let mut sensor = Integrator::default();
        for at in 0..3 {
            counter.add(at * SECOND, energy(7, Some(1_000))).unwrap();
            sensor.add(at * SECOND, Reading::Power { watts: 0.0 }).unwrap();
        }
        for sum in [counter, sensor] {
            assert!(matches!(sum.joules(), Err(MeterError::NeverAdvanced { readings: 3 })));
        }
    }

    #[test]
    fn power_is_integrated_over_time() {
        let mut sum = Integrator::default();
        for (at, watts) in [(0, 10.0), (SECOND, 20.0), (3 * SECOND, 20.0)] {
            sum.add(at, Reading::Power { watts }).unwrap();
        }
        assert_eq!(sum.joules().unwrap(), 15.0 + 40.0);
        for watts in [-1.0, f64::NAN, f64::INFINITY] {
            assert!(sum.add(4 * SECOND, Reading::Power { watts }).is_err(), "{watts}");
        }
    }

    proptest! {
        /// However often it is read, and wherever it wraps, the sum is what went through.
        #[test]
        fn wrapping_loses_nothing(
            start in 0..1_000_u64, steps in proptest::collection::vec(0..1_000_u64, 1..50)
        ) {
            let range = 1_000;
            let mut sum = Integrator::default();
            let mut counter = start;
            sum.add(0, energy(counter, Some(range))).unwrap();
            for (place, step) in steps.iter().enumerate() {
                counter += step;
                // The counter shows `range` and 0 as the same point, as powercap does.
                if counter > range {
                    counter -= range;
                }
                sum.add(place as u64 + 1, energy(counter, Some(range))).unwrap();
            }
            let through: u64 = steps.iter().sum();
            prop_assert!((sum.joules().unwrap_or(0.0) - through as f64 * 1e-6).abs() < 1e-9);
        }
    }
}
