//! Files of a crate do not import each other in a cycle, a parent and its own children apart.
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

/// Files that are part of a cycle, by crate. A crate that is not named has none. To remove one,
/// move what both files need into a file below both, then lower the number here.
const IN_CYCLES: [(&str, usize); 0] = [];

/// The files of a crate and the paths between them.
struct Graph {
    modules: Modules,
    edges: Vec<Edge>,
}

impl Graph {
    /// The graph of the crate whose root file is in a folder; edges between a file and its own
    /// children are left out.
    fn read(folder: &Path, root: &str) -> Self {
        let modules = Modules::read(folder, root);
        let parent = |file: usize| modules.files[file].1;
        let is_family =
            |edge: &Edge| parent(edge.from) == Some(edge.to) || parent(edge.to) == Some(edge.from);
        let edges = modules.edges().into_iter().filter(|edge| !is_family(edge)).collect();
        Self { modules, edges }
    }

    /// The files that a file leads to, itself among them only if it is in a cycle.
    fn reachable(&self, from: usize) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        let mut open = vec![from];
        while let Some(file) = open.pop() {
            for edge in self.edges.iter().filter(|edge| edge.from == file) {
                if found.insert(edge.to) {
                    open.push(edge.to);
                }
            }
        }
        found
    }

    /// Groups of files of which each leads to every other.
    fn cycles(&self) -> Vec<BTreeSet<usize>> {
        let all: BTreeMap<usize, BTreeSet<usize>> =
            (0..self.modules.files.len()).map(|file| (file, self.reachable(file))).collect();
        let mut found: Vec<BTreeSet<usize>> = Vec::new();
        for (file, reached) in &all {
            if reached.contains(file) && !found.iter().any(|group| group.contains(file)) {
                let back = |other: &&usize| all[other].contains(file);
                found.push(reached.iter().filter(back).copied().collect());
            }
        }
        found
    }

    /// A line for each edge of each cycle.
    fn describe(&self, cycles: &[BTreeSet<usize>]) -> String {
        let mut text = String::new();
        for cycle in cycles {
            writeln!(text, "{} files:", cycle.len()).expect("a string takes everything");
            let inside = |edge: &&Edge| cycle.contains(&edge.from) && cycle.contains(&edge.to);
            for edge in self.edges.iter().filter(inside) {
                let [from, to] = [edge.from, edge.to].map(|file| &self.modules.files[file].0);
                writeln!(text, "    {} -> {} (line {})", from.display(), to.display(), edge.line)
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

#[test]
fn no_files_import_each_other_in_a_cycle_but_for_those_that_are_counted() {
    let allowed: BTreeMap<&str, usize> = IN_CYCLES.into();
    let mut problems = String::new();
    let mut files = 0;
    for (name, folder) in crates() {
        let roots = ["lib.rs", "main.rs"].into_iter().filter(|root| folder.join(root).is_file());
        let graphs: Vec<_> = roots.map(|root| Graph::read(&folder, root)).collect();
        files += graphs.iter().map(|graph| graph.modules.files.len()).sum::<usize>();
        let cycles: Vec<_> = graphs.iter().map(Graph::cycles).collect();
        let found: usize = cycles.iter().flatten().map(BTreeSet::len).sum();
        let limit = allowed.get(name.as_str()).copied().unwrap_or(0);
        if found > limit {
            writeln!(problems, "{name}: {found} files are in cycles, {limit} were:").unwrap();
            for (graph, cycles) in graphs.iter().zip(&cycles) {
                problems += &graph.describe(cycles);
            }
        } else if found < limit {
            let lower = format!("{name}: {found} files are in cycles; lower {limit} to {found}");
            writeln!(problems, "{lower} in IN_CYCLES").unwrap();
        }
    }
    assert!(files > 500, "only {files} files were read");
    assert!(problems.is_empty(), "{problems}");
}

/// Writes the files of a synthetic crate and reads them.
fn made_up(files: &[(&str, &str)]) -> Graph {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    Graph::read(folder.path(), "lib.rs")
}

fn described(files: &[(&str, &str)]) -> String {
    let graph = made_up(files);
    graph.describe(&graph.cycles())
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
