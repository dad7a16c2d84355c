//! Whose trace is this? Naming policies make claims, and the claims make one assignment: groups, what is missing, what conflicts.

mod assignment;
mod contents;
mod groups;
mod map;
mod policies;

pub use assignment::{Assigned, Assignment, Conflict, Group, assign};
pub use groups::in_natural_order;
pub use map::{MAP, UserMap};
pub use policies::{PolicyLabels, ask};
