//! Files of a crate do not import each other in a cycle, except for a parent and its own children.
//! Top-level modules, each a file with the folder of the same name, do not import each other in a
//! cycle either. To remove a cycle, move what both need below both; if one calls the other back,
//! declare a trait below.
//!
//! Paths are followed through re-exports to the file that defines what they name. What a file needs
//! of another only through method calls is not seen.

mod modules;
pub(crate) mod tokens;

use crate::layers::root;
use modules::{Edge, Modules};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

/// The parts of a crate and the paths between them.
struct Graph {
    /// Files, or top-level modules.
    nodes: Vec<String>,
    edges: Vec<Import>,
}

/// A path from one node to another, and where it stands.
struct Import {
    from: usize,
    to: usize,
    at: String,
}

impl Graph {
    /// The files of a crate; edges between a file and its own children are left out.
    fn of_files(modules: &Modules) -> Self {
        let parent = |file: usize| modules.files[file].1;
        let is_family =
            |edge: &Edge| parent(edge.from) == Some(edge.to) || parent(edge.to) == Some(edge.from);
        let edges = modules.edges().into_iter().filter(|edge| !is_family(edge));
        let import = |Edge { from, to, line }| Import { from, to, at: format!("line {line}") };
        let nodes = modules.files.iter().map(|(path, _)| path.display().to_string());
        Self { nodes: nodes.collect(), edges: edges.map(import).collect() }
    }

    /// The top-level modules of a crate, of which the root file is the parent.
    fn of_modules(modules: &Modules) -> Self {
        let top: Vec<usize> = (0..modules.files.len()).map(|file| modules.top_of(file)).collect();
        let mut edges = BTreeMap::new();
        for edge in modules.edges() {
            let ends = [edge.from, edge.to].map(|file| top[file]);
            if ends[0] != ends[1] && !ends.contains(&Modules::ROOT) {
                let file = modules.files[edge.from].0.display();
                edges.entry(ends).or_insert_with(|| format!("{file}, line {}", edge.line));
            }
        }
        let name = |(path, _): &(std::path::PathBuf, _)| {
            let first = path.iter().next().map(Path::new).unwrap_or(path);
            first.with_extension("").display().to_string()
        };
        let edges = edges.into_iter().map(|([from, to], at)| Import { from, to, at });
        Self { nodes: modules.files.iter().map(name).collect(), edges: edges.collect() }
    }

    /// The nodes that a node leads to. It leads to itself only if it is in a cycle.
    fn reachable(&self, from: usize) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        let mut open = vec![from];
        while let Some(node) = open.pop() {
            for edge in self.edges.iter().filter(|edge| edge.from == node) {
                if found.insert(edge.to) {
                    open.push(edge.to);
                }
            }
        }
        found
    }

    /// Groups of nodes of which each leads to every other.
    fn cycles(&self) -> Vec<BTreeSet<usize>> {
        let all: BTreeMap<usize, BTreeSet<usize>> =
            (0..self.nodes.len()).map(|node| (node, self.reachable(node))).collect();
        let mut found: Vec<BTreeSet<usize>> = Vec::new();
        for (node, reached) in &all {
            if reached.contains(node) && !found.iter().any(|group| group.contains(node)) {
                let back = |other: &&usize| all[other].contains(node);
                found.push(reached.iter().filter(back).copied().collect());
            }
        }
        found
    }

    /// A line for each edge of each cycle; `unit` is what the nodes are.
    fn describe(&self, cycles: &[BTreeSet<usize>], unit: &str) -> String {
        let mut text = String::new();
        for cycle in cycles {
            writeln!(text, "{} {unit}:", cycle.len()).expect("a string takes everything");
            let inside = |edge: &&Import| cycle.contains(&edge.from) && cycle.contains(&edge.to);
            for edge in self.edges.iter().filter(inside) {
                let [from, to] = [edge.from, edge.to].map(|node| &self.nodes[node]);
                writeln!(text, "    {from} -> {to} ({})", edge.at)
                    .expect("a string takes everything");
            }
        }
        text
    }
}

/// Packages of the workspace: name without the prefix, and source folder.
fn crates() -> Vec<(String, std::path::PathBuf)> {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).expect("Cargo.toml reads");
    let members = manifest.split("members = [").nth(1).and_then(|rest| rest.split(']').next());
    let folders = members.expect("the workspace has members").split('"').skip(1).step_by(2);
    folders.map(|folder| (folder.replace('/', "-"), root().join(folder).join("src"))).collect()
}

/// Fails if nodes of a crate are in a cycle; `unit` is what the nodes are.
fn assert_no_cycles(graph: fn(&Modules) -> Graph, unit: &str) {
    let mut problems = String::new();
    let mut files = 0;
    for (name, folder) in crates() {
        for root in ["lib.rs", "main.rs"].into_iter().filter(|root| folder.join(root).is_file()) {
            let modules = Modules::read(&folder, root);
            files += modules.files.len();
            let graph = graph(&modules);
            let cycles = graph.describe(&graph.cycles(), unit);
            if !cycles.is_empty() {
                writeln!(problems, "{name}: a cycle of {cycles}").unwrap();
            }
        }
    }
    assert!(files > 500, "only {files} files were read");
    assert!(problems.is_empty(), "{problems}");
}

#[test]
fn no_files_import_each_other_in_a_cycle() {
    assert_no_cycles(Graph::of_files, "files");
}

#[test]
fn no_top_level_modules_import_each_other_in_a_cycle() {
    assert_no_cycles(Graph::of_modules, "modules");
}

/// Writes the files of a synthetic crate and reads them.
fn made_up(files: &[(&str, &str)]) -> Modules {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    Modules::read(folder.path(), "lib.rs")
}

/// The cycles of its files.
fn described(files: &[(&str, &str)]) -> String {
    let graph = Graph::of_files(&made_up(files));
    graph.describe(&graph.cycles(), "files")
}

#[test]
fn a_cycle_is_found_through_re_exports_and_named_by_line() {
    let cycle = described(&[
        ("lib.rs", "mod a;\nmod b;\nmod c;\npub use a::Alpha;\npub use c::*;"),
        ("a.rs", "// One line before.\nuse crate::b::{self, Beta};\npub struct Alpha(Beta);"),
        ("b.rs", "mod deep;\npub use deep::Beta;"),
        ("b/deep.rs", "pub struct Beta;\nfn f() {\n    super::super::gamma();\n}"),
        ("c.rs", "use crate::Alpha;\npub fn gamma() -> Option<Alpha> { None }"),
    ]);
    let expected = "3 files:\n    a.rs -> b/deep.rs (line 2)\n    b/deep.rs -> c.rs (line 3)\n    \
                    c.rs -> a.rs (line 1)\n";
    assert_eq!(cycle, expected);
}

#[test]
fn a_parent_and_its_children_and_what_only_tests_import_are_no_cycle() {
    let none = described(&[
        ("lib.rs", "pub mod a;\nmod b;\nmod limits { pub const MAX: u32 = 1; }"),
        ("a/mod.rs", "mod child;\npub use child::Child;\npub enum Kind { One }"),
        ("a/child.rs", "use super::Kind;\npub struct Child(Kind);\npub(in crate::a) fn f() {}"),
        (
            "b.rs",
            "use crate::a::Child;\nconst TEXT: &str = \"crate::a::Kind\"; // crate::a::Kind\n\
             pub fn b(_: Child) -> u32 { crate::limits::MAX }",
        ),
        ("a/unused.rs", "use crate::b::b;"),
    ]);
    assert_eq!(none, "");
    let none = described(&[
        ("lib.rs", "mod a;\nmod b;\n#[cfg(test)]\nmod tests;"),
        ("a.rs", "pub fn a() {}\n#[cfg(test)]\nmod inside { use crate::b::b; }"),
        ("b.rs", "#[cfg(test)]\nuse crate::tests::Helper;\npub fn b() { crate::a::a() }"),
        ("tests.rs", "use crate::b::b;\npub struct Helper;"),
    ]);
    assert_eq!(none, "");
}

#[test]
fn a_cycle_of_two_files_and_an_inline_module_is_found() {
    let cycle = described(&[
        ("lib.rs", "mod a;\nmod b;"),
        ("a.rs", "pub mod names { pub const A: u8 = super::super::b::B; }"),
        ("b.rs", "pub const B: u8 = crate::a::names::A;"),
    ]);
    assert_eq!(cycle, "2 files:\n    a.rs -> b.rs (line 1)\n    b.rs -> a.rs (line 1)\n");
}

#[test]
fn a_cycle_of_modules_is_found_although_none_of_its_files_is_in_one() {
    let files = [
        ("lib.rs", "mod a;\nmod b;\nmod c;\npub use a::Alpha;"),
        ("a/mod.rs", "mod high;\nmod low;\npub use low::Alpha;"),
        ("a/low.rs", "pub struct Alpha;"),
        ("a/high.rs", "// One line before.\npub fn high(_: crate::b::Beta) {}"),
        ("b.rs", "mod inner;\npub struct Beta;"),
        ("b/inner.rs", "use crate::Alpha;\npub fn f(_: Alpha) -> u32 { crate::c::MAX }"),
        ("c.rs", "pub const MAX: u32 = 1;"),
    ];
    assert_eq!(described(&files), "");
    let graph = Graph::of_modules(&made_up(&files));
    let expected = "2 modules:\n    a -> b (a/high.rs, line 2)\n    \
                    b -> a (b/inner.rs, line 1)\n";
    assert_eq!(graph.describe(&graph.cycles(), "modules"), expected);
}
