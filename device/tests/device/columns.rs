//! Columns beside images and labels, as a device prepares them.

use crate::reference::{alone, prepared_columns};
use crate::support::{Device, Host, RECIPE, SAMPLE_BYTES, Spool, StreamEvent, take_columns, talk};
use meetpoint_format::column::BatchColumns;
use meetpoint_format::recipe::Recipe;
use meetpoint_format::wire::SpoolKind;
use meetpoint_prepare::Dataset;

/// In an order that differs from that in a slot.
const COLUMNS: [&str; 4] = ["key", "sample", "image", "label"];

/// Bytes of a batch of five without images and labels: numbers, then offsets and keys.
const FURTHER: u64 = 64 + 5 * 8 + 64 + 6 * 8 + 5 * 6;

fn names(columns: &[&str]) -> Vec<String> {
    columns.iter().map(|name| (*name).to_owned()).collect()
}

fn columns(device: &Device, columns: &[&str]) -> BatchColumns {
    let dataset = Dataset::open(&device.dataset()).unwrap();
    dataset.select(&names(columns).into(), &Recipe::from_toml(RECIPE).unwrap()).unwrap()
}

#[test]
fn every_column_has_the_bytes_that_the_host_would_have_prepared() {
    let device = Device::start(|_| ());
    for (kind, asked) in [
        (SpoolKind::Memory, &COLUMNS[..]),
        (SpoolKind::File, &COLUMNS[..]),
        (SpoolKind::Memory, &["key"]),
    ] {
        let spool = Spool::new(kind, 4, 5 * SAMPLE_BYTES + FURTHER);
        talk(async {
            let mut host = Host::connect(device.socket()).await;
            host.load(&device, &spool, |load| load.columns = names(asked)).await.unwrap();
            let mut link = host.run().await.unwrap();
            link.grant(0, 1, 3, 4).await;
            let columns = columns(&device, asked);
            for batch in [3, 2, 1, 0] {
                let published = link.published().await;
                let payload = take_columns(&spool, &published, 5, &columns);
                let expected = prepared_columns(&device, &alone(), (0, batch), names(asked).into());
                assert!(payload == expected, "batch {batch} of {asked:?}");
            }
            drop(link.say);
            while link.receiver.message().await.unwrap().is_some() {}
        });
    }
}

#[test]
fn a_batch_whose_values_do_not_fit_its_slot_fails_alone_with_the_figures() {
    let device = Device::start(|_| ());
    // Images, labels and offsets of 13 samples, which leave 16 bytes of the slot for their keys.
    let spool = Spool::new(SpoolKind::Memory, 2, 13 * 6912 + 13 * 8 + 24 + 14 * 8);
    let asked = ["image", "label", "key"];
    talk(async {
        let mut host = Host::connect(device.socket()).await;
        let reply = host.load(&device, &spool, |load| {
            (load.columns, load.batch_size) = (names(&asked), 13);
        });
        assert_eq!(reply.await.unwrap().batches, 2);
        let mut link = host.run().await.unwrap();
        link.grant(0, 1, 1, 2).await;
        let published = link.published().await;
        assert_eq!(published.batch, 1);
        take_columns(&spool, &published, 7, &columns(&device, &asked));
        let StreamEvent::Failed(failed) = link.next().await else { panic!("it does not fit") };
        assert_eq!((failed.batch, failed.is_damage), (0, false));
        assert!(failed.reason.contains("the memory for it has 90112"), "{}", failed.reason);
    });
}
