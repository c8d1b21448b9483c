//! The dashboard in deploy/grafana names only metrics that loaders and agents have, and all of
//! them.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use meetpoint_metrics::{CompletedEpoch, ConsumedBatch, Prometheus};

fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Names that begin with `meetpoint_` in a text.
fn names(text: &str) -> BTreeSet<String> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let words = text.split(|letter: char| !is_part(letter));
    words.filter(|word| word.starts_with("meetpoint_")).map(str::to_owned).collect()
}

/// The names of all samples that a loader has after a batch of each kind and an epoch.
fn of_loaders() -> BTreeSet<String> {
    let metrics = Prometheus::new();
    for source in ["host", "device"] {
        metrics.batch(&ConsumedBatch {
            source,
            samples: 2,
            bytes: 100,
            replaced: 1,
            skipped: 1,
            waited: Duration::from_millis(3),
        });
    }
    metrics.epoch(&CompletedEpoch {
        revoked: 1,
        stalls: 1,
        host_cpu_seconds: 1.0,
        device_busy_seconds: 1.0,
    });
    let text = metrics.text();
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    samples.filter_map(|line| names(line).into_iter().next()).collect()
}

/// The names in the table of docs/agents.md.
fn of_agents() -> BTreeSet<String> {
    let text = read("docs/agents.md");
    let rows = text.lines().filter(|line| line.starts_with("| `meetpoint_agent_"));
    rows.map(|row| row.split('`').nth(1).unwrap_or_default().to_owned()).collect()
}

#[test]
fn every_metric_of_the_dashboard_exists() {
    let known: BTreeSet<String> = of_loaders().union(&of_agents()).cloned().collect();
    let unknown: Vec<String> =
        names(&read("deploy/grafana/meetpoint.json")).difference(&known).cloned().collect();
    assert!(unknown.is_empty(), "not among {known:?}: {unknown:?}");
}

#[test]
fn every_metric_is_on_the_dashboard() {
    let shown = names(&read("deploy/grafana/meetpoint.json"));
    let family = |name: &str| {
        let parts = ["_bucket", "_sum", "_count"];
        let end = parts.iter().find_map(|part| name.strip_suffix(part));
        end.unwrap_or(name).to_owned()
    };
    let shown: BTreeSet<String> = shown.iter().map(|name| family(name)).collect();
    let all = of_loaders().union(&of_agents()).map(|name| family(name)).collect::<BTreeSet<_>>();
    let missing: Vec<&String> = all.difference(&shown).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
