package suite;

import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.DefaultProtocolVersion;
import com.datastax.oss.driver.api.core.metadata.Node;
import com.datastax.oss.driver.api.core.metadata.schema.ClusteringOrder;
import com.datastax.oss.driver.api.core.metadata.schema.IndexMetadata;
import com.datastax.oss.driver.api.core.metadata.schema.KeyspaceMetadata;
import com.datastax.oss.driver.api.core.metadata.schema.SchemaChangeListenerBase;
import com.datastax.oss.driver.api.core.metadata.schema.TableMetadata;
import com.datastax.oss.driver.api.core.type.UserDefinedType;
import java.net.InetSocketAddress;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** What the driver knows of a server: its nodes, its schema, and the changes of it. */
final class Schema {
    private Schema() {}

    static void connect(CqlSession session) {
        Check.equal(DefaultProtocolVersion.V5, session.getContext().getProtocolVersion(), "the protocol");
        Check.equal(1, session.getMetadata().getNodes().size(), "nodes");
        Node node = session.getMetadata().getNodes().values().iterator().next();
        Check.isTrue(node.getHostId() != null && node.getSchemaVersion() != null, "the node's ids: " + node);
        Check.equal("datacenter1", node.getDatacenter(), "the data centre");
        Check.isTrue(node.getCassandraVersion() != null, "the node's version");
        Check.isTrue(session.getMetadata().getTokenMap().isPresent(), "a map of tokens");
        Check.isTrue(session.checkSchemaAgreement(), "nodes agree");
        Check.equal(true, own(session).isDurableWrites(), "the keyspace in use is known");
    }

    static void metadata(CqlSession session) {
        session.execute("CREATE TYPE person (name text, born date)");
        session.execute("CREATE TABLE films (maker uuid, year int, title text, studio text static, cast_of list<frozen<person>>,"
                + " \"Mixed Case\" frozen<map<text, set<int>>>, place tuple<int, text>, v vector<float, 3>,"
                + " PRIMARY KEY (maker, year, title)) WITH CLUSTERING ORDER BY (year DESC, title ASC)"
                + " AND comment = 'films of makers' AND default_time_to_live = 100");
        session.execute("CREATE INDEX by_studio ON films (studio)");
        session.execute("CREATE CUSTOM INDEX by_v ON films (v) USING 'sai' WITH OPTIONS = {'similarity_function': 'euclidean'}");
        KeyspaceMetadata keyspace = own(session);
        Check.equal("1", keyspace.getReplication().get("replication_factor"), "replication");
        UserDefinedType person = keyspace.getUserDefinedType("person").orElseThrow();
        Check.equal("[name, born]", person.getFieldNames().toString(), "fields");
        TableMetadata films = keyspace.getTable("films").orElseThrow();
        Check.equal(8, films.getColumns().size(), "columns");
        Check.equal("[maker]", names(films.getPartitionKey()), "the partition key");
        Check.equal("[DESC, ASC]", films.getClusteringColumns().values().toString(), "the order");
        Check.equal(ClusteringOrder.DESC, films.getClusteringColumns().values().iterator().next(), "the order");
        Check.isTrue(films.getColumn("studio").orElseThrow().isStatic(), "a static column");
        String mixed = films.getColumn("\"Mixed Case\"").orElseThrow().getType().asCql(true, false);
        Check.equal("frozen<map<text, frozen<set<int>>>>", mixed, "a type");
        Check.equal("vector<float, 3>", films.getColumn("v").orElseThrow().getType().asCql(true, false), "a type");
        Check.isTrue(films.getOptions().toString().contains("films of makers"), "the comment: " + films.getOptions());
        IndexMetadata index = films.getIndex("by_studio").orElseThrow();
        Check.equal("studio", index.getTarget(), "the index's target");
        IndexMetadata vectors = films.getIndex("by_v").orElseThrow();
        Check.isTrue(vectors.getClassName().isPresent(), "the class of an index: " + vectors.getOptions());
    }

    static void events(InetSocketAddress server, CqlSession session) throws Exception {
        Set<String> seen = ConcurrentHashMap.newKeySet();
        var listener = new SchemaChangeListenerBase() {
            @Override
            public void onTableCreated(TableMetadata table) {
                seen.add("created " + table.getName());
            }

            @Override
            public void onTableUpdated(TableMetadata current, TableMetadata previous) {
                seen.add("updated " + current.getName());
            }

            @Override
            public void onTableDropped(TableMetadata table) {
                seen.add("dropped " + table.getName());
            }

            @Override
            public void onUserDefinedTypeCreated(UserDefinedType type) {
                seen.add("created type " + type.getName());
            }
        };
        try (CqlSession second = Suite.builder(server).withSchemaChangeListener(listener).build()) {
            session.execute("CREATE TYPE told_type (a int)");
            Check.eventually(() -> seen.contains("created type told_type"), "a type is told");
            session.execute("CREATE TABLE told (k int PRIMARY KEY)");
            Check.eventually(() -> seen.contains("created told"), "a table is told");
            session.execute("ALTER TABLE told ADD a text");
            Check.eventually(() -> seen.contains("updated told"), "its change is told");
            String keyspace = own(session).getName().asInternal();
            Check.eventually(() -> table(second, keyspace).flatMap(t -> t.getColumn("a")).isPresent(), "a column is known");
            session.execute("CREATE INDEX told_by_a ON told (a)");
            Check.eventually(() -> table(second, keyspace).flatMap(t -> t.getIndex("told_by_a")).isPresent(), "an index is known");
            session.execute("DROP TABLE told");
            Check.eventually(() -> seen.contains("dropped told"), "its end is told");
            Check.isTrue(table(second, keyspace).isEmpty(), "the table is no longer known");
        }
    }

    private static Optional<TableMetadata> table(CqlSession session, String keyspace) {
        return session.getMetadata().getKeyspace(keyspace).flatMap(k -> k.getTable("told"));
    }

    static KeyspaceMetadata own(CqlSession session) {
        return session.getMetadata().getKeyspace(session.getKeyspace().orElseThrow()).orElseThrow();
    }

    private static String names(Iterable<com.datastax.oss.driver.api.core.metadata.schema.ColumnMetadata> columns) {
        var names = new java.util.ArrayList<String>();
        columns.forEach(column -> names.add(column.getName().asInternal()));
        return names.toString();
    }
}
