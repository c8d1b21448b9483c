//! The tables of docs/energy.md are those of the bundled files. UPDATE_GOLDEN=1 writes them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use meetpoint_sim::power::{PowerModel, presets};

const PARTS: &str = include_str!("../power/parts.toml");
const BEGIN: &str = "<!-- made from sim/power; a test holds it -->\n";
const END: &str = "<!-- end -->\n";

/// Sections in the order of a power file, with their keys.
const SECTIONS: [(&str, &[&str]); 7] = [
    ("base", &["watts"]),
    ("host_core", &["idle_w", "active_w"]),
    ("dram", &["modules", "module_w", "picojoules_per_byte"]),
    ("device", &["idle_w", "active_w"]),
    ("accelerator", &["idle_w", "active_w"]),
    ("flash", &["capacity_tb", "rated_tbw", "rated_years"]),
    ("prices", &["node_per_hour", "per_kwh", "device_premium", "device_life_years", "drive"]),
];

type Parts = BTreeMap<String, BTreeMap<String, toml::Table>>;

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/energy.md")
}

fn is_named(part: &toml::Table, list: &str, key: &str) -> bool {
    let names = part.get(list).and_then(toml::Value::as_array);
    names.is_some_and(|names| names.iter().any(|name| name.as_str() == Some(key)))
}

/// A number as it stands in the file; `?` for an unverified one, `*` for an example.
fn cell(part: &toml::Table, key: &str) -> String {
    let mut cell = part[key].to_string();
    if is_named(part, "unverified", key) {
        cell.push_str(" ?");
    }
    if is_named(part, "example", key) {
        cell.push_str(" *");
    }
    cell
}

fn tables() -> String {
    let parts: Parts = toml::from_str(PARTS).expect("the parts parse");
    let mut text = String::from("| preset | what it is |\n|---|---|\n");
    for preset in presets() {
        let model = PowerModel::preset(preset.name).expect("it is listed");
        text.push_str(&format!("| `{}` | {} |\n", preset.name, model.about()));
    }
    for (section, keys) in SECTIONS {
        text.push_str(&format!("\n### {section}\n\n| part | {} | source |\n", keys.join(" | ")));
        text.push_str(&format!("|---{}|---|\n", "|---:".repeat(keys.len())));
        for (name, part) in &parts[section] {
            let cells: Vec<String> = keys.iter().map(|key| cell(part, key)).collect();
            let source = part["source"].as_str().expect("every part has a source");
            text.push_str(&format!("| `{name}` | {} | {source} |\n", cells.join(" | ")));
        }
    }
    text
}

#[test]
fn docs_hold_every_preset_and_part_with_its_source() {
    let text = std::fs::read_to_string(page()).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("the page has the mark of its tables");
    let (_, after) = rest.split_once(END).expect("the page has the mark of their end");
    let wanted = format!("{before}{BEGIN}\n{}\n{END}{after}", tables());
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(page(), &wanted).unwrap();
        return;
    }
    assert!(text == wanted, "docs/energy.md is not what sim/power has; UPDATE_GOLDEN=1 writes it");
}
