//! Prints how many bytes a JPEG takes in each form and after each rewrite: `recode IN.jpg ..`.
//!
//! Each coefficient form is restored, and must give the file again.
#![expect(clippy::print_stdout, reason = "what it finds is its result")]

use meetpoint_jpeg::{
    Form, HuffmanTables, Process, Restarts, Rewrite, Spacing, entry_points, from_form, rewrite,
    to_form,
};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    for path in std::env::args().skip(1) {
        let file = std::fs::read(&path)?;
        println!("{path}: {} bytes", file.len());
        let points = entry_points(&file, Spacing::McuRow)?;
        println!("  entry points: {}", points.map_or(0, |points| points.len()));
        for (name, form) in [("fast", Form::Fast), ("compact", Form::Compact)] {
            let stored = to_form(&file, form)?;
            if from_form(&stored)? != file {
                return Err(format!("{path}: the form {name} restores another file").into());
            }
            println!("  form {name}: {}", stored.len());
        }
        for process in [Process::Baseline, Process::Progressive] {
            let how =
                Rewrite { restarts: Restarts::Keep, tables: HuffmanTables::Optimise, process };
            println!("  {process:?}, optimal tables: {}", rewrite(&file, &how)?.len());
        }
    }
    Ok(())
}
