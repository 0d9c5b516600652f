package org.apache.cassandra.inject;

import org.junit.Assume;

/** Nothing can be injected into a server that is asked over the wire. */
public class Injections
{
    public static void inject(Injection... injections) {}

    public static void deleteAll() {}

    public static Builder<Counter> newCounter(String name)
    {
        return new Builder<>(new Counter(name));
    }

    public static Builder<Injection> newPause(String name, long milliseconds)
    {
        return newCustom(name);
    }

    public static Builder<Injection> newCustom(String name)
    {
        return new Builder<>(new Injection(name, new Rule[0]));
    }

    /** Makes injections. */
    public static class Builder<I extends Injection>
    {
        private final I injection;

        Builder(I injection)
        {
            this.injection = injection;
        }

        /** Takes the place or the action of an injection. */
        public Builder<I> add(Object part)
        {
            return this;
        }

        public I build()
        {
            return injection;
        }
    }

    /** Counts nothing. That of searches stands as high as a test may ask, and the others can't be asked. */
    public static class Counter extends Injection
    {
        private final String name;

        Counter(String name)
        {
            super(name, new Rule[0]);
            this.name = name;
        }

        public void reset() {}

        public long get()
        {
            Assume.assumeTrue("internals: a counter of " + name, name.equals("IndexQueryCounter"));
            return Long.MAX_VALUE;
        }
    }
}
