//! Valid and invalid recipes, and the texts of recipes.

mod batches;
mod declared;
mod forms;
mod geometry;
mod nested;
mod reading;
mod refusals;
mod series;
mod sizes;
mod targets;
mod text;
mod views;
