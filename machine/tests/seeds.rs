//! Runs many seeds, and compares the traces of repeated seeds.

use std::process::{Command, Output, Stdio};

/// Runs the simulator.
fn simulate(arguments: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_meetpoint-machine")).args(arguments).output();
    output.expect("the simulator can be started")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("the simulator prints text")
}

#[test]
fn five_hundred_seeds_do_not_fail() {
    let output = simulate(&["--seeds", "500"]);
    print!("{}", stdout(&output));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_seed_has_the_same_trace_each_time() {
    for seed in 1000..1010 {
        let arguments = ["--seed", &seed.to_string(), "--quiet"];
        let [first, second] = [(); 2].map(|()| {
            let output = stdout(&simulate(&arguments));
            output.lines().next().expect("the result is a line").to_owned()
        });
        assert_eq!(first, second);
        assert!(first.contains("trace "), "{first}");
    }
}

#[test]
fn a_reader_that_exits_early_is_not_a_failure() {
    let (reader, writer) = std::io::pipe().expect("a pipe can be created");
    drop(reader);
    let arguments = ["--seeds", "4", "--jobs", "1"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_meetpoint-machine"));
    let output = command.args(arguments).stdout(writer).stderr(Stdio::piped()).output();
    let output = output.expect("the simulator can be started");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{said}");
}
