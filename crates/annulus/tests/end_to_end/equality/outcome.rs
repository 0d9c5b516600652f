//! The outcome of a set of writes by last-write-wins.

use std::collections::BTreeMap;

/// The effect of a write.
#[derive(Clone, Debug)]
pub enum Effect {
    Set {
        key: Vec<i32>,
        number: i32,
    },
    /// A null, or a value that has expired when the test looks.
    Unset {
        key: Vec<i32>,
    },
    /// A deletion of every key from the first to the last, both included.
    Delete {
        from: Vec<i32>,
        to: Vec<i32>,
    },
}

/// A write that was done, with its timestamp in microseconds.
#[derive(Clone, Debug)]
pub struct Done {
    pub timestamp: i64,
    pub effect: Effect,
}

/// The rows that are left after all writes, whatever their order.
pub fn outcome(done: &[Done]) -> BTreeMap<Vec<i32>, i32> {
    // The greatest write of a key wins: first by time, then no value over a value, then by the
    // value.
    let mut cells: BTreeMap<&Vec<i32>, (i64, bool, i32)> = BTreeMap::new();
    for write in done {
        let (key, candidate) = match &write.effect {
            Effect::Set { key, number } => (key, (write.timestamp, false, *number)),
            Effect::Unset { key } => (key, (write.timestamp, true, 0)),
            Effect::Delete { .. } => continue,
        };
        let cell = cells.entry(key).or_insert(candidate);
        *cell = (*cell).max(candidate);
    }
    for write in done {
        if let Effect::Delete { from, to } = &write.effect {
            for (_, cell) in cells.range_mut::<Vec<i32>, _>(from..=to) {
                *cell = (*cell).max((write.timestamp, true, 0));
            }
        }
    }
    cells
        .into_iter()
        .filter(|(_, (_, gone, _))| !gone)
        .map(|(key, (_, _, number))| (key.clone(), number))
        .collect()
}

#[test]
fn the_order_of_the_writes_does_not_matter() {
    let key = |n: i32| vec![1, n];
    let set = |timestamp, n, number| Done {
        timestamp,
        effect: Effect::Set {
            key: key(n),
            number,
        },
    };
    let unset = |timestamp, n| Done {
        timestamp,
        effect: Effect::Unset { key: key(n) },
    };
    let delete = |timestamp, from, to| Done {
        timestamp,
        effect: Effect::Delete {
            from: key(from),
            to: key(to),
        },
    };
    let mut done = vec![
        // At equal times the greater value wins, and otherwise the later one.
        set(5, 1, 10),
        set(5, 1, 20),
        set(4, 1, 30),
        // No value wins over a value of the same time.
        set(5, 2, 10),
        unset(5, 2),
        // No value does not win over a later value.
        set(5, 3, 10),
        unset(4, 3),
        // A range removes what is not later.
        delete(7, 4, 6),
        set(7, 4, 10),
        set(8, 5, 10),
        set(6, 6, 10),
        set(6, 7, 10),
    ];
    let expected = [(1, 20), (3, 10), (5, 10), (7, 10)].map(|(n, number)| (key(n), number));
    assert_eq!(outcome(&done), BTreeMap::from(expected.clone()));
    done.reverse();
    assert_eq!(outcome(&done), BTreeMap::from(expected));
}
