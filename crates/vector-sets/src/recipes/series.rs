//! Vectors that follow each other in time. Queries are held out of them.

use super::texts::{self, originals};
use super::{BASE, COMMON};
use crate::arithmetic::{add, normalise};
use crate::draw::{RecipeInput, RecipeOutput};

/// Steps in a window of a walk.
pub const WINDOW: usize = 128;

/// Elements of the vector of a frame.
pub const FRAME_DIMENSIONS: usize = 256;
/// Frames between two cuts, at least and at most.
const SHOT: (usize, usize) = (60, 240);
/// The length of the change from frame to frame.
const FRAME_STEP: f64 = 0.03;

/// Versions of one document.
const VERSIONS: usize = 30;
/// The length of an edit.
const EDIT: f64 = 0.1;

/// Windows along a random walk, each a step after the one before.
pub fn windows(draw: &RecipeInput<'_>) -> RecipeOutput {
    let mut random = draw.random(BASE);
    let mut place = 0.0;
    let walk: Vec<f32> = (0..draw.with_queries() + WINDOW - 1)
        .map(|_| {
            place += random.normal();
            place as f32
        })
        .collect();
    let all: Vec<f32> = walk.windows(WINDOW).flatten().copied().collect();
    draw.hold_out(WINDOW, &all)
}

/// Frames of a video: a slow change, and cuts.
pub fn video(draw: &RecipeInput<'_>) -> RecipeOutput {
    let mut random = draw.random(BASE);
    let mut all = Vec::new();
    let mut frame = Vec::new();
    let mut left = 0;
    for _ in 0..draw.with_queries() {
        if left == 0 {
            frame = random.direction(FRAME_DIMENSIONS);
            left = SHOT.0 + random.below(SHOT.1 - SHOT.0);
        }
        left -= 1;
        add(&mut frame, FRAME_STEP, &random.direction(FRAME_DIMENSIONS));
        normalise(&mut frame);
        all.extend_from_slice(&frame);
    }
    draw.hold_out(FRAME_DIMENSIONS, &all)
}

/// Versions of documents: each a small edit of the one before, of any document in turn.
pub fn versions(draw: &RecipeInput<'_>) -> RecipeOutput {
    let count = draw.with_queries();
    let mut documents = originals(draw, count.div_ceil(VERSIONS));
    let mut random = draw.random(BASE);
    let mut turns: Vec<usize> = (0..count).map(|turn| turn % documents.len()).collect();
    draw.random(COMMON).shuffle(&mut turns);
    let mut all = Vec::new();
    for document in turns {
        let text = &mut documents[document];
        all.extend_from_slice(text);
        add(text, EDIT, &random.direction(texts::DIMENSIONS));
        normalise(text);
    }
    draw.hold_out(texts::DIMENSIONS, &all)
}
