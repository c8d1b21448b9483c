//! Recipes that are read, recipes that are refused, and the texts they are written back to.

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
