//! Damages a part of a copied dataset while a run reads it.

use super::sets;
use super::trouble::PartDamage;
use anyhow::Context;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Damages a part of the set; `detail` decides which part, and where.
pub(super) fn damage(kind: PartDamage, set: &Path, detail: u64) -> anyhow::Result<()> {
    let parts = sets::parts(set)?;
    let part = &parts[(detail % parts.len() as u64) as usize];
    let detail = detail / parts.len() as u64;
    let done = || -> std::io::Result<()> {
        let bytes = std::fs::metadata(part)?.len();
        let at = detail % bytes.max(1);
        match kind {
            PartDamage::Flipped => {
                let file = OpenOptions::new().read(true).write(true).open(part)?;
                let mut byte = [0];
                file.read_exact_at(&mut byte, at)?;
                byte[0] ^= 1 << (detail % 7);
                file.write_all_at(&byte, at)
            }
            PartDamage::Truncated => File::options().write(true).open(part)?.set_len(at),
            PartDamage::Replaced => {
                // Another part where there is one, else the same bytes in reverse.
                let other = parts.iter().find(|other| *other != part).unwrap_or(part);
                let mut content = std::fs::read(other)?;
                if other == part {
                    content.reverse();
                }
                let replacement = part.with_extension("other");
                std::fs::write(&replacement, content)?;
                std::fs::rename(&replacement, part)
            }
            PartDamage::Removed => std::fs::remove_file(part),
        }
    };
    done().with_context(|| format!("failed to damage {}", part.display()))
}
