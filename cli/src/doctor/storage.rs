//! Ways to read blocks on this machine: io_uring, O_DIRECT, NVMe drives, SPDK.

use super::{Finding, Probes, System};
use meetpoint_diagnose::{Surface, shown};
use meetpoint_storage::probe::{DirectSupport, NvmeSupport, UringSupport};

/// io_uring, tested by setting up a ring.
pub(super) fn io_uring(probes: &Probes) -> Finding {
    let topic = "io_uring";
    let refusal = match &probes.io_uring {
        Ok(support) => return ring(topic, support),
        Err(refusal) => refusal,
    };
    let found = format!("not available: {refusal}");
    let finding = Finding::missing(topic, found, "blocking reads on a few threads");
    match refusal.remedy() {
        Some(remedy) => finding.remedy(remedy.spelled(Surface::CommandLine)),
        None => finding,
    }
}

/// A ring that works, with registered buffers or without.
fn ring(topic: &'static str, support: &UringSupport) -> Finding {
    let found = format!("works ({})", support.features.join(", "));
    match &support.registered_buffers {
        Ok(()) => Finding::ready(topic, found, "with registered buffers, for samples and slots"),
        Err(note) => {
            let used = "without registered buffers, for samples and slots";
            let finding = Finding::limited(topic, format!("{found}; {note}"), used);
            match note.remedy() {
                Some(remedy) => finding.remedy(remedy.spelled(Surface::CommandLine)),
                None => finding,
            }
        }
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
    use crate::doctor::{Probes, State};
    use meetpoint_diagnose::{Remedy, Surface};
    use meetpoint_storage::nvme::CommandSets;
    use meetpoint_storage::probe::{DirectSupport, NvmeSupport, UringSupport};
    use meetpoint_storage::{EngineNote, RingRefusal};

    fn probes(io_uring: Result<UringSupport, RingRefusal>) -> Probes {
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

    fn ring(registered_buffers: Result<(), EngineNote>) -> Probes {
        probes(Ok(UringSupport { features: vec!["ext_arg"], registered_buffers }))
    }

    #[test]
    fn what_io_uring_lacks_is_found_with_its_remedy() {
        let spelled = |remedy: Option<Remedy>| remedy.map(|it| it.spelled(Surface::CommandLine));
        for refusal in [RingRefusal::DisabledForAll, RingRefusal::NoMemory] {
            let finding = io_uring(&probes(Err(refusal.clone())));
            assert_eq!(finding.state, State::Missing);
            assert!(finding.found.ends_with(&refusal.to_string()), "{finding:?}");
            assert_eq!(finding.remedy, spelled(refusal.remedy()));
        }
        let finding = io_uring(&ring(Ok(())));
        assert_eq!((finding.state, finding.remedy), (State::Ready, None));
        let error = std::io::Error::from(rustix::io::Errno::NOMEM).into();
        let note = EngineNote::RegisteredBuffers { error };
        let finding = io_uring(&ring(Err(note.clone())));
        assert_eq!((finding.state, finding.remedy), (State::Limited, spelled(note.remedy())));
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
