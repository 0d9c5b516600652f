package suite;

import com.datastax.oss.driver.api.core.AllNodesFailedException;
import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.auth.AuthenticationException;
import com.datastax.oss.driver.api.core.servererrors.UnauthorizedException;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import java.util.List;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/** Logins, rights and TLS. */
final class Access {
    private static final String QUESTION = "SELECT release_version FROM system.local";

    private Access() {}

    static List<Section> login(InetSocketAddress server, String superuser, String password) {
        return List.of(
                new Section("login", () -> {
                    try (CqlSession session = as(server, superuser, password)) {
                        Check.isTrue(session.execute("LIST ROLES").all().size() > 0, "roles");
                    }
                }),
                new Section("wrong-password", () -> {
                    var failed = Check.fails(AllNodesFailedException.class, "", () -> as(server, superuser, "wrong"));
                    Check.isTrue(hasCause(failed, AuthenticationException.class), "why: " + failed);
                    Check.fails(AllNodesFailedException.class, "", () -> Suite.builder(server).build());
                }),
                new Section("rights", () -> {
                    try (CqlSession session = as(server, superuser, password)) {
                        session.execute("CREATE KEYSPACE of_java WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
                        session.execute("CREATE TABLE of_java.t (k int PRIMARY KEY)");
                        session.execute("CREATE ROLE java_reader WITH LOGIN = true AND PASSWORD = 'java'");
                        try (CqlSession reader = as(server, "java_reader", "java")) {
                            Check.fails(UnauthorizedException.class, "java_reader", () -> reader.execute("SELECT * FROM of_java.t"));
                            session.execute("GRANT SELECT ON of_java.t TO java_reader");
                            Check.equal(0, reader.execute("SELECT * FROM of_java.t").all().size(), "rows");
                            Check.fails(UnauthorizedException.class, "MODIFY", () -> reader.execute("INSERT INTO of_java.t (k) VALUES (1)"));
                        }
                    }
                }));
    }

    private static CqlSession as(InetSocketAddress server, String user, String password) {
        return Suite.builder(server).withAuthCredentials(user, password).build();
    }

    private static boolean hasCause(AllNodesFailedException failed, Class<?> expected) {
        return failed.getAllErrors().values().stream().flatMap(List::stream).anyMatch(expected::isInstance);
    }

    static List<Section> tls(InetSocketAddress server, Path directory) {
        return List.of(
                new Section("tls", () -> asks(server, context(directory, false))),
                new Section("tls-not-trusted", () ->
                        Check.fails(AllNodesFailedException.class, "", () -> asks(server, SSLContext.getDefault()))),
                new Section("tls-in-clear", () ->
                        Check.fails(AllNodesFailedException.class, "", () -> Suite.builder(server).build())));
    }

    static List<Section> tlsClient(InetSocketAddress server, Path directory) {
        return List.of(
                new Section("tls-client", () -> asks(server, context(directory, true))),
                new Section("tls-no-client", () ->
                        Check.fails(AllNodesFailedException.class, "", () -> asks(server, context(directory, false)))));
    }

    private static Void asks(InetSocketAddress server, SSLContext context) {
        try (CqlSession session = Suite.builder(server).withSslContext(context).build()) {
            Check.isTrue(session.execute(QUESTION).one() != null, "an answer");
        }
        return null;
    }

    private static SSLContext context(Path directory, boolean client) throws Exception {
        KeyStore trusted = KeyStore.getInstance(KeyStore.getDefaultType());
        trusted.load(null);
        trusted.setCertificateEntry("ca", certificate(directory.resolve("ca.pem")));
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(trusted);
        KeyStore own = KeyStore.getInstance(KeyStore.getDefaultType());
        own.load(null);
        if (client) {
            Certificate[] chain = {certificate(directory.resolve("app.pem"))};
            own.setKeyEntry("app", key(directory.resolve("app.key")), new char[0], chain);
        }
        KeyManagerFactory keys = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        keys.init(own, new char[0]);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(keys.getKeyManagers(), trust.getTrustManagers(), null);
        return context;
    }

    private static Certificate certificate(Path path) throws Exception {
        try (InputStream stream = Files.newInputStream(path)) {
            return CertificateFactory.getInstance("X.509").generateCertificate(stream);
        }
    }

    private static PrivateKey key(Path path) throws Exception {
        String text = Files.readString(path).replaceAll("-----[^-]*-----|\\s", "");
        return KeyFactory.getInstance("EC").generatePrivate(new PKCS8EncodedKeySpec(Base64.getDecoder().decode(text)));
    }
}
