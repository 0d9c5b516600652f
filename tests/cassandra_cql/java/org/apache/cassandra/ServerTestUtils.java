package org.apache.cassandra;

import java.io.IOException;

import org.junit.AssumptionViolatedException;

import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.dht.Murmur3Partitioner;
import org.apache.cassandra.service.EmbeddedCassandraService;

/** The server runs already. Only what a client needs of Cassandra's classes is made ready. */
public final class ServerTestUtils
{
    public static final String DATA_CENTER = "datacenter1";
    public static final String DATA_CENTER_REMOTE = "datacenter2";
    public static final String RACK1 = "rack1";

    private ServerTestUtils() {}

    public static void daemonInitialization()
    {
        DatabaseDescriptor.clientInitialization(false);
        resetPartitioner();
    }

    public static void resetPartitioner()
    {
        DatabaseDescriptor.setPartitionerUnsafe(Murmur3Partitioner.instance);
    }

    public static void prepareServer() {}

    public static void prepareServerNoRegister() {}

    public static void mkdirs() {}

    public static void cleanup() {}

    public static void cleanupAndLeaveDirs() {}

    public static EmbeddedCassandraService startEmbeddedCassandraService() throws IOException
    {
        throw new AssumptionViolatedException("internals: a server of its own");
    }
}
