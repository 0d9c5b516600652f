import com.datastax.oss.driver.api.core.CqlSession;
import com.datastax.oss.driver.api.core.cql.ResultSet;
import com.datastax.oss.driver.api.core.cql.Row;
import com.datastax.oss.driver.api.core.data.CqlVector;
import java.net.InetSocketAddress;
import java.util.List;

/** Finds books by vectors and by words. */
public class Quickstart {
    static final List<String> SCHEMA = List.of(
            """
            CREATE KEYSPACE IF NOT EXISTS quickstart
                WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}
            """,
            """
            CREATE TABLE IF NOT EXISTS quickstart.books
                (id int PRIMARY KEY, title text, year int, about text, embedding vector<float, 3>)
            """,
            // The columns after the first are those that searches filter by.
            """
            CREATE CUSTOM INDEX IF NOT EXISTS books_by_embedding ON quickstart.books (embedding, year)
                USING 'vector_index' WITH OPTIONS = {'similarity_function': 'cosine'}
            """,
            """
            CREATE CUSTOM INDEX IF NOT EXISTS books_by_words ON quickstart.books (about, year)
                USING 'fulltext_index' WITH OPTIONS = {'analyzer': 'english'}
            """);
    static final String INSERT =
            "INSERT INTO quickstart.books (id, title, year, about, embedding) VALUES (?, ?, ?, ?, ?)";
    static final String FILTERED =
            "SELECT title, year FROM quickstart.books WHERE year >= ? ORDER BY embedding ANN OF ? LIMIT 2";
    static final String HYBRID =
            "SELECT title, year FROM quickstart.books ORDER BY RRF(ANN(embedding, ?), BM25(about, ?)) LIMIT 2";

    record Book(int id, String title, int year, String about, Float... embedding) {}

    // A model makes such vectors of texts. Here the numbers say how much sea, space and love is in a book.
    static final List<Book> BOOKS = List.of(
            new Book(1, "Moby-Dick", 1851, "A captain hunts a white whale across the oceans.", 0.9f, 0.0f, 0.1f),
            new Book(2, "Pride and Prejudice", 1813, "Two proud people learn to love.", 0.0f, 0.0f, 1.0f),
            new Book(3, "The Old Man and the Sea", 1952, "An old man rows out alone for one great fish.", 0.9f, 0.0f, 0.3f),
            new Book(4, "Solaris", 1961, "Far from the Earth, an ocean thinks.", 0.5f, 0.8f, 0.4f));
    static final CqlVector<Float> SEA = CqlVector.newInstance(1.0f, 0.0f, 0.0f);

    static void show(String question, ResultSet books) {
        System.out.println(question);
        for (Row book : books) {
            System.out.printf("  %s (%d)%n", book.getString("title"), book.getInt("year"));
        }
    }

    public static void main(String[] arguments) {
        String[] server = System.getenv().getOrDefault("ANNULUS_CQL", "127.0.0.1:9042").split(":");
        try (CqlSession session = CqlSession.builder()
                .addContactPoint(new InetSocketAddress(server[0], Integer.parseInt(server[1])))
                .withLocalDatacenter("datacenter1")
                .build()) {
            SCHEMA.forEach(session::execute);

            // A driver learns from a prepared statement that a marker is a vector.
            var insert = session.prepare(INSERT);
            for (Book book : BOOKS) {
                var embedding = CqlVector.newInstance(book.embedding);
                session.execute(insert.bind(book.id, book.title, book.year, book.about, embedding));
            }

            var filtered = session.prepare(FILTERED);
            show("Near the sea, since 1900:", session.execute(filtered.bind(1900, SEA)));

            var hybrid = session.prepare(HYBRID);
            show("Near the sea, or about an ocean:", session.execute(hybrid.bind(SEA, "ocean")));
        }
    }
}
