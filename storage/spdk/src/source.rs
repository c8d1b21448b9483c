//! What a device is, and the configuration that makes SPDK create it. No call of SPDK.

use crate::Error;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::sync::Arc;

/// Seconds after which the transfers of an unreachable target fail, and after which it is declared
/// lost.
const LOST_SECONDS: (u32, u32) = (5, 15);

/// The module of SPDK through which a file is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileModule {
    /// `bdev_aio`: Linux AIO.
    Aio,
    /// `bdev_uring`: io_uring, if SPDK was configured with it.
    Uring,
}

impl FileModule {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Aio, Self::Uring];

    /// Its name in SPDK, without `bdev_`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Aio => "aio",
            Self::Uring => "uring",
        }
    }
}

/// A file or block device of this machine.
#[derive(Debug, Clone)]
pub struct FileSource {
    /// The open file. SPDK opens it again through `/proc/self/fd`, so it is the same file even if
    /// its name now refers to another one.
    pub file: Arc<File>,
    /// What tells it from other files: device, inode, length.
    pub identity: (u64, u64, u64),
    /// The module that reads it.
    pub module: FileModule,
    /// Bytes of a block. A power of two, at least 512, that divides the length: SPDK refuses other
    /// files.
    pub block_bytes: u32,
    /// Whether it may be written.
    pub writable: bool,
}

/// A namespace of an NVMe-oF target or of an NVMe drive: SPDK's transport id.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Target {
    /// `TCP`, `RDMA` or `PCIe`.
    pub transport: String,
    /// The pairs of the transport id, in the order of their names in SPDK's configuration.
    pub parameters: Vec<(&'static str, String)>,
    /// Number of the namespace.
    pub namespace: u32,
}

/// What a device is.
#[derive(Debug, Clone)]
pub enum Source {
    /// A file.
    File(FileSource),
    /// A device of the configuration that [`crate::Options::config`] names, by its name.
    Named(String),
    /// A namespace.
    Target(Target),
}

impl Target {
    /// Parses `trtype:TCP traddr:10.0.0.7 trsvcid:4420 subnqn:NQN ns:1`, SPDK's form of a transport
    /// id, with the number of the namespace (1 by default).
    pub fn parse(text: &str) -> Result<Self, Error> {
        const KEYS: [&str; 6] = ["adrfam", "traddr", "trsvcid", "subnqn", "hostnqn", "hostaddr"];
        let wrong = |problem: String| Error::Name { name: text.to_owned(), problem };
        let (mut transport, mut namespace) = (None, None);
        let mut parameters = [const { None }; KEYS.len()];
        for pair in text.split_whitespace() {
            let (key, value) = pair
                .split_once(':')
                .filter(|(_, value)| !value.is_empty())
                .ok_or_else(|| wrong(format!("{pair:?} is not KEY:VALUE")))?;
            let is_repeated = match key {
                "trtype" => transport.replace(value).is_some(),
                "ns" => {
                    let number = value.parse().ok().filter(|&number: &u32| number > 0);
                    let number = number
                        .ok_or_else(|| wrong(format!("ns:{value} is not a namespace's number")))?;
                    namespace.replace(number).is_some()
                }
                _ => {
                    let place = KEYS.iter().position(|known| *known == key).ok_or_else(|| {
                        wrong(format!("unknown key {key}; it has trtype, ns, {}", KEYS.join(", ")))
                    })?;
                    parameters[place].replace(value.to_owned()).is_some()
                }
            };
            if is_repeated {
                return Err(wrong(format!("{key} is given twice")));
            }
        }
        let known = ["TCP", "RDMA", "PCIe"];
        let transport = transport.ok_or_else(|| wrong("there is no trtype".to_owned()))?;
        let transport = known
            .into_iter()
            .find(|known| known.eq_ignore_ascii_case(transport))
            .ok_or_else(|| wrong(format!("trtype:{transport} is not TCP, RDMA or PCIe")))?;
        if parameters[1].is_none() {
            return Err(wrong("there is no traddr".to_owned()));
        }
        if transport != "PCIe" {
            if parameters[3].is_none() {
                return Err(wrong("there is no subnqn".to_owned()));
            }
            let address = parameters[1].as_deref().unwrap_or_default();
            let family = if address.contains(':') { "IPv6" } else { "IPv4" };
            parameters[0].get_or_insert_with(|| family.to_owned());
            parameters[2].get_or_insert_with(|| "4420".to_owned());
        }
        let parameters = KEYS.into_iter().zip(parameters);
        let parameters = parameters.filter_map(|(key, value)| Some((key, value?))).collect();
        let namespace = namespace.unwrap_or(1);
        Ok(Self { transport: transport.to_owned(), parameters, namespace })
    }
}

impl Source {
    /// Whether a bdev of one is also a bdev of the other.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File(a), Self::File(b)) => {
                let key = |file: &FileSource| {
                    (file.identity, file.module, file.block_bytes, file.writable)
                };
                key(a) == key(b)
            }
            (Self::Named(a), Self::Named(b)) => a == b,
            (Self::Target(a), Self::Target(b)) => a == b,
            (Self::File(_) | Self::Named(_) | Self::Target(_), _) => false,
        }
    }

    /// Whether the drive may access memory itself, so that it must be memory of SPDK.
    pub(crate) fn may_need_dma(&self) -> bool {
        match self {
            Self::File(_) => false,
            Self::Named(_) => true,
            Self::Target(target) => target.transport != "TCP",
        }
    }

    /// The name of the bdev, if `created` is the name for what is created.
    pub(crate) fn bdev(&self, created: &str) -> String {
        match self {
            Self::File(_) => created.to_owned(),
            Self::Named(name) => name.clone(),
            Self::Target(target) => format!("{created}n{}", target.namespace),
        }
    }

    /// SPDK's configuration that creates it; `None` if it exists already.
    pub(crate) fn creation(&self, name: &str) -> Option<String> {
        match self {
            Self::Named(_) => None,
            Self::File(file) => {
                let fd = file.file.as_raw_fd();
                let mut parameters = format!(
                    "\"name\":{},\"filename\":\"/proc/self/fd/{fd}\",\"block_size\":{}",
                    quoted(name),
                    file.block_bytes
                );
                if file.module == FileModule::Aio {
                    parameters += &format!(",\"readonly\":{}", !file.writable);
                }
                let method = format!("bdev_{}_create", file.module.as_str());
                Some(configuration(&method, &parameters))
            }
            Self::Target(target) => {
                let (fails, lost) = LOST_SECONDS;
                let mut parameters =
                    format!("\"name\":{},\"trtype\":{}", quoted(name), quoted(&target.transport));
                for (key, value) in &target.parameters {
                    parameters += &format!(",\"{key}\":{}", quoted(value));
                }
                if target.transport != "PCIe" {
                    parameters += &format!(
                        ",\"reconnect_delay_sec\":1,\"fast_io_fail_timeout_sec\":{fails},\
                         \"ctrlr_loss_timeout_sec\":{lost}"
                    );
                }
                Some(configuration("bdev_nvme_attach_controller", &parameters))
            }
        }
    }

    /// SPDK's configuration that deletes what [`Source::creation`] created.
    pub(crate) fn deletion(&self, name: &str) -> Option<String> {
        let name = format!("\"name\":{}", quoted(name));
        match self {
            Self::Named(_) => None,
            Self::File(file) => {
                Some(configuration(&format!("bdev_{}_delete", file.module.as_str()), &name))
            }
            Self::Target(_) => Some(configuration("bdev_nvme_detach_controller", &name)),
        }
    }
}

/// SPDK's configuration before that of the user. Without it, a flush of an NVMe namespace succeeds
/// and does nothing, and connections that are not answered have no time limit.
///
/// The limit of commands for reading and writing is an hour, because after it SPDK asks the target
/// for its state and waits for the answer. A target that is silent is noticed by its keep-alive
/// command, which is sent every 5 s.
pub(crate) fn defaults() -> String {
    let parameters = "\"enable_flush\":true,\"tcp_connect_timeout_ms\":5000,\
                      \"timeout_us\":3600000000,\"timeout_admin_us\":8000000,\
                      \"action_on_timeout\":\"reset\"";
    configuration("bdev_nvme_set_options", parameters)
}

/// A configuration of SPDK with one call.
fn configuration(method: &str, parameters: &str) -> String {
    format!(
        "{{\"subsystems\":[{{\"subsystem\":\"bdev\",\"config\":[{{\"method\":\"{method}\",\
         \"params\":{{{parameters}}}}}]}}]}}"
    )
}

/// A string of JSON.
fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            '\0'..' ' => quoted += &format!("\\u{:04x}", u32::from(character)),
            _ => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transport_id_names_a_namespace() {
        let text = "trtype:tcp traddr:10.0.0.7 subnqn:nqn.2016-06.io.spdk:cnode1 ns:3";
        let target = Target::parse(text).unwrap();
        assert_eq!((&*target.transport, target.namespace), ("TCP", 3));
        let source = Source::Target(target);
        assert_eq!(source.bdev("meetpoint7"), "meetpoint7n3");
        assert_eq!(
            source.creation("meetpoint7").unwrap(),
            "{\"subsystems\":[{\"subsystem\":\"bdev\",\"config\":[{\"method\":\
             \"bdev_nvme_attach_controller\",\"params\":{\"name\":\"meetpoint7\",\"trtype\":\
             \"TCP\",\"adrfam\":\"IPv4\",\"traddr\":\"10.0.0.7\",\"trsvcid\":\"4420\",\
             \"subnqn\":\"nqn.2016-06.io.spdk:cnode1\",\"reconnect_delay_sec\":1,\
             \"fast_io_fail_timeout_sec\":5,\"ctrlr_loss_timeout_sec\":15}}]}]}"
        );
        assert!(!source.may_need_dma());
        let drive = Target::parse("trtype:PCIe traddr:0000:01:00.0").unwrap();
        assert_eq!(drive.parameters, [("traddr", "0000:01:00.0".to_owned())]);
        assert!(Source::Target(drive).may_need_dma());
    }

    #[test]
    fn what_is_no_transport_id_is_refused() {
        for text in [
            "traddr:10.0.0.7 subnqn:n",
            "trtype:TCP subnqn:n",
            "trtype:TCP traddr:10.0.0.7",
            "trtype:FC traddr:x subnqn:n",
            "trtype:TCP traddr:a traddr:b subnqn:n",
            "trtype:TCP traddr:a subnqn:n ns:0",
            "trtype:TCP traddr:a subnqn:n password:x",
            "trtype:TCP traddr: subnqn:n",
            "trtype",
        ] {
            assert!(matches!(Target::parse(text), Err(Error::Name { .. })), "{text}");
        }
    }

    #[test]
    fn strings_are_quoted_for_json() {
        assert_eq!(quoted("a\"b\\c\n\u{e9}"), "\"a\\\"b\\\\c\\u000a\u{e9}\"");
    }
}
