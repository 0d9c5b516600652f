package org.apache.cassandra.cql3;

import java.util.Collections;

import org.junit.After;
import org.junit.AfterClass;
import org.junit.Before;
import org.junit.BeforeClass;
import org.junit.Rule;
import org.junit.rules.TestName;
import org.junit.rules.Timeout;

import com.datastax.driver.core.Cluster;
import org.apache.cassandra.ServerTestUtils;

/**
 * The base of Cassandra's tests, for a server that is asked over the wire. It has the methods that these tests
 * use. One that needs the inside of a Cassandra ends the test as one that can't be run.
 */
public abstract class CQLTester extends TestAnswers
{
    private static final String REPLICATION =
        " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";

    @Rule
    public final TestName testName = new TestName();
    @Rule
    public final Timeout timeout = Timeout.seconds(Integer.getInteger("cql.seconds", 120));

    @BeforeClass
    public static void setUpClass()
    {
        ServerTestUtils.daemonInitialization();
    }

    public static void prepareServer() {}

    public static void cleanup() {}

    @AfterClass
    public static void tearDownClass()
    {
        // Nobody waits for them: some never end what they had begun.
        clusters.values().forEach(Cluster::closeAsync);
        clusters.clear();
        sessions.clear();
        ServerTestUtils.resetPartitioner();
        // Tests leave what they named themselves.
        Wire.send("DROP KEYSPACE IF EXISTS " + KEYSPACE);
        Wire.reset();
    }

    @Before
    public void beforeTest() throws Throwable
    {
        Wire.send("CREATE KEYSPACE IF NOT EXISTS " + KEYSPACE + REPLICATION);
        Wire.send("CREATE KEYSPACE IF NOT EXISTS " + KEYSPACE_PER_TEST + REPLICATION);
    }

    @After
    public void afterTest() throws Throwable
    {
        Wire.reset();
        Collections.reverse(cleanup);
        for (String statement : cleanup)
        {
            try
            {
                Wire.send(statement);
            }
            catch (RuntimeException e)
            {
                logger.info("not cleaned up: {}", statement, e);
            }
        }
        Wire.send("DROP KEYSPACE IF EXISTS " + KEYSPACE_PER_TEST);
    }

    protected void dropPerTestKeyspace() throws Throwable
    {
        execute("DROP KEYSPACE IF EXISTS " + KEYSPACE_PER_TEST);
    }

    protected void resetSchema() throws Throwable
    {
        throw internals("resetSchema");
    }

    /** The base of tests for which a Cassandra would keep its files in memory. */
    public abstract static class InMemory extends CQLTester {}
}
