//! The program under test: `meetpoint`, built where tests can find it.

fn main() -> std::process::ExitCode {
    meetpoint_cli::main()
}
