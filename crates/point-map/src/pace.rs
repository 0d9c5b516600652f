//! The pace of a layout: it says how far it is and looks for the end of interest in it, every few
//! milliseconds.

/// The layout has stopped, as it was not wanted any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayoutStopped;

/// The thread between a layout and whoever waits for it.
pub struct LayoutPace<'a> {
    done: u64,
    pause: &'a mut dyn FnMut(u64) -> bool,
}

impl<'a> LayoutPace<'a> {
    /// Has `pause` called every few milliseconds, with the number of steps done of
    /// [`LAYOUT_STEPS`](crate::LAYOUT_STEPS). It may wait, and ends the layout by false.
    pub fn new(pause: &'a mut dyn FnMut(u64) -> bool) -> LayoutPace<'a> {
        LayoutPace { done: 0, pause }
    }

    /// Lets others come first, within a step.
    pub(crate) fn pause(&mut self) -> Result<(), LayoutStopped> {
        match (self.pause)(self.done) {
            true => Ok(()),
            false => Err(LayoutStopped),
        }
    }

    /// Notes that so many steps are done in all, and lets others come first.
    pub(crate) fn reach(&mut self, done: u64) -> Result<(), LayoutStopped> {
        self.done = self.done.max(done);
        self.pause()
    }
}
