//! Prints the instruction sets whose kernels the tests exercise on this machine, and why others
//! are skipped.
//!
//! The tests loop over the same list, [`Cpu::ALL`], and skip the same ones.

use meetpoint_jpeg::Cpu;

#[expect(clippy::print_stdout, reason = "this is the report")]
fn main() {
    let exercised: Vec<_> = Cpu::available().map(Cpu::name).collect();
    println!("instruction sets exercised: {}", exercised.join(", "));
    for (cpu, reason) in Cpu::ALL.iter().filter_map(|cpu| Some((cpu, cpu.unavailable()?))) {
        println!("instruction set skipped: {} ({reason})", cpu.name());
    }
    println!("kernels chosen on this machine: {}", Cpu::detect().name());
}
