//! A filtered answer has only what the filter admits, as much of it as is asked for, and the
//! nearest of it, however few or far away they are.

use std::collections::BTreeSet;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use ann::{
    AccessPath, CodeChoice, DistanceMetric, IdFilter, IdSet, NeighbourIndex, NeighbourIndexOptions,
    SearchOptions,
};

use crate::data::{Rng, clustered};
use crate::oracle::{Oracle, build};

const DIMENSIONS: usize = 24;
/// Enough vectors for walks where the filter admits most.
const VECTORS: u32 = 13_000;
const QUERIES: usize = 20;

/// An index that no test changes, an oracle over its vectors, and queries.
struct Fixture {
    index: NeighbourIndex,
    oracle: Oracle,
    queries: Vec<Vec<f32>>,
}

fn fixture() -> &'static Fixture {
    static FIXTURE: OnceLock<Fixture> = OnceLock::new();
    FIXTURE.get_or_init(|| {
        let mut rng = Rng(81);
        let all = VECTORS as usize + QUERIES;
        let mut vectors = clustered(&mut rng, all, DIMENSIONS, 40, 0.6);
        let queries = vectors.split_off(VECTORS as usize);
        let options = NeighbourIndexOptions {
            build_beam_width: 64,
            ..NeighbourIndexOptions::new(DIMENSIONS)
        };
        Fixture {
            index: build(options, &vectors),
            oracle: Oracle::of(DistanceMetric::Cosine, &vectors),
            queries,
        }
    })
}

fn set(ids: impl IntoIterator<Item = u32>) -> IdSet {
    let mut set = IdSet::default();
    ids.into_iter().for_each(|id| {
        set.insert(id);
    });
    set
}

/// A search for `k` neighbours that this filter admits.
fn filtered(k: usize, filter: IdFilter<'_>) -> SearchOptions<'_> {
    SearchOptions {
        filter: Some(filter),
        ..SearchOptions::new(k)
    }
}

/// The mean recall over all queries, with a set of ids as the filter, and with a predicate for the
/// same ids.
fn recalls(ids: &IdSet, k: usize) -> [f64; 2] {
    let Fixture {
        index,
        oracle,
        queries,
    } = fixture();
    let contains = |id| ids.contains(id);
    [IdFilter::Ids(ids), IdFilter::Predicate(&contains)].map(|filter| {
        let search = filtered(k, filter);
        let shares = queries
            .iter()
            .map(|query| oracle.check_with(index, query, &search, 1e-6));
        shares.sum::<f64>() / queries.len() as f64
    })
}

#[test]
fn any_share_of_the_ids() {
    let mut rng = Rng(82);
    for per_mille in [1_000, 300, 100, 10, 1, 0] {
        let ids = set((0..VECTORS).filter(|_| rng.below(1_000) < per_mille));
        for k in [1, 10, 100] {
            for recall in recalls(&ids, k) {
                assert!(recall >= 0.98, "{per_mille} of 1000, k {k}: {recall}");
            }
        }
    }
}

#[test]
fn a_single_id() {
    for id in [0, 7_777, VECTORS - 1] {
        for k in [1, 10] {
            assert_eq!(recalls(&set([id]), k), [1.0, 1.0]);
        }
    }
}

#[test]
fn ids_that_the_index_does_not_hold() {
    // The sets have none of the ids that are held; a few others among those; and more ids than the
    // index holds vectors, so that their number says nothing.
    let nothing = set(VECTORS..VECTORS + 500);
    assert_eq!(recalls(&nothing, 10), [1.0, 1.0]);
    let some = set((VECTORS - 50..VECTORS + 5_000).chain([u32::MAX]));
    assert_eq!(recalls(&some, 10), [1.0, 1.0]);
    let most = set((0..30).chain(VECTORS..5 * VECTORS));
    assert_eq!(recalls(&most, 10), [1.0, 1.0]);
    assert_eq!(recalls(&most, 100), [1.0, 1.0]);
}

#[test]
fn only_what_is_far_away() {
    // The filter admits what is nearest to the opposite of a query, and so beyond all that a walk
    // meets at first.
    let Fixture {
        index,
        oracle,
        queries,
    } = fixture();
    for share in [0.3, 0.1, 0.01] {
        let admitted = (f64::from(VECTORS) * share) as usize;
        let recalls = queries.iter().map(|query| {
            let opposite: Vec<f32> = query.iter().map(|x| -x).collect();
            let far = index.search(&opposite, admitted).expect("search");
            let ids = set(far.iter().map(|n| n.id));
            let search = filtered(10, IdFilter::Ids(&ids));
            oracle.check_with(index, query, &search, 1e-6)
        });
        let recall = recalls.sum::<f64>() / queries.len() as f64;
        assert!(recall >= 0.98, "{share}: {recall}");
    }
}

/// Half of the vectors are admitted, the farther ones. Where these begin, hundreds are about as
/// near as the nearest: nearer together than codes can tell apart.
#[test]
fn a_filter_that_begins_in_the_midst_of_the_vectors() {
    const VECTORS: usize = 6_000;
    let mut rng = Rng(84);
    let vectors: Vec<_> = (0..VECTORS).map(|_| rng.vector(64)).collect();
    let options = NeighbourIndexOptions {
        codes: CodeChoice::Nibbles,
        ..NeighbourIndexOptions::new(64)
    };
    let index = build(options, &vectors);
    let oracle = Oracle::of(DistanceMetric::Cosine, &vectors);
    let recalls = (0..QUERIES).map(|_| {
        let query = rng.vector(64);
        let opposite: Vec<f32> = query.iter().map(|x| -x).collect();
        let far = index.search(&opposite, VECTORS / 2).expect("search");
        let ids = set(far.iter().map(|n| n.id));
        let search = filtered(10, IdFilter::Ids(&ids));
        let (_, explanation) = index.explain(&query, &search).expect("search");
        assert_eq!(explanation.way, AccessPath::ScanOfCodes);
        oracle.check_with(&index, &query, &search, 1e-6)
    });
    let recall = recalls.sum::<f64>() / QUERIES as f64;
    assert!(recall >= 0.98, "{recall}");
}

/// Walks that a filter decides are chosen for large indexes only, unless they are narrow.
#[test]
fn walks_leave_out_what_the_filter_does() {
    let Fixture {
        index,
        oracle,
        queries,
    } = fixture();
    let mut walks = 0;
    for (modulus, at_least) in [(1, 0.9), (2, 0.9), (4, 0.9)] {
        let admits = |id| id % modulus == 0;
        let search = SearchOptions {
            beam: Some(24),
            rescored: Some(24),
            ..filtered(10, IdFilter::Predicate(&admits))
        };
        let mut recall = 0.0;
        for query in queries {
            let (found, explanation) = index.explain(query, &search).expect("search");
            walks += usize::from(explanation.way == AccessPath::Walk);
            recall += oracle.judge(&found, query, &search, 1e-6);
        }
        let recall = recall / queries.len() as f64;
        assert!(recall >= at_least, "1 of {modulus}: {recall}");
    }
    assert!(walks >= queries.len(), "{walks}");
}

#[test]
fn zero_vectors_pass_through_filters_too() {
    let mut rng = Rng(83);
    let mut vectors: Vec<_> = (0..1_500).map(|_| rng.vector(8)).collect();
    vectors.iter_mut().step_by(3).for_each(|v| v.fill(0.0));
    let index = build(NeighbourIndexOptions::new(8), &vectors);
    let oracle = Oracle::of(DistanceMetric::Cosine, &vectors);
    for query in [rng.vector(8), vec![0.0; 8]] {
        for ids in [
            set((0..1_500).step_by(3)),
            set((0..1_500).step_by(2)),
            set([0, 1]),
        ] {
            for k in [1, 10, 400, 1_500] {
                let search = filtered(k, IdFilter::Ids(&ids));
                assert!(oracle.check_with(&index, &query, &search, 1e-6) >= 0.98);
            }
        }
    }
}

/// The vector that an id below `STABLE` has for good.
fn stable(id: u32) -> Vec<f32> {
    Rng(900_000 + u64::from(id)).vector(DIMENSIONS)
}

#[test]
fn admitted_vectors_are_found_while_others_write() {
    /// Even ids are admitted; ids below this are not written to.
    const STABLE: u32 = 3_000;
    let index = NeighbourIndex::new(NeighbourIndexOptions::new(DIMENSIONS)).expect("valid options");
    for id in 0..STABLE {
        index.insert(id, &stable(id)).expect("insert");
    }
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        for writer in 0..2 {
            let (index, done) = (&index, &done);
            scope.spawn(move || {
                let mut rng = Rng(u64::from(writer));
                // These are odd ids only, right beside those that are admitted.
                let id = |rng: &mut Rng| 2 * (STABLE + writer + 2 * rng.below(300) as u32) + 1;
                while !done.load(Ordering::Relaxed) {
                    let near = stable(rng.below(STABLE as usize) as u32);
                    let id = id(&mut rng);
                    if index.insert(id, &near).is_err() {
                        match rng.below(2) {
                            0 => index.replace(id, &near).expect("held"),
                            _ => index.remove(id).expect("held"),
                        }
                    }
                }
            });
        }
        let _raise = crate::concurrency::Raise(&done);
        let even = set((0..2 * STABLE).step_by(2));
        let is_even = |id| id % 2 == 0;
        for id in (0..STABLE).step_by(6) {
            let filter = match id % 4 {
                0 => IdFilter::Ids(&even),
                _ => IdFilter::Predicate(&is_even),
            };
            let few = index.search_with(&stable(id), &filtered(10, filter));
            let few = few.expect("search");
            assert_eq!(few.len(), 10);
            assert_eq!(few[0].id, id);
            assert!(few[0].distance < 1e-6);
            assert!(few.iter().all(|n| is_even(n.id)));
            if id % 60 == 0 {
                let all = index.search_with(&stable(id), &filtered(usize::MAX, filter));
                let all = all.expect("search");
                assert_eq!(all.len(), STABLE as usize / 2);
                let ids: BTreeSet<u32> = all.iter().map(|n| n.id).collect();
                assert!(ids.into_iter().eq((0..STABLE).step_by(2)));
            }
        }
    });
}
