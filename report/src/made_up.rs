//! A report of an invented run, for the tests of tables, pages and plots.

use super::*;
use meetpoint_host::energy::{Coverage, NoMeters};
use meetpoint_host::stats::{
    CoreUse, DeviceLabel, EventKind, Exit, Loss, LossCause, Phase, ProcessEnd, Remaining, TuningUse,
};
use meetpoint_host::verify::Origin;
use meetpoint_host::{MemoryKind, Tune};
use meetpoint_scheduler::{Budget, Concurrency, StrategyOptions};
use meetpoint_storage::{EngineNote, RingRefusal};

const HOST: f64 = 0.060;
const STEP: f64 = 0.020;
const DEVICE: f64 = 0.120;

/// Three strategies over `count` batches, with round times.
pub fn report(count: u32) -> Report {
    let share = (f64::from(count) * 0.4) as u32;
    let alone = epoch(count, |_| false);
    let both = epoch(count, |place| place >= count - share);
    let mixed = epoch(count, |place| place % 5 == 2 || place % 5 == 4);
    Report {
        version: VERSION,
        tool: "meetpoint 0.1.0".into(),
        created_unix_seconds: 1_700_000_000,
        machine: Machine {
            processor: "Example <CPU> & Sons".into(),
            cores: 2,
            memory_bytes: 8 << 30,
            kernel: "Linux 6.1.0".into(),
            instruction_set: "avx2".into(),
            energy_meters: EnergyMeters {
                read: Vec::new(),
                none_because: Some(NoMeters { unusable: Vec::new() }),
            },
        },
        job: Job {
            dataset: "/data/photos.set".into(),
            samples: u64::from(count) * 32,
            recipe_toml: "[[operation]]\nname = \"decode\"\n".into(),
            recipe_sha256: "ab".repeat(32),
            columns: vec![Column {
                name: "image".into(),
                kind: "tensor".into(),
                dtype: "uint8".into(),
                shape: vec![224, 224, 3],
            }],
            collate: "stack".to_owned(),
            batch_size: 32,
            batches: count,
            epochs: 1,
            seed: 0,
            sampler: "shuffled".to_owned(),
            sampler_sha256: "00".repeat(32),
            drop_last: true,
            workers: 0,
            prefetch: 2,
            tune: Tune::Off,
            memory_budget_bytes: 512 << 20,
            strategies: StrategyOptions::default(),
            spool: Spool::Memory { quota_bytes: 256 << 20 },
            accelerator: Accelerator::Emulated { step_seconds: 0.02 },
            devices: vec![DeviceSetup {
                processor: Processor::Emulated {
                    cpu_ratio: Some(0.5),
                    read_bytes_per_second: None,
                    write_bytes_per_second: None,
                    latency_seconds: None,
                    core: None,
                    allow_shared: false,
                    faults: Vec::new(),
                },
                parts: None,
            }],
            shared: false,
            ranks: 1,
            run_ahead: false,
            reuse: false,
            choice: Choice::Tail,
        },
        runs: vec![
            run("host-only", alone, None),
            run("mte", both, Some(device(1.02))),
            run("wrr", mixed, Some(device(1.08))),
        ],
        failures: Vec::new(),
        notices: vec![Notice::Storage {
            device: None,
            note: EngineNote::IoUring { refusal: RingRefusal::NotPermitted },
        }],
    }
}

fn device(read_off: f64) -> Device {
    let core = CoreUse {
        available_ns: 6_176_000_000,
        cpu_ns: 3_100_000_000,
        contention_ns: 12_000_000,
        run_delay_ns: Some(9_000_000),
        steal_ns: None,
        sleeps: 1500,
        late_mean_ns: 61_000,
        late_p50_ns: 58_000,
        late_p99_ns: 900_000,
        late_max_ns: 4_100_000,
    };
    Device {
        device: 0,
        batches: 40,
        revoked: 0,
        stalls: 0,
        is_lost: false,
        t_s_seconds: Some(DEVICE),
        bytes_read: 40 * 32 * 110_000,
        bytes_written: 40 * 32 * 150_528,
        core_seconds: 3.1,
        busy_seconds: 6.2,
        peak_memory_bytes: 48 << 20,
        knobs: vec![
            SpeedLimit::of_core(0.5, 0.502, Some(&core)),
            SpeedLimit::new("read-bandwidth", "bytes per second", 5e8, 5e8 * read_off),
        ],
        core_use: Some(core.into()),
    }
}

fn run(name: &str, epoch: Epoch, device: Option<Device>) -> Run {
    let of = |source| epoch.batches.iter().filter(|batch| batch.source == source).count() as u64;
    let totals = Totals {
        seconds: epoch.seconds,
        samples_per_second: epoch.samples as f64 / epoch.seconds,
        host_batches: of(Source::Host),
        device_batches: of(Source::Device),
        host_core_seconds: of(Source::Host) as f64 * HOST,
        verify_core_seconds: 0.1,
        host_peak_memory_bytes: 180 << 20,
        host_bytes_read: of(Source::Host) * 32 * 110_000,
        host_bytes_written: 0,
        device_bytes_read: of(Source::Device) * 32 * 110_000,
        device_bytes_written: of(Source::Device) * 32 * 150_528,
    };
    let level = |level: &str, verdict, fact: Fact| Level {
        level: level.into(),
        verdict,
        findings: vec![fact.into()],
    };
    let origin = Origin::HostAlone;
    let equal = Fact::TensorsEqual { samples: 3200, of_devices: 1280, origin };
    let events = if name == "wrr" { vec![loss(killed())] } else { Vec::new() };
    Run {
        damage: Vec::new(),
        explanation: None,
        deliveries: Vec::new(),
        plan: None,
        strategy: name.into(),
        prediction: Prediction {
            seconds: Some(epoch.seconds * 0.98),
            error_ratio: Some(1.0 / 0.98 - 1.0),
            form: Form::Evaluated {
                formula: "T = N·t_c·t_s/(t_s+t_c−t_g)".into(),
                regime: meetpoint_sim::closed_forms::Regime::BothEnds,
            },
        },
        levels: vec![
            level("C0", Verdict::Verified, Fact::EachConsumedOnce { batches: 100 }),
            level("C2", Verdict::Verified, equal),
            level("C4", Verdict::NotClaimed, Fact::NotClaimed),
        ],
        measured_energy: Some(energy::MeasuredEnergy {
            measured_seconds: epoch.seconds + 0.01,
            measured_joules: Some(254.0),
            meters: vec![
                meter("rapl:package-0", Coverage::Package, 231.0),
                meter("rapl:package-0/dram", Coverage::PackageMemory, 23.0),
            ],
            nothing_because: None,
        }),
        modelled_energy: Some(ModelledEnergy {
            modelled_joules: 312.5,
            modelled_preparation_joules: 112.5,
            modelled_joules_per_sample: Some(0.1),
            source: "modelled(desktop@00ff)".into(),
            unverified_watts: vec!["device.active_w".into()],
            modelled_parts: vec![energy::EnergyPart {
                name: "base".into(),
                modelled_joules: 200.0,
            }],
        }),
        consumption: Some(consumption()),
        devices: device.into_iter().collect(),
        ranks: Vec::new(),
        uneven: vec![Uneven {
            epoch: 0,
            kind: UnevenKind::Omitted,
            reason: UnevenReason::ShortBatch,
            batches: vec![8],
        }],
        events,
        totals,
        epochs: vec![epoch],
    }
}

fn meter(name: &str, covers: Coverage, joules: f64) -> energy::MeasuredPart {
    energy::MeasuredPart {
        meter: name.into(),
        scope: energy::measure::scope(covers.scope()).into(),
        adds_up: covers.scope().adds_up(),
        covers,
        measured_joules: Some(joules),
        failure: None,
        readings: 2,
        utilisation: None,
    }
}

fn consumption() -> Consumption {
    Consumption {
        device_to_host_bytes: 40 * 32 * 150_528,
        flash_bytes_per_epoch: 40 * 32 * 150_528,
        modelled_dram: energy::ModelledDram {
            modelled_bytes: 1_000,
            modelled_read_bytes: 250,
            modelled_decoded_bytes: 250,
            modelled_written_bytes: 250,
            modelled_consumed_bytes: 250,
        },
        modelled_wear: Some(energy::ModelledWear {
            modelled_drive_writes_per_day: 0.3,
            rated_drive_writes_per_day: 0.66,
            modelled_life_share_per_epoch: 4e-8,
            modelled_years: Some(11.0),
            unverified: Vec::new(),
        }),
        modelled_cost: Some(energy::ModelledCost {
            currency: "USD".into(),
            modelled_total: 0.002,
            modelled_node: 0.0,
            modelled_energy: 0.001,
            modelled_device_premium: 0.000_5,
            modelled_flash_wear: 0.000_5,
            example_prices: vec!["prices.drive".into()],
            unverified: Vec::new(),
        }),
    }
}

/// Host batches from the front and device batches from the back; `is_device` decides by the
/// position in the sequence who prepared.
fn epoch(count: u32, is_device: impl Fn(u32) -> bool) -> Epoch {
    let (mut now, mut front, mut back, mut device_free) = (0.0_f64, 0, count, 0.0_f64);
    let mut batches = Vec::new();
    for place in 0..count {
        let batch = if is_device(place) {
            back -= 1;
            let (start, end) = (device_free, device_free + DEVICE);
            device_free = end;
            let begin = now.max(end);
            now = begin + STEP;
            Batch {
                batch: back,
                source: Source::Device,
                device: Some(0),
                rank: 0,
                memory: MemoryKind::Shared,
                prepare_start: start,
                prepare_end: end,
                ready: end,
                consume: begin,
                step_end: now,
            }
        } else {
            let begin = now + HOST;
            let start = now;
            now = begin + STEP;
            front += 1;
            Batch {
                batch: front - 1,
                source: Source::Host,
                device: None,
                rank: 0,
                memory: MemoryKind::Host,
                prepare_start: start,
                prepare_end: begin,
                ready: begin,
                consume: begin,
                step_end: now,
            }
        };
        batches.push(batch);
    }
    let quantiles = |p50: f64| Quantiles {
        count: u64::from(count),
        mean_seconds: p50,
        p50_seconds: p50,
        p90_seconds: p50 * 1.3,
        p99_seconds: p50 * 2.0,
        max_seconds: p50 * 4.0,
    };
    Epoch {
        epoch: 0,
        seconds: now,
        samples: u64::from(count) * 32,
        order_hash: "1234abcd".into(),
        split: None,
        record: None,
        picked: None,
        learned: Learned {
            t_c_seconds: Some(HOST + STEP),
            t_g_seconds: Some(STEP),
            preparation_seconds: Some(HOST),
            t_s_seconds: vec![Some(DEVICE)],
        },
        cache: None,
        store: None,
        gpu: None,
        tuning: Some(TuningUse {
            start: Concurrency { workers: 1, ahead: 2 },
            end: Concurrency { workers: 2, ahead: 4 },
            budget: Budget { cores: 2, ahead_max: 32 },
            tried: 3,
            kept: 1,
            rolled_back: 2,
            refused: 0,
        }),
        ahead_batches: 0,
        reused_batches: 0,
        displacement: None,
        wait: quantiles(if is_device(count - 1) { 0.000_02 } else { HOST }),
        prepare: quantiles(HOST),
        read: quantiles(0.001),
        fetch: quantiles(0.000_1),
        step: quantiles(STEP),
        profile: Profile {
            t_c_seconds: Some(HOST + STEP),
            t_g_seconds: Some(STEP),
            t_s_seconds: Some(DEVICE),
        },
        batches,
    }
}

/// An event: the only device is lost, for this reason.
pub(super) fn loss(reason: Loss) -> RunEvent {
    let kind = EventKind::DeviceLost {
        device: DeviceLabel { number: 0, of: 1 },
        phase: Phase::Epoch,
        reason,
        remaining: Remaining::Host,
        remedy: None,
    };
    RunEvent { epoch: 0, event: Event { at_ns: 1_200_000_000, rank: None, kind } }
}

/// The loss of a device whose process was killed.
fn killed() -> Loss {
    let exit = Exit::Signal { signal: 9, dumped_core: false };
    let process = Some(ProcessEnd { exit, detail: String::new() });
    Loss { cause: LossCause::LinkBroke { detail: None }, process }
}

/// A strategy that failed.
#[cfg(test)]
pub(super) fn failure(what: &str, error: &str) -> Failure {
    let cause = "device_unreachable".to_owned();
    Failure { what: what.to_owned(), cause, error: error.to_owned(), remedy: None }
}
