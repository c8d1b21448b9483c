//! A job against this machine and what its device understands, before anything is started.

use meetpoint_device::{Emulation, Error, Fault, FaultSyntax};
use meetpoint_host::{DeviceJob, DeviceKind, EmulatedDevice, JobFile};

/// Refuses what cannot be run; returns what is worth knowing, as sentences.
pub(super) fn job(job: &JobFile) -> anyhow::Result<Vec<String>> {
    for device in &job.devices {
        if let DeviceKind::Emulated(knobs) = &device.kind {
            emulated(job, device, knobs)?;
        }
    }
    Ok(job.check()?)
}

/// What a device would refuse at its start, told with the place in the job.
fn emulated(job: &JobFile, device: &DeviceJob, knobs: &EmulatedDevice) -> anyhow::Result<()> {
    let table = &device.table;
    for (index, text) in knobs.faults.iter().enumerate() {
        text.parse::<Fault>().map_err(|error| {
            let problem = format!("{:?} is no fault: {}", error.text, error.problem);
            job.fault(&format!("{table}.faults[{index}]"), problem, FaultSyntax::KNOWN)
        })?;
    }
    let emulation = Emulation {
        cpu_ratio: knobs.cpu_ratio,
        read_bytes_per_second: knobs.read_bytes_per_second,
        write_bytes_per_second: knobs.write_bytes_per_second,
        latency: knobs.latency,
        ..Emulation::default()
    };
    match emulation.check() {
        Err(Error::Knob { knob, value, remedy }) => {
            let key = format!("{table}.{}", knob.replace(' ', "_"));
            let problem = format!("`{key}` is {value}");
            Err(job.fault(&key, problem, remedy).into())
        }
        checked => Ok(checked?),
    }
}

#[cfg(test)]
mod tests {
    use super::job as check;
    use meetpoint_host::JobFile;
    use std::path::Path;

    fn refusal(lines: &str) -> String {
        let text = format!(
            "dataset = \"s\"\nbatch_size = 1\n[device]\n{lines}\n[[recipe.operation]]\n\
             name = \"decode\"\n"
        );
        let job = JobFile::parse(&text, Path::new("job.toml")).unwrap();
        check(&job).unwrap_err().to_string()
    }

    #[test]
    fn what_the_device_would_refuse_is_refused_with_its_place() {
        for (lines, words) in [
            ("faults = [\"die@1\", \"melt@3\"]", ["job.toml:4:20: ", "melt@3", "die@N"]),
            ("cpu_ratio = 1e-9", ["job.toml:4:13: ", "`device.cpu_ratio`", "0.001 to 1"]),
            ("latency = \"2s\"", ["job.toml:4:11: ", "`device.latency` is 2s", "at most 1s"]),
            ("count = 2\ncpu_ratio = 1e-9", ["job.toml:5:13: ", "cpu_ratio", "0.001 to 1"]),
        ] {
            let said = refusal(lines);
            for word in words {
                assert!(said.contains(word), "{word} in {said}");
            }
        }
    }
}
