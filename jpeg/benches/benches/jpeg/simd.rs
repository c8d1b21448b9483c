//! Shows that the peer uses its SIMD code: it is slower without it, in a separate process.

use crate::sets::Set;
use meetpoint_jpeg_benches::Report;
use std::path::Path;

/// The option of the child: a file to decode.
pub(crate) const CHILD: &str = "decode-by-libjpeg";

/// Prints how much libjpeg gains by SIMD on the first picture.
#[cfg(feature = "libjpeg-turbo")]
pub(crate) fn note(set: &Set, report: &mut Report) -> anyhow::Result<()> {
    use anyhow::{Context, ensure};
    use std::process::Command;
    let Some(picture) = set.pictures.first() else { return Ok(()) };
    let file = std::env::temp_dir().join(format!("meetpoint-simd-{}.jpg", std::process::id()));
    std::fs::write(&file, &picture.encoded).context("writing a picture for the child")?;
    let run = |forced: Option<&str>| -> anyhow::Result<f64> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(format!("--{CHILD}")).arg(&file).env_remove("JSIMD_FORCENONE");
        forced.map(|value| command.env("JSIMD_FORCENONE", value));
        let output = command.output().context("starting this program again")?;
        ensure!(output.status.success(), "the child failed: {:?}", output.status);
        Ok(String::from_utf8_lossy(&output.stdout).trim().parse()?)
    };
    let (with, without) = (run(None)?, run(Some("1"))?);
    std::fs::remove_file(&file).context("removing the child's picture")?;
    report.note(format!(
        "libjpeg-turbo {}: whole decode takes {:.2} times as long without its SIMD code{}",
        meetpoint_jpeg_benches::libjpeg::VERSION,
        without / with,
        if without < 1.3 * with { ": IT SEEMS TO HAVE NONE, COMPARISONS ARE VOID" } else { "" },
    ));
    Ok(())
}

/// Prints what is missing.
#[cfg(not(feature = "libjpeg-turbo"))]
pub(crate) fn note(_: &Set, report: &mut Report) -> anyhow::Result<()> {
    report.note("built without libjpeg-turbo: its rows and the 4:2:0 set are skipped");
    report.note(format!("to include them: {}", meetpoint_jpeg_benches::LIBJPEG_HINT));
    Ok(())
}

/// The child: prints the median nanoseconds of a whole decode.
#[cfg(feature = "libjpeg-turbo")]
#[expect(clippy::print_stdout, reason = "the answer to the parent")]
pub(crate) fn child(path: &Path) -> anyhow::Result<()> {
    use meetpoint_jpeg_benches::libjpeg::{Mode, Turbo};
    use meetpoint_jpeg_benches::{median, thread_ns};
    let encoded = std::fs::read(path)?;
    let (mut turbo, mut out) = (Turbo::new(), meetpoint_kernels::Picture::default());
    let mut times = Vec::new();
    for _ in 0..15 {
        let before = thread_ns();
        turbo.decode(&encoded, Mode::default(), &mut out)?;
        times.push((thread_ns() - before) as f64);
    }
    println!("{}", median(&times));
    Ok(())
}

#[cfg(not(feature = "libjpeg-turbo"))]
pub(crate) fn child(_: &Path) -> anyhow::Result<()> {
    anyhow::bail!("built without libjpeg-turbo")
}
