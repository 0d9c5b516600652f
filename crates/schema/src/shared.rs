//! A part of a schema that copies of the schema share until one of them changes it.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A value that its clones share. The first change of a clone copies it.
///
/// A change of the schema begins with a copy of the whole. So what the change leaves unchanged
/// costs nothing, however much it is, and is [known](Shared::is_same) to be as before.
#[derive(Debug, Default)]
pub struct Shared<T>(Arc<T>);

impl<T> Shared<T> {
    /// Whether two are the same in memory, so that neither has been changed since it was the other.
    pub fn is_same(&self, other: &Shared<T>) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Shared<T> {
        Shared(Arc::clone(&self.0))
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Clone> DerefMut for Shared<T> {
    fn deref_mut(&mut self) -> &mut T {
        Arc::make_mut(&mut self.0)
    }
}

impl<T: PartialEq> PartialEq for Shared<T> {
    fn eq(&self, other: &Shared<T>) -> bool {
        self.is_same(other) || self.0 == other.0
    }
}

impl<T> From<T> for Shared<T> {
    fn from(value: T) -> Shared<T> {
        Shared(Arc::new(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_a_clone_is_its_own() {
        let first = Shared::from(vec![1]);
        let mut second = first.clone();
        assert!(second.is_same(&first));
        assert_eq!(second.first(), Some(&1));
        assert!(second.is_same(&first), "it was only read");
        second.push(2);
        assert!(!second.is_same(&first));
        assert_eq!((&first[..], &second[..]), (&[1][..], &[1, 2][..]));
        second.pop();
        assert_eq!(first, second);
    }
}
