package annulus.benchmark;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.apache.lucene.analysis.Analyzer;
import org.apache.lucene.analysis.LowerCaseFilter;
import org.apache.lucene.analysis.TokenStream;
import org.apache.lucene.analysis.Tokenizer;
import org.apache.lucene.analysis.util.CharTokenizer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.NumericDocValuesField;
import org.apache.lucene.document.StringField;
import org.apache.lucene.document.TextField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.LeafReaderContext;
import org.apache.lucene.index.NumericDocValues;
import org.apache.lucene.index.ReaderUtil;
import org.apache.lucene.index.SerialMergeScheduler;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.BooleanClause.Occur;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.PhraseQuery;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.ScoreDoc;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.search.TopDocs;
import org.apache.lucene.search.TopScoreDocCollectorManager;
import org.apache.lucene.store.Directory;
import org.apache.lucene.store.MMapDirectory;

/**
 * Lucene as a contender of benchmarks/text: requests and replies as in peers.py, a line of JSON each.
 * Arguments: FORM DOCUMENTS QUERIES FOLDER. FORM `lucene` has the segments that its own policy of
 * merges leaves, `lucene-one` a single one.
 */
public final class LuceneContender {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final boolean oneSegment;
    private final Path documents;
    private final JsonNode queries;
    private final Path folder;
    private Directory directory;
    private DirectoryReader reader;
    private IndexSearcher searcher;

    private LuceneContender(String form, Path documents, Path queries, Path folder) throws IOException {
        this.oneSegment = form.equals("lucene-one");
        this.documents = documents;
        this.queries = JSON.readTree(queries.toFile());
        this.folder = folder;
    }

    public static void main(String[] arguments) throws IOException {
        LuceneContender contender = new LuceneContender(
                arguments[0], Path.of(arguments[1]), Path.of(arguments[2]), Path.of(arguments[3]));
        PrintStream replies = System.out;
        // What libraries print must not come between the replies.
        System.setOut(System.err);
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            Object reply;
            try {
                reply = contender.answer(JSON.readTree(line));
            } catch (Exception error) {
                reply = Map.of("failed", error.toString());
            }
            replies.println(JSON.writeValueAsString(reply));
            replies.flush();
        }
    }

    private Object answer(JsonNode request) throws IOException {
        return switch (request.get("do").asText()) {
            case "build" -> build();
            case "count" -> count(request.get("kind").asText());
            case "search" -> search(
                    request.get("kind").asText(), request.get("queries").asInt(), request.get("repeat").asInt());
            default -> throw new IllegalArgumentException("there is no such request: " + request);
        };
    }

    private Object build() throws IOException {
        if (reader != null) {
            reader.close();
            directory.close();
        }
        Files.createDirectories(folder);
        directory = new MMapDirectory(folder);
        IndexWriterConfig config = new IndexWriterConfig(new Words());
        config.setOpenMode(IndexWriterConfig.OpenMode.CREATE);
        // Merges on this thread, so that one core does all.
        config.setMergeScheduler(new SerialMergeScheduler());
        Stopwatch stopwatch = new Stopwatch();
        int count = 0;
        try (IndexWriter writer = new IndexWriter(directory, config);
                BufferedReader lines = Files.newBufferedReader(documents)) {
            TextField body = new TextField("body", "", Field.Store.NO);
            NumericDocValuesField id = new NumericDocValuesField("id", 0);
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                int tab = line.indexOf('\t');
                body.setStringValue(line.substring(tab + 1));
                id.setLongValue(count);
                Document document = new Document();
                document.add(body);
                document.add(id);
                document.add(new StringField("c", line.substring(0, tab), Field.Store.NO));
                writer.addDocument(document);
                count++;
            }
            if (oneSegment) {
                writer.forceMerge(1);
            }
            writer.commit();
        }
        Map<String, Double> elapsed = stopwatch.elapsed();
        reader = DirectoryReader.open(directory);
        searcher = new IndexSearcher(reader);
        long bytes = 0;
        for (String name : directory.listAll()) {
            bytes += directory.fileLength(name);
        }
        return Map.of(
                "elapsed", elapsed,
                "bytes", bytes,
                "documents", count,
                "about", "Lucene " + org.apache.lucene.util.Version.LATEST + ", Java "
                        + System.getProperty("java.version") + ", segments: " + reader.leaves().size());
    }

    private Object count(String kind) throws IOException {
        List<Integer> counts = new ArrayList<>();
        for (JsonNode words : queries.get(kind)) {
            counts.add(searcher.count(query(kind, words)));
        }
        return Map.of("counts", counts);
    }

    private Object search(String kind, int number, int repeat) throws IOException {
        List<JsonNode> asked = new ArrayList<>();
        queries.get(kind).forEach(asked::add);
        int limit = queries.get("limit").asInt();
        long hits = 0;
        long ids = 0;
        Stopwatch stopwatch = new Stopwatch();
        for (int round = 0; round < repeat; round++) {
            for (JsonNode words : asked.subList(0, number)) {
                // With a threshold of hits no larger than the limit, it need not count the others.
                TopDocs found = searcher.search(
                        query(kind, words), new TopScoreDocCollectorManager(limit, null, limit));
                hits += found.scoreDocs.length;
                ids += idsOf(found.scoreDocs);
            }
        }
        return Map.of("elapsed", stopwatch.elapsed(), "hits", hits, "ids", ids);
    }

    /** The sum of the ids of what was found: each is read, as every contender answers with ids. */
    private long idsOf(ScoreDoc[] found) throws IOException {
        int[] documents = Arrays.stream(found).mapToInt(one -> one.doc).sorted().toArray();
        List<LeafReaderContext> leaves = reader.leaves();
        long sum = 0;
        int leaf = -1;
        NumericDocValues values = null;
        for (int document : documents) {
            int of = ReaderUtil.subIndex(document, leaves);
            if (of != leaf) {
                leaf = of;
                values = leaves.get(of).reader().getNumericDocValues("id");
            }
            values.advanceExact(document - leaves.get(of).docBase);
            sum += values.longValue();
        }
        return sum;
    }

    private Query query(String kind, JsonNode words) {
        boolean filtered = kind.endsWith("_filtered");
        Query query = switch (filtered ? kind.substring(0, kind.length() - "_filtered".length()) : kind) {
            case "one" -> term(words.get(0));
            case "phrase" -> {
                PhraseQuery.Builder phrase = new PhraseQuery.Builder();
                words.forEach(word -> phrase.add(new Term("body", word.asText())));
                yield phrase.build();
            }
            case "and" -> all(words, Occur.MUST);
            case "or" -> all(words, Occur.SHOULD);
            default -> throw new IllegalArgumentException("there is no such kind: " + kind);
        };
        if (!filtered) {
            return query;
        }
        Term admitted = new Term("c", queries.get("admitted").asText());
        return new BooleanQuery.Builder()
                .add(query, Occur.MUST)
                .add(new TermQuery(admitted), Occur.FILTER)
                .build();
    }

    private static Query term(JsonNode word) {
        return new TermQuery(new Term("body", word.asText()));
    }

    private static Query all(JsonNode words, Occur occur) {
        BooleanQuery.Builder all = new BooleanQuery.Builder();
        words.forEach(word -> all.add(term(word), occur));
        return all.build();
    }

    /** Letters and digits, in lower case: Annulus' analyzer `simple`. */
    private static final class Words extends Analyzer {
        @Override
        protected TokenStreamComponents createComponents(String field) {
            Tokenizer split = CharTokenizer.fromTokenCharPredicate(Character::isLetterOrDigit);
            TokenStream lower = new LowerCaseFilter(split);
            return new TokenStreamComponents(split, lower);
        }
    }

    /** Processor time of all threads, so that of the compiler and of the collector, too. */
    private static final class Stopwatch {
        private static final Path THREADS = Path.of("/proc/self/task");

        private final long cpu;
        private final long wall;

        Stopwatch() throws IOException {
            cpu = processorNanos();
            wall = System.nanoTime();
        }

        Map<String, Double> elapsed() throws IOException {
            return Map.of(
                    "cpu_seconds", (processorNanos() - cpu) / 1e9,
                    "wall_seconds", (System.nanoTime() - wall) / 1e9);
        }

        /** Java's own clock of the process knows hundredths of a second only. */
        private static long processorNanos() throws IOException {
            long nanos = 0;
            try (DirectoryStream<Path> threads = Files.newDirectoryStream(THREADS)) {
                for (Path thread : threads) {
                    try {
                        nanos += Long.parseLong(Files.readString(thread.resolve("schedstat")).split(" ")[0]);
                    } catch (NoSuchFileException gone) {
                        // It ended meanwhile.
                    }
                }
            }
            return nanos;
        }
    }
}
