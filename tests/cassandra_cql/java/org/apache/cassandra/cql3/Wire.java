package org.apache.cassandra.cql3;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import org.apache.cassandra.config.EncryptionOptions;
import org.apache.cassandra.db.ConsistencyLevel;
import org.apache.cassandra.exceptions.PreparedQueryNotFoundException;
import org.apache.cassandra.service.ClientWarn;
import org.apache.cassandra.transport.Envelope;
import org.apache.cassandra.transport.Message;
import org.apache.cassandra.transport.ProtocolVersion;
import org.apache.cassandra.transport.SimpleClient;
import org.apache.cassandra.transport.messages.ErrorMessage;
import org.apache.cassandra.transport.messages.ExecuteMessage;
import org.apache.cassandra.transport.messages.PrepareMessage;
import org.apache.cassandra.transport.messages.QueryMessage;
import org.apache.cassandra.transport.messages.ResultMessage;

/** The connection that carries the statements. It takes values as bytes, so that tests can send wrong ones. */
final class Wire
{
    enum Mode { PREPARED, QUERY, LITERAL }

    static final String HOST = System.getProperty("cql.host", "127.0.0.1");
    static final int PORT = Integer.getInteger("cql.port", 9042);
    static final Mode MODE = Mode.valueOf(System.getProperty("cql.mode", "prepared").toUpperCase());

    // In version 5, Cassandra's client waits for ever for the rest of an answer of several frames.
    private static final ProtocolVersion VERSION = ProtocolVersion.V4;
    /** Stands for an unset value until it is sent. */
    static final ByteBuffer UNSET = ByteBuffer.wrap("an unset value, marked".getBytes(StandardCharsets.US_ASCII));
    private static final byte[] MARK = UNSET.array();

    private static final Map<String, ResultMessage.Prepared> statements = new ConcurrentHashMap<>();
    private static SimpleClient client;

    private Wire() {}

    static SimpleClient connect(ProtocolVersion version) throws IOException
    {
        return new SimpleClient(HOST, PORT, version, version.isBeta(), new EncryptionOptions()).connect(false, false);
    }

    /** Sends a statement with values that are bound to it. */
    static ResultMessage send(String query, ByteBuffer... values)
    {
        try
        {
            return sendOnce(query, values);
        }
        catch (PreparedQueryNotFoundException e)
        {
            // The server forgets statements, such as those of tables that are altered.
            statements.remove(query);
            return sendOnce(query, values);
        }
    }

    private static ResultMessage sendOnce(String query, ByteBuffer... values)
    {
        List<ByteBuffer> bound = Arrays.asList(values);
        QueryOptions options = QueryOptions.forInternalCalls(ConsistencyLevel.ONE, bound);
        if (values.length == 0 || MODE == Mode.QUERY)
            return (ResultMessage) request(new QueryMessage(query, options)
            {
                @Override
                public Envelope encode(ProtocolVersion version, int limit)
                {
                    return withUnset(super.encode(version, limit));
                }
            });
        ResultMessage.Prepared prepared = statements.computeIfAbsent(query, Wire::prepare);
        return (ResultMessage) request(new ExecuteMessage(prepared.statementId, prepared.resultMetadataId, options)
        {
            @Override
            public Envelope encode(ProtocolVersion version, int limit)
            {
                return withUnset(super.encode(version, limit));
            }
        });
    }

    /** Puts unset values where they are marked, as the encoder of Cassandra's client knows none. */
    private static Envelope withUnset(Envelope envelope)
    {
        ByteBuf marked = envelope.body;
        ByteBuf body = Unpooled.buffer(marked.readableBytes());
        for (int i = marked.readerIndex(); i < marked.writerIndex(); i++)
        {
            boolean unset = i + MARK.length <= marked.writerIndex();
            for (int j = 0; unset && j < MARK.length; j++)
                unset = marked.getByte(i + j) == MARK[j];
            if (unset)
            {
                // The length before the mark says that there is no value.
                body.setInt(body.writerIndex() - 4, -2);
                i += MARK.length - 1;
            }
            else
                body.writeByte(marked.getByte(i));
        }
        marked.release();
        return Envelope.create(envelope.header.type, envelope.header.streamId, envelope.header.version,
                               envelope.header.flags, body);
    }

    /** The rows of an answer, or null if it has none. */
    static UntypedResultSet rows(ResultMessage answer)
    {
        return answer instanceof ResultMessage.Rows ? UntypedResultSet.create(((ResultMessage.Rows) answer).result)
                                                    : null;
    }

    static ResultMessage.Prepared prepare(String query)
    {
        return (ResultMessage.Prepared) request(new PrepareMessage(query, null));
    }

    private static synchronized Message.Response request(Message.Request request)
    {
        boolean answered = false;
        try
        {
            if (client == null)
                client = connect(VERSION);
            Message.Response response = client.execute(request, false);
            answered = true;
            return checked(response);
        }
        catch (IOException e)
        {
            throw new RuntimeException("no connection to the server", e);
        }
        catch (RuntimeException e)
        {
            // Seen from a test, it is the server that gave no answer, not Cassandra's client.
            if (!answered)
                e.setStackTrace(new Throwable().getStackTrace());
            throw e;
        }
        finally
        {
            // An answer that comes late must not be taken for that of the next request.
            if (!answered)
                reset();
        }
    }

    private static Message.Response checked(Message.Response response)
    {
        if (response instanceof ErrorMessage)
        {
            RuntimeException error = (RuntimeException) ((ErrorMessage) response).error;
            // The stack of the thread that read it tells nothing about the test.
            error.setStackTrace(new Throwable().getStackTrace());
            throw error;
        }
        if (response.getWarnings() != null)
            response.getWarnings().forEach(ClientWarn.instance::warn);
        return response;
    }

    /** Gives up the connection, with the keyspace that USE gave it. */
    static synchronized void reset()
    {
        // Closing waits for what was written last, which may be for ever.
        if (client != null)
            new Thread(client::close).start();
        client = null;
        statements.clear();
    }
}
