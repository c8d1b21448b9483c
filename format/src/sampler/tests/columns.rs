//! Columns of a synthetic dataset.

use super::super::{ColumnType, Expression, SampleColumns, SamplerError};

/// As many samples as there are labels; sample n has the weight n / 2 and the name `n`.
pub(super) struct Made {
    pub(super) labels: Vec<Option<i64>>,
    /// The samples that every filter selects.
    pub(super) selected: Vec<u64>,
    /// Samples of each dataset.
    pub(super) datasets: Vec<u64>,
}

impl Made {
    pub(super) fn of(samples: u64) -> Self {
        let labels = (0..samples).map(|n| Some(i64::try_from(n % 3).unwrap())).collect();
        let selected = (0..samples).filter(|n| n % 2 == 1).collect();
        Self { labels, selected, datasets: vec![samples - samples / 3, samples / 3] }
    }
}

impl SampleColumns for Made {
    type Error = SamplerError;

    fn samples(&self) -> u64 {
        self.labels.len() as u64
    }

    fn datasets(&self) -> Vec<u64> {
        self.datasets.clone()
    }

    fn columns(&self) -> Vec<(String, ColumnType)> {
        let columns = [
            ("label", ColumnType::Whole),
            ("weight", ColumnType::Number),
            ("name", ColumnType::Text),
            ("is_sharp", ColumnType::Flag),
            ("boxes", ColumnType::Other("lists".to_owned())),
            ("label_name", ColumnType::Text),
        ];
        columns.map(|(name, found)| (name.to_owned(), found)).to_vec()
    }

    fn whole_numbers(&self, column: &str) -> Result<Vec<Option<i64>>, SamplerError> {
        assert_eq!(column, "label");
        Ok(self.labels.clone())
    }

    fn numbers(&self, column: &str) -> Result<Vec<Option<f64>>, SamplerError> {
        Ok(match column {
            "weight" => (0..self.labels.len()).map(|n| Some(n as f64 / 2.0)).collect(),
            "label" => self.labels.iter().map(|label| label.map(|label| label as f64)).collect(),
            _ => panic!("column {column}"),
        })
    }

    /// Aspect ratios from 1/3 to 3; sample 5 is damaged.
    fn picture_sizes(&self) -> Result<Vec<Option<(u32, u32)>>, SamplerError> {
        let size = |n: u32| (n != 5).then_some((100 + n * 37 % 200, 100 + n * 53 % 200));
        Ok((0..u32::try_from(self.labels.len()).unwrap()).map(size).collect())
    }

    fn select(&self, _: &Expression) -> Result<Vec<u64>, SamplerError> {
        Ok(self.selected.clone())
    }
}
