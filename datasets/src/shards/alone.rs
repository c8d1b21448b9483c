//! Runs all shards of a plan and the commit in this process, with the same code as on many hosts.

use super::folder::{PlanFolder, remove};
use super::paths::absolute_source;
use super::plan::{ShardPlan, folder_of};
use crate::Error;
use crate::error::ShardError;
use std::path::{Path, PathBuf};

/// Runs `run` and `commit` on the folder of a plan for one process. `commit` also receives the
/// files of a killed process that were removed.
///
/// With `resume`, finished parts of an earlier run of the same command are reused, and finished
/// parts are retained if this run is stopped or the drive is full (`can_resume`).
pub fn alone<S, E: From<Error>>(
    plan: ShardPlan,
    stamps: &[u128],
    resume: bool,
    run: impl FnOnce(&PlanFolder) -> Result<(), E>,
    commit: impl FnOnce(PlanFolder, Vec<PathBuf>) -> Result<S, E>,
    can_resume: impl FnOnce(&E) -> bool,
) -> Result<S, E> {
    let path = folder_of(&plan.destination);
    let (folder, cleaned) = begin(&path, plan, stamps, resume)?;
    // Held until the end; the system releases it if this process is killed.
    let _lock = folder.lock()?;
    let outcome = run(&folder).and_then(|()| commit(folder, cleaned));
    if let Err(error) = &outcome
        && !(resume && can_resume(error) && finished(&path) > 0)
    {
        // If the folder cannot be removed now, the next command removes it.
        let _ = remove(&path);
    }
    outcome
}

/// Adds to an error the number of finished parts from which the command can resume.
pub fn with_remains(error: Error, destination: &Path) -> Error {
    let place = folder_of(&absolute_source(destination));
    let parts = finished(&place);
    match error {
        error if parts == 0 => error,
        Error::Interrupted => Error::Stopped { place, parts },
        error => Error::Kept { error: Box::new(error), place, parts },
    }
}

/// Number of finished parts in the folder of a plan.
fn finished(path: &Path) -> u64 {
    let Ok(folder) = PlanFolder::open(path) else { return 0 };
    let is_done = |part: &u64| matches!(folder.done::<serde_json::Value>(*part), Ok(Some(_)));
    (0..folder.plan().parts.len() as u64).filter(is_done).count() as u64
}

/// The folder, new or resumed, and the files that were removed.
fn begin(
    path: &Path,
    mut plan: ShardPlan,
    stamps: &[u128],
    resume: bool,
) -> Result<(PlanFolder, Vec<PathBuf>), Error> {
    let mut cleaned = Vec::new();
    match PlanFolder::open(path) {
        Ok(there) if there.plan().shards > 0 => {
            let (folder, shards) = (path.to_path_buf(), there.plan().shards);
            return Err(ShardError::PlanExists { folder, shards }.into());
        }
        Ok(there) => {
            drop(there.lock()?);
            if resume {
                plan.time.clone_from(&there.plan().time);
                if plan == *there.plan() {
                    return Ok((there, cleaned));
                }
                let (folder, shards) = (path.to_path_buf(), 0);
                return Err(ShardError::PlanExists { folder, shards }.into());
            }
            remove(path)?;
            cleaned.push(path.to_path_buf());
        }
        Err(_) => {}
    }
    Ok((PlanFolder::create(path, plan, stamps)?, cleaned))
}
