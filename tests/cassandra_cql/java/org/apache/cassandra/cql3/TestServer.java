package org.apache.cassandra.cql3;

import java.io.IOException;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

import org.junit.AssumptionViolatedException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import com.datastax.driver.core.Cluster;
import com.datastax.driver.core.DataType;
import com.datastax.driver.core.NettyOptions;
import com.datastax.driver.core.Session;
import com.datastax.driver.core.SocketOptions;
import org.apache.cassandra.ServerTestUtils;
import org.apache.cassandra.db.ColumnFamilyStore;
import org.apache.cassandra.locator.InetAddressAndPort;
import org.apache.cassandra.schema.TableMetadata;
import org.apache.cassandra.transport.ProtocolVersion;
import org.apache.cassandra.transport.SimpleClient;
import org.apache.cassandra.utils.FBUtilities;

/** The server that is asked, and what of it can't be seen from outside. */
public abstract class TestServer extends TestValues
{
    public static final String KEYSPACE = "cql_test_keyspace";
    public static final String KEYSPACE_PER_TEST = "cql_test_keyspace_alt";
    public static final String DATA_CENTER = ServerTestUtils.DATA_CENTER;
    public static final String DATA_CENTER_REMOTE = ServerTestUtils.DATA_CENTER_REMOTE;
    public static final String RACK1 = ServerTestUtils.RACK1;
    /** The versions that the server speaks. */
    public static final List<ProtocolVersion> PROTOCOL_VERSIONS = List.of(ProtocolVersion.V4, ProtocolVersion.V5);
    public static final NettyOptions IMMEDIATE_CONNECTION_SHUTDOWN_NETTY_OPTIONS = NettyOptions.DEFAULT_INSTANCE;

    protected static final Logger logger = LoggerFactory.getLogger(CQLTester.class);
    protected static final boolean USE_PREPARED_VALUES = Wire.MODE != Wire.Mode.LITERAL;
    protected static final boolean REUSE_PREPARED = true;
    protected static final long ROW_CACHE_SIZE_IN_MIB = 0;
    protected static final int ASSERTION_TIMEOUT_SECONDS = 15;
    protected static final ByteBuffer TOO_BIG = ByteBuffer.allocate(FBUtilities.MAX_UNSIGNED_SHORT + 1024);
    protected static final Set<InetAddressAndPort> remoteAddrs = new HashSet<>();
    protected static final InetAddress nativeAddr = InetAddress.getLoopbackAddress();
    protected static int nativePort = Wire.PORT;
    protected static String jmxHost;
    protected static int jmxPort;
    protected static volatile boolean decorateCQLWithTestNames = true;

    static final Map<ProtocolVersion, Cluster> clusters = new HashMap<>();
    static final Map<ProtocolVersion, Session> sessions = new HashMap<>();

    /** Ends a test that asks for the inside of a Cassandra. */
    protected static RuntimeException internals(String thing)
    {
        throw new AssumptionViolatedException("internals: " + thing);
    }

    public static ProtocolVersion getDefaultVersion()
    {
        return ProtocolVersion.V5;
    }

    public static int getAutomaticallyAllocatedPort(InetAddress address)
    {
        throw internals("a server of its own");
    }

    public static void requireNetwork() {}

    protected static void requireNetworkWithoutDriver() {}

    protected static void reinitializeNetwork()
    {
        throw internals("a server of its own");
    }

    protected static void requireAuthentication()
    {
        throw internals("a server with logins");
    }

    protected static void addMetricsKeyspace()
    {
        throw internals("virtual tables of metrics");
    }

    public static void startJMXServer()
    {
        throw internals("JMX");
    }

    public static void createMBeanServerConnection()
    {
        throw internals("JMX");
    }

    public void useUser(String name, String password)
    {
        throw internals("a server with logins");
    }

    public void useSuperUser()
    {
        throw internals("a server with logins");
    }

    protected Session sessionNet()
    {
        return sessionNet(getDefaultVersion());
    }

    protected synchronized Session sessionNet(ProtocolVersion version)
    {
        return sessions.computeIfAbsent(spoken(version), v -> cluster(v).connect());
    }

    /** The version nearest to the one that is asked for: tests ask for betas and for those that are gone, too. */
    static ProtocolVersion spoken(ProtocolVersion version)
    {
        return version.isSmallerThan(ProtocolVersion.V5) ? ProtocolVersion.V4 : ProtocolVersion.V5;
    }

    static com.datastax.driver.core.ProtocolVersion ofDriver(ProtocolVersion version)
    {
        return com.datastax.driver.core.ProtocolVersion.fromInt(spoken(version).asInt());
    }

    static Cluster cluster(ProtocolVersion version)
    {
        return clusters.computeIfAbsent(spoken(version), v ->
            Cluster.builder()
                   .withoutJMXReporting()
                   .addContactPoint(Wire.HOST)
                   .withPort(Wire.PORT)
                   .withSocketOptions(new SocketOptions().setReadTimeoutMillis(20_000))
                   .withProtocolVersion(com.datastax.driver.core.ProtocolVersion.fromInt(v.asInt()))
                   .build());
    }

    protected SimpleClient newSimpleClient(ProtocolVersion version) throws IOException
    {
        return Wire.connect(spoken(version));
    }

    protected com.datastax.driver.core.TupleType tupleTypeOf(ProtocolVersion version, DataType... types)
    {
        return cluster(version).getMetadata().newTupleType(types);
    }

    // Flushes and compactions, of which a client sees nothing

    public ColumnFamilyStore getCurrentColumnFamilyStore()
    {
        return null;
    }

    public ColumnFamilyStore getCurrentColumnFamilyStore(String keyspace)
    {
        return null;
    }

    public ColumnFamilyStore getColumnFamilyStore(String keyspace, String table)
    {
        return null;
    }

    protected TableMetadata currentTableMetadata()
    {
        throw internals("currentTableMetadata");
    }

    public void flush(boolean really) {}

    public void flush() {}

    public void flush(String keyspace) {}

    public void flush(String keyspace, String table, String... tables) {}

    public void compact() {}

    public void compact(String keyspace, String table, String... tables) {}

    public void forceCompactAll() {}

    public void disableCompaction() {}

    public void disableCompaction(String keyspace) {}

    public void disableCompaction(String keyspace, String table) {}

    public void enableCompaction() {}

    public void enableCompaction(String keyspace) {}

    public void cleanupCache() {}
}
