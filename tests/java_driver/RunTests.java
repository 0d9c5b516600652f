import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.runner.Description;
import org.junit.runner.JUnitCore;
import org.junit.runner.notification.Failure;
import org.junit.runner.notification.RunListener;

/**
 * Runs test classes, some at a time, and writes a line for each test: its outcome, and its name without spaces. Lines
 * that begin with a tab follow: why it was skipped, or the stack trace of its failure.
 *
 * <p>usage: RunTests RESULTS THREADS CLASS...
 */
public final class RunTests {

  private static final class Outcomes extends RunListener {
    private final PrintWriter results;
    // Of one class: each class has a listener of its own.
    private final Set<Description> told = ConcurrentHashMap.newKeySet();

    Outcomes(PrintWriter results) {
      this.results = results;
    }

    private void tell(String outcome, Description test, String detail) {
      if (!told.add(test)) {
        return;
      }
      String method = test.getMethodName() == null ? "" : "." + test.getMethodName().replaceAll("\\s+", "");
      String simpleName = test.getClassName().substring(test.getClassName().lastIndexOf('.') + 1);
      synchronized (results) {
        results.println(outcome + " " + simpleName + method);
        detail.lines().forEach(line -> results.println("\t" + line));
        results.flush();
      }
    }

    @Override
    public void testFailure(Failure failure) {
      tell("failed", failure.getDescription(), failure.getTrace());
    }

    @Override
    public void testAssumptionFailure(Failure failure) {
      tell("skipped", failure.getDescription(), String.valueOf(failure.getMessage()));
    }

    @Override
    public void testIgnored(Description test) {
      tell("skipped", test, "");
    }

    @Override
    public void testFinished(Description test) {
      tell("passed", test, "");
    }
  }

  private static void run(String name, PrintWriter results) {
    try {
      JUnitCore core = new JUnitCore();
      core.addListener(new Outcomes(results));
      core.run(Class.forName(name));
    } catch (Throwable error) {
      StringWriter trace = new StringWriter();
      error.printStackTrace(new PrintWriter(trace));
      synchronized (results) {
        results.println("failed " + name.substring(name.lastIndexOf('.') + 1));
        trace.toString().lines().forEach(line -> results.println("\t" + line));
        results.flush();
      }
    }
  }

  public static void main(String[] arguments) throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(Integer.parseInt(arguments[1]));
    try (PrintWriter results = new PrintWriter(Files.newBufferedWriter(Path.of(arguments[0])))) {
      List<Future<?>> running = new ArrayList<>();
      for (String name : List.of(arguments).subList(2, arguments.length)) {
        running.add(pool.submit(() -> run(name, results)));
      }
      for (Future<?> each : running) {
        each.get();
      }
    }
    // Threads that tests left must not keep the process; this runs the hooks, which end the cluster.
    System.exit(0);
  }
}
