//! The devices of a job: one `[device]` table, several `[[device]]` tables, or an address.

use super::JobError;
use super::table::Table;
use super::values::{TIME, bandwidth, required};
use meetpoint_format::units::parse_duration;
use meetpoint_link::tls::TlsFiles;
use meetpoint_link::{
    DeviceAddress, DiscoveryError, Emulation, Fault, FaultSyntax, RemoteAddress, RemoteDevice,
    RunningDevice, ServeCommand, SettingError, Targets, resolve_devices,
};
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml::de::DeValue;

/// Maximum number of devices of a job.
pub const DEVICES_MAX: u32 = 64;
/// Highest number of a part.
const PART_MAX: u64 = u32::MAX as u64;

/// One device of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceJob {
    /// The table that it comes from, as messages name it: `device` or `device[1]`.
    pub table: String,
    /// How to reach it.
    pub kind: DeviceKind,
    /// Parts of the dataset that it holds; `None`: parts are distributed, part p to device p mod D.
    pub parts: Option<Vec<u32>>,
}

/// How to reach a device of a job.
#[derive(Debug, Clone, PartialEq)]
pub enum DeviceKind {
    /// A separate process for each strategy.
    Emulated(ServeCommand),
    /// A device that is already running.
    Connect {
        /// Its socket.
        socket: PathBuf,
    },
    /// One on another machine.
    Remote(Box<RemoteDevice>),
}

/// The value of a `kind` key.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    None,
    Emulated,
    Connect,
}

/// Whether there are several devices, each with a copy of the whole dataset. A device on another
/// machine has one unless its `parts` are given.
pub(super) fn have_copies(devices: &[DeviceJob]) -> bool {
    let has_copy = |it: &DeviceJob| matches!(it.kind, DeviceKind::Remote(_)) && it.parts.is_none();
    devices.len() > 1 && devices.iter().all(has_copy)
}

/// Reads the devices of a job file; relative paths start at `folder`.
pub(super) fn read(table: &Table<'_>, folder: &Path) -> Result<Vec<DeviceJob>, JobError> {
    let mut devices = Vec::new();
    match table.value("device").map(|value| value.get_ref()) {
        None => {}
        Some(DeValue::String(text)) => {
            let found = resolve_devices(text).map_err(|error| match error {
                DiscoveryError::Syntax(_) => table.wrong_at("device", DeviceAddress::EXPECTED),
                error => {
                    let problem = format!("`device` is {text:?}: {error}");
                    table.fault_at("device", problem, error.remedy())
                }
            })?;
            let of_table = |kind| DeviceJob { table: "device".to_owned(), kind, parts: None };
            let kind = |device| match device {
                RunningDevice::Socket(path) => DeviceKind::Connect { socket: folder.join(path) },
                RunningDevice::Remote(address) => {
                    let device = RemoteDevice::new(address.within(folder));
                    DeviceKind::Remote(Box::new(device.or_environment()))
                }
            };
            devices.extend(found.into_iter().map(kind).map(of_table));
        }
        Some(DeValue::Array(_)) => {
            for device in table.tables("device")? {
                devices.extend(read_one(&device, folder)?);
                if devices.len() > DEVICES_MAX as usize {
                    let problem = format!("the job has more than {DEVICES_MAX} devices");
                    return Err(table.fault_at("device", problem, "leave some out"));
                }
            }
        }
        Some(_) => {
            let device = table.table("device")?.expect("the key is there");
            devices = read_one(&device, folder)?;
        }
    }
    check_parts(table, &devices)?;
    Ok(devices)
}

/// The devices of one table: as many as its `count`.
fn read_one(device: &Table<'_>, folder: &Path) -> Result<Vec<DeviceJob>, JobError> {
    let kinds = [("emulated", Kind::Emulated), ("connect", Kind::Connect), ("none", Kind::None)];
    let count = device.small("count", 1..=DEVICES_MAX, 1)?;
    let found = match device.word("kind", &kinds)?.unwrap_or(Kind::Emulated) {
        Kind::None => {
            device.allow(&["kind"])?;
            return Ok(Vec::new());
        }
        Kind::Connect => {
            if device.value("address").is_some() {
                remote(device, folder)?
            } else {
                device.allow(&["kind", "socket", "address", "parts"])?;
                let what = "the path of a device's socket";
                let socket = folder.join(required(device, "socket", what)?);
                vec![DeviceKind::Connect { socket }]
            }
        }
        Kind::Emulated => vec![DeviceKind::Emulated(emulated(device)?); count as usize],
    };
    let remedy = "a list of numbers of parts, such as [0, 2] for part-00000.arrow and \
                  part-00002.arrow";
    let parts = device.wholes("parts", remedy)?;
    let parts = match parts {
        Some(parts) if parts.is_empty() => return Err(device.wrong_at("parts", remedy)),
        Some(parts) => {
            let number = |part: usize| {
                u32::try_from(part)
                    .map_err(|_| device.wrong_at("parts", format!("numbers from 0 to {PART_MAX}")))
            };
            Some(parts.into_iter().map(number).collect::<Result<Vec<u32>, _>>()?)
        }
        None => None,
    };
    if found.len() > 1 && count == 1 && parts.is_some() {
        let problem = format!("`parts` applies to one device, but `address` names {}", found.len());
        let remedy = "write a table for each device";
        return Err(device.fault_at("parts", problem, remedy));
    }
    if count > 1 {
        for (key, why) in [
            ("core", "devices on one core would be slower than their settings"),
            ("parts", "a part belongs to one device"),
        ] {
            if device.value(key).is_some() {
                let problem = format!("`{key}` applies to one device, but `count` is {count}");
                let remedy = format!("{why}; write a [[device]] table for each");
                return Err(device.fault_at(key, problem, remedy));
            }
        }
    }
    let table = device.name().to_owned();
    let of_table = |kind| DeviceJob { table: table.clone(), kind, parts: parts.clone() };
    Ok(found.into_iter().map(of_table).collect())
}

/// Devices on other machines.
fn remote(device: &Table<'_>, folder: &Path) -> Result<Vec<DeviceKind>, JobError> {
    device.allow(&[
        "kind",
        "parts",
        "address",
        "keys",
        "ca",
        "cert",
        "key",
        "crl",
        "server_name",
        "token_file",
        "root",
    ])?;
    let text = required(device, "address", RemoteAddress::EXPECTED)?;
    let found = resolve_devices(text).map_err(|error| {
        let problem = format!("`{}.address` is {text:?}: {error}", device.name());
        device.fault_at("address", problem, error.remedy())
    })?;
    let mut addresses = Vec::with_capacity(found.len());
    for one in found {
        match one {
            RunningDevice::Remote(address) => addresses.push(address.within(folder)),
            RunningDevice::Socket(_) => {
                let problem = format!("`{}.address` is {text:?}, a socket", device.name());
                return Err(device.fault_at("address", problem, "use `socket` for it"));
            }
        }
    }
    let first = addresses.first().cloned();
    let first = first.ok_or_else(|| device.wrong_at("address", RemoteAddress::EXPECTED))?;
    let mut remote = RemoteDevice::new(first);
    let path = |key: &str, what: &str| match device.value(key) {
        Some(_) => Ok(Some(folder.join(required(device, key, what)?))),
        None => Ok(None),
    };
    if let Some(keys) = path("keys", "the folder that `meetpoint device keys` made")? {
        remote = remote.with_keys(&keys);
    }
    let ca = path("ca", "a file in PEM")?;
    let cert = path("cert", "a file in PEM")?;
    let key = path("key", "a file in PEM")?;
    let crl = path("crl", "a file in PEM")?;
    match (&mut remote.tls, ca, cert, key) {
        (Some(files), ca, cert, key) => {
            let given = [(&mut files.ca, ca), (&mut files.cert, cert), (&mut files.key, key)];
            given.into_iter().for_each(|(file, given)| *file = given.unwrap_or(file.clone()));
            files.crl = crl.or(files.crl.take());
        }
        (none, Some(ca), Some(cert), Some(key)) => *none = Some(TlsFiles { ca, cert, key, crl }),
        (_, None, None, None) if crl.is_none() => {}
        (_, ca, cert, _) => {
            let missing = match (ca, cert) {
                (None, _) => "ca",
                (_, None) => "cert",
                (Some(_), Some(_)) => "key",
            };
            return Err(device.missing(missing, "a file in PEM, as `ca`, `cert` and `key` all do"));
        }
    }
    let text = |key: &str, what: &str| match device.value(key) {
        Some(_) => Ok(Some(required(device, key, what)?.to_owned())),
        None => Ok(None),
    };
    remote.server_name = text("server_name", "the name in the device's certificate")?;
    remote.root = text("root", "the name of one of the device's roots")?;
    remote.token_file = path("token_file", "a file with the device's token")?;
    let remote = remote.or_environment();
    let at = |address| DeviceKind::Remote(Box::new(RemoteDevice { address, ..remote.clone() }));
    Ok(addresses.into_iter().map(at).collect())
}

fn emulated(device: &Table<'_>) -> Result<ServeCommand, JobError> {
    device.allow(&[
        "kind",
        "count",
        "parts",
        "cpu_ratio",
        "read_bandwidth",
        "write_bandwidth",
        "latency",
        "core",
        "allow_shared",
        "faults",
    ])?;
    let core = device.whole("core", 0..=u64::from(u16::MAX))?;
    let targets = Targets {
        cpu_ratio: device.share("cpu_ratio", 1.0)?,
        read_bytes_per_second: bandwidth(device, "read_bandwidth")?,
        write_bytes_per_second: bandwidth(device, "write_bandwidth")?,
        latency_ns: device.quantity("latency", parse_duration, TIME)?.map(nanoseconds),
        core: core.map(|core| u32::try_from(core).expect("16 bits")),
    };
    let allow_shared = device.flag("allow_shared", false)?;
    let emulation = Emulation { targets, allow_shared, memory_bytes_max: None };
    emulation.check().map_err(|SettingError { setting, value, remedy }| {
        let problem = format!("`{}.{setting}` is {value}", device.name());
        device.fault_at(setting.as_str(), problem, remedy)
    })?;
    Ok(ServeCommand { emulation, faults: faults(device)?, engine: None })
}

/// The faults that the device injects.
fn faults(device: &Table<'_>) -> Result<Vec<Fault>, JobError> {
    let texts = device.texts("faults", "a list of faults, such as [\"die@3\"]")?;
    let texts = texts.unwrap_or_default().into_iter().enumerate();
    let fault = |(index, text): (usize, String)| {
        text.parse::<Fault>().map_err(|error| {
            let problem = format!("{text:?} is not a fault: {}", error.problem);
            device.fault_in("faults", index, problem, FaultSyntax::KNOWN)
        })
    };
    texts.map(fault).collect()
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Checks that parts are named for all devices or for none, and each part once.
fn check_parts(table: &Table<'_>, devices: &[DeviceJob]) -> Result<(), JobError> {
    let named = devices.iter().filter(|device| device.parts.is_some()).count();
    if named == 0 {
        return Ok(());
    }
    if named < devices.len() {
        let problem = format!("{named} of {} devices name their `parts`", devices.len());
        return Err(table.fault_at("device", problem, "give `parts` to every device or to none"));
    }
    let mut all: Vec<u32> =
        devices.iter().flat_map(|it| it.parts.iter().flatten()).copied().collect();
    all.sort_unstable();
    match all.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(()),
        Some(pair) => {
            let problem = format!("part {} is named twice among the devices' `parts`", pair[0]);
            Err(table.fault_at("device", problem, "a part belongs to one device"))
        }
    }
}
