package org.apache.cassandra.cql3;

import java.util.Collections;
import java.util.HashSet;
import java.util.Locale;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

import org.awaitility.Awaitility;

import org.apache.cassandra.transport.messages.ResultMessage;

/** Indexes that tests make. CREATE INDEX returns when they are built. */
public abstract class TestIndexes extends TestSchema
{
    private static final Pattern INDEX_NAME =
        Pattern.compile("\\s*CREATE\\s+(?:CUSTOM\\s+)?INDEX\\s+(?:IF\\s+NOT\\s+EXISTS\\s+)?"
                        + "(?!ON\\b)(\\w+|\"[^\"]+\")\\s+ON\\b.*",
                        Pattern.CASE_INSENSITIVE | Pattern.DOTALL);
    private static final Pattern INDEXED_COLUMN =
        Pattern.compile(".*?\\bON\\s+(?:[\\w\"]+\\s*\\.\\s*)?([\\w\"]+)\\s*"
                        + "\\((?:\\s*\\w+\\s*\\()?\\s*([\\w\"]+)\\s*\\).*",
                        Pattern.CASE_INSENSITIVE | Pattern.DOTALL);

    protected String createIndex(String query)
    {
        return createIndex(KEYSPACE, query);
    }

    protected String createIndex(String keyspace, String query)
    {
        String formatted = formatQuery(keyspace, query);
        Set<String> before = indexes();
        schemaChange(formatted);
        Matcher named = INDEX_NAME.matcher(formatted);
        if (named.matches())
            return unquoted(named.group(1));
        Set<String> made = indexes();
        made.removeAll(before);
        if (!made.isEmpty())
            return made.iterator().next();
        Matcher column = INDEXED_COLUMN.matcher(formatted);
        return column.matches() ? unquoted(column.group(1)) + "_" + unquoted(column.group(2)) + "_idx" : null;
    }

    private static String unquoted(String name)
    {
        return name.startsWith("\"") ? name.substring(1, name.length() - 1) : name.toLowerCase(Locale.US);
    }

    private static Set<String> indexes()
    {
        Set<String> names = new HashSet<>();
        ResultMessage all = Wire.send("SELECT index_name FROM system_schema.indexes");
        Wire.rows(all).forEach(row -> names.add(row.getString("index_name")));
        return names;
    }

    protected String createIndexAsync(String query)
    {
        return createIndex(query);
    }

    protected String createIndexAsync(String keyspace, String query)
    {
        return createIndex(keyspace, query);
    }

    protected void createIndexMayThrow(String query) throws Throwable
    {
        Wire.send(formatQuery(query));
    }

    protected void dropIndex(String query) throws Throwable
    {
        schemaChange(String.format(query, KEYSPACE));
    }

    public void waitForTableIndexesQueryable() {}

    public void waitForTableIndexesQueryable(String table) {}

    public void waitForTableIndexesQueryable(String keyspace, String table) {}

    public void waitForIndexQueryable(String index) {}

    public void waitForIndexQueryable(String keyspace, String index) {}

    protected void waitForIndexBuilds(String index) {}

    protected void waitForIndexBuilds(String keyspace, String index) {}

    protected Set<String> getNotQueryableIndexes()
    {
        return Collections.emptySet();
    }

    protected Set<String> getNotQueryableIndexes(String keyspace, String table)
    {
        return Collections.emptySet();
    }

    protected boolean isIndexBuilding(String keyspace, String index)
    {
        return false;
    }

    protected boolean isIndexQueryable(String keyspace, String index)
    {
        return true;
    }

    protected void waitForAssert(Runnable assertion)
    {
        waitForAssert(assertion, ASSERTION_TIMEOUT_SECONDS, TimeUnit.SECONDS);
    }

    protected void waitForAssert(Runnable assertion, long timeout, TimeUnit unit)
    {
        Differences.trial(true);
        try
        {
            Awaitility.await().atMost(timeout, unit).untilAsserted(assertion::run);
        }
        finally
        {
            Differences.trial(false);
        }
    }
}
