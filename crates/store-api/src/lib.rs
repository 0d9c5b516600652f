//! store-api
