package org.apache.cassandra.cql3;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

import org.junit.Assert;

import org.apache.cassandra.cql3.functions.FunctionName;
import org.apache.cassandra.exceptions.InvalidRequestException;
import org.apache.cassandra.transport.Event;
import org.apache.cassandra.transport.messages.ResultMessage;

/** Keyspaces, types and tables that tests make, and their names. */
public abstract class TestSchema extends TestServer
{
    // A run may take several processes, one after another, on one server.
    static final AtomicInteger names = new AtomicInteger(Integer.getInteger("cql.first_name", 0));
    final List<String> keyspaces = new ArrayList<>();
    final List<String> tables = new ArrayList<>();
    final List<String> types = new ArrayList<>();
    final List<String> views = new ArrayList<>();
    final List<String> cleanup = new ArrayList<>();

    protected String keyspace()
    {
        return KEYSPACE;
    }

    protected String currentTable()
    {
        return last(tables);
    }

    protected String currentView()
    {
        return last(views);
    }

    protected String currentKeyspace()
    {
        return last(keyspaces);
    }

    private static String last(List<String> names)
    {
        return names.isEmpty() ? null : names.get(names.size() - 1);
    }

    private static String name(String kind)
    {
        return String.format("%s_%02d", kind, names.getAndIncrement());
    }

    protected String createTableName()
    {
        return createTableName(null);
    }

    protected String createTableName(String name)
    {
        String table = name == null ? name("table") : name;
        tables.add(table);
        return table;
    }

    protected String createTypeName()
    {
        String type = name("type");
        types.add(type);
        return type;
    }

    protected String createKeyspaceName()
    {
        String keyspace = name("keyspace");
        keyspaces.add(keyspace);
        cleanup.add("DROP KEYSPACE IF EXISTS " + keyspace);
        return keyspace;
    }

    protected String createViewName()
    {
        String view = name("mv");
        views.add(view);
        return view;
    }

    protected List<String> getViews()
    {
        return views;
    }

    protected String createFunctionName(String keyspace)
    {
        return keyspace + "." + name("function");
    }

    protected String createAggregateName(String keyspace)
    {
        return keyspace + "." + name("aggregate");
    }

    protected void registerFunction(String name, String types) {}

    protected void registerAggregate(String name, String types) {}

    public static FunctionName parseFunctionName(String name)
    {
        String[] parts = name.split("\\.", 2);
        return parts.length == 1 ? FunctionName.nativeFunction(name)
                                 : new FunctionName(parts[0].trim(), parts[1].trim());
    }

    public static String shortFunctionName(String name)
    {
        return parseFunctionName(name).name;
    }

    protected String formatQuery(String query)
    {
        return formatQuery(KEYSPACE, query);
    }

    protected final String formatQuery(String keyspace, String query)
    {
        return currentTable() == null ? query : String.format(query, keyspace + "." + currentTable());
    }

    public String formatViewQuery(String query)
    {
        return formatViewQuery(KEYSPACE, query);
    }

    public String formatViewQuery(String keyspace, String query)
    {
        return currentView() == null ? query : String.format(query, keyspace + "." + currentView());
    }

    protected static ResultMessage schemaChange(String query)
    {
        String failed = "the schema of the test: " + query;
        try
        {
            return Wire.send(query);
        }
        catch (InvalidRequestException e)
        {
            throw new InvalidRequestException(failed + ": " + e.getMessage(), e);
        }
        catch (RuntimeException e)
        {
            throw new RuntimeException(failed + ": " + e.getMessage(), e);
        }
    }

    protected String createKeyspace(String query)
    {
        String keyspace = createKeyspaceName();
        schemaChange(String.format(query, keyspace));
        return keyspace;
    }

    protected void alterKeyspace(String query)
    {
        schemaChange(String.format(query, currentKeyspace()));
    }

    protected void alterKeyspaceMayThrow(String query) throws Throwable
    {
        Wire.send(String.format(query, currentKeyspace()));
    }

    protected String createType(String query)
    {
        return createType(KEYSPACE, query);
    }

    protected String createType(String keyspace, String query)
    {
        String type = createTypeName();
        cleanup.add("DROP TYPE IF EXISTS " + keyspace + "." + type);
        schemaChange(String.format(query, keyspace + "." + type));
        return type;
    }

    protected String createTable(String query)
    {
        return createTable(KEYSPACE, query);
    }

    protected String createTable(String keyspace, String query)
    {
        return createTable(keyspace, query, null);
    }

    protected String createTable(String keyspace, String query, String name)
    {
        String table = createTableName(name);
        cleanup.add("DROP TABLE IF EXISTS " + keyspace + "." + table);
        schemaChange(formatQuery(keyspace, query));
        return table;
    }

    protected void createTableMayThrow(String query) throws Throwable
    {
        cleanup.add("DROP TABLE IF EXISTS " + KEYSPACE + "." + createTableName());
        Wire.send(formatQuery(query));
    }

    protected void alterTable(String query)
    {
        schemaChange(formatQuery(query));
    }

    protected void alterTableMayThrow(String query) throws Throwable
    {
        Wire.send(formatQuery(query));
    }

    protected void dropTable(String query)
    {
        dropTable(KEYSPACE, query);
    }

    protected void dropTable(String keyspace, String query)
    {
        schemaChange(String.format(query, keyspace + "." + currentTable()));
    }

    protected String createView(String query)
    {
        return createView(null, query);
    }

    protected String createView(String name, String query)
    {
        throw internals("materialised views");
    }

    protected String createViewAsync(String query)
    {
        throw internals("materialised views");
    }

    protected String createViewAsync(String name, String query)
    {
        throw internals("materialised views");
    }

    protected void dropView(String view)
    {
        throw internals("materialised views");
    }

    protected String createFunction(String keyspace, String types, String query) throws Throwable
    {
        throw internals("user functions");
    }

    protected void createFunctionOverload(String name, String types, String query) throws Throwable
    {
        throw internals("user functions");
    }

    protected String createAggregate(String keyspace, String types, String query) throws Throwable
    {
        throw internals("user aggregates");
    }

    protected void createAggregateOverload(String name, String types, String query) throws Throwable
    {
        throw internals("user aggregates");
    }

    protected static void assertSchemaChange(String query,
                                             Event.SchemaChange.Change change,
                                             Event.SchemaChange.Target target,
                                             String keyspace,
                                             String name,
                                             String... argumentTypes)
    {
        ResultMessage result = schemaChange(query);
        Assert.assertTrue(result + "", result instanceof ResultMessage.SchemaChange);
        Event.SchemaChange got = ((ResultMessage.SchemaChange) result).change;
        Assert.assertEquals(change, got.change);
        Assert.assertEquals(target, got.target);
        Assert.assertEquals(keyspace, got.keyspace);
        Assert.assertEquals(name, got.name);
        Assert.assertEquals(argumentTypes == null ? null : Arrays.asList(argumentTypes), got.argTypes);
    }
}
