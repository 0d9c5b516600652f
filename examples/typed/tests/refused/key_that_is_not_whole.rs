//! The key of a review is that of its book and its number.

use typed_mapping::tables::Review;

fn main() {
    let _ = Review::key("9780141439518");
}
