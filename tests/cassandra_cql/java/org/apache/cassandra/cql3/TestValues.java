package org.apache.cassandra.cql3;

import java.nio.ByteBuffer;
import java.util.AbstractList;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

import com.google.common.collect.ImmutableSet;

import org.apache.cassandra.db.marshal.AbstractType;
import org.apache.cassandra.utils.ByteBufferUtil;

/** What tests write values with. */
public abstract class TestValues
{
    public static Object[] row(Object... values)
    {
        return values;
    }

    public static Object[][] rows(Object[]... rows)
    {
        return rows;
    }

    protected ByteBuffer unset()
    {
        return ByteBufferUtil.UNSET_BYTE_BUFFER;
    }

    protected static ByteBuffer makeByteBuffer(Object value, AbstractType<?> type)
    {
        return Values.bytes(value, type);
    }

    protected Values.Tuple tuple(Object... values)
    {
        return new Values.Tuple(values);
    }

    protected Object userType(Object... namesAndValues)
    {
        LinkedHashMap<Object, Object> fields = linkedHashMap(namesAndValues);
        List<String> names = new ArrayList<>();
        fields.keySet().forEach(name -> names.add((String) name));
        return new Values.Fields(names, fields.values().toArray());
    }

    protected List<Object> list(Object... values)
    {
        return Arrays.asList(values);
    }

    protected Set<Object> set(Object... values)
    {
        return ImmutableSet.copyOf(values);
    }

    protected LinkedHashSet<Object> linkedHashSet(Object... values)
    {
        return new LinkedHashSet<>(Arrays.asList(values));
    }

    protected Object map(Object... keysAndValues)
    {
        return linkedHashMap(keysAndValues);
    }

    protected static LinkedHashMap<Object, Object> linkedHashMap(Object... keysAndValues)
    {
        LinkedHashMap<Object, Object> map = new LinkedHashMap<>();
        for (int i = 0; i < keysAndValues.length; i += 2)
            map.put(keysAndValues[i], keysAndValues[i + 1]);
        return map;
    }

    @SafeVarargs
    protected final <T> Vector<T> vector(T... values)
    {
        return new Vector<>(values);
    }

    protected Vector<Float> vector(float[] values)
    {
        Float[] boxed = new Float[values.length];
        Arrays.setAll(boxed, i -> values[i]);
        return new Vector<>(boxed);
    }

    /** A list that is sent as a vector. */
    public static class Vector<T> extends AbstractList<T>
    {
        private final T[] values;

        public Vector(T[] values)
        {
            this.values = values;
        }

        @Override
        public T get(int index)
        {
            return values[index];
        }

        @Override
        public int size()
        {
            return values.length;
        }
    }
}
