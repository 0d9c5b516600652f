package suite;

import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.cql.PreparedStatement;
import com.datastax.oss.driver.api.core.cql.Row;
import com.datastax.oss.driver.api.core.data.CqlDuration;
import com.datastax.oss.driver.api.core.data.CqlVector;
import com.datastax.oss.driver.api.core.type.DataType;
import com.datastax.oss.driver.api.core.type.DataTypes;
import com.datastax.oss.driver.api.core.type.TupleType;
import com.datastax.oss.driver.api.core.type.UserDefinedType;
import com.datastax.oss.driver.api.core.type.codec.TypeCodec;
import com.datastax.oss.driver.api.core.uuid.Uuids;
import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalTime;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;

/** Values of every type there and back at their edges, bound and as the literals that the driver writes. */
final class Types {
    private record Case(String type, List<?> values) {}

    private static final BigInteger HUGE = BigInteger.TEN.pow(1000);
    private final CqlSession session;
    private final List<Case> cases = new ArrayList<>();
    private final List<String> failures = new ArrayList<>();

    Types(CqlSession session) {
        this.session = session;
    }

    void run() throws Exception {
        session.execute("CREATE TYPE inner_t (a int, \"B\" list<text>)");
        session.execute("CREATE TYPE outer_t (i frozen<inner_t>, m map<int, frozen<inner_t>>, t tuple<int, text>, v vector<float, 2>)");
        natives();
        collections();
        userTypes();
        StringBuilder columns = new StringBuilder();
        for (int at = 0; at < cases.size(); at++) {
            columns.append(", c").append(at).append(' ').append(cases.get(at).type);
        }
        session.execute("CREATE TABLE types (k int PRIMARY KEY" + columns + ")");
        for (int at = 0; at < cases.size(); at++) {
            comesBack(at, cases.get(at));
        }
        Check.isTrue(failures.isEmpty(), String.join("; ", failures));
        nullAndUnset();
    }

    private void add(String type, Object... values) {
        cases.add(new Case(type, List.of(values)));
    }

    private void natives() throws Exception {
        add("ascii", "", "plain", "\u0000\u007f");
        add("bigint", Long.MIN_VALUE, -1L, 0L, Long.MAX_VALUE);
        add("blob", ByteBuffer.allocate(0), ByteBuffer.wrap(new byte[] {0, -1, 127}), ByteBuffer.allocate(100_000));
        add("boolean", true, false);
        add("date", LocalDate.ofEpochDay(Integer.MIN_VALUE), LocalDate.EPOCH, LocalDate.ofEpochDay(Integer.MAX_VALUE));
        add("decimal", BigDecimal.ZERO, new BigDecimal("-1.50"), new BigDecimal(HUGE, 2000), new BigDecimal(HUGE.negate(), -5));
        add("double", Double.NaN, Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY, -0.0, Double.MIN_VALUE, Double.MAX_VALUE);
        add("duration", CqlDuration.newInstance(0, 0, 0), CqlDuration.newInstance(14, 3, 5_000_000_000L),
                CqlDuration.newInstance(Integer.MAX_VALUE, Integer.MAX_VALUE, Long.MAX_VALUE),
                CqlDuration.newInstance(-Integer.MAX_VALUE, -Integer.MAX_VALUE, -Long.MAX_VALUE));
        add("float", Float.NaN, Float.POSITIVE_INFINITY, Float.NEGATIVE_INFINITY, -0.0f, Float.MIN_VALUE, Float.MAX_VALUE);
        add("inet", InetAddress.getByName("0.0.0.0"), InetAddress.getByName("255.255.255.255"), InetAddress.getByName("::"),
                InetAddress.getByName("2001:db8::1"));
        add("int", Integer.MIN_VALUE, 0, Integer.MAX_VALUE);
        add("smallint", Short.MIN_VALUE, Short.MAX_VALUE);
        add("text", "", "\u0000 \u00e9 \ud83d\ude00 'quoted'", "x".repeat(70_000));
        add("time", LocalTime.MIN, LocalTime.MAX);
        add("timestamp", Instant.ofEpochMilli(Long.MIN_VALUE), Instant.EPOCH, Instant.ofEpochMilli(Long.MAX_VALUE));
        add("timeuuid", Uuids.timeBased(), Uuids.startOf(0), Uuids.endOf(0));
        add("tinyint", Byte.MIN_VALUE, Byte.MAX_VALUE);
        add("uuid", new UUID(0, 0), UUID.randomUUID(), new UUID(-1, -1));
        add("varint", BigInteger.ZERO, HUGE, HUGE.negate(), BigInteger.valueOf(-128), BigInteger.valueOf(128));
    }

    private void collections() {
        add("list<int>", List.of(1, 1, Integer.MIN_VALUE));
        add("set<text>", Set.of("", "b"));
        add("map<text, bigint>", Map.of("", Long.MIN_VALUE, "b", 1L));
        add("frozen<list<text>>", List.of(), List.of("", "b"));
        add("frozen<set<int>>", Set.of(), Set.of(-1, 1));
        add("frozen<map<int, int>>", Map.of(), Map.of(-1, 1));
        add("map<int, frozen<list<frozen<set<text>>>>>", Map.of(1, List.of(Set.of("a", ""), Set.of())));
        add("list<frozen<map<uuid, frozen<list<double>>>>>", List.of(Map.of(new UUID(1, 2), List.of(Double.NaN))));
        add("vector<float, 3>", CqlVector.newInstance(1f, Float.NaN, Float.NEGATIVE_INFINITY));
        add("vector<bigint, 2>", CqlVector.newInstance(Long.MIN_VALUE, Long.MAX_VALUE));
        add("vector<text, 2>", CqlVector.newInstance("", "long ".repeat(100)));
        add("vector<frozen<list<int>>, 2>", CqlVector.newInstance(List.of(), List.of(1, 2)));
        add("frozen<vector<vector<float, 2>, 2>>",
                CqlVector.newInstance(CqlVector.newInstance(1f, 2f), CqlVector.newInstance(3f, 4f)));
        add("list<vector<float, 2>>", List.of(CqlVector.newInstance(1f, 2f)));
        TupleType tuple = DataTypes.tupleOf(DataTypes.INT, DataTypes.TEXT, DataTypes.frozenListOf(DataTypes.INT));
        add("tuple<int, text, frozen<list<int>>>", tuple.newValue(1, "", List.of(2)), tuple.newValue().setInt(0, 7));
    }

    private void userTypes() {
        UserDefinedType inner = type("inner_t");
        UserDefinedType outer = type("outer_t");
        var one = inner.newValue(Integer.MIN_VALUE, List.of("", "b"));
        TupleType tuple = (TupleType) outer.getFieldTypes().get(2);
        add("frozen<inner_t>", one, inner.newValue().setInt("a", 1).setToNull("\"B\""));
        add("frozen<outer_t>", outer.newValue(one, Map.of(1, one), tuple.newValue(1, "x"), CqlVector.newInstance(1f, 2f)));
        add("list<frozen<outer_t>>",
                List.of(outer.newValue(one, Map.of(), tuple.newValue(1, "x"), CqlVector.newInstance(1f, 2f))));
    }

    private UserDefinedType type(String name) {
        return Schema.own(session).getUserDefinedType(name).orElseThrow();
    }

    private void comesBack(int at, Case one) {
        PreparedStatement insert = session.prepare("INSERT INTO types (k, c" + at + ") VALUES (?, ?)");
        PreparedStatement select = session.prepare("SELECT c" + at + " FROM types WHERE k = ?");
        DataType type = insert.getVariableDefinitions().get(1).getType();
        TypeCodec<Object> codec = session.getContext().getCodecRegistry().codecFor(type);
        int row = 0;
        for (Object value : one.values) {
            same(one.type + " bound", value, () -> {
                session.execute(insert.bind(1, value));
                return session.execute(select.bind(1)).one().getObject(0);
            });
            // The driver writes nothing at all for a duration of zero.
            String literal = codec.format(value);
            if (readable(one.type, value, literal)) {
                same(one.type + " as a literal", value, () -> {
                    session.execute("INSERT INTO types (k, c" + at + ") VALUES (2, " + literal + ")");
                    return session.execute(select.bind(2)).one().getObject(0);
                });
            }
            row++;
        }
    }

    /** Whether CQL has a literal for a value, and the driver writes it. */
    private static boolean readable(String type, Object value, String literal) {
        boolean farTime = (type.equals("timestamp") || type.equals("date")) && !value.equals(Instant.EPOCH);
        return !farTime && !literal.isEmpty() && literal.length() < 60_000;
    }

    private void same(String what, Object value, java.util.concurrent.Callable<Object> there) {
        try {
            Object found = there.call();
            if (!value.equals(found)) {
                failures.add(what + ": " + brief(value) + " came back as " + brief(found));
            }
        } catch (Exception e) {
            failures.add(what + ": " + brief(value) + ": " + e);
        }
    }

    private static String brief(Object value) {
        String text = String.valueOf(value);
        return text.length() <= 60 ? text : text.substring(0, 60) + "...";
    }

    private void nullAndUnset() {
        PreparedStatement insert = session.prepare("INSERT INTO types (k, c0, c10) VALUES (?, ?, ?)");
        session.execute(insert.bind(9, "kept", 1));
        session.execute(insert.boundStatementBuilder().setInt(0, 9).setToNull(2).build());
        Row row = session.execute("SELECT c0, c10, c1 FROM types WHERE k = 9").one();
        Check.equal("kept", row.getString(0), "a value that was not set");
        Check.isTrue(row.isNull(1) && row.isNull(2), "nulls");
        Check.equal(Collections.emptyList(), session.execute("SELECT k FROM types WHERE k = 77").all(), "no row");
    }
}
