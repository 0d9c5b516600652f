package org.apache.cassandra.cql3;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.net.InetAddress;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Date;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.stream.Collectors;

import org.apache.cassandra.db.marshal.*;
import org.apache.cassandra.utils.ByteBufferUtil;
import org.apache.cassandra.utils.TimeUUID;

/** Values of Java as the bytes and the literals of CQL. */
@SuppressWarnings({ "rawtypes", "unchecked" })
final class Values
{
    private static final Map<Class<?>, AbstractType<?>> TYPES = new LinkedHashMap<>();

    static
    {
        TYPES.put(ByteBuffer.class, BytesType.instance);
        TYPES.put(Tuple.class, BytesType.instance);
        TYPES.put(Byte.class, ByteType.instance);
        TYPES.put(Short.class, ShortType.instance);
        TYPES.put(Integer.class, Int32Type.instance);
        TYPES.put(Long.class, LongType.instance);
        TYPES.put(Float.class, FloatType.instance);
        TYPES.put(Double.class, DoubleType.instance);
        TYPES.put(Duration.class, DurationType.instance);
        TYPES.put(BigInteger.class, IntegerType.instance);
        TYPES.put(BigDecimal.class, DecimalType.instance);
        TYPES.put(String.class, UTF8Type.instance);
        TYPES.put(Boolean.class, BooleanType.instance);
        TYPES.put(InetAddress.class, InetAddressType.instance);
        TYPES.put(Date.class, TimestampType.instance);
        TYPES.put(UUID.class, UUIDType.instance);
        TYPES.put(TimeUUID.class, TimeUUIDType.instance);
    }

    private Values() {}

    /** The type that a value has by itself. */
    static AbstractType typeOf(Object value)
    {
        if (value == null)
            return BytesType.instance;
        if (value instanceof CQLTester.Vector)
        {
            List<?> list = (List<?>) value;
            return VectorType.getInstance(typeOf(list.get(0)), list.size());
        }
        if (value instanceof List)
            return ListType.getInstance(typeOfFirst((List<?>) value), true);
        if (value instanceof Set)
            return SetType.getInstance(typeOfFirst((Set<?>) value), true);
        if (value instanceof Map)
        {
            Map<?, ?> map = (Map<?, ?>) value;
            return MapType.getInstance(typeOfFirst(map.keySet()), typeOfFirst(map.values()), true);
        }
        for (Map.Entry<Class<?>, AbstractType<?>> entry : TYPES.entrySet())
            if (entry.getKey().isInstance(value))
                return entry.getValue();
        throw new IllegalArgumentException("no CQL type for " + value.getClass());
    }

    private static AbstractType typeOfFirst(Collection<?> values)
    {
        return values.isEmpty() ? BytesType.instance : typeOf(values.iterator().next());
    }

    /** The bytes of values that are bound to a statement, by the types that they have by themselves. */
    static ByteBuffer[] bound(Object[] values)
    {
        return Arrays.stream(values)
                     .map(value -> value == ByteBufferUtil.UNSET_BYTE_BUFFER ? Wire.UNSET
                                                                             : bytes(value, typeOf(value)))
                     .toArray(ByteBuffer[]::new);
    }

    static ByteBuffer bytes(Object value, AbstractType type)
    {
        if (value == null || value instanceof ByteBuffer)
            return (ByteBuffer) value;
        if (value instanceof Tuple)
            return ((Tuple) value).bytes();
        return type.decomposeUntyped(withoutTuples(value));
    }

    /** Cassandra's types take tuples within collections as bytes. */
    private static Object withoutTuples(Object value)
    {
        if (value instanceof Tuple)
            return ((Tuple) value).bytes();
        if (value instanceof List)
            return ((List<?>) value).stream().map(Values::withoutTuples)
                                    .collect(Collectors.toCollection(ArrayList::new));
        if (value instanceof Set)
            return ((Set<?>) value).stream().map(Values::withoutTuples)
                                   .collect(Collectors.toCollection(LinkedHashSet::new));
        if (value instanceof Map)
        {
            Map<Object, Object> copy = new LinkedHashMap<>();
            ((Map<?, ?>) value).forEach((key, entry) -> copy.put(withoutTuples(key), withoutTuples(entry)));
            return copy;
        }
        return value;
    }

    static String literal(Object value)
    {
        if (value == null)
            return "null";
        if (value instanceof Tuple)
            return ((Tuple) value).literal();
        if (value instanceof List)
            return joined("[", (List<?>) value, "]");
        if (value instanceof Set)
            return joined("{", (Set<?>) value, "}");
        if (value instanceof Map)
            return ((Map<?, ?>) value).entrySet().stream()
                                      .map(entry -> literal(entry.getKey()) + ": " + literal(entry.getValue()))
                                      .collect(Collectors.joining(", ", "{", "}"));
        AbstractType type = typeOf(value);
        String text = type.getString(type.decompose(value));
        if (value instanceof ByteBuffer)
            return "0x" + text;
        boolean quoted = value instanceof String || value instanceof InetAddress || value instanceof Date;
        return quoted ? "'" + text.replace("'", "''") + "'" : text;
    }

    static String literals(Object... values)
    {
        return joined("[", Arrays.asList(values), "]");
    }

    private static String joined(String begin, Collection<?> values, String end)
    {
        return values.stream().map(Values::literal).collect(Collectors.joining(", ", begin, end));
    }

    /** A statement with literals in place of its markers. */
    static String withLiterals(String query, Object[] values)
    {
        StringBuilder text = new StringBuilder();
        int next = 0;
        for (int i = 0; i < query.length(); i++)
        {
            char c = query.charAt(i);
            if (c != '?' || next == values.length)
            {
                text.append(c);
                continue;
            }
            Object value = values[next++];
            boolean list = value instanceof List && text.toString().toUpperCase().endsWith("IN ");
            text.append(list ? joined("(", (List<?>) value, ")") : literal(value));
        }
        return text.toString();
    }

    /** The value for a message. */
    static String shown(ByteBuffer bytes, AbstractType type)
    {
        if (bytes == null)
            return "null";
        try
        {
            if (type instanceof CollectionType)
                return type.getSerializer().toString(type.getSerializer().deserialize(bytes.duplicate()));
            return type.getString(bytes.duplicate());
        }
        catch (RuntimeException e)
        {
            return "0x" + ByteBufferUtil.bytesToHex(bytes) + " (no " + type.asCQL3Type() + ")";
        }
    }

    static class Tuple
    {
        final Object[] values;

        Tuple(Object... values)
        {
            this.values = values;
        }

        ByteBuffer bytes()
        {
            ByteBuffer[] fields = Arrays.stream(values).map(value -> Values.bytes(value, typeOf(value)))
                                        .toArray(ByteBuffer[]::new);
            return TupleType.buildValue(fields);
        }

        String literal()
        {
            return joined("(", Arrays.asList(values), ")");
        }

        @Override
        public String toString()
        {
            return literal();
        }

        @Override
        public boolean equals(Object other)
        {
            return other != null && other.getClass() == getClass() && Arrays.equals(values, ((Tuple) other).values);
        }

        @Override
        public int hashCode()
        {
            return Arrays.hashCode(values);
        }
    }

    /** A value of a user type. */
    static final class Fields extends Tuple
    {
        private final List<String> names;

        Fields(List<String> names, Object... values)
        {
            super(values);
            this.names = names;
        }

        @Override
        String literal()
        {
            List<String> fields = new ArrayList<>();
            for (int i = 0; i < values.length; i++)
                if (values[i] != null)
                    fields.add(ColumnIdentifier.maybeQuote(names.get(i)) + ": " + Values.literal(values[i]));
            return "{" + String.join(", ", fields) + "}";
        }
    }
}
