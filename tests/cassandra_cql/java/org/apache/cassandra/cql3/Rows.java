package org.apache.cassandra.cql3;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.stream.Collectors;

import org.apache.cassandra.config.DatabaseDescriptor;
import org.apache.cassandra.db.marshal.AbstractType;
import org.apache.cassandra.db.marshal.ByteBufferAccessor;
import org.apache.cassandra.db.marshal.TupleType;
import org.apache.cassandra.dht.Murmur3Partitioner;

/** Compares rows that came with those that a test expects. */
@SuppressWarnings({ "rawtypes", "unchecked" })
final class Rows
{
    private final List<ColumnSpecification> columns;
    private final List<List<ByteBuffer>> rows = new ArrayList<>();

    Rows(UntypedResultSet result)
    {
        columns = result == null ? Collections.emptyList() : result.metadata();
        if (result != null)
            for (UntypedResultSet.Row row : result)
                rows.add(columns.stream().map(column -> row.getBytes(column.name.toString()))
                                .collect(Collectors.toList()));
    }

    /** Fails unless the rows are those expected, in their order. */
    void assertAre(Object[]... expected)
    {
        List<String> differences = differences(expected);
        if (differences.isEmpty())
            return;
        // Another partitioner than the server's has another order of partitions.
        if (DatabaseDescriptor.getPartitioner() != Murmur3Partitioner.instance && sameSet(expected, false))
            return;
        Differences.answer(String.join("\n", differences) + both(expected));
    }

    void assertSet(boolean more, Object[]... expected)
    {
        if (!sameSet(expected, more))
            Differences.answer("other rows." + both(expected));
    }

    private String both(Object[][] expected)
    {
        return "\nexpected:\n" + shownExpected(expected) + "got:\n" + this;
    }

    private List<String> differences(Object[]... expected)
    {
        List<String> differences = new ArrayList<>();
        if (expected.length != rows.size())
            differences.add("expected " + expected.length + " rows, got " + rows.size());
        for (int i = 0; i < Math.min(expected.length, rows.size()); i++)
        {
            Object[] row = values(expected[i]);
            if (row.length != columns.size())
            {
                differences.add("row " + i + ": expected " + row.length + " columns, got " + columns.size());
                continue;
            }
            for (int j = 0; j < row.length; j++)
                if (!same(row[j], rows.get(i).get(j), columns.get(j).type))
                    differences.add("row " + i + ", column " + columns.get(j).name + ": expected "
                                    + shown(row[j], columns.get(j).type) + ", got "
                                    + Values.shown(rows.get(i).get(j), columns.get(j).type));
        }
        return differences;
    }

    private boolean sameSet(Object[][] expected, boolean more)
    {
        Set<List<ByteBuffer>> wanted = new LinkedHashSet<>();
        for (Object[] values : expected)
        {
            if (values.length != columns.size())
                return false;
            List<ByteBuffer> row = new ArrayList<>();
            for (int j = 0; j < values.length; j++)
                row.add(Values.bytes(values[j], columns.get(j).type));
            wanted.add(row);
        }
        Set<List<ByteBuffer>> got = new HashSet<>(rows);
        return more ? got.containsAll(wanted) : got.equals(wanted);
    }

    /** A test gives no array where a row has one value that is null. */
    private static Object[] values(Object[] row)
    {
        return row == null ? new Object[1] : row;
    }

    private static boolean same(Object expected, ByteBuffer got, AbstractType type)
    {
        ByteBuffer bytes = Values.bytes(expected, type);
        if (Objects.equals(bytes, got))
            return true;
        if (got == null)
            // A user type without any field is null.
            return type.isUDT() && Arrays.stream(((TupleType) type).split(ByteBufferAccessor.instance, bytes))
                                         .allMatch(Objects::isNull);
        return expected != null && expected.equals(type.getSerializer().deserialize(got.duplicate()));
    }

    private static String shown(Object value, AbstractType type)
    {
        try
        {
            return Values.shown(Values.bytes(value, type), type);
        }
        catch (RuntimeException e)
        {
            return value + " (" + e + ")";
        }
    }

    private String shownExpected(Object[][] expected)
    {
        StringBuilder text = new StringBuilder();
        for (Object[] row : expected)
        {
            Object[] values = values(row);
            List<String> shown = new ArrayList<>();
            for (int j = 0; j < values.length; j++)
                shown.add(j < columns.size() ? shown(values[j], columns.get(j).type) : String.valueOf(values[j]));
            text.append("  ").append(String.join(" | ", shown)).append('\n');
        }
        return text.toString();
    }

    /** The rows as lines of text. */
    List<String> lines()
    {
        List<String> lines = new ArrayList<>();
        for (List<ByteBuffer> row : rows)
        {
            List<String> shown = new ArrayList<>();
            for (int j = 0; j < columns.size(); j++)
                shown.add(columns.get(j).name + "=" + Values.shown(row.get(j), columns.get(j).type));
            lines.add("row(" + String.join(", ", shown) + ")");
        }
        return lines;
    }

    Object[][] decoded()
    {
        Object[][] decoded = new Object[rows.size()][columns.size()];
        for (int i = 0; i < rows.size(); i++)
            for (int j = 0; j < columns.size(); j++)
                if (rows.get(i).get(j) != null)
                    decoded[i][j] = columns.get(j).type.getSerializer().deserialize(rows.get(i).get(j).duplicate());
        return decoded;
    }

    @Override
    public String toString()
    {
        return lines().stream().map(line -> "  " + line + "\n").collect(Collectors.joining());
    }
}
