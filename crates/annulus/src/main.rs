//! annulus
fn main(){}
