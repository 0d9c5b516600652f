use std::time::Duration;

use super::*;

const MIB: usize = 1 << 20;

#[test]
fn one_client_gets_half_and_leaves_room_for_the_next() {
    let budget = MemoryBudget::new(64 * MIB);
    let mut clients = Vec::new();
    for others in 0..8 {
        let account = budget.client().unwrap();
        let mut charge = account.charge();
        while charge.resize(charge.bytes() + UNIT_BYTES).is_ok() {}
        assert!(charge.bytes() <= budget.client_bytes_max(), "{others}");
        assert!(charge.bytes() >= ((64 * MIB) >> (others + 1)) - 2 * UNIT_BYTES);
        clients.push((account, charge));
    }
    assert!(budget.used() < budget.bytes_max());
    drop(clients);
    assert_eq!(budget.used(), 0);
    assert!(budget.take_peak() > 60 * MIB);
    assert_eq!(budget.take_peak(), 0);
}

#[test]
fn many_clients_together_stay_within_the_whole() {
    let budget = MemoryBudget::new(4 * MIB);
    let mut clients = Vec::new();
    while let Ok(account) = budget.client() {
        let mut charge = account.charge();
        charge.resize(FLOOR_BYTES).unwrap();
        clients.push((account, charge));
    }
    assert_eq!(clients.len(), 4 * MIB / FLOOR_BYTES);
    assert_eq!(budget.used(), budget.bytes_max());
    assert_eq!(clients[0].1.resize(FLOOR_BYTES + 1), Err(NoRoom));
    assert_eq!(clients[0].1.bytes(), FLOOR_BYTES);
}

#[test]
fn a_charge_goes_with_its_memory() {
    let budget = MemoryBudget::new(4 * MIB);
    let account = budget.client().unwrap();
    let mut charge = account.charge();
    charge.resize(MIB).unwrap();
    charge.resize(10).unwrap();
    assert_eq!(account.bytes(), 10);
    assert!(budget.used() <= 2 * UNIT_BYTES);
    drop(charge);
    assert_eq!(account.bytes(), 0);
    drop(account);
    assert_eq!(budget.used(), 0);
}

#[tokio::test]
async fn a_waiting_charge_goes_on_when_there_is_room() {
    let budget = MemoryBudget::new(4 * MIB);
    let (first, second) = (budget.client().unwrap(), budget.client().unwrap());
    let mut held = first.charge();
    held.resize(MIB + MIB / 2).unwrap();
    let mut waiting = second.charge();
    let early = waiting.resize_when_free(MIB + MIB / 2);
    let early = tokio::time::timeout(Duration::from_millis(20), early).await;
    assert!(early.is_err());
    let release = async {
        tokio::task::yield_now().await;
        drop(held);
    };
    let both = async { tokio::join!(waiting.resize_when_free(MIB + MIB / 2), release) };
    tokio::time::timeout(Duration::from_secs(10), both)
        .await
        .expect("it goes on");
}

#[test]
fn shares_are_of_the_limit() {
    let shares = MemoryShares::default();
    let all = |shares: MemoryShares| {
        shares.cql + shares.http_bodies + shares.http_answers + shares.prepared + shares.internal
    };
    assert_eq!(all(shares), 512 * MIB);
    let small = MemoryShares::of_limit(1 << 30);
    assert_eq!((all(small), small.cql), (288 * MIB, 160 * MIB));
    assert_eq!(shares.cql, 256 * MIB);
}
