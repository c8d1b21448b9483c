//! Ways to read blocks on this machine: io_uring, O_DIRECT, NVMe drives, SPDK.

use super::{Finding, NoRing, Probes, System};
use meetpoint_diagnose::{Surface, shown};
use meetpoint_storage::probe::{DirectSupport, NvmeSupport, UringSupport};

/// Tests io_uring by setting up a ring.
pub(super) fn io_uring(system: &System, probes: &Probes) -> Finding {
    let topic = "io_uring";
    let reason = match &probes.io_uring {
        Ok(support) => return ring(topic, support),
        Err(reason) => reason,
    };
    let NoRing { reason, remedy } = reason;
    if let Some(remedy) = remedy {
        let found = Finding::missing(topic, reason, "blocking reads on a few threads");
        return found.remedy(remedy.spelled(Surface::CommandLine));
    }
    let remedy = match system.read("proc/sys/kernel/io_uring_disabled").as_deref() {
        Ok("2") => "sysctl kernel.io_uring_disabled=0 (it is disabled for everybody)",
        Ok("1") => "sysctl kernel.io_uring_disabled=0, or run as a member of kernel.io_uring_group",
        Ok(_) => "allow io_uring_setup in the container's seccomp profile",
        Err(_) => "use Linux 5.6 or later, and allow io_uring_setup in the seccomp profile",
    };
    Finding::missing(topic, reason.clone(), "blocking reads on a few threads").remedy(remedy)
}

/// A ring that works, with registered buffers or without.
fn ring(topic: &'static str, support: &UringSupport) -> Finding {
    let found = format!("works ({})", support.features.join(", "));
    match &support.registered_buffers {
        Ok(()) => Finding::ready(topic, found, "with registered buffers, for samples and slots"),
        Err(reason) => Finding::limited(
            topic,
            format!("{found}; {reason}"),
            "without registered buffers, for samples and slots",
        )
        .remedy("raise the limit of locked memory: ulimit -l unlimited"),
    }
}

/// O_DIRECT in the named folder.
pub(super) fn direct(probes: &Probes) -> Finding {
    let topic = "O_DIRECT";
    let path = shown(&probes.direct_path);
    let used = "direct reads of datasets and direct writes of file spools";
    let reason = match &probes.direct {
        Ok(DirectSupport::Yes { alignment: Some((memory, offset)) }) => {
            let found = format!(
                "{path} supports it: memory aligned to {memory}, offsets to {offset} bytes"
            );
            return Finding::ready(topic, found, used);
        }
        Ok(DirectSupport::Yes { alignment: None }) => {
            let found = format!("{path} supports it; the kernel does not report the alignment");
            return Finding::ready(topic, found, used);
        }
        Ok(DirectSupport::No(reason)) | Err(reason) => reason,
    };
    Finding::missing(topic, format!("{path}: {reason}"), "reads through the page cache")
        .remedy("keep datasets and file spools on ext4 or XFS; --path looks at another folder")
}

/// NVMe drives.
pub(super) fn nvme(system: &System) -> Finding {
    let topic = "NVMe drives";
    let drives: Vec<String> = system
        .names("sys/class/nvme")
        .into_iter()
        .map(|name| {
            let model = system.read(&format!("sys/class/nvme/{name}/model"));
            model.map_or_else(|_| name.clone(), |model| format!("{name} ({model})"))
        })
        .collect();
    if drives.is_empty() {
        return Finding::missing(topic, "none", "whatever drive the dataset's folder is on");
    }
    Finding::ready(
        topic,
        drives.join(", "),
        "as block storage; a drive with a processor of its own runs `meetpoint device serve`",
    )
}

/// The command sets for computation that NVMe drives support.
pub(super) fn computational(probes: &Probes) -> Finding {
    let topic = "computational storage";
    let agents = "devices that run `meetpoint device serve`";
    if probes.nvme.is_empty() {
        return Finding::missing(topic, "no NVMe drive", agents);
    }
    let mut offers = false;
    let mut is_refused = false;
    let drive = |drive: &NvmeSupport| {
        let name = &drive.name;
        match &drive.command_sets {
            Ok(Some(sets)) => {
                offers |= sets.has_programs() || sets.has_local_memory();
                format!("{name} has the command sets {}", sets.names().join(", "))
            }
            Ok(None) => format!("{name} lists no command sets, it has only NVM"),
            Err(reason) => {
                is_refused = true;
                format!("{name} cannot be queried: {reason}")
            }
        }
    };
    let found = probes.nvme.iter().map(drive).collect::<Vec<_>>().join("; ");
    if offers {
        // Programs for such drives would have to be written; the commands exist.
        return Finding::limited(topic, found, format!("not these commands, but {agents}"));
    }
    let finding = Finding::missing(topic, found, agents);
    if is_refused { finding.remedy("run as root to query the drives") } else { finding }
}

/// Whether SPDK is part of this program.
#[cfg(feature = "spdk")]
pub(super) fn spdk() -> Finding {
    let release = meetpoint_storage::spdk::RELEASE;
    Finding::ready(
        "SPDK",
        format!("built in, {release}"),
        "for block devices, by engine = \"spdk\"",
    )
}

/// SPDK is not part of this program.
#[cfg(not(feature = "spdk"))]
pub(super) fn spdk() -> Finding {
    Finding::missing("SPDK", "not built in", "the kernel's NVMe driver, through io_uring")
}

#[cfg(test)]
mod tests {
    use super::{computational, direct, io_uring, nvme};
    use crate::doctor::system::made_up;
    use crate::doctor::{NoRing, Probes, State};
    use meetpoint_diagnose::Remedy;
    use meetpoint_storage::nvme::CommandSets;
    use meetpoint_storage::probe::{DirectSupport, NvmeSupport, UringSupport};

    fn probes(io_uring: Result<UringSupport, NoRing>) -> Probes {
        Probes {
            io_uring,
            direct_path: "/data".into(),
            direct: Ok(DirectSupport::No("the file system refuses O_DIRECT".to_owned())),
            memlock_bytes: None,
            nvme: Vec::new(),
            cuda: None,
            cores_allowed: 2,
        }
    }

    fn ring(registered_buffers: Result<(), String>) -> Probes {
        probes(Ok(UringSupport { features: vec!["ext_arg"], registered_buffers }))
    }

    #[test]
    fn the_remedy_for_io_uring_follows_the_sysctl() {
        let no_ring = |reason: &str, remedy| NoRing { reason: reason.to_owned(), remedy };
        let refused = probes(Err(no_ring("Operation not permitted", None)));
        for (sysctl, word) in [("2", "everybody"), ("1", "group"), ("0", "seccomp")] {
            let (_folder, system) = made_up(&[("proc/sys/kernel/io_uring_disabled", sysctl)]);
            let finding = io_uring(&system, &refused);
            assert_eq!(finding.state, State::Missing);
            assert!(finding.remedy.unwrap().contains(word), "{sysctl}");
        }
        let remedy = Remedy::advice("raise the limit of locked memory (ulimit -l)");
        let no_memory = no_ring("no memory for the ring", Some(remedy));
        let (_folder, system) = made_up(&[("proc/sys/kernel/io_uring_disabled", "0")]);
        let finding = io_uring(&system, &probes(Err(no_memory)));
        assert!(finding.found.ends_with("no memory for the ring"), "{finding:?}");
        assert!(finding.remedy.unwrap().starts_with("raise the limit of locked memory"));
        let (_folder, system) = made_up(&[]);
        assert_eq!(io_uring(&system, &ring(Ok(()))).state, State::Ready);
        assert_eq!(io_uring(&system, &ring(Err("no room".to_owned()))).state, State::Limited);
    }

    #[test]
    fn a_folder_without_direct_access_is_named() {
        let finding = direct(&ring(Ok(())));
        assert_eq!(finding.state, State::Missing);
        assert!(finding.found.starts_with("/data: "));
    }

    #[test]
    fn drives_are_named_with_their_model() {
        let (_folder, system) = made_up(&[("sys/class/nvme/nvme0/model", "FLASH 9000   ")]);
        assert_eq!(nvme(&system).found, "nvme0 (FLASH 9000)");
        let (_folder, system) = made_up(&[]);
        assert_eq!(nvme(&system).state, State::Missing);
    }

    #[test]
    fn a_drive_that_offers_programs_is_named() {
        let with = |command_sets| {
            let name = "nvme0".to_owned();
            Probes { nvme: vec![NvmeSupport { name, command_sets }], ..ring(Ok(())) }
        };
        let mut structure = [0; 4096];
        structure[0] = 0x19;
        let finding = computational(&with(Ok(Some(CommandSets::parse(&structure)))));
        assert_eq!(finding.state, State::Limited);
        assert!(finding.found.ends_with("computational programs"), "{finding:?}");
        let plain = computational(&with(Ok(None)));
        assert_eq!((plain.state, plain.remedy), (State::Missing, None));
        let refused = computational(&with(Err("Permission denied".to_owned())));
        assert!(refused.remedy.is_some() && refused.found.contains("Permission denied"));
        assert_eq!(computational(&ring(Ok(()))).found, "no NVMe drive");
    }
}
