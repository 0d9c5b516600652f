package org.apache.cassandra.cql3;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.Callable;

import com.google.common.collect.Iterables;
import org.junit.Assert;

import com.datastax.driver.core.ColumnDefinitions;
import com.datastax.driver.core.DataType;
import com.datastax.driver.core.ResultSet;
import com.datastax.driver.core.Row;
import com.datastax.driver.core.TypeCodec;
import com.datastax.driver.core.UDTValue;
import org.apache.cassandra.exceptions.FunctionExecutionException;
import org.apache.cassandra.exceptions.InvalidRequestException;
import org.apache.cassandra.exceptions.SyntaxException;
import org.apache.cassandra.exceptions.UnauthorizedException;
import org.apache.cassandra.transport.Message;
import org.apache.cassandra.transport.ProtocolVersion;
import org.apache.cassandra.utils.ByteBufferUtil;

/** What tests expect: rows, errors and warnings. */
public abstract class TestAnswers extends TestStatements
{
    public static void assertRows(UntypedResultSet result, Object[]... rows)
    {
        new Rows(result).assertAre(rows);
    }

    public static void assertRowsIgnoringOrder(UntypedResultSet result, Object[]... rows)
    {
        new Rows(result).assertSet(false, rows);
    }

    public static void assertRowsIgnoringOrderAndExtra(UntypedResultSet result, Object[]... rows)
    {
        new Rows(result).assertSet(true, rows);
    }

    protected void assertAllRows(Object[]... rows) throws Throwable
    {
        assertRows(execute("SELECT * FROM %s"), rows);
    }

    protected void assertRowCount(UntypedResultSet result, int count)
    {
        Assert.assertEquals("rows", count, result == null ? 0 : result.size());
    }

    protected void assertEmpty(UntypedResultSet result) throws Throwable
    {
        if (result != null && !result.isEmpty())
            Differences.answer("expected no rows, got:\n" + new Rows(result));
    }

    protected Object[][] getRows(UntypedResultSet result)
    {
        return new Rows(result).decoded();
    }

    protected static List<String> makeRowStrings(UntypedResultSet result)
    {
        return new Rows(result).lines();
    }

    protected void assertColumnNames(UntypedResultSet result, String... names)
    {
        Assert.assertNotNull("no rows", result);
        List<String> got = new ArrayList<>();
        result.metadata().forEach(column -> got.add(column.name.toString()));
        Assert.assertEquals(Arrays.asList(names), got);
    }

    protected void assertColumnNames(ResultSet result, String... names)
    {
        List<String> got = new ArrayList<>();
        result.getColumnDefinitions().forEach(column -> got.add(column.getName()));
        Assert.assertEquals(Arrays.asList(names), got);
    }

    protected void assertRowCountNet(ResultSet result, int count)
    {
        Assert.assertEquals("rows", count, result == null ? 0 : Iterables.size(result));
    }

    protected void assertRowsNet(ResultSet result, Object[]... rows)
    {
        assertRowsNet(getDefaultVersion(), result, rows);
    }

    protected void assertRowsNet(ProtocolVersion version, ResultSet result, Object[]... rows)
    {
        List<Row> got = result.all();
        Assert.assertEquals("rows of " + got, rows.length, got.size());
        for (int i = 0; i < rows.length; i++)
        {
            ColumnDefinitions columns = got.get(i).getColumnDefinitions();
            Assert.assertEquals("columns", rows[i].length, columns.size());
            for (int j = 0; j < columns.size(); j++)
                assertValueNet(version, "row " + i + ", column " + columns.getName(j) + " of " + got,
                               columns.getType(j), rows[i][j], got.get(i).getBytesUnsafe(j));
        }
    }

    private static void assertValueNet(ProtocolVersion version, String where, DataType type, Object expected,
                                       ByteBuffer got)
    {
        com.datastax.driver.core.ProtocolVersion v = ofDriver(version);
        TypeCodec<Object> codec = cluster(version).getConfiguration().getCodecRegistry().codecFor(type);
        ByteBuffer bytes = expected instanceof ByteBuffer ? (ByteBuffer) expected : codec.serialize(expected, v);
        boolean same = bytes == null ? got == null : bytes.equals(got);
        if (!same && got == null && codec.deserialize(bytes, v) instanceof UDTValue)
        {
            // A user type without any field is null.
            UDTValue value = (UDTValue) codec.deserialize(bytes, v);
            same = value.getType().getFieldNames().stream().allMatch(value::isNull);
        }
        if (!same)
            Assert.fail(where + ": expected " + shown(bytes) + ", got " + shown(got));
    }

    private static String shown(ByteBuffer bytes)
    {
        return bytes == null ? "null" : "0x" + ByteBufferUtil.bytesToHex(bytes);
    }

    public static int compareNetRows(Row a, Row b)
    {
        for (int i = 0; i < Math.min(a.getColumnDefinitions().size(), b.getColumnDefinitions().size()); i++)
        {
            ByteBuffer left = a.getBytesUnsafe(i), right = b.getBytesUnsafe(i);
            int order = left == null || right == null ? Boolean.compare(left != null, right != null)
                                                      : ByteBufferUtil.compareUnsigned(left, right);
            if (order != 0)
                return order;
        }
        return Integer.compare(a.getColumnDefinitions().size(), b.getColumnDefinitions().size());
    }

    // Errors

    protected void assertInvalid(String query, Object... values) throws Throwable
    {
        assertInvalidThrowMessage(null, null, query, values);
    }

    protected void assertInvalidMessage(String message, String query, Object... values) throws Throwable
    {
        assertInvalidThrowMessage(message, null, query, values);
    }

    protected void assertInvalidMessageNet(String message, String query, Object... values) throws Throwable
    {
        assertInvalidThrowMessage(Optional.of(getDefaultVersion()), message, null, query, values);
    }

    protected void assertInvalidThrow(Class<? extends Throwable> error, String query, Object... values) throws Throwable
    {
        assertInvalidThrowMessage(null, error, query, values);
    }

    protected void assertInvalidThrowMessage(String message, Class<? extends Throwable> error, String query,
                                             Object... values) throws Throwable
    {
        assertInvalidThrowMessage(Optional.empty(), message, error, query, values);
    }

    protected void assertInvalidThrowMessage(Optional<ProtocolVersion> version,
                                             String message,
                                             Class<? extends Throwable> error,
                                             String query,
                                             Object... values) throws Throwable
    {
        Throwable thrown = thrown(() -> version.isPresent() ? executeNet(version.get(), query, values)
                                                            : execute(query, values));
        String statement = query + " " + Values.literals(values);
        if (thrown == null)
            Differences.answer("no error" + (message == null ? "" : " '" + message + "'") + " for " + statement);
        else if (error != null && !isA(error, thrown))
            Differences.answer("expected " + error.getSimpleName() + ", got " + thrown + " for " + statement);
        else if (message != null && !String.valueOf(thrown.getMessage()).contains(message))
            Differences.words("expected error '" + message + "', got '" + thrown.getMessage() + "' for " + statement);
    }

    /** The code of an error on the wire stands for all failures of functions. */
    private static boolean isA(Class<?> error, Throwable thrown)
    {
        boolean function = thrown instanceof FunctionExecutionException;
        return error.isInstance(thrown) || function && FunctionExecutionException.class.isAssignableFrom(error);
    }

    private static Throwable thrown(Callable<?> call)
    {
        try
        {
            call.call();
            return null;
        }
        catch (Exception e)
        {
            return e;
        }
    }

    protected void assertInvalidRequestMessage(String message, String query, Object... values)
    {
        try
        {
            assertInvalidThrowMessage(message, InvalidRequestException.class, query, values);
        }
        catch (RuntimeException | Error e)
        {
            throw e;
        }
        catch (Throwable e)
        {
            throw new AssertionError(e);
        }
    }

    protected void assertUnauthorizedQuery(String message, String query, Object... values) throws Throwable
    {
        assertInvalidThrowMessage(Optional.of(getDefaultVersion()), message, UnauthorizedException.class, query,
                                  values);
    }

    protected void assertInvalidSyntax(String query, Object... values) throws Throwable
    {
        assertInvalidThrowMessage(null, SyntaxException.class, query, values);
    }

    protected void assertInvalidSyntaxMessage(String message, String query, Object... values) throws Throwable
    {
        assertInvalidThrowMessage(message, SyntaxException.class, query, values);
    }

    protected void assertValidSyntax(String query) throws Throwable
    {
        Throwable thrown = thrown(() -> Wire.prepare(query));
        if (thrown instanceof SyntaxException)
            Differences.answer("no syntax error expected, got '" + thrown.getMessage() + "' for " + query);
    }

    // Warnings

    protected static void assertWarningsContain(Message.Response response, String message)
    {
        assertWarningsContain(response.getWarnings(), message);
    }

    protected static void assertWarningsContain(List<String> warnings, String message)
    {
        Assert.assertNotNull("no warnings", warnings);
        Assert.assertTrue(warnings + "", warnings.stream().anyMatch(warning -> warning.contains(message)));
    }

    protected static void assertWarningsEquals(ResultSet result, String... messages)
    {
        assertWarningsEquals(result.getExecutionInfo().getWarnings(), messages);
    }

    protected static void assertWarningsEquals(List<String> warnings, String... messages)
    {
        Assert.assertEquals(Set.of(messages), new HashSet<>(warnings));
    }

    protected static void assertNoWarningContains(Message.Response response, String message)
    {
        assertNoWarningContains(response.getWarnings(), message);
    }

    protected static void assertNoWarningContains(List<String> warnings, String message)
    {
        if (warnings != null)
            Assert.assertFalse(warnings + "", warnings.stream().anyMatch(warning -> warning.contains(message)));
    }
}
