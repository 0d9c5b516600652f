package org.apache.cassandra.cql3;

import com.datastax.driver.core.ResultSet;
import com.datastax.driver.core.SimpleStatement;
import com.datastax.driver.core.Statement;
import org.apache.cassandra.transport.ProtocolVersion;
import org.apache.cassandra.transport.messages.ResultMessage;

/** Statements that tests send. */
public abstract class TestStatements extends TestIndexes
{
    private boolean prepares = USE_PREPARED_VALUES;

    protected UntypedResultSet execute(String query, Object... values)
    {
        return executeFormattedQuery(formatQuery(query), values);
    }

    public UntypedResultSet executeView(String query, Object... values) throws Throwable
    {
        return executeFormattedQuery(formatViewQuery(query), values);
    }

    public UntypedResultSet executeFormattedQuery(String query, Object... values)
    {
        return Wire.rows(prepares ? Wire.send(query, Values.bound(values))
                                  : Wire.send(Values.withLiterals(query, values)));
    }

    protected ResultMessage.Prepared prepare(String query) throws Throwable
    {
        return Wire.prepare(formatQuery(query));
    }

    protected boolean usePrepared()
    {
        return prepares;
    }

    protected void forcePreparedValues()
    {
        prepares = true;
    }

    protected void stopForcingPreparedValues()
    {
        prepares = USE_PREPARED_VALUES;
    }

    public static void disablePreparedReuseForTest() {}

    protected ResultSet executeNet(String query, Object... values)
    {
        return executeNet(getDefaultVersion(), query, values);
    }

    protected ResultSet executeNet(ProtocolVersion version, String query, Object... values)
    {
        return sessionNet(version).execute(formatQuery(query), values);
    }

    protected ResultSet executeNet(ProtocolVersion version, Statement statement)
    {
        return sessionNet(version).execute(statement);
    }

    protected ResultSet executeViewNet(String query, Object... values)
    {
        return sessionNet().execute(formatViewQuery(query), values);
    }

    protected ResultSet executeNetWithPaging(String query, int size, Object... values)
    {
        return executeNetWithPaging(getDefaultVersion(), query, size, values);
    }

    protected ResultSet executeNetWithPaging(ProtocolVersion version, String query, int size, Object... values)
    {
        return sessionNet(version).execute(new SimpleStatement(formatQuery(query), values).setFetchSize(size));
    }

    protected ResultSet executeNetWithPaging(ProtocolVersion version, String query, String keyspace, int size,
                                             Object... values)
    {
        Statement statement = new SimpleStatement(formatQuery(keyspace, query), values).setKeyspace(keyspace);
        return sessionNet(version).execute(statement.setFetchSize(size));
    }

    protected ResultSet executeNetWithoutPaging(String query)
    {
        return executeNetWithPaging(query, Integer.MAX_VALUE);
    }

    public void beforeAndAfterFlush(CheckedFunction function) throws Throwable
    {
        function.apply();
        flush();
        function.apply();
    }

    @FunctionalInterface
    public interface CheckedFunction
    {
        void apply() throws Throwable;
    }
}
