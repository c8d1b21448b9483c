//! Starts host, devices and network, injects the faults of the plan, and ends them.

use super::agent::{Agent, Location, SharedLedger, TOKEN, spawn};
use super::dataset::Fixture;
use super::ledger::Ledger;
use super::link::{Link, LinkState, Once};
use super::plan::{DevicePlan, Fault, Plan, PlannedFault, StorageFault};
use super::training::Training;
use crate::machine::{self, ProcessIndex, Shared, StorageFaults, with};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Time between two checks of the training.
const LOOK_EVERY: Duration = Duration::from_millis(4);

/// Time between two checks once all faults have ended.
const LOOK_SELDOM: Duration = Duration::from_millis(200);

/// Time until a device that killed itself is started again.
const RESTART_NS: u64 = 100_000_000;

/// Maximum time until all devices have ended.
const END_LIMIT_NS: u64 = 60_000_000_000;

/// The result of a simulation that found no failure.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Report {
    /// Checksum of the trace.
    pub(crate) checksum: u64,
    pub(crate) events: u64,
    pub(crate) decisions: u64,
    /// Simulated time.
    pub(crate) simulated_ns: u64,
    /// Batches consumed, and of these, batches of devices.
    pub(crate) batches: u64,
    pub(crate) device_batches: u64,
    /// Faults injected from outside.
    pub(crate) faults: u64,
}

/// What ends a fault.
#[derive(Debug, Clone, Copy)]
enum Later {
    StartDevice(usize),
    StartHost,
}

struct Operator {
    plan: Arc<Plan>,
    fixture: Arc<Fixture>,
    training: Training,
    agents: Vec<Agent>,
    links: Vec<Link>,
    host: ProcessIndex,
    hosts: u32,
    pending: Vec<(u64, Later)>,
    /// Time of a fault whose batch was consumed.
    due: Vec<(u64, Fault)>,
    faults: u64,
}

fn now_ns() -> u64 {
    with(|machine| machine.now_ns())
}

/// Runs a training on the machine, whose first thread calls this. `folder` is empty.
pub(crate) fn run(plan: Plan, fixture: Arc<Fixture>, folder: &Path) -> Report {
    let plan = Arc::new(plan);
    machine::note(&plan.to_string());
    let ledger: SharedLedger = Arc::new(Shared::new(Ledger::default()));
    let written = std::fs::write(folder.join("token"), TOKEN);
    let remote: Vec<bool> = plan.devices.iter().map(|device| device.is_remote).collect();
    let folders = (0..plan.devices.len()).try_for_each(|number| {
        std::fs::create_dir(folder.join(format!("own-{number}")))?;
        std::fs::create_dir(folder.join(format!("offered-{number}")))
    });
    if written.and(folders).is_err() {
        machine::fail("the folder of the simulation cannot be used");
    }
    let locations: Vec<Location> = remote
        .iter()
        .enumerate()
        .map(|(number, is_remote)| Location::new(folder, number, *is_remote))
        .collect();
    let training = Training {
        plan: Arc::clone(&plan),
        fixture: Arc::clone(&fixture),
        ledger: Arc::clone(&ledger),
        locations: locations.clone(),
        folder: folder.to_path_buf(),
    };
    let each = || plan.devices.iter().zip(&locations).enumerate();
    let agents = each().map(|(number, (device, location))| {
        Agent::new(number, device.clone(), location.clone(), folder)
    });
    let links = each().map(|(number, (device, location))| {
        Link::start(number, plan.seed, location, link_state(device))
    });
    let mut operator = Operator {
        agents: agents.collect(),
        links: links.collect(),
        host: ProcessIndex(0),
        hosts: 0,
        pending: Vec::new(),
        due: Vec::new(),
        faults: 0,
        training,
        fixture,
        plan,
    };
    operator.run();
    let (checksum, events, decisions) = with(|machine| machine.summary());
    let (batches, device_batches) = ledger.with(|it| (it.batches, it.device_batches));
    Report {
        checksum,
        events,
        decisions,
        simulated_ns: now_ns(),
        batches,
        device_batches,
        faults: operator.faults,
    }
}

fn link_state(device: &DevicePlan) -> LinkState {
    LinkState {
        latency_ns: device.latency_ns,
        jitter_ns: device.jitter_ns,
        splits: device.splits,
        partitioned_until_ns: 0,
        congested_until_ns: 0,
        congestion_ns: 0,
        refused_until_ns: 0,
        once: None,
    }
}

impl Operator {
    fn run(&mut self) {
        for agent in &mut self.agents {
            agent.start(&self.fixture);
        }
        std::thread::sleep(Duration::from_millis(100));
        self.start_host();
        let mut planned = self.plan.faults.clone().into_iter().peekable();
        loop {
            let is_healthy = self.training.ledger.with(|it| it.is_healthy);
            std::thread::sleep(if is_healthy { LOOK_SELDOM } else { LOOK_EVERY });
            let (batches, awaits_health, has_ended) = self
                .training
                .ledger
                .with(|it| (it.batches, it.awaits_health && !it.is_healthy, it.has_ended));
            if has_ended {
                break;
            }
            while let Some(PlannedFault { delay_ns, fault, .. }) =
                planned.next_if(|planned| planned.after <= batches)
            {
                self.due.push((now_ns() + delay_ns, fault));
            }
            if awaits_health {
                // The others would come too late to matter.
                while planned.next().is_some() {}
                self.due.clear();
                self.heal();
            }
            self.inject_due();
            self.end_due();
            self.restart_dead();
        }
        self.end();
    }

    fn start_host(&mut self) {
        self.hosts += 1;
        let training = self.training.clone();
        self.host = spawn(format!("host.{}", self.hosts), move || training.run());
    }

    fn inject_due(&mut self) {
        let now_ns = now_ns();
        let due = self.due.extract_if(.., |(due_ns, _)| *due_ns <= now_ns).collect::<Vec<_>>();
        for (_, fault) in due {
            machine::note(&format!("injects {fault:?}"));
            self.faults += 1;
            self.inject(fault);
        }
    }

    fn inject(&mut self, fault: Fault) {
        let now_ns = now_ns();
        match fault {
            Fault::HostKilled { for_ns } => {
                with(|machine| machine.kill(self.host));
                self.pending.push((now_ns + for_ns, Later::StartHost));
            }
            Fault::HostPaused { for_ns } => with(|machine| machine.pause(self.host, for_ns)),
            Fault::HostStorage { for_ns, what } => self.storage(self.host, for_ns, what),
            Fault::Killed { device, for_ns } => {
                if let Some(process) = self.agents[device].process() {
                    with(|machine| machine.kill(process));
                }
                self.pending.push((now_ns + for_ns, Later::StartDevice(device)));
            }
            Fault::Drained { device, for_ns } => {
                self.agents[device].shut_down(false);
                self.pending.push((now_ns + for_ns, Later::StartDevice(device)));
            }
            Fault::Paused { device, for_ns } => {
                if let Some(process) = self.agents[device].process() {
                    with(|machine| machine.pause(process, for_ns));
                }
            }
            Fault::Storage { device, for_ns, what } => {
                if let Some(process) = self.agents[device].process() {
                    self.storage(process, for_ns, what);
                }
            }
            Fault::Partitioned { device, for_ns } => {
                self.links[device].change(|state| state.partitioned_until_ns = now_ns + for_ns);
            }
            Fault::Congested { device, for_ns, delay_ns } => {
                self.links[device].change(|state| {
                    state.congested_until_ns = now_ns + for_ns;
                    state.congestion_ns = delay_ns;
                });
            }
            Fault::Refused { device, for_ns } => {
                self.links[device].change(|state| state.refused_until_ns = now_ns + for_ns);
            }
            Fault::Reset { device } => self.once(device, Once::Reset),
            Fault::Torn { device } => self.once(device, Once::Tear),
            Fault::HalfOpen { device, is_to_device } => {
                self.once(device, Once::HalfOpen { is_to_device });
            }
        }
    }

    fn once(&self, device: usize, once: Once) {
        self.links[device].change(|state| state.once = Some(once));
    }

    fn storage(&self, process: ProcessIndex, for_ns: u64, what: StorageFault) {
        let until_ns = now_ns() + for_ns;
        with(|machine| {
            let faults = machine.storage(process);
            match what {
                StorageFault::Slow { delay_ns } => {
                    faults.slow_until_ns = until_ns;
                    faults.delay_ns = delay_ns;
                }
                StorageFault::Fails => faults.fail_until_ns = until_ns,
                StorageFault::Full => faults.full_until_ns = until_ns,
                StorageFault::Corrupts => faults.corrupt_until_ns = until_ns,
            }
            // A host whose dataset cannot be read fails, which is correct.
            faults.is_of_spool = process == self.host;
        });
    }

    fn end_due(&mut self) {
        let now_ns = now_ns();
        let due = self.pending.extract_if(.., |(due_ns, _)| *due_ns <= now_ns).collect::<Vec<_>>();
        for (_, later) in due {
            match later {
                Later::StartDevice(device) => self.agents[device].start(&self.fixture),
                Later::StartHost if !with(|machine| machine.is_alive(self.host)) => {
                    self.start_host();
                }
                // Another fault has replaced it already.
                Later::StartHost => {}
            }
        }
    }

    /// Ends all faults.
    fn heal(&mut self) {
        machine::note("ends all faults");
        for link in &self.links {
            link.change(|state| {
                state.partitioned_until_ns = 0;
                state.congested_until_ns = 0;
                state.refused_until_ns = 0;
                state.once = Some(Once::Heal);
            });
        }
        for agent in &mut self.agents {
            agent.forget_faults();
        }
        let processes = self.agents.iter().filter_map(Agent::process).chain([self.host]);
        for process in processes.collect::<Vec<_>>() {
            with(|machine| *machine.storage(process) = StorageFaults::default());
        }
        self.pending.clear();
        self.training.ledger.with(|ledger| ledger.is_healthy = true);
    }

    /// Restarts devices that killed themselves, like a supervisor.
    fn restart_dead(&mut self) {
        for device in 0..self.agents.len() {
            let is_awaited =
                |later: &Later| matches!(later, Later::StartDevice(it) if *it == device);
            let is_dead = self.agents[device].process().is_none();
            if is_dead && !self.pending.iter().any(|(_, later)| is_awaited(later)) {
                self.pending.push((now_ns() + RESTART_NS, Later::StartDevice(device)));
            }
        }
    }

    fn end(&mut self) {
        for agent in &self.agents {
            agent.shut_down(true);
        }
        let begun_ns = now_ns();
        while self.agents.iter().any(|agent| agent.process().is_some()) {
            if now_ns() - begun_ns > END_LIMIT_NS {
                machine::fail("a device does not end");
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }
}
