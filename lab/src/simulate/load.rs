//! Reads a scenario file and its traces, and adds positions to errors.

use crate::{Error, ScenarioFault};
use meetpoint_sim::scenario::{Scenario, ScenarioError, Span};
use meetpoint_storage::files::{read_regular, read_text};
use std::io;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Maximum size of a trace file, in bytes.
const TRACE_BYTES_MAX: u64 = 64 << 20;

/// A scenario and the text that it was read from.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// Its file.
    pub path: PathBuf,
    /// Its text.
    text: String,
    /// As a table, which sweeps modify.
    pub table: toml::Table,
    /// The scenario without sweeps.
    pub scenario: Scenario,
}

impl Loaded {
    /// Reads a scenario with its traces, and validates it.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let text = read_text(path).map_err(|source| Error::Unreadable {
            file: path.to_path_buf(),
            remedy: "name a scenario file (docs/simulation.md has one)",
            source,
        })?;
        Self::parse(path, text)
    }

    fn parse(path: &Path, text: String) -> Result<Self, Error> {
        let scenario =
            Scenario::from_toml(&text).map_err(|error| fault(path, Some(&text), error))?;
        let table = text.parse().expect("what was read as a scenario is TOML");
        let mut loaded = Self { path: path.to_path_buf(), text, table, scenario };
        let mut scenario = loaded.scenario.clone();
        loaded.complete(&mut scenario, &[])?;
        loaded.scenario = scenario;
        Ok(loaded)
    }

    /// Reads the traces that a scenario of this file names, and validates it; `swept` are the
    /// parameters that a sweep has set, with their values as text.
    pub fn complete(
        &self,
        scenario: &mut Scenario,
        swept: &[(String, String)],
    ) -> Result<(), Error> {
        let folder = self.path.parent().unwrap_or(Path::new(""));
        scenario.fill_traces(|name| trace(&folder.join(name)))?;
        scenario.check().map_err(|error| match swept {
            [] => fault(&self.path, Some(&self.text), error),
            _ => self.sweep_fault(ScenarioError { swept: swept.to_vec(), ..error }),
        })
    }

    /// The error of a sweep over this file, without a position.
    pub fn sweep_fault(&self, error: ScenarioError) -> Error {
        fault(&self.path, None, error)
    }
}

/// Adds the file to an error, and the position of its key in `text`.
fn fault(path: &Path, text: Option<&str>, error: ScenarioError) -> Error {
    let place = text.and_then(|text| error.place.or_else(|| place_of(text, &error.key)));
    let ScenarioError { key, swept, problem, remedy, .. } = error;
    let file = path.to_path_buf();
    Error::Scenario(Box::new(ScenarioFault { file, place, key, swept, problem, remedy }))
}

/// Line and column of the value of a key such as `devices.0.preparation`; that of the nearest
/// existing table if the key does not exist.
fn place_of(text: &str, key: &str) -> Option<(usize, usize)> {
    let file = DeTable::parse(text).ok()?;
    let mut table: Option<&DeTable<'_>> = Some(file.get_ref());
    let mut list: Option<&[Spanned<DeValue<'_>>]> = None;
    let mut found = None;
    for step in key.split('.') {
        let value = match (table, list) {
            (Some(table), _) => table.get(step),
            (_, Some(list)) => step.parse::<usize>().ok().and_then(|index| list.get(index)),
            _ => None,
        };
        let Some(value) = value else { break };
        found = Some(value.span().start);
        (table, list) = match value.get_ref() {
            DeValue::Table(table) => (Some(table), None),
            DeValue::Array(list) => (None, Some(list.as_ref())),
            _ => (None, None),
        };
    }
    let before = text.get(..found?)?;
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    Some((before.matches('\n').count() + 1, before[line_start..].chars().count() + 1))
}

/// Reads a file with one time per line; empty lines and comments after `#` are ignored.
fn trace(path: &Path) -> Result<Vec<Span>, Error> {
    let text = read_regular(path, TRACE_BYTES_MAX)
        .and_then(|bytes| String::from_utf8(bytes).map_err(io::Error::other))
        .map_err(|source| Error::Unreadable {
            file: path.to_path_buf(),
            remedy: "name a file with one time per line, such as 20ms",
            source,
        })?;
    let mut times = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if !line.is_empty() {
            let wrong =
                |source| Error::TraceTime { file: path.to_path_buf(), line: number + 1, source };
            times.push(line.parse::<Span>().map_err(wrong)?);
        }
    }
    if times.is_empty() {
        return Err(Error::EmptyTrace { file: path.to_path_buf() });
    }
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::Loaded;
    use crate::Error;
    use meetpoint_diagnose::{Diagnose, Surface};
    use std::path::Path;

    const SMALL: &str = "batches = 10\n[host]\npreparation = \"700ms\"\n[[devices]]\n\
                         preparation = \"2s\"\n[accelerator]\nstep = \"300ms\"\n";

    fn refusal(from: &str, to: &str) -> String {
        let text = SMALL.replace(from, to);
        let error = Loaded::parse(Path::new("a.toml"), text).unwrap_err();
        error.in_full(Surface::CommandLine)
    }

    #[test]
    fn a_fault_has_its_position_also_where_it_is_found_late() {
        for (from, to, wanted) in [
            ("\"700ms\"", "0.7", "a.toml:3:15: `host.preparation` "),
            ("batches = 10", "batches = 0", "a.toml:1:11: `batches` is 0"),
            ("\"2s\"", "\"2s\"\nspool_slots = 0", "a.toml:6:15: `devices.0.spool_slots`"),
            ("\"2s\"", "\"2s", "a.toml:5:"),
        ] {
            let said = refusal(from, to);
            assert!(said.starts_with(wanted) && said.contains("` takes "), "{said}");
        }
    }

    #[test]
    fn a_device_is_refused_before_it_is_read() {
        let error = Loaded::read(Path::new("/dev/null")).unwrap_err();
        assert!(matches!(error, Error::Unreadable { .. }), "{error:?}");
        let text = SMALL.replace("\"2s\"", "{ kind = \"trace\", file = \"/dev/null\" }");
        let error = Loaded::parse(Path::new("a.toml"), text).unwrap_err();
        assert!(matches!(error, Error::Unreadable { .. }), "{error:?}");
        let error = crate::simulate::replay::file(Path::new("/dev/null")).unwrap_err();
        assert!(matches!(error, Error::Unreadable { .. }), "{error:?}");
    }

    #[test]
    fn a_trace_that_cannot_be_read_is_named() {
        let said = refusal("\"2s\"", "{ kind = \"trace\", file = \"no-such.txt\" }");
        assert!(said.contains("no-such.txt"), "{said}");
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("t.txt"), "20ms\n\n30ms # slow\nfast\n").unwrap();
        let text = SMALL.replace("\"2s\"", "{ kind = \"trace\", file = \"t.txt\" }");
        let path = folder.path().join("a.toml");
        let said = Loaded::parse(&path, text.clone()).unwrap_err().to_string();
        assert!(said.contains("t.txt:4: ") && said.contains("a time with a unit"), "{said}");
        std::fs::write(folder.path().join("t.txt"), "20ms\n30ms\n").unwrap();
        let loaded = Loaded::parse(&path, text).unwrap();
        assert_eq!(loaded.scenario.devices[0].preparation.mean_ns(), 25e6);
    }
}
