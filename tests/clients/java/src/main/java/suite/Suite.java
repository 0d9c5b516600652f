package suite;

import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.CqlSessionBuilder;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * Tests the Java driver with its own defaults. Prints a line for each section: "NAME ok", or "NAME failed: REASON".
 *
 * <p>usage: java plain HOST:PORT KEYSPACE, java login HOST:PORT SUPERUSER PASSWORD, java tls HOST:PORT DIRECTORY, java
 * tls-client HOST:PORT DIRECTORY
 */
public final class Suite {
    private Suite() {}

    public static void main(String[] arguments) {
        String[] address = arguments[1].split(":");
        InetSocketAddress server = new InetSocketAddress(address[0], Integer.parseInt(address[1]));
        List<Section> sections =
                switch (arguments[0]) {
                    case "plain" -> plain(server, arguments[2]);
                    case "login" -> Access.login(server, arguments[2], arguments[3]);
                    case "tls" -> Access.tls(server, Path.of(arguments[2]));
                    case "tls-client" -> Access.tlsClient(server, Path.of(arguments[2]));
                    default -> throw new IllegalArgumentException(arguments[0]);
                };
        boolean ok = true;
        for (Section section : sections) {
            ok &= section.run();
        }
        System.exit(ok ? 0 : 1);
    }

    /** A builder of sessions. The driver asks for the name of the data centre with a contact point. */
    static CqlSessionBuilder builder(InetSocketAddress server) {
        return CqlSession.builder().addContactPoint(server).withLocalDatacenter("datacenter1");
    }

    private static List<Section> plain(InetSocketAddress server, String keyspace) {
        try (CqlSession session = builder(server).build()) {
            session.execute("CREATE KEYSPACE " + keyspace
                    + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
        }
        CqlSession session = builder(server).withKeyspace(keyspace).build();
        List<Section> sections = new ArrayList<>();
        sections.add(new Section("connect", () -> Schema.connect(session)));
        sections.add(new Section("metadata", () -> Schema.metadata(session)));
        sections.add(new Section("events", () -> Schema.events(server, session)));
        sections.add(new Section("types", () -> new Types(session).run()));
        sections.add(new Section("prepare", () -> Statements.prepare(session)));
        sections.add(new Section("batches", () -> Statements.batches(session)));
        sections.add(new Section("conditions", () -> Statements.conditions(session)));
        sections.add(new Section("counters", () -> Statements.counters(session)));
        sections.add(new Section("paging", () -> Statements.paging(session)));
        sections.add(new Section("errors", () -> Statements.errors(session)));
        sections.add(new Section("vectors", () -> Statements.vectors(session)));
        sections.add(new Section("query-builder", () -> Builders.queries(session)));
        sections.add(new Section("schema-builder", () -> Builders.schema(session)));
        sections.add(new Section("mapper", () -> Mapped.run(session)));
        return sections;
    }
}
