package suite;

/** A named part of the suite, which fails by an exception. */
record Section(String name, Body body) {
    interface Body {
        void run() throws Exception;
    }

    /** Runs it and prints how it ended, in one line. Returns whether it went well. */
    boolean run() {
        try {
            body.run();
            System.out.println(name + " ok");
            return true;
        } catch (Exception | AssertionError e) {
            e.printStackTrace();
            System.out.println(name + " failed: " + String.valueOf(e).replace('\n', ' '));
            return false;
        }
    }
}
