//! The generations of streams, as the cluster holds them.
//!
//! The first generation is the same whichever gateway makes it, so several gateways that make it at
//! the same time write the same rows. It is before all writes, and no reader begins before it.

use cql::quote::quoted;
use scylla::value::CqlTimestamp;

use super::cluster::{ClusterError, InternalSession};
use super::streams::{GenerationStreams, LogStreams, StreamId};

/// The number of groups of streams. Readers make one query for each group and time window.
const GROUPS: usize = 4;

/// The number of streams in a group. With rows that live for a day, a thousand writes a second make
/// partitions of about a million small rows each.
const STREAMS_A_GROUP: usize = 16;

/// The version in the lowest bits of a stream id.
const ID_VERSION: u64 = 1;

/// The beginning of the first generation, 2020-01-01. Milliseconds since the epoch.
const FIRST_FROM_MS: i64 = 1_577_836_800_000;

/// The partition key of all generations.
const KEY: &str = "timestamps";

/// Reads the generations, and makes the first one if there is none.
pub(super) async fn read_or_begin(cluster: &InternalSession) -> Result<LogStreams, ClusterError> {
    loop {
        if let Some(streams) = read(cluster).await? {
            return Ok(streams);
        }
        begin(cluster).await?;
    }
}

async fn read(cluster: &InternalSession) -> Result<Option<LogStreams>, ClusterError> {
    let keyspace = quoted(&cluster.keyspace);
    let times: Vec<(CqlTimestamp,)> = cluster
        .rows(
            &format!("SELECT time FROM {keyspace}.cdc_generation_timestamps WHERE key = ?"),
            (KEY,),
        )
        .await?;
    let mut generations = Vec::new();
    for (time,) in times {
        let groups: Vec<(Vec<Vec<u8>>,)> = cluster
            .rows(
                &format!(
                    "SELECT streams FROM {keyspace}.cdc_streams_descriptions_v2 WHERE time = ?"
                ),
                (time,),
            )
            .await?;
        let ids = groups.into_iter().flat_map(|(ids,)| ids);
        let mut ids: Vec<StreamId> = ids.filter_map(|id| id.try_into().ok()).collect();
        ids.sort_unstable();
        generations.push(GenerationStreams {
            from_ms: time.0,
            ids,
        });
    }
    Ok(LogStreams::new(generations))
}

/// Makes the first generation. The streams are written before the time by which readers find them.
async fn begin(cluster: &InternalSession) -> Result<(), ClusterError> {
    let keyspace = quoted(&cluster.keyspace);
    let time = CqlTimestamp(FIRST_FROM_MS);
    for (group, ids) in first_streams().chunks(STREAMS_A_GROUP).enumerate() {
        let ids: Vec<&[u8]> = ids.iter().map(|id| &id[..]).collect();
        cluster
            .execute(
                &format!(
                    "INSERT INTO {keyspace}.cdc_streams_descriptions_v2 (time, range_end, streams) \
                     VALUES (?, ?, ?)"
                ),
                (time, group as i64, ids),
            )
            .await?;
    }
    cluster
        .execute(
            &format!("INSERT INTO {keyspace}.cdc_generation_timestamps (key, time) VALUES (?, ?)"),
            (KEY, time),
        )
        .await?;
    Ok(())
}

/// The streams of the first generation, with ids in ScyllaDB's form: a token, then bits that are
/// random there and zero here, the number of the group, the version. The tokens are evenly spread
/// over the ring.
fn first_streams() -> Vec<StreamId> {
    let count = GROUPS * STREAMS_A_GROUP;
    (0..count)
        .map(|at| {
            let token = (u64::MAX / count as u64 * at as u64) ^ (1 << 63);
            let group = (at / STREAMS_A_GROUP) as u64;
            let low = group << 4 | ID_VERSION;
            let mut id = [0; 16];
            id[..8].copy_from_slice(&token.to_be_bytes());
            id[8..].copy_from_slice(&low.to_be_bytes());
            id
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_streams_differ_and_say_their_group() {
        let streams = first_streams();
        let mut sorted = streams.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), GROUPS * STREAMS_A_GROUP);
        for (at, id) in streams.iter().enumerate() {
            let low = u64::from_be_bytes(id[8..].try_into().unwrap());
            assert_eq!(low & 0xf, ID_VERSION);
            assert_eq!((low >> 4 & ((1 << 22) - 1)) as usize, at / STREAMS_A_GROUP);
        }
    }
}
