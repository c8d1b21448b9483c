//! NVIDIA's management library, loaded at run time.

use nvml_wrapper::error::NvmlError;

use super::{GpuError, Gpus, MeterError, Unusable};

/// Name of the library.
const NAME: &str = "NVML";

/// NVML, if this machine has it.
pub struct Nvml(nvml_wrapper::Nvml);

impl std::fmt::Debug for Nvml {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Nvml")
    }
}

impl Nvml {
    /// Loads libnvidia-ml.so.1 and starts it.
    pub fn load() -> Result<Self, Unusable> {
        nvml_wrapper::Nvml::init().map(Self).map_err(|error| unusable(&error))
    }

    fn of<T>(
        &self,
        index: u32,
        ask: impl Fn(&nvml_wrapper::Device<'_>) -> Result<T, NvmlError>,
    ) -> Result<T, GpuError> {
        let answer = self.0.device_by_index(index).and_then(|device| ask(&device));
        answer.map_err(|error| match error {
            NvmlError::NotSupported => GpuError::NotSupported,
            NvmlError::NoPermission => GpuError::NoPermission,
            other => GpuError::Failed { detail: other.to_string() },
        })
    }
}

impl Gpus for Nvml {
    fn library(&self) -> &str {
        NAME
    }

    fn count(&self) -> Result<u32, Unusable> {
        self.0.device_count().map_err(|error| unusable(&error))
    }

    fn name(&self, index: u32) -> Result<String, GpuError> {
        self.of(index, |device| device.name())
    }

    fn millijoules(&self, index: u32) -> Result<u64, GpuError> {
        self.of(index, |device| device.total_energy_consumption())
    }

    fn milliwatts(&self, index: u32) -> Result<u32, GpuError> {
        self.of(index, |device| device.power_usage())
    }

    fn utilisation(&self, index: u32) -> Result<f64, GpuError> {
        self.of(index, |device| device.utilization_rates())
            .map(|rates| f64::from(rates.gpu) / 100.0)
    }
}

fn unusable(error: &NvmlError) -> Unusable {
    let reason = match error {
        NvmlError::LibloadingError(_) => {
            MeterError::NoLibrary { library: "libnvidia-ml.so.1".to_owned() }
        }
        NvmlError::DriverNotLoaded => MeterError::DriverNotLoaded,
        other => MeterError::Library { library: NAME.to_owned(), detail: other.to_string() },
    };
    reason.into()
}
