//! Features of a power line, for each period of voltage and current.

use crate::series::{Kernel, Pause, Series, SeriesChange, SeriesShape, execute};
use crate::{Cpu, Error};
use meetpoint_format::random::Draws;
use meetpoint_format::recipe::PowerFeatures;

/// Number of partial sums per period.
const LANES: usize = 8;
/// Samples processed between two calls of `pause`.
const PIECE: usize = 1 << 14;

/// The operation `power_features`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Power {
    operation: PowerFeatures,
    cpu: Cpu,
}

impl Power {
    pub(crate) fn new(operation: PowerFeatures, cpu: Cpu) -> Self {
        Self { operation, cpu }
    }
}

/// Means of the products of voltage and current over a period.
struct Means {
    voltage: f64,
    current: f64,
    both: f64,
}

/// A period, and the partial sums of its products: every eighth, computed in float64.
struct Period<'a> {
    voltage: &'a [f32],
    current: &'a [f32],
    of_voltage: [f64; LANES],
    of_current: [f64; LANES],
    of_both: [f64; LANES],
}

impl<'a> Period<'a> {
    fn new(voltage: &'a [f32], current: &'a [f32]) -> Self {
        let zero = [0.0; LANES];
        Self { voltage, current, of_voltage: zero, of_current: zero, of_both: zero }
    }

    /// The partial sums, added in order. If the compiler sees this beside the loop over products,
    /// it compiles both to scalar code.
    fn means(&self) -> Means {
        let count = self.voltage.len() as f64;
        let [voltage, current, both] = [self.of_voltage, self.of_current, self.of_both]
            .map(|lanes| lanes.iter().sum::<f64>() / count);
        Means { voltage, current, both }
    }
}

impl Kernel for Period<'_> {
    #[inline(always)]
    fn run(&mut self) {
        let (voltages, last_voltages) = self.voltage.as_chunks::<LANES>();
        let (currents, last_currents) = self.current.as_chunks::<LANES>();
        let mut add = |lane: usize, voltage: f32, current: f32| {
            let (u, i) = (f64::from(voltage), f64::from(current));
            self.of_voltage[lane] += u * u;
            self.of_current[lane] += i * i;
            self.of_both[lane] += u * i;
        };
        for (voltages, currents) in voltages.iter().zip(currents) {
            for lane in 0..LANES {
                add(lane, voltages[lane], currents[lane]);
            }
        }
        for (lane, (voltage, current)) in last_voltages.iter().zip(last_currents).enumerate() {
            add(lane, *voltage, *current);
        }
    }
}

impl SeriesChange for Power {
    fn shape(&self, input: SeriesShape) -> Result<SeriesShape, Error> {
        let needed = self.operation.period as usize;
        if input.length < needed {
            let length = input.length;
            return Err(Error::ShortSeries { operation: "power_features", length, needed });
        }
        let channels = PowerFeatures::COUNT as usize;
        Ok(SeriesShape { channels, length: input.length / needed, ..input })
    }

    fn apply(
        &mut self,
        _draws: &mut Draws,
        values: &mut Series,
        next: &mut Series,
        pause: Pause<'_>,
    ) -> Result<(), Error> {
        let (period, count) = (self.operation.period as usize, values.shape.length);
        next.shape = self.shape(values.shape)?;
        let periods = next.shape.length;
        next.values.clear();
        next.values.resize(next.shape.values(), 0.0);
        let (voltage, current) = values.values.split_at(count);
        let mut rms = Vec::with_capacity(periods);
        let (mut since, pairs) =
            (0, voltage.chunks_exact(period).zip(current.chunks_exact(period)));
        for (index, (voltage, current)) in pairs.enumerate() {
            let mut products = Period::new(voltage, current);
            execute(self.cpu, &mut products);
            let means = products.means();
            let (active, effective) = (means.both, means.current.sqrt());
            let apparent = means.voltage.sqrt() * effective;
            let reactive = (apparent * apparent - active * active).max(0.0).sqrt();
            next.values[index] = active as f32;
            next.values[periods + index] = reactive as f32;
            next.values[2 * periods + index] = effective as f32;
            rms.push(effective);
            since += period;
            if since >= PIECE {
                since = 0;
                pause()?;
            }
        }
        let mean = rms.iter().sum::<f64>() / periods as f64;
        let mut sum = 0.0;
        for (result, effective) in next.values[3 * periods..].iter_mut().zip(&rms) {
            sum += effective - mean;
            *result = sum as f32;
        }
        std::mem::swap(values, next);
        Ok(())
    }
}
