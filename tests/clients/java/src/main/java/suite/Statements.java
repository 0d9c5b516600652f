package suite;

import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.DefaultConsistencyLevel;
import com.datastax.oss.driver.api.core.cql.BatchStatement;
import com.datastax.oss.driver.api.core.cql.BoundStatement;
import com.datastax.oss.driver.api.core.cql.DefaultBatchType;
import com.datastax.oss.driver.api.core.cql.PagingState;
import com.datastax.oss.driver.api.core.cql.PreparedStatement;
import com.datastax.oss.driver.api.core.cql.ResultSet;
import com.datastax.oss.driver.api.core.cql.Row;
import com.datastax.oss.driver.api.core.cql.SimpleStatement;
import com.datastax.oss.driver.api.core.cql.Statement;
import com.datastax.oss.driver.api.core.data.CqlVector;
import com.datastax.oss.driver.api.core.servererrors.AlreadyExistsException;
import com.datastax.oss.driver.api.core.servererrors.InvalidConfigurationInQueryException;
import com.datastax.oss.driver.api.core.servererrors.InvalidQueryException;
import com.datastax.oss.driver.api.core.servererrors.SyntaxError;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;

/** Statements of all kinds. */
final class Statements {
    private Statements() {}

    static void prepare(CqlSession session) {
        session.execute("CREATE TABLE prepared (a int, b int, c int, d text, PRIMARY KEY ((a, b), c))");
        PreparedStatement insert = session.prepare("INSERT INTO prepared (d, c, b, a) VALUES (:d, :c, :b, :a)");
        Check.equal(List.of(3, 2), insert.getPartitionKeyIndices(), "where the partition key is");
        session.execute(insert.bind().setInt("a", 1).setInt("b", 2).setInt("c", 3).setString("d", "four"));
        PreparedStatement select = session.prepare("SELECT * FROM prepared WHERE a = ? AND b = ? AND c IN ?");
        BoundStatement bound = select.bind(1, 2, List.of(3, 4));
        Check.isTrue(bound.getRoutingKey() != null, "a routing key");
        Check.equal(4, session.execute(bound).one().getColumnDefinitions().size(), "columns");
        // Protocol v5 tells a driver that the columns of what it prepared are others now.
        session.execute("ALTER TABLE prepared ADD e int");
        Row row = session.execute(bound).one();
        Check.equal(5, row.getColumnDefinitions().size(), "columns after one came");
        Check.equal("four", row.getString("d"), "a value");
        SimpleStatement values = SimpleStatement.newInstance("SELECT d FROM prepared WHERE a = ? AND b = ? AND c = ?", 1, 2, 3);
        Check.equal("four", session.execute(values).one().getString(0), "values without preparing");
        SimpleStatement named = SimpleStatement.newInstance("SELECT d FROM prepared WHERE a = :a AND b = :b", Map.of("a", 1, "b", 2));
        Check.equal("four", session.execute(named).one().getString(0), "values by name");
        var other = SimpleStatement.newInstance("SELECT key FROM local").setKeyspace("system");
        Check.equal("local", session.execute(other).one().getString(0), "a keyspace of one request");
        Check.fails(InvalidQueryException.class, "table nowhere does not exist", () -> session.prepare("SELECT * FROM nowhere"));
    }

    static void batches(CqlSession session) {
        session.execute("CREATE TABLE batched (k int, c int, v text, PRIMARY KEY (k, c))");
        session.execute("CREATE TABLE counted (k int PRIMARY KEY, n counter)");
        PreparedStatement insert = session.prepare("INSERT INTO batched (k, c, v) VALUES (?, ?, ?)");
        for (DefaultBatchType type : List.of(DefaultBatchType.LOGGED, DefaultBatchType.UNLOGGED)) {
            BatchStatement batch = BatchStatement.newInstance(type)
                    .add(insert.bind(1, 1, type.name()))
                    .add(insert.bind(2, 1, type.name()))
                    .add(SimpleStatement.newInstance("INSERT INTO batched (k, c, v) VALUES (3, 1, ?)", type.name()))
                    .add(SimpleStatement.newInstance("DELETE FROM batched WHERE k = 4"));
            session.execute(batch);
            for (int k = 1; k <= 3; k++) {
                Check.equal(type.name(), session.execute("SELECT v FROM batched WHERE k = " + k).one().getString(0), "row " + k);
            }
        }
        PreparedStatement add = session.prepare("UPDATE counted SET n = n + ? WHERE k = ?");
        session.execute(BatchStatement.newInstance(DefaultBatchType.COUNTER, add.bind(5L, 1), add.bind(-2L, 1), add.bind(1L, 2)));
        Check.equal(3L, session.execute("SELECT n FROM counted WHERE k = 1").one().getLong(0), "a counter");
        BatchStatement mixed = BatchStatement.newInstance(DefaultBatchType.LOGGED, add.bind(5L, 1));
        Check.fails(InvalidQueryException.class, "counter", () -> session.execute(mixed));
        BatchStatement timed = BatchStatement.newInstance(DefaultBatchType.LOGGED, insert.bind(5, 1, "t")).setQueryTimestamp(77);
        session.execute(timed);
        Check.equal(77L, session.execute("SELECT writetime(v) FROM batched WHERE k = 5").one().getLong(0), "a time");
    }

    static void conditions(CqlSession session) {
        session.execute("CREATE TABLE lwt (k int, c int, s text static, v text, m map<text, int>, PRIMARY KEY (k, c))");
        PreparedStatement insert = session.prepare("INSERT INTO lwt (k, c, v) VALUES (?, ?, ?) IF NOT EXISTS");
        Check.isTrue(session.execute(insert.bind(1, 1, "first")).wasApplied(), "the first is applied");
        ResultSet second = session.execute(insert.bind(1, 1, "second"));
        Check.isTrue(!second.wasApplied(), "the second is not");
        Row row = second.one();
        Check.equal("first", row.getString("v"), "the row that is there");
        Check.equal("[applied]", row.getColumnDefinitions().get(0).getName().asInternal(), "the first column");
        ResultSet update = session.execute("UPDATE lwt SET v = 'x' WHERE k = 1 AND c = 1 IF v = 'other' AND m['a'] = 1");
        Check.isTrue(!update.wasApplied() && update.one().getString("v").equals("first"), "the value that is there");
        PreparedStatement set = session.prepare("UPDATE lwt SET v = ? WHERE k = ? AND c = ? IF v IN ?");
        Check.isTrue(session.execute(set.bind("new", 1, 1, List.of("a", "first"))).wasApplied(), "IN");
        Check.isTrue(!session.execute("UPDATE lwt SET v = 'x' WHERE k = 9 AND c = 1 IF EXISTS").wasApplied(), "IF EXISTS");
        Check.isTrue(session.execute("UPDATE lwt SET s = 'x' WHERE k = 1 IF s = null").wasApplied(), "a static column");
        BatchStatement batch = BatchStatement.newInstance(
                DefaultBatchType.LOGGED,
                insert.bind(1, 1, "third"),
                SimpleStatement.newInstance("INSERT INTO lwt (k, c, v) VALUES (1, 2, 'with')"));
        ResultSet refused = session.execute(batch);
        Check.isTrue(!refused.wasApplied() && refused.one().getInt("c") == 1, "a batch's condition");
        Check.isTrue(session.execute("SELECT * FROM lwt WHERE k = 1 AND c = 2").one() == null, "nothing of the batch");
        Statement<?> serial = SimpleStatement.newInstance("SELECT v FROM lwt WHERE k = 1 AND c = 1")
                .setConsistencyLevel(DefaultConsistencyLevel.SERIAL);
        Check.equal("new", session.execute(serial).one().getString(0), "a serial read");
        Check.isTrue(session.execute("DELETE FROM lwt WHERE k = 1 AND c = 1 IF v = 'new'").wasApplied(), "a delete");
    }

    static void counters(CqlSession session) {
        session.execute("CREATE TABLE visits (k int, c int, n counter, m counter, PRIMARY KEY (k, c))");
        PreparedStatement add = session.prepare("UPDATE visits SET n += ?, m -= ? WHERE k = ? AND c = ?");
        session.execute(add.bind(Long.MAX_VALUE, 1L, 1, 1));
        session.execute(add.bind(-1L, 1L, 1, 1));
        Row row = session.execute("SELECT n, m FROM visits WHERE k = 1 AND c = 1").one();
        Check.equal(Long.MAX_VALUE - 1, row.getLong(0), "n");
        Check.equal(-2L, row.getLong(1), "m");
        session.execute("DELETE n FROM visits WHERE k = 1 AND c = 1");
        Check.isTrue(session.execute("SELECT n FROM visits WHERE k = 1 AND c = 1").one().isNull(0), "a dropped counter");
        Check.fails(InvalidQueryException.class, "counter", () -> session.execute("INSERT INTO visits (k, c, n) VALUES (1, 2, 3)"));
    }

    static void paging(CqlSession session) {
        session.execute("CREATE TABLE paged (k int, c int, PRIMARY KEY (k, c))");
        PreparedStatement insert = session.prepare("INSERT INTO paged (k, c) VALUES (?, ?)");
        for (int n = 0; n < 100; n++) {
            session.execute(insert.bind(n % 3, n));
        }
        for (int size : new int[] {1, 7, 50, 100, 5000}) {
            TreeSet<Integer> found = new TreeSet<>();
            session.execute(SimpleStatement.newInstance("SELECT c FROM paged").setPageSize(size)).forEach(row -> found.add(row.getInt(0)));
            Check.equal(100, found.size(), "rows by pages of " + size);
        }
        PreparedStatement select = session.prepare("SELECT c FROM paged WHERE k IN (0, 1, 2)");
        List<Integer> resumed = new ArrayList<>();
        PagingState state = null;
        do {
            BoundStatement bound = select.bind().setPageSize(9);
            ResultSet page = session.execute(state == null ? bound : bound.setPagingState(PagingState.fromString(state.toString())));
            for (int left = page.getAvailableWithoutFetching(); left > 0; left--) {
                resumed.add(page.one().getInt(0));
            }
            state = page.getExecutionInfo().getSafePagingState();
        } while (state != null);
        Check.equal(100, resumed.size(), "rows of pages that are resumed");
        Check.equal(100, new TreeSet<>(resumed).size(), "different rows");
        ResultSet limited = session.execute(SimpleStatement.newInstance("SELECT c FROM paged LIMIT 25").setPageSize(10));
        Check.equal(25, limited.all().size(), "rows up to a LIMIT");
    }

    static void errors(CqlSession session) {
        String keyspace = session.getKeyspace().orElseThrow().asCql(true);
        session.execute("CREATE TABLE here (k int PRIMARY KEY, v text)");
        Check.fails(SyntaxError.class, "SELEKT", () -> session.execute("SELEKT * FROM here"));
        Check.fails(InvalidQueryException.class, "nowhere", () -> session.execute("SELECT * FROM nowhere"));
        Check.fails(InvalidQueryException.class, "Undefined column name", () -> session.execute("SELECT nothing FROM here"));
        Check.fails(InvalidQueryException.class, "ALLOW FILTERING", () -> session.execute("SELECT * FROM here WHERE v = 'a'"));
        Check.fails(InvalidQueryException.class, "does not exist", () -> session.execute("SELECT * FROM elsewhere.here"));
        var table = Check.fails(AlreadyExistsException.class, "here", () -> session.execute("CREATE TABLE here (k int PRIMARY KEY)"));
        Check.isTrue(table.getMessage().contains("already exist"), table.getMessage());
        Check.fails(AlreadyExistsException.class, keyspace, () -> session.execute("CREATE KEYSPACE " + keyspace
                + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"));
        Check.fails(InvalidConfigurationInQueryException.class, "", () -> session.execute(
                "CREATE KEYSPACE bad WITH replication = {'class': 'NoSuchStrategy'}"));
        Statement<?> badly = SimpleStatement.newInstance("SELECT * FROM here WHERE k = ?", "no number");
        Check.fails(InvalidQueryException.class, "", () -> session.execute(badly));
    }

    static void vectors(CqlSession session) throws Exception {
        session.execute("CREATE TABLE near (k int PRIMARY KEY, v vector<float, 3>)");
        session.execute("CREATE CUSTOM INDEX near_v ON near (v) USING 'StorageAttachedIndex' WITH OPTIONS = {'similarity_function': 'euclidean'}");
        PreparedStatement insert = session.prepare("INSERT INTO near (k, v) VALUES (?, ?)");
        for (int k = 0; k < 20; k++) {
            session.execute(insert.bind(k, CqlVector.newInstance((float) k, 0f, 1f)));
        }
        PreparedStatement nearest = session.prepare("SELECT k, similarity_euclidean(v, ?) AS s FROM near ORDER BY v ANN OF ? LIMIT ?");
        CqlVector<Float> query = CqlVector.newInstance(7.1f, 0f, 1f);
        Check.eventually(() -> session.execute(nearest.bind(query, query, 3)).all().size() == 3, "the index serves");
        List<Integer> found = new ArrayList<>();
        session.execute(nearest.bind(query, query, 3)).forEach(row -> found.add(row.getInt(0)));
        Check.equal(List.of(7, 8, 6), found, "the nearest rows");
        CqlVector<Float> longer = CqlVector.newInstance(1f, 2f);
        Check.fails(InvalidQueryException.class, "", () -> session.execute(
                SimpleStatement.newInstance("SELECT k FROM near ORDER BY v ANN OF ? LIMIT 3", longer)));
    }
}
