//! How popular names are, measured while packets travel.
//!
//! Owns the measurement of requests, whatever the policy is, and what is made of it: how
//! many names were asked for how often within a window. [`PopularityMeter`] sees every
//! request and keeps two samples, both bounded:
//!
//! - **Names by their hashes**: of all names, those with the lowest hashes, with exact
//!   counts (SHARDS with a fixed size: Waldspurger, Park, Garthwaite and Ahmad, "Efficient
//!   MRC construction with SHARDS", FAST 2015, section 3). It tells the many names that are
//!   asked for seldom. Of the few that make up a large part of all requests it has some
//!   by chance and lacks others, which is where its error comes from.
//! - **Requests**: the names of so many, a random number of others apart. It tells those
//!   few, however many names there are.
//!
//! A name outside both costs a count and a comparison. [`Observation`] is a copy of the
//! samples, [`Measurement`] what they say of all names, and its
//! [`popularity`](Measurement::popularity) what the [`model`](crate::model) asks for.

mod estimate;
mod meter;
mod names;

pub use estimate::{MeasuredClass, Measurement};
pub use meter::{Observation, Outcomes, PopularityMeter};
