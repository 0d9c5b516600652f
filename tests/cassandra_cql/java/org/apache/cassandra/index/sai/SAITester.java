package org.apache.cassandra.index.sai;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.Collections;
import java.util.Random;

import com.carrotsearch.randomizedtesting.generators.RandomInts;
import com.carrotsearch.randomizedtesting.generators.RandomStrings;
import org.junit.Assert;

import com.datastax.driver.core.ResultSet;
import com.datastax.driver.core.Session;
import org.apache.cassandra.cql3.CQLTester;
import org.apache.cassandra.cql3.ColumnIdentifier;
import org.apache.cassandra.cql3.UntypedResultSet;
import org.apache.cassandra.cql3.statements.schema.IndexTarget;
import org.apache.cassandra.db.marshal.AbstractType;
import org.apache.cassandra.index.sai.utils.IndexIdentifier;
import org.apache.cassandra.index.sai.utils.IndexTermType;
import org.apache.cassandra.inject.Injections;
import org.apache.cassandra.schema.ColumnMetadata;

/** The base of Cassandra's tests of storage-attached indexes, as far as they ask a server over the wire. */
public abstract class SAITester extends CQLTester
{
    protected static final String CREATE_KEYSPACE_TEMPLATE =
        "CREATE KEYSPACE IF NOT EXISTS %s WITH replication = {'class': 'SimpleStrategy', 'replication_factor': '1'}";
    protected static final String CREATE_TABLE_TEMPLATE = "CREATE TABLE %s (id1 TEXT PRIMARY KEY, v1 INT, v2 TEXT)";
    protected static final String CREATE_INDEX_TEMPLATE = "CREATE INDEX IF NOT EXISTS ON %%s(%s) USING 'sai'";
    protected static final ColumnIdentifier V1_COLUMN_IDENTIFIER = ColumnIdentifier.getInterned("v1", true);
    protected static final ColumnIdentifier V2_COLUMN_IDENTIFIER = ColumnIdentifier.getInterned("v2", true);
    protected static final Injections.Counter indexBuildCounter = Injections.newCounter("builds").build();
    protected static final Injections.Counter perSSTableValidationCounter = Injections.newCounter("tables").build();
    protected static final Injections.Counter perColumnValidationCounter = Injections.newCounter("columns").build();

    private static Randomization random;

    public static Randomization getRandom()
    {
        if (random == null)
            random = new Randomization();
        return random;
    }

    /** Ways to damage a file. */
    public enum CorruptionType
    {
        REMOVED, EMPTY_FILE, TRUNCATED_HEADER, TRUNCATED_DATA, TRUNCATED_FOOTER, APPENDED_DATA
    }

    public IndexIdentifier createIndexIdentifier(String name)
    {
        return createIndexIdentifier(keyspace(), currentTable(), name);
    }

    public static IndexIdentifier createIndexIdentifier(String keyspace, String table, String name)
    {
        return new IndexIdentifier(keyspace, table, name);
    }

    protected void dropIndex(IndexIdentifier index) throws Throwable
    {
        dropIndex("DROP INDEX %s." + index.indexName);
    }

    // Public here, as tests of data models call them from other classes.

    @Override
    public String createTable(String query)
    {
        return super.createTable(query);
    }

    @Override
    public UntypedResultSet execute(String query, Object... values)
    {
        return super.execute(query, values);
    }

    @Override
    public Session sessionNet()
    {
        return super.sessionNet();
    }

    public void flush(String keyspace, String table) {}

    public void compact(String keyspace, String table) {}

    public void waitForCompactions() {}

    protected void waitForCompactionsFinished() {}

    protected void upgradeSSTables() {}

    protected void waitForTracingEvents() {}

    protected void truncate(boolean snapshot)
    {
        execute("TRUNCATE TABLE %s");
    }

    protected void simulateNodeRestart() {}

    protected void simulateNodeRestart(boolean wait) {}

    protected void assertNumRows(int count, String query, Object... values)
    {
        ResultSet result = executeNet(String.format(query, KEYSPACE + "." + currentTable()), values);
        Assert.assertEquals(count, result.all().size());
    }

    protected static void setSegmentWriteBufferSpace(int size) {}

    protected static void setBDKPostingsWriterSizing(int leaves, int skip) {}

    protected int getCompactionTasks()
    {
        return 0;
    }

    public static IndexTermType createIndexTermType(AbstractType<?> type)
    {
        ColumnMetadata column = ColumnMetadata.regularColumn("sai", "internal", "val", type);
        return IndexTermType.create(column, Collections.emptyList(), IndexTarget.Type.SIMPLE);
    }

    // The files of indexes, and the memory that builds take, are not looked at.

    protected long getSegmentBufferUsedBytes()
    {
        return 0;
    }

    protected int getColumnIndexBuildsInProgress()
    {
        return 0;
    }

    protected void verifyNoIndexFiles() {}

    protected void verifySSTableIndexes(IndexIdentifier index, int count) {}

    protected void verifySSTableIndexes(IndexIdentifier index, int contexts, int indexes) {}

    protected void verifyIndexFiles(IndexTermType type, IndexIdentifier index, int files) {}

    protected void verifyIndexFiles(IndexTermType type, IndexIdentifier index, int shared, int own, int marks) {}

    protected boolean verifyChecksum(IndexTermType type, IndexIdentifier index)
    {
        return true;
    }

    /** Random values of many kinds. */
    public static class Randomization
    {
        private final Random random = new Random(Long.getLong("cql.seed", 1));

        public void printSeedOnFailure() {}

        public int nextInt()
        {
            return random.nextInt();
        }

        public int nextInt(int max)
        {
            return RandomInts.randomInt(random, max);
        }

        public int nextIntBetween(int min, int max)
        {
            return RandomInts.randomIntBetween(random, min, max);
        }

        public long nextLong()
        {
            return random.nextLong();
        }

        public short nextShort()
        {
            return (short) random.nextInt(Short.MAX_VALUE + 1);
        }

        public byte nextByte()
        {
            return (byte) random.nextInt(Byte.MAX_VALUE + 1);
        }

        public BigInteger nextBigInteger(int maxBits)
        {
            return new BigInteger(RandomInts.randomInt(random, maxBits), random);
        }

        public BigInteger nextBigInteger(int minBits, int maxBits)
        {
            return new BigInteger(RandomInts.randomIntBetween(random, minBits, maxBits), random);
        }

        public BigDecimal nextBigDecimal(int minValue, int maxValue, int minScale, int maxScale)
        {
            return BigDecimal.valueOf(RandomInts.randomIntBetween(random, minValue, maxValue),
                                      RandomInts.randomIntBetween(random, minScale, maxScale));
        }

        public float nextFloat()
        {
            return random.nextFloat();
        }

        public double nextDouble()
        {
            return random.nextDouble();
        }

        public boolean nextBoolean()
        {
            return random.nextBoolean();
        }

        public void nextBytes(byte[] bytes)
        {
            random.nextBytes(bytes);
        }

        public String nextAsciiString(int minLength, int maxLength)
        {
            return RandomStrings.randomAsciiOfLengthBetween(random, minLength, maxLength);
        }

        public String nextTextString(int minLength, int maxLength)
        {
            return RandomStrings.randomRealisticUnicodeOfLengthBetween(random, minLength, maxLength);
        }
    }
}
