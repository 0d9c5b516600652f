package org.apache.cassandra.cql3;

import java.util.ArrayList;
import java.util.List;

/** What differs from a test's expectations. A test goes on after a difference, so that it may show more of them. */
public final class Differences
{
    private static final List<String> answers = new ArrayList<>();
    private static final List<String> words = new ArrayList<>();
    private static int trials;

    private Differences() {}

    /** Notes another answer than the expected one. */
    static synchronized void answer(String text)
    {
        if (trials > 0)
            throw new AssertionError(text);
        answers.add(text + caller());
    }

    /** Notes an error that was expected, in other words. */
    static synchronized void words(String text)
    {
        words.add(text + caller());
    }

    private static String caller()
    {
        for (StackTraceElement frame : new Throwable().getStackTrace())
            if (frame.getFileName() != null && frame.getFileName().matches("\\w+Test(er|Base)?\\.java"))
                return "\n  at " + frame;
        return "";
    }

    /** From here to the end of the trial, a difference is an AssertionError at once. */
    static synchronized void trial(boolean begins)
    {
        trials += begins ? 1 : -1;
    }

    public static synchronized List<String> takeAnswers()
    {
        return take(answers);
    }

    public static synchronized List<String> takeWords()
    {
        return take(words);
    }

    private static List<String> take(List<String> list)
    {
        List<String> taken = new ArrayList<>(list);
        list.clear();
        return taken;
    }
}
