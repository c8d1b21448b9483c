//! Converts measured energy to the report's data model. Nothing is modelled here.

use super::{MeasuredEnergy, MeasuredPart};
use meetpoint_host::energy::{Measured, Measurement, Scope};

/// The report's figures of an interval.
pub fn measured(measurement: &Measurement) -> MeasuredEnergy {
    MeasuredEnergy {
        measured_seconds: measurement.seconds,
        measured_joules: measurement.sum_joules(),
        meters: measurement.meters.iter().map(part).collect(),
        nothing_because: measurement.nothing_because.clone(),
    }
}

fn part(measured: &Measured) -> MeasuredPart {
    MeasuredPart {
        meter: measured.meter.clone(),
        scope: scope(measured.scope).to_owned(),
        covers: measured.covers.clone(),
        adds_up: measured.scope.adds_up(),
        measured_joules: measured.joules,
        failure: measured.failure.clone(),
        readings: measured.readings,
        utilisation: measured.utilisation,
    }
}

pub(crate) fn scope(scope: Scope) -> &'static str {
    match scope {
        Scope::Package => "package",
        Scope::Cores => "cores",
        Scope::Uncore => "uncore",
        Scope::Dram => "dram",
        Scope::Gpu => "gpu",
        Scope::Platform => "platform",
        Scope::Machine => "machine",
        Scope::Rail => "rail",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use meetpoint_host::energy::{Coverage, MeterError};

    #[test]
    fn a_report_holds_every_meter_and_the_sum_of_those_that_do_not_overlap() {
        let of = |meter: &str, scope, joules: Option<f64>| Measured {
            meter: meter.to_owned(),
            scope,
            covers: Coverage::Package,
            joules,
            failure: joules.is_none().then_some(MeterError::NoAnswer),
            readings: 2,
            utilisation: (scope == Scope::Gpu).then_some(0.25),
        };
        let meters = vec![
            of("rapl:package-0", Scope::Package, Some(20.0)),
            of("rapl:package-0/core", Scope::Cores, Some(15.0)),
            of("rapl:package-0/dram", Scope::Dram, Some(3.0)),
        ];
        let mut measurement = Measurement { seconds: 2.0, meters, nothing_because: None };
        let report = measured(&measurement);
        assert_eq!(report.measured_joules, Some(23.0));
        let scopes: Vec<&str> = report.meters.iter().map(|part| part.scope.as_str()).collect();
        assert_eq!(scopes, ["package", "cores", "dram"]);
        assert_eq!(report.meters.iter().filter(|part| part.adds_up).count(), 2);
        measurement.meters.push(of("nvml:0", Scope::Gpu, None));
        let report = measured(&measurement);
        assert_eq!(report.measured_joules, None, "a part is not shown as the whole");
        assert_eq!(report.meters[3].failure, Some(MeterError::NoAnswer));
        assert_eq!(
            (report.meters[0].utilisation, report.meters[3].utilisation),
            (None, Some(0.25))
        );
    }
}
