//! The files in deploy/ agree with the program: options, JSON, templates.

use crate::layers::root;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Words that begin with `--`, without what follows the name.
fn options(text: &str) -> BTreeSet<String> {
    let is_name = |letter: char| letter.is_ascii_lowercase() || letter == '-';
    let mut found = BTreeSet::new();
    for (at, _) in text.match_indices("--") {
        let before = text[..at].chars().next_back();
        if before.is_some_and(|letter| !letter.is_whitespace() && !"\"'`[(".contains(letter)) {
            continue;
        }
        let name: String = text[at..].chars().take_while(|letter| is_name(*letter)).collect();
        if name.len() > 3 {
            found.insert(name);
        }
    }
    found
}

/// The options in the help of a command; `None` if the program lacks the command.
fn of_program(command: &[&str]) -> Option<BTreeSet<String>> {
    let mut program = Command::new(env!("CARGO_BIN_EXE_meetpoint-under-test"));
    let output = program.args(command).arg("--help").output().expect("the program starts");
    output.status.success().then(|| options(&String::from_utf8_lossy(&output.stdout)))
}

/// The options of `meetpoint agent`, by its help or else by its page.
fn of_agent() -> BTreeSet<String> {
    let page = read("docs/agents.md");
    let table: Vec<&str> = page.lines().filter(|line| line.starts_with("| `--")).collect();
    of_program(&["agent"]).unwrap_or_else(|| options(&table.join("\n")))
}

/// A command in a file, from `begin` on, with the lines that continue it.
fn command_line(text: &str, begin: &str) -> String {
    let at = text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let column = line.find(begin)?;
        Some(line.as_ptr().addr() - text.as_ptr().addr() + column)
    });
    let mut found = String::new();
    for line in text[at.unwrap_or(text.len())..].lines() {
        found.push_str(line.trim_end_matches('\\'));
        found.push('\n');
        if !line.ends_with('\\') {
            break;
        }
    }
    assert!(!found.is_empty(), "no line with {begin:?}");
    found
}

/// The arguments of the container with this name in the rendered chart.
fn container_args(name: &str) -> Vec<String> {
    let text = read("deploy/chart-rendered.yaml");
    let lines = text.lines().skip_while(|line| line.trim() != format!("- name: {name}"));
    let lines = lines.skip_while(|line| line.trim() != "args:").skip(1);
    let args = lines.map(str::trim).take_while(|line| line.starts_with("- "));
    let args: Vec<String> = args.map(|line| line[2..].trim_matches('"').to_owned()).collect();
    assert!(!args.is_empty(), "no arguments of the container {name}");
    args
}

fn all_known(what: &str, used: &BTreeSet<String>, known: &BTreeSet<String>) {
    assert!(!used.is_empty(), "{what} has no options");
    let unknown: Vec<&String> = used.difference(known).collect();
    assert!(unknown.is_empty(), "{what}: the program does not take {unknown:?}");
}

#[test]
fn every_option_of_agents_in_the_files_is_one_of_the_program() {
    let known = of_agent();
    let unit = read("deploy/systemd/meetpoint-agent.service");
    all_known("the unit", &options(&command_line(&unit, "ExecStart=")), &known);
    all_known("the chart", &options(&container_args("agent").join(" ")), &known);
    let script = read("deploy/slurm/train.sbatch");
    all_known("train.sbatch", &options(&command_line(&script, "meetpoint agent")), &known);
}

#[test]
fn every_option_of_shards_in_the_files_is_one_of_the_program() {
    let known = of_program(&["shards", "run"]).expect("the program has shards");
    let args = container_args("shard");
    assert_eq!(args[..2], ["shards", "run"]);
    all_known("the chart", &options(&args.join(" ")), &known);
    let script = read("deploy/slurm/pack.sbatch");
    let begin = "exec meetpoint shards run";
    all_known("pack.sbatch", &options(&command_line(&script, begin)), &known);
}

#[test]
fn the_image_starts_a_command_of_the_program() {
    let text = read("deploy/container/Containerfile");
    assert!(text.contains("CMD [\"agent\", \"--help\"]"));
    assert!(text.contains("\nUSER 65532:65532\n"), "the image does not run as root");
    assert!(text.contains("\nFROM scratch\n"), "the image has no shell");
}

#[test]
fn the_dashboard_is_valid_and_each_panel_has_a_query() {
    let text = read("deploy/grafana/meetpoint.json");
    let dashboard: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let mut ids = BTreeSet::new();
    for panel in panels {
        assert!(ids.insert(panel["id"].as_u64()), "a duplicate id: {panel}");
        if panel["type"] != "row" {
            let targets = panel["targets"].as_array().expect("queries");
            assert!(!targets.is_empty(), "{}", panel["title"]);
            for target in targets {
                let query = target["expr"].as_str().expect("a query");
                for (open, close) in [('(', ')'), ('{', '}'), ('[', ']')] {
                    let count = |letter| query.matches(letter).count();
                    assert_eq!(count(open), count(close), "{query}");
                }
            }
        }
    }
}

fn templates() -> Vec<PathBuf> {
    let folder = root().join("deploy/chart/templates");
    let files = std::fs::read_dir(folder).expect("a folder");
    files.map(|file| file.expect("a file").path()).collect()
}

#[test]
fn templates_of_the_chart_are_balanced_and_use_declared_values() {
    let values = read("deploy/chart/values.yaml");
    // Keys of the file with their indentation, as paths.
    let mut declared = BTreeSet::new();
    let mut path: Vec<(usize, &str)> = Vec::new();
    for line in values.lines().filter(|line| !line.trim_start().starts_with('#')) {
        let Some((key, _)) = line.split_once(':') else { continue };
        let indent = key.len() - key.trim_start().len();
        path.retain(|(other, _)| *other < indent);
        path.push((indent, key.trim()));
        let keys: Vec<&str> = path.iter().map(|(_, key)| *key).collect();
        declared.insert(keys.join("."));
    }
    for template in templates() {
        let text = read(&template);
        let name = template.display();
        assert_eq!(text.matches("{{").count(), text.matches("}}").count(), "{name}");
        let opened = ["{{- if ", "{{- with ", "{{- range ", "{{- define "];
        let opened: usize = opened.iter().map(|word| text.matches(word).count()).sum();
        assert_eq!(opened, text.matches("{{- end").count(), "{name}");
        for (at, _) in text.match_indices(".Values.") {
            let is_path = |letter: char| letter.is_ascii_alphanumeric() || letter == '.';
            let path: String = text[at + 8..].chars().take_while(|it| is_path(*it)).collect();
            assert!(declared.contains(path.as_str()), "{name}: .Values.{path} is not declared");
        }
    }
}

#[test]
fn scripts_are_valid_for_bash() {
    for script in ["deploy/slurm/pack.sbatch", "deploy/slurm/train.sbatch", "scripts/chart.sh"] {
        let checked = Command::new("bash").arg("-n").arg(root().join(script)).output();
        let output = checked.expect("bash starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn the_unit_is_one_that_systemd_accepts() {
    let unit = root().join("deploy/systemd/meetpoint-agent.service");
    let Ok(output) = Command::new("systemd-analyze").arg("--version").output() else {
        println!("SKIP: there is no systemd-analyze");
        return;
    };
    assert!(output.status.success());
    let folder = tempfile::tempdir().expect("a folder");
    // The program of the unit must exist; this one does.
    let text = read(&unit).replace("/usr/local/bin/meetpoint", "/bin/true");
    let copy = folder.path().join("meetpoint-agent.service");
    std::fs::write(&copy, text).expect("a file");
    let checked = Command::new("systemd-analyze").arg("verify").arg(&copy).output();
    let output = checked.expect("systemd-analyze starts");
    let said = String::from_utf8_lossy(&output.stderr);
    // Other units of the machine may be wrong.
    let own: Vec<&str> = said.lines().filter(|line| line.contains("meetpoint-agent")).collect();
    assert!(own.is_empty(), "{}", own.join("\n"));
}
