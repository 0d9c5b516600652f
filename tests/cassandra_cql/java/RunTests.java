import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.reflect.Modifier;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

import com.google.common.base.Throwables;
import org.junit.AssumptionViolatedException;
import org.junit.runner.Description;
import org.junit.runner.JUnitCore;
import org.junit.runner.notification.Failure;
import org.junit.runner.notification.RunListener;

import org.apache.cassandra.cql3.CQLTester;
import org.apache.cassandra.cql3.Differences;

/** Runs the classes that are named, and appends what came of each test to a file. */
public final class RunTests extends RunListener
{
    /** Messages of tests that look for the inside of a Cassandra, which runs nowhere near. */
    private static final Pattern INSIDE =
        Pattern.compile("Unresolved compilation|Initialized: false|\"(cfs|store|tableA|tableDir)\" is null"
                        + "|ColumnFamilyStore|indexManager|KeyspaceMetadata|TableMetadata|EndpointSnitch");
    /** Messages of what Annulus refuses by name. */
    private static final Pattern REFUSED =
        Pattern.compile("(MATERIALIZED VIEW|FUNCTION|AGGREGATE|COMPACT STORAGE|TRIGGER)[^\\n]* not supported by Annulus"
                        + "|Columns with a mask are not supported|Non-supported custom class"
                        + "|types given by a Java class name");

    private final Path file;
    private final List<Throwable> thrown = new ArrayList<>();
    private boolean runs;

    private RunTests(Path file)
    {
        this.file = file;
    }

    public static void main(String[] arguments) throws Exception
    {
        RunTests listener = new RunTests(Path.of(arguments[0]));
        for (int i = 1; i < arguments.length; i++)
            listener.run(arguments[i]);
        // Some tests leave threads behind.
        Runtime.getRuntime().halt(0);
    }

    private void run(String name)
    {
        write("begun", name);
        try
        {
            Class<?> tests = Class.forName(name, false, getClass().getClassLoader());
            if (CQLTester.class.isAssignableFrom(tests) && !Modifier.isAbstract(tests.getModifiers()))
            {
                JUnitCore core = new JUnitCore();
                core.addListener(this);
                core.run(tests);
                write("class", name);
            }
            else
                write("asks no server", name);
        }
        catch (Exception | LinkageError e)
        {
            write("left out", name, Throwables.getStackTraceAsString(e));
        }
    }

    @Override
    public void testStarted(Description test)
    {
        runs = true;
        thrown.clear();
        Differences.takeAnswers();
        Differences.takeWords();
    }

    @Override
    public void testFailure(Failure failure)
    {
        thrown.add(failure.getException());
        // That of a class as a whole comes outside its tests.
        if (!runs)
            testFinished(failure.getDescription());
    }

    @Override
    public void testAssumptionFailure(Failure failure)
    {
        testFailure(failure);
    }

    @Override
    public void testIgnored(Description test)
    {
        write("ignored", test.getDisplayName());
    }

    @Override
    public void testFinished(Description test)
    {
        runs = false;
        List<String> notes = new ArrayList<>(Differences.takeAnswers());
        List<String> words = Differences.takeWords();
        List<String> states = notes.stream().map(note -> REFUSED.matcher(note).find() ? "refused" : "failed")
                                   .collect(Collectors.toCollection(ArrayList::new));
        for (Throwable failure : thrown)
        {
            states.add(state(failure));
            notes.add(Throwables.getStackTraceAsString(failure));
        }
        thrown.clear();
        String state = words.isEmpty() ? "passed" : "other words";
        for (String candidate : List.of("left out", "refused", "failed"))
            if (states.contains(candidate))
                state = candidate;
        write(state, test.getDisplayName(), String.join("\n\n", notes), String.join("\n\n", words));
    }

    private static String state(Throwable failure)
    {
        if (failure instanceof AssumptionViolatedException)
            return "left out";
        String message = Throwables.getCausalChain(failure).stream().map(String::valueOf)
                                   .collect(Collectors.joining("\n"));
        if (INSIDE.matcher(message).find() || isOfCassandra(failure))
            return "left out";
        return REFUSED.matcher(message).find() ? "refused" : "failed";
    }

    /** Whether code of Cassandra failed, and neither a test nor what stands in here. */
    private static boolean isOfCassandra(Throwable failure)
    {
        for (StackTraceElement frame : Throwables.getRootCause(failure).getStackTrace())
            if (frame.getClassName().startsWith("org.apache.cassandra."))
                return isOfAJar(frame.getClassName());
        return failure instanceof LinkageError;
    }

    private static boolean isOfAJar(String name)
    {
        try
        {
            Class<?> found = Class.forName(name, false, RunTests.class.getClassLoader());
            return found.getProtectionDomain().getCodeSource().getLocation().getPath().endsWith(".jar");
        }
        catch (ClassNotFoundException | LinkageError e)
        {
            return true;
        }
    }

    private void write(String... parts)
    {
        String line = Arrays.stream(parts).map(part -> quoted(part.substring(0, Math.min(part.length(), 20_000))))
                            .collect(Collectors.joining(",", "[", "]\n"));
        try
        {
            Files.writeString(file, line, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        }
        catch (IOException e)
        {
            throw new UncheckedIOException(e);
        }
    }

    /** The text as JSON. */
    private static String quoted(String text)
    {
        StringBuilder quoted = new StringBuilder("\"");
        for (char c : text.toCharArray())
        {
            if (c < ' ' || c > '~' || c == '"' || c == '\\')
                quoted.append(String.format("\\u%04x", (int) c));
            else
                quoted.append(c);
        }
        return quoted.append('"').toString();
    }
}
