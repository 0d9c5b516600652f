/* Records when the machine's processors stood still. On each processor a thread with the highest
 * priority sleeps half a millisecond again and again, and measures how late it woke. On a machine
 * without other guests that is some microseconds. A hypervisor that gives the processor to another
 * guest makes it milliseconds.
 *
 *   stops SECONDS >FILE      lines: processor, when it should have woken, when it woke; ns of
 *                            CLOCK_MONOTONIC
 *
 * Needs root or CAP_SYS_NICE, and takes a little of each processor. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PERIOD_NS 500000LL
/* Shorter delays come from the system itself: interrupts and timers. */
#define LATE_NS 300000LL
#define PROCESSORS_MAX 1024

static long long end_ns;

static long long now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void *watch(void *argument)
{
    int processor = (int)(long)argument;
    cpu_set_t only;
    CPU_ZERO(&only);
    CPU_SET(processor, &only);
    struct sched_param above = { .sched_priority = 50 };
    if (pthread_setaffinity_np(pthread_self(), sizeof only, &only) != 0 ||
        pthread_setschedparam(pthread_self(), SCHED_FIFO, &above) != 0) {
        fprintf(stderr, "stops: no priority on processor %d: it needs root or CAP_SYS_NICE\n", processor);
        exit(1);
    }
    while (now_ns() < end_ns) {
        long long due = now_ns() + PERIOD_NS;
        struct timespec until = { .tv_sec = due / 1000000000LL, .tv_nsec = due % 1000000000LL };
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
        long long woke = now_ns();
        if (woke - due > LATE_NS)
            printf("%d,%lld,%lld\n", processor, due, woke);
    }
    return NULL;
}

int main(int count, char **arguments)
{
    if (count != 2) {
        fprintf(stderr, "usage: stops SECONDS\n");
        return 2;
    }
    end_ns = now_ns() + (long long)(atof(arguments[1]) * 1e9);
    cpu_set_t ours;
    if (sched_getaffinity(0, sizeof ours, &ours) != 0)
        return 1;
    pthread_t threads[PROCESSORS_MAX];
    int started = 0;
    for (int processor = 0; processor < CPU_SETSIZE && started < PROCESSORS_MAX; processor++)
        if (CPU_ISSET(processor, &ours) &&
            pthread_create(&threads[started], NULL, watch, (void *)(long)processor) == 0)
            started++;
    for (int thread = 0; thread < started; thread++)
        pthread_join(threads[thread], NULL);
    return 0;
}
