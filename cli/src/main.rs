//! The binary `meetpoint`; everything is in the library.

fn main() -> std::process::ExitCode {
    meetpoint_cli::main()
}
