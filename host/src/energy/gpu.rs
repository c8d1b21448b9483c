//! Energy of graphics boards, through a library that reports it.

use std::sync::Arc;

use super::{Coverage, GpuError, Meter, MeterError, MeterInfo, ProbedMeter, Reading, Unusable};

/// Smallest step of the energy counter and of the power: a millijoule, a milliwatt.
const MILLI: f64 = 1e-3;

/// How often boards update their figures: 20 to 100 ms, by generation (arXiv 2312.02741).
const RENEWED_S: f64 = 0.1;

/// A library that reports the energy of graphics boards.
pub trait Gpus: Send + Sync {
    /// Name of the library.
    fn library(&self) -> &str;
    /// Number of boards, or why it is not known.
    fn count(&self) -> Result<u32, Unusable>;
    /// The board's name.
    fn name(&self, index: u32) -> Result<String, GpuError>;
    /// Energy since the driver was loaded, in millijoules.
    fn millijoules(&self, index: u32) -> Result<u64, GpuError>;
    /// Power now, in milliwatts.
    fn milliwatts(&self, index: u32) -> Result<u32, GpuError>;
    /// Share of the last sample period of the board, up to a second, in which a kernel ran: 0 to 1.
    fn utilisation(&self, index: u32) -> Result<f64, GpuError>;
}

struct Counter {
    gpus: Arc<dyn Gpus>,
    index: u32,
}

struct Power {
    gpus: Arc<dyn Gpus>,
    index: u32,
}

impl Meter for Counter {
    fn read(&mut self) -> Result<Reading, MeterError> {
        let millijoules =
            self.gpus.millijoules(self.index).map_err(|error| failed(self.index, error))?;
        let microjoules = millijoules.saturating_mul(1_000);
        Ok(Reading::Energy { microjoules, range: None })
    }

    fn utilisation(&mut self) -> Option<f64> {
        self.gpus.utilisation(self.index).ok()
    }
}

impl Meter for Power {
    fn read(&mut self) -> Result<Reading, MeterError> {
        let milliwatts =
            self.gpus.milliwatts(self.index).map_err(|error| failed(self.index, error))?;
        Ok(Reading::Power { watts: f64::from(milliwatts) * MILLI })
    }

    fn utilisation(&mut self) -> Option<f64> {
        self.gpus.utilisation(self.index).ok()
    }
}

fn failed(index: u32, error: GpuError) -> MeterError {
    MeterError::Gpu { index, error }
}

/// Every board, or the reason if there is none.
pub(super) fn list(gpus: Result<Arc<dyn Gpus>, Unusable>) -> Vec<ProbedMeter> {
    let counted = gpus.and_then(|gpus| Ok((gpus.count()?, gpus)));
    let absent = |unusable: Unusable| {
        let about = about("nvml".to_owned(), "a graphics board", "NVML".to_owned(), true);
        vec![ProbedMeter { about, meter: Err(unusable), same_as: None }]
    };
    match counted {
        Ok((0, gpus)) => absent(MeterError::NoBoard { library: gpus.library().to_owned() }.into()),
        Ok((count, gpus)) => (0..count).map(|index| listed(&gpus, index)).collect(),
        Err(unusable) => absent(unusable),
    }
}

/// Uses the counter if there is one, otherwise samples the power.
fn listed(gpus: &Arc<dyn Gpus>, index: u32) -> ProbedMeter {
    let board = gpus.name(index).unwrap_or_else(|_| "a graphics board".to_owned());
    let library = gpus.library();
    let counts = gpus.millijoules(index) != Err(GpuError::NotSupported);
    let what = if counts { "total energy" } else { "power, sampled" };
    let source = format!("{library}, {what} of board {index}");
    let about = about(format!("{}:{index}", library.to_lowercase()), &board, source, counts);
    let gpus = gpus.clone();
    let meter: Box<dyn Meter> =
        if counts { Box::new(Counter { gpus, index }) } else { Box::new(Power { gpus, index }) };
    ProbedMeter::probed(about, meter, "ask the administrator for access to /dev/nvidia*")
}

fn about(name: String, board: &str, source: String, counts: bool) -> MeterInfo {
    let covers = Coverage::NvmlBoard { board: board.to_owned() };
    MeterInfo {
        name,
        scope: covers.scope(),
        covers,
        resolution_joules: Some(if counts { MILLI } else { MILLI * RENEWED_S }),
        resolution_seconds: Some(RENEWED_S),
        source,
    }
}
