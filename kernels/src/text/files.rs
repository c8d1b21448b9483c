//! Checks that the files of a recipe match its operations.

use super::table::{Table, check_dim};
use super::vocabulary::tokenizer_of;
use meetpoint_format::recipe::{FileContent, NamedFile, Operation, PadSequence, Recipe};

/// A file that does not fit its operation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}, which `{operation}` needs: {problem}")]
pub struct FileMisfit {
    /// The operation.
    pub operation: &'static str,
    /// Path of its file.
    pub path: String,
    /// The problem.
    pub problem: String,
}

/// Checks the loaded files of a recipe: each matches its operation, and a table has a row for every
/// token that the preceding operations can produce.
pub fn check_files(recipe: &Recipe) -> Result<(), FileMisfit> {
    // The largest token, and the operation that produces it.
    let mut largest = (0, String::new());
    for operation in recipe.operations() {
        let misfit = |file: &NamedFile, problem| FileMisfit {
            operation: operation.name(),
            path: file.path.clone(),
            problem,
        };
        match operation {
            Operation::Tokenize(it) => {
                let Some(content) = read(&it.tokenizer) else { continue };
                let tokenizer = tokenizer_of(content);
                let tokenizer = tokenizer.map_err(|problem| misfit(&it.tokenizer, problem))?;
                largest = (tokenizer.largest(), format!("that of {}", it.tokenizer.path));
            }
            Operation::PadSequence(PadSequence { pad_token, end_token, .. }) => {
                let own = [("`pad_token`", Some(*pad_token)), ("`end_token`", *end_token)];
                for (key, token) in own {
                    if let Some(token) = token.filter(|token| *token > largest.0) {
                        largest = (token, format!("{key} of `pad_sequence`"));
                    }
                }
            }
            Operation::Embed(it) => {
                let Some(content) = read(&it.table) else { continue };
                let table = Table::of(content).and_then(|table| {
                    check_dim(&table, it)?;
                    Ok(table)
                });
                let table = table.map_err(|problem| misfit(&it.table, problem))?;
                if u64::from(largest.0) >= table.rows {
                    let (token, source) = &largest;
                    let rows = table.rows;
                    let problem =
                        format!("it has {rows} rows, the largest token, {source}, is {token}");
                    return Err(misfit(&it.table, problem));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn read(file: &NamedFile) -> Option<&FileContent> {
    file.content.as_ref()
}
