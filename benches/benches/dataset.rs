//! Opening, reading and finding keys in a dataset; see `meetpoint_benches::dataset`.

use meetpoint_benches::{Options, dataset};

fn main() -> anyhow::Result<()> {
    let options = Options::from_args(&["directory", "pictures"])?;
    dataset::run(&options)?.finish(&options)
}
