package suite;

import java.util.Objects;
import java.util.concurrent.Callable;

/** Assertions. */
final class Check {
    private static final long SECONDS = 20;

    private Check() {}

    static void isTrue(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    static void equal(Object expected, Object found, String what) {
        isTrue(Objects.equals(expected, found), what + ": " + found + ", not " + expected);
    }

    /** The exception of a class that a call ends with. */
    static <E extends Exception> E fails(Class<E> expected, String words, Callable<?> call) {
        try {
            call.call();
        } catch (Exception e) {
            isTrue(expected.isInstance(e), "not " + expected.getSimpleName() + " but " + e);
            isTrue(e.getMessage().contains(words), "no '" + words + "' in: " + e.getMessage());
            return expected.cast(e);
        }
        throw new AssertionError("no " + expected.getSimpleName());
    }

    /** Waits until something holds. */
    static void eventually(Callable<Boolean> holds, String what) throws Exception {
        long end = System.nanoTime() + SECONDS * 1_000_000_000L;
        while (!holds.call()) {
            isTrue(System.nanoTime() < end, "not within " + SECONDS + " s: " + what);
            Thread.sleep(20);
        }
    }
}
