package main

import (
	"errors"
	"fmt"
	"strings"
)

func plain(address, keyspace string) []section {
	first, err := opened(address, func(*Cluster) {})
	sure(err)
	sure(first.Query("CREATE KEYSPACE " + keyspace + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}").Exec())
	first.Close()
	session, err := opened(address, func(cluster *Cluster) { cluster.Keyspace = keyspace })
	sure(err)
	with := func(body func(*Session)) func() { return func() { body(session) } }
	return []section{
		{"connect", with(connected)},
		{"metadata", func() { metadata(session, keyspace) }},
		{"events", func() { events(address, keyspace, session) }},
		{"types", with(types)},
		{"prepare", with(prepare)},
		{"batches", with(batches)},
		{"conditions", with(conditions)},
		{"counters", with(counters)},
		{"paging", with(paging)},
		{"errors", func() { refusals(session, keyspace) }},
		{"vectors", with(vectors)},
	}
}

func connected(session *Session) {
	var version, release string
	sure(session.Query("SELECT native_protocol_version, release_version FROM system.local").Scan(&version, &release))
	check(release != "", "a release")
	var own int
	sure(session.Query("SELECT protocol_version FROM system_views.clients LIMIT 1").Scan(&own))
	expected := 4
	if name == "gocql" {
		expected = 5
	}
	equal(expected, own, "the protocol that is spoken")
}

func metadata(session *Session, keyspace string) {
	sure(session.Query("CREATE TYPE person (name text, born date)").Exec())
	sure(session.Query("CREATE TABLE films (maker uuid, year int, title text, studio text static, cast_of list<frozen<person>>," +
		" \"Mixed\" frozen<map<text, frozen<set<int>>>>, v vector<float, 3>, PRIMARY KEY (maker, year, title))" +
		" WITH CLUSTERING ORDER BY (year DESC, title ASC)").Exec())
	sure(session.Query("CREATE INDEX films_by_studio ON films (studio)").Exec())
	eventually(func() bool {
		known, err := session.KeyspaceMetadata(keyspace)
		sure(err)
		films := known.Tables["films"]
		return films != nil && len(films.Columns) == 7 && known.UserTypes["person"] != nil
	}, "the table is known")
	known, err := session.KeyspaceMetadata(keyspace)
	sure(err)
	films := known.Tables["films"]
	equal("[name born]", known.UserTypes["person"].FieldNames, "fields")
	equal("maker", films.PartitionKey[0].Name, "the partition key")
	equal("year", films.ClusteringColumns[0].Name, "a clustering column")
	equal("desc", strings.ToLower(films.ClusteringColumns[0].ClusteringOrder), "its order")
	check(films.Columns["Mixed"] != nil && films.Columns["v"] != nil, "columns")
	equal("SimpleStrategy", known.StrategyClass[strings.LastIndex(known.StrategyClass, ".")+1:], "replication")
	var options map[string]string
	sure(session.Query("SELECT options FROM system_schema.indexes WHERE keyspace_name = ? AND table_name = 'films'", keyspace).
		Scan(&options))
	equal("studio", options["target"], "the index's target")
}

func events(address, keyspace string, session *Session) {
	second, err := opened(address, func(cluster *Cluster) { cluster.Keyspace = keyspace })
	sure(err)
	defer second.Close()
	columns := func() int {
		known, err := second.KeyspaceMetadata(keyspace)
		sure(err)
		if told := known.Tables["told"]; told != nil {
			return len(told.Columns)
		}
		return 0
	}
	equal(0, columns(), "nothing yet")
	sure(session.Query("CREATE TABLE told (k int PRIMARY KEY)").Exec())
	eventually(func() bool { return columns() == 1 }, "a table is told")
	sure(session.Query("ALTER TABLE told ADD a text").Exec())
	eventually(func() bool { return columns() == 2 }, "its change is told")
	sure(session.Query("DROP TABLE told").Exec())
	eventually(func() bool { return columns() == 0 }, "its end is told")
}

func prepare(session *Session) {
	sure(session.Query("CREATE TABLE prepared (a int, b int, c int, d text, PRIMARY KEY ((a, b), c))").Exec())
	sure(session.Query("INSERT INTO prepared (d, c, b, a) VALUES (?, ?, ?, ?)", "four", 3, 2, 1).Exec())
	read := func() map[string]any {
		row := map[string]any{}
		sure(session.Query("SELECT * FROM prepared WHERE a = ? AND b = ? AND c IN ?", 1, 2, []int{3, 4}).MapScan(row))
		return row
	}
	equal(4, len(read()), "columns")
	sure(session.Query("ALTER TABLE prepared ADD e int").Exec())
	row := read()
	equal("four", row["d"], "a value after the table has changed")
	if name == "gocql" {
		equal(5, len(row), "columns after one came")
	}
	err := session.Query("SELECT * FROM nowhere WHERE k = ?", 1).Exec()
	check(isInvalid(err), "a table that is not there: %v", err)
}

func batches(session *Session) {
	sure(session.Query("CREATE TABLE batched (k int, c int, v text, PRIMARY KEY (k, c))").Exec())
	sure(session.Query("CREATE TABLE counted (k int PRIMARY KEY, n counter)").Exec())
	for at, kind := range []BatchKind{logged, unlogged} {
		batch := session.NewBatch(kind)
		batch.Query("INSERT INTO batched (k, c, v) VALUES (?, ?, ?)", 1, 1, fmt.Sprint(at))
		batch.Query("INSERT INTO batched (k, c, v) VALUES (?, ?, ?)", 2, 1, fmt.Sprint(at))
		batch.Query("DELETE FROM batched WHERE k = 3")
		sure(session.ExecuteBatch(batch))
		var v string
		sure(session.Query("SELECT v FROM batched WHERE k = 2").Scan(&v))
		equal(at, v, "a row of a batch")
	}
	add := "UPDATE counted SET n = n + ? WHERE k = ?"
	batch := session.NewBatch(counterKind)
	batch.Query(add, 5, 1)
	batch.Query(add, -2, 1)
	sure(session.ExecuteBatch(batch))
	var n int64
	sure(session.Query("SELECT n FROM counted WHERE k = 1").Scan(&n))
	equal(3, n, "a counter")
	mixed := session.NewBatch(logged)
	mixed.Query(add, 5, 1)
	check(isInvalid(session.ExecuteBatch(mixed)), "counters in a logged batch")
}

func conditions(session *Session) {
	sure(session.Query("CREATE TABLE lwt (k int, c int, s text static, v text, PRIMARY KEY (k, c))").Exec())
	insert := "INSERT INTO lwt (k, c, v) VALUES (?, ?, ?) IF NOT EXISTS"
	row := map[string]any{}
	applied, err := session.Query(insert, 1, 1, "first").MapScanCAS(row)
	sure(err)
	check(applied, "the first is applied")
	row = map[string]any{}
	applied, err = session.Query(insert, 1, 1, "second").MapScanCAS(row)
	sure(err)
	check(!applied && row["v"] == "first", "the second finds %v", row)
	var was string
	applied, err = session.Query("UPDATE lwt SET v = ? WHERE k = ? AND c = ? IF v = ?", "x", 1, 1, "other").ScanCAS(&was)
	sure(err)
	check(!applied && was == "first", "the value that is there: %s", was)
	applied, err = session.Query("UPDATE lwt SET v = ? WHERE k = ? AND c = ? IF v IN ?", "new", 1, 1, []string{"first"}).ScanCAS(&was)
	sure(err)
	check(applied, "IN")
	applied, err = session.Query("UPDATE lwt SET v = 'x' WHERE k = 9 AND c = 1 IF EXISTS").ScanCAS()
	sure(err)
	check(!applied, "IF EXISTS")
	batch := session.NewBatch(logged)
	batch.Query(insert, 1, 1, "third")
	batch.Query("INSERT INTO lwt (k, c, v) VALUES (1, 2, 'with')")
	row = map[string]any{}
	applied, rest, err := session.MapExecuteBatchCAS(batch, row)
	sure(err)
	check(!applied && row["c"] == 1, "a batch finds %v", row)
	sure(rest.Close())
	read := session.Query("SELECT v FROM lwt WHERE k = 1 AND c = 1").SerialConsistency(serial)
	sure(read.Scan(&was))
	equal("new", was, "a value")
}

func counters(session *Session) {
	sure(session.Query("CREATE TABLE visits (k int PRIMARY KEY, n counter, m counter)").Exec())
	sure(session.Query("UPDATE visits SET n += ?, m -= ? WHERE k = ?", int64(1)<<62, 1, 1).Exec())
	sure(session.Query("UPDATE visits SET n += ?, m -= ? WHERE k = ?", -1, 1, 1).Exec())
	var n, m int64
	sure(session.Query("SELECT n, m FROM visits WHERE k = ?", 1).Scan(&n, &m))
	equal(int64(1)<<62-1, n, "n")
	equal(-2, m, "m")
	err := session.Query("INSERT INTO visits (k, n) VALUES (1, 2)").Exec()
	check(isInvalid(err), "an INSERT of a counter: %v", err)
}

func paging(session *Session) {
	sure(session.Query("CREATE TABLE paged (k int, c int, PRIMARY KEY (k, c))").Exec())
	for n := range 100 {
		sure(session.Query("INSERT INTO paged (k, c) VALUES (?, ?)", n%3, n).Exec())
	}
	for _, size := range []int{1, 7, 50, 100, 5000} {
		found, c := map[int]bool{}, 0
		iter := session.Query("SELECT c FROM paged").PageSize(size).Iter()
		for iter.Scan(&c) {
			found[c] = true
		}
		sure(iter.Close())
		equal(100, len(found), fmt.Sprintf("rows by pages of %d", size))
	}
	found, state := map[int]bool{}, []byte(nil)
	for pages := 0; ; pages++ {
		check(pages < 20, "pages without end")
		iter := session.Query("SELECT c FROM paged WHERE k IN (0, 1, 2)").PageSize(9).PageState(state).Iter()
		next := iter.PageState()
		for c, left := 0, iter.NumRows(); left > 0 && iter.Scan(&c); left-- {
			check(!found[c], "a row twice")
			found[c] = true
		}
		sure(iter.Close())
		if state = next; len(state) == 0 {
			break
		}
	}
	equal(100, len(found), "rows of pages that are resumed")
}

func refusals(session *Session, keyspace string) {
	sure(session.Query("CREATE TABLE here (k int PRIMARY KEY, v text)").Exec())
	err := session.Query("SELEKT * FROM here").Exec()
	check(isSyntax(err), "syntax: %v", err)
	for _, statement := range []string{"SELECT * FROM nowhere", "SELECT nothing FROM here", "SELECT * FROM here WHERE v = 'a'"} {
		err := session.Query(statement).Exec()
		check(isInvalid(err), "%s: %v", statement, err)
	}
	var exists *AlreadyExists
	err = session.Query("CREATE TABLE here (k int PRIMARY KEY)").Exec()
	check(errors.As(err, &exists) && exists.Table == "here" && exists.Keyspace == keyspace, "a table again: %v", err)
	err = session.Query("CREATE KEYSPACE bad WITH replication = {'class': 'NoSuchStrategy'}").Exec()
	check(isConfiguration(err), "a bad strategy: %v", err)
}

func vectors(session *Session) {
	sure(session.Query("CREATE TABLE near (k int PRIMARY KEY, v vector<float, 3>)").Exec())
	sure(session.Query("CREATE CUSTOM INDEX near_v ON near (v) USING 'StorageAttachedIndex' WITH OPTIONS = {'similarity_function': 'euclidean'}").Exec())
	for k := range 20 {
		sure(session.Query("INSERT INTO near (k, v) VALUES (?, ?)", k, Vector{float32(k), 0, 1}).Exec())
	}
	nearest := func() (found []int) {
		k := 0
		iter := session.Query("SELECT k FROM near ORDER BY v ANN OF ? LIMIT ?", Vector{7.1, 0, 1}, 3).Iter()
		for iter.Scan(&k) {
			found = append(found, k)
		}
		sure(iter.Close())
		return found
	}
	eventually(func() bool { return len(nearest()) == 3 }, "the index serves")
	equal("[7 8 6]", nearest(), "the nearest rows")
}
