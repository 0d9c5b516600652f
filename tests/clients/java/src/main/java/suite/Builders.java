package suite;

import static com.datastax.oss.driver.api.querybuilder.QueryBuilder.bindMarker;
import static com.datastax.oss.driver.api.querybuilder.QueryBuilder.deleteFrom;
import static com.datastax.oss.driver.api.querybuilder.QueryBuilder.insertInto;
import static com.datastax.oss.driver.api.querybuilder.QueryBuilder.literal;
import static com.datastax.oss.driver.api.querybuilder.QueryBuilder.selectFrom;
import static com.datastax.oss.driver.api.querybuilder.QueryBuilder.update;

import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.cql.Row;
import com.datastax.oss.driver.api.core.data.CqlVector;
import com.datastax.oss.driver.api.core.metadata.schema.ClusteringOrder;
import com.datastax.oss.driver.api.core.metadata.schema.TableMetadata;
import com.datastax.oss.driver.api.core.type.DataTypes;
import com.datastax.oss.driver.api.querybuilder.SchemaBuilder;
import java.util.List;
import java.util.Map;

/** Statements that the driver's builders write. */
final class Builders {
    private Builders() {}

    static void queries(CqlSession session) throws Exception {
        session.execute("CREATE TABLE built (k int, c int, v text, l list<int>, m map<text, int>, e vector<float, 2>, PRIMARY KEY (k, c))");
        session.execute("CREATE CUSTOM INDEX built_e ON built (e) USING 'sai'");
        session.execute(insertInto("built").value("k", literal(1)).value("c", literal(1)).value("v", literal("it's"))
                .value("l", literal(List.of(1, 2))).value("m", literal(Map.of("a", 1))).value("e", literal(CqlVector.newInstance(1f, 0f)))
                .usingTtl(1000).usingTimestamp(5).build());
        Row row = session.execute(selectFrom("built").column("v").writeTime("v").as("w").ttl("v").as("t").element("m", literal("a")).as("a")
                .whereColumn("k").isEqualTo(literal(1)).whereColumn("c").in(bindMarker())
                .build(List.of(1))).one();
        Check.equal("it's", row.getString("v"), "v");
        Check.equal(5L, row.getLong("w"), "its time");
        Check.isTrue(row.getInt("t") > 900, "its time to live");
        Check.equal(1, row.getInt("a"), "an element");
        session.execute(update("built").append("l", literal(List.of(3))).setMapValue("m", literal("b"), literal(2))
                .whereColumn("k").isEqualTo(literal(1)).whereColumn("c").isEqualTo(literal(1)).build());
        row = session.execute(selectFrom("built").all().build()).one();
        Check.equal(Map.of("a", 1, "b", 2), row.getMap("m", String.class, Integer.class), "m");
        Check.isTrue(!session.execute(update("built").setColumn("v", literal("x")).whereColumn("k").isEqualTo(literal(1))
                .whereColumn("c").isEqualTo(literal(1)).ifColumn("v").isEqualTo(literal("no")).build()).wasApplied(), "a condition");
        Check.equal(1L, session.execute(selectFrom("built").countAll().build()).one().getLong(0), "a count");
        var near = selectFrom("built").column("k").function("similarity_cosine", com.datastax.oss.driver.api.querybuilder.select.Selector.column("e"), literal(CqlVector.newInstance(1f, 0f)))
                .orderByAnnOf("e", CqlVector.newInstance(1f, 0.5f)).limit(5).build();
        Check.eventually(() -> session.execute(near).all().size() == 1, "a search");
        session.execute(selectFrom("built").distinct().column("k").allowFiltering().build());
        session.execute(selectFrom("built").column("k").function("sum", com.datastax.oss.driver.api.querybuilder.select.Selector.column("c")).groupBy("k").build());
        session.execute(deleteFrom("built").element("m", literal("a")).whereColumn("k").isEqualTo(literal(1)).whereColumn("c").isEqualTo(literal(1)).build());
        Check.isTrue(session.execute(deleteFrom("built").whereColumn("k").isEqualTo(literal(1)).whereColumn("c").isEqualTo(literal(1)).ifExists().build()).wasApplied(), "a delete");
    }

    static void schema(CqlSession session) {
        String keyspace = session.getKeyspace().orElseThrow().asInternal() + "_made";
        session.execute(SchemaBuilder.createKeyspace(keyspace).ifNotExists().withSimpleStrategy(1).withDurableWrites(true).build());
        session.execute(SchemaBuilder.createType(keyspace, "place").ifNotExists().withField("city", DataTypes.TEXT).withField("no", DataTypes.INT).build());
        session.execute(SchemaBuilder.createTable(keyspace, "made").ifNotExists()
                .withPartitionKey("k", DataTypes.UUID).withClusteringColumn("c", DataTypes.TIMEUUID).withStaticColumn("s", DataTypes.TEXT)
                .withColumn("p", SchemaBuilder.udt("place", true)).withColumn("v", DataTypes.vectorOf(DataTypes.FLOAT, 3))
                .withColumn("l", DataTypes.listOf(DataTypes.INT)).withClusteringOrder("c", ClusteringOrder.DESC)
                .withComment("made").withGcGraceSeconds(100).withLZ4Compression(64, 1.0)
                .withCompaction(SchemaBuilder.leveledCompactionStrategy()).withCaching(true, SchemaBuilder.RowsPerPartition.ALL).build());
        session.execute(SchemaBuilder.createIndex("made_s").ifNotExists().onTable(keyspace, "made").andColumn("s").build());
        session.execute(SchemaBuilder.createIndex("made_v").custom("StorageAttachedIndex").onTable(keyspace, "made").andColumn("v").build());
        session.execute(SchemaBuilder.alterTable(keyspace, "made").addColumn("x", DataTypes.INT).build());
        session.execute(SchemaBuilder.alterTable(keyspace, "made").withComment("altered").build());
        session.execute(SchemaBuilder.alterTable(keyspace, "made").dropColumn("l").build());
        session.execute(SchemaBuilder.alterType(keyspace, "place").addField("more", DataTypes.TEXT).build());
        TableMetadata made = session.getMetadata().getKeyspace(keyspace).orElseThrow().getTable("made").orElseThrow();
        Check.equal(2, made.getIndexes().size(), "indexes");
        Check.isTrue(made.getColumn("x").isPresent() && made.getColumn("l").isEmpty(), "columns");
        session.execute(SchemaBuilder.dropIndex(keyspace, "made_v").ifExists().build());
        session.execute(SchemaBuilder.dropTable(keyspace, "made").ifExists().build());
        session.execute(SchemaBuilder.dropType(keyspace, "place").ifExists().build());
        session.execute(SchemaBuilder.dropKeyspace(keyspace).ifExists().build());
        Check.isTrue(session.getMetadata().getKeyspace(keyspace).isEmpty(), "the keyspace is gone");
    }
}
