//! Direct reads by our engines against fio and a plain loop; see `meetpoint_benches::storage`.

use meetpoint_benches::{Options, storage};

fn main() -> anyhow::Result<()> {
    let options = Options::from_args(&["directory"])?;
    storage::run(&options)?.finish(&options)
}
