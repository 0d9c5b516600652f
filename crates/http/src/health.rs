//! The routes of health, for those who start and balance services. They need no login, and a
//! listener answers them from the moment at which it accepts connections.

/// The path of the route that says that the process answers.
pub const LIVE: &str = "/health/live";

/// The path of the route that says whether the program serves.
pub const READY: &str = "/health/ready";
