//! A part of a schema that copies of the schema share until one of them changes it.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A value that its clones share. The first change of a clone copies it.
///
/// A change of the schema begins with a copy of the whole. So what the change leaves unchanged
/// costs nothing, however much it is, and is [known](CopyOnWrite::is_same) to be as before.
#[derive(Debug, Default)]
pub struct CopyOnWrite<T>(Arc<T>);

impl<T> CopyOnWrite<T> {
    /// Whether two are the same in memory, so that neither has been changed since it was the other.
    pub fn is_same(&self, other: &CopyOnWrite<T>) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T> Clone for CopyOnWrite<T> {
    fn clone(&self) -> CopyOnWrite<T> {
        CopyOnWrite(Arc::clone(&self.0))
    }
}

impl<T> Deref for CopyOnWrite<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Clone> DerefMut for CopyOnWrite<T> {
    fn deref_mut(&mut self) -> &mut T {
        Arc::make_mut(&mut self.0)
    }
}

impl<T: PartialEq> PartialEq for CopyOnWrite<T> {
    fn eq(&self, other: &CopyOnWrite<T>) -> bool {
        self.is_same(other) || self.0 == other.0
    }
}

impl<T> From<T> for CopyOnWrite<T> {
    fn from(value: T) -> CopyOnWrite<T> {
        CopyOnWrite(Arc::new(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_a_clone_is_its_own() {
        let first = CopyOnWrite::from(vec![1]);
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
