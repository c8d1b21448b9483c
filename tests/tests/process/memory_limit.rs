//! Commands in a control group with little memory: a picture that does not fit is refused by name,
//! and no process is killed.

use super::support::{Finished, command, finish, jpeg, run};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Memory of the group; the large picture needs more to decode.
const LIMIT: u64 = 160 << 20;
/// Columns and rows of the large picture.
const SIDE: u32 = 8000;

/// A control group of this test, with a limit, which is removed when this is dropped.
struct Group(PathBuf);

impl Group {
    /// Creates one inside the group of this process; an error is the reason why it cannot.
    fn create(name: &str) -> Result<Self, String> {
        let membership = read("/proc/self/cgroup")?;
        let own = |controller: &str| {
            let lines =
                membership.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
            let mut groups = lines.filter(|(names, _)| names.split(',').any(|it| it == controller));
            groups.next().map(|(_, group)| group.trim_start_matches('/').to_owned())
        };
        let (root, own, file) = match (own("memory"), own("")) {
            (Some(own), _) => ("/sys/fs/cgroup/memory", own, "memory.limit_in_bytes"),
            (None, Some(own)) => ("/sys/fs/cgroup", own, "memory.max"),
            (None, None) => return Err("this process is in no control group".to_owned()),
        };
        // A container sees its group as the root.
        let parent = [Path::new(root).join(&own), PathBuf::from(root)];
        let parent = parent.into_iter().find(|it| it.is_dir()).ok_or("no hierarchy is mounted")?;
        let path = parent.join(format!("meetpoint-{name}-{}", std::process::id()));
        let failed = |error: std::io::Error| format!("{}: {error}", path.display());
        std::fs::create_dir(&path).map_err(failed)?;
        let group = Self(path.clone());
        std::fs::write(path.join(file), LIMIT.to_string()).map_err(failed)?;
        // Without swap, what does not fit is killed.
        for swap in ["memory.memsw.limit_in_bytes", "memory.swap.max"] {
            let bytes = if swap.contains("memsw") { LIMIT } else { 0 };
            // Absent on a kernel that does not account for swap.
            let _ = std::fs::write(path.join(swap), bytes.to_string());
        }
        group
            .run(Path::new("/"), "true", &[])
            .status
            .success()
            .then_some(group)
            .ok_or_else(|| format!("no process can be moved to {}", path.display()))
    }

    /// Runs a program in the group.
    fn run(&self, folder: &Path, program: &str, arguments: &[&str]) -> Finished {
        let script = "echo $$ > \"$0\"/cgroup.procs || exit 99; exec \"$@\"";
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).arg(&self.0).arg(program).args(arguments);
        shell.current_dir(folder).env("NO_COLOR", "1").env_remove("RUST_BACKTRACE");
        shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        finish(shell.spawn().expect("a shell starts"))
    }

    fn meetpoint(&self, folder: &Path, arguments: &[&str]) -> Finished {
        self.run(folder, command(folder, &[]).get_program().to_str().unwrap(), arguments)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Fails while a process is in it, which the test then reports.
        let _ = std::fs::remove_dir(&self.0);
    }
}

fn read(path: &str) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))
}

/// A group, or `None` after printing why there is none.
fn group(name: &str) -> Option<Group> {
    Group::create(name).map_err(|why| eprintln!("SKIP: no control group with a limit: {why}")).ok()
}

/// A grey PNG of one tone; it has a valid checksum and a small size, and takes three bytes for each
/// pixel when it is decoded.
fn large_png() -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    let row = vec![0; SIDE as usize + 1];
    (0..SIDE).for_each(|_| encoder.write_all(&row).unwrap());
    let chunk = |name: &[u8; 4], data: &[u8]| {
        let mut crc = flate2::Crc::new();
        crc.update(name);
        crc.update(data);
        let length = u32::try_from(data.len()).unwrap().to_be_bytes();
        [&length[..], name, data, &crc.sum().to_be_bytes()].concat()
    };
    let side = SIDE.to_be_bytes();
    let header = [&side[..], &side, &[8, 0, 0, 0, 0]].concat();
    let data = encoder.finish().unwrap();
    let chunks = [chunk(b"IHDR", &header), chunk(b"IDAT", &data), chunk(b"IEND", b"")];
    [b"\x89PNG\r\n\x1a\n".to_vec(), chunks.concat()].concat()
}

/// A folder of small pictures and the large one, second in order.
fn pictures(folder: &Path) {
    let root = folder.join("pictures");
    std::fs::create_dir_all(&root).unwrap();
    for index in [0, 2, 3, 4] {
        std::fs::write(root.join(format!("{index}.jpg")), jpeg(index, 96, 80)).unwrap();
    }
    std::fs::write(root.join("1.png"), large_png()).unwrap();
}

const RECIPE: &str = "[[operation]]\nname = \"decode\"\n[[operation]]\nname = \"resize\"\nsize = 32\n\
                      [[operation]]\nname = \"center_crop\"\nsize = 24\n";

/// Expects an error that names the picture, and that no process was killed.
fn refused(done: Finished, words: &[&str]) -> Finished {
    assert_eq!(done.code(), Some(1), "{done:?}");
    let all = [&["1.png", "decoding it takes up to"], words].concat();
    done.refused(&all)
}

#[test]
fn a_picture_too_large_for_the_container_is_refused_by_every_command_that_decodes() {
    let Some(group) = group("commands") else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    pictures(folder);
    let by_container = ["memory limit"];
    // Packing decodes, to check.
    refused(group.meetpoint(folder, &["pack", "pictures", "checked.set"]), &by_container);
    let skipping = ["pack", "pictures", "checked.set", "--on-error", "skip", "--json"];
    let done = group.meetpoint(folder, &skipping).success();
    let packed: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(packed["samples"], 4, "{done:?}");
    // Elsewhere there is enough memory for it.
    run(folder, &["pack", "pictures", "all.set", "--check", "header"]).success();
    std::fs::write(folder.join("recipe.toml"), RECIPE).unwrap();
    for arguments in [
        &["show", "all.set", "1", "-o", "seen.png"][..],
        &["show", "all.set", "1", "--recipe", "recipe.toml", "-o", "seen.npy"],
        &["show", "all.set", "--recipe", "recipe.toml", "-o", "sheet.png"],
        &["verify", "all.set", "--deep"],
        &["prepare", "recipe.toml", "all.set", "prepared.set", "--cut", "resize"],
        &["profile", "recipe.toml", "all.set", "--runs", "2", "--samples", "5"],
    ] {
        let done = group.meetpoint(folder, arguments);
        if arguments[0] == "verify" {
            // It lists what it found.
            assert_eq!(done.code(), Some(1), "{done:?}");
            assert!((done.stdout + &done.stderr).contains("decoding it takes up to"));
            continue;
        }
        refused(done, &by_container);
    }
    let skipping = ["prepare", "recipe.toml", "all.set", "prepared.set", "--cut", "resize"];
    let skipping = [&skipping[..], &["--on-error", "skip", "--json"]].concat();
    let done = group.meetpoint(folder, &skipping).success();
    let prepared: Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(prepared["samples"], 4, "{done:?}");
}

#[test]
fn a_device_decodes_within_its_part_of_the_memory_budget_of_its_host() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    pictures(folder);
    run(folder, &["pack", "pictures", "all.set", "--check", "header"]).success();
    let job = |budget: &str| {
        let head = "dataset = \"all.set\"\nbatch_size = 1\nverify = false\n";
        let device = "[device]\nkind = \"emulated\"\nallow_shared = true\n";
        let text = format!("{head}memory_budget = {budget:?}\n{device}{RECIPE}");
        std::fs::write(folder.join("job.toml"), text).unwrap();
        run(folder, &["run", "job.toml", "--strategy", "device-only"])
    };
    // Either end would decode it alone, but not both.
    let words = ["1.png", "each of 2 equal parts of the memory budget", "memory_budget"];
    job("300MiB").refused(&words);
    job("1GiB").success();
}

#[test]
fn a_run_with_defaults_refuses_a_picture_too_large_for_the_container_with_and_without_a_device() {
    let Some(group) = group("runs") else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    pictures(folder);
    run(folder, &["pack", "pictures", "all.set", "--check", "header"]).success();
    let head = "dataset = \"all.set\"\nbatch_size = 1\nverify = false\n";
    let device = "[device]\nkind = \"emulated\"\nallow_shared = true\n";
    std::fs::write(folder.join("job.toml"), format!("{head}{device}{RECIPE}")).unwrap();
    for strategy in ["host-only", "device-only"] {
        let done = group.meetpoint(folder, &["run", "job.toml", "--strategy", strategy]);
        refused(done, &["memory_budget"]);
    }
    // Where there is enough memory, the same job runs.
    run(folder, &["run", "job.toml", "--strategy", "host-only"]).success();
}
