//! The program under measurement: `meetpoint`, built where benches can find it.

fn main() -> std::process::ExitCode {
    meetpoint_cli::main()
}
