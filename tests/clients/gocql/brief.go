package main

import (
	"fmt"
	"log"
	"time"
)

const rows = 10

// Connects, makes a keyspace and a table, writes and reads, by text and prepared.
func brief(address, keyspace string) {
	session := connect(address, "")
	must(session.Query(fmt.Sprintf("CREATE KEYSPACE %s WITH replication = "+
		"{'class': 'SimpleStrategy', 'replication_factor': 1}", keyspace)).Exec())
	session.Close()

	session = connect(address, keyspace)
	defer session.Close()
	must(session.Query("CREATE TABLE t (k int, c text, v vector<float, 2>, m map<text, int>, PRIMARY KEY (k, c))").Exec())
	must(session.Query("INSERT INTO t (k, c, v, m) VALUES (1, 'text', [1, 2], {'a': 1})").Exec())
	// The driver prepares statements with values.
	for k := 2; k <= rows; k++ {
		must(session.Query("INSERT INTO t (k, c, v, m) VALUES (?, ?, ?, ?)",
			k, "prepared", Vector{float32(k), 0.5}, map[string]int{"b": k}).Exec())
	}
	var v Vector
	var m map[string]int
	must(session.Query("SELECT v, m FROM t WHERE k = ? AND c = ?", 7, "prepared").Scan(&v, &m))
	if len(v) != 2 || v[0] != 7 || v[1] != 0.5 || m["b"] != 7 {
		log.Fatalf("row 7 came back as %v, %v", v, m)
	}
	count := 0
	iter := session.Query("SELECT k FROM t").PageSize(3).Iter()
	for k := 0; iter.Scan(&k); {
		count++
	}
	must(iter.Close())
	if count != rows {
		log.Fatalf("%d rows came back, not %d", count, rows)
	}
	waitForMetadata(session, keyspace)
	fmt.Println("ok")
}

// Waits until the driver knows the table. It reads the schema anew some time after it is told of a
// change.
func waitForMetadata(session *Session, keyspace string) {
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		metadata, err := session.KeyspaceMetadata(keyspace)
		must(err)
		if _, found := metadata.Tables["t"]; found {
			return
		}
	}
	log.Fatal("the table never came into the metadata")
}

func connect(address, keyspace string) *Session {
	cluster := newCluster(address)
	cluster.Keyspace = keyspace
	session, err := cluster.CreateSession()
	must(err)
	return session
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
