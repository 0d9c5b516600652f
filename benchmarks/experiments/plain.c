/* The plainest server that does as much for a request as a search. It reads the request, multiplies
 * its body with some rows of a table in memory, at random places, and sends an answer that it was
 * given. It has no runtime and no allocation, and one thread awake for a request. It is a measure
 * beside a real server's latencies, not a bound: a server that takes turns in another way can have
 * lower ones.
 *
 *   plain PORT THREADS ROWS READS ANSWERS
 *
 * THREADS: the number of threads, each with its share of the connections and an epoll of its own. 0
 *     is a thread for each connection.
 * ROWS: the number of rows of the table, each of ROW bytes.
 * READS: the number of rows that are multiplied for a request.
 * ANSWERS: a directory with `status`, `index` and `ann`, each a whole HTTP answer.
 *
 * It listens on loopback and ends by a signal. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ROW = 1536, REQUEST_MAX = 16384, ANSWER_MAX = 65536, THREADS_MAX = 256 };

struct answer {
    size_t length;
    char bytes[ANSWER_MAX];
};

struct connection {
    int socket;
    size_t have;
    uint64_t random;
    char request[REQUEST_MAX + 1];
};

static struct answer status_answer, index_answer, ann_answer;
static int8_t *table;
static size_t rows, reads;
/* The results go here, so that the compiler leaves out no work as unused. */
static volatile int32_t sink;

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static int32_t search(struct connection *from, const int8_t *query)
{
    int32_t total = 0;
    for (size_t read = 0; read < reads; read++) {
        from->random = from->random * 6364136223846793005u + 1442695040888963407u;
        const int8_t *row = table + (from->random >> 33) % rows * ROW;
        int32_t sum = 0;
        for (int element = 0; element < ROW; element++)
            sum += row[element] * query[element];
        total += sum;
    }
    return total;
}

/* The length of the request, headers and body, if all of it has come, or else 0. */
static size_t whole(const struct connection *from, size_t *headers)
{
    const char *end = memmem(from->request, from->have, "\r\n\r\n", 4);
    if (!end)
        return 0;
    *headers = (size_t)(end + 4 - from->request);
    const char *length = strcasestr(from->request, "\r\ncontent-length:");
    size_t body = length && length < end ? strtoul(length + 17, NULL, 10) : 0;
    if (body > REQUEST_MAX - *headers)
        return 0; /* The next recv has no room left and closes the connection. */
    return from->have >= *headers + body ? *headers + body : 0;
}

/* Reads what has come and answers a whole request. Returns false if the connection has ended. A
 * connection has one request at a time, without pipelining. */
static int serve_once(struct connection *from, int flags)
{
    ssize_t got = recv(from->socket, from->request + from->have, REQUEST_MAX - from->have, flags);
    if (got <= 0)
        return got < 0 && (errno == EAGAIN || errno == EINTR);
    from->have += (size_t)got;
    from->request[from->have] = 0;
    size_t headers, length = whole(from, &headers);
    if (length == 0)
        return 1;
    from->have = 0;
    const struct answer *answer = &index_answer;
    if (length - headers >= ROW) {
        sink = search(from, (const int8_t *)from->request + headers);
        answer = &ann_answer;
    } else if (memmem(from->request, headers, "/status ", 8)) {
        answer = &status_answer;
    }
    return send(from->socket, answer->bytes, answer->length, MSG_NOSIGNAL) == (ssize_t)answer->length;
}

static void end(struct connection *from)
{
    close(from->socket);
    free(from);
}

static __attribute__((noreturn)) void *serve_many(void *argument)
{
    int epoll = (int)(intptr_t)argument;
    for (;;) {
        struct epoll_event event;
        if (epoll_wait(epoll, &event, 1, -1) == 1 && !serve_once(event.data.ptr, MSG_DONTWAIT))
            end(event.data.ptr);
    }
}

static void *serve_one(void *argument)
{
    struct connection *from = argument;
    while (serve_once(from, 0))
        ;
    end(from);
    return NULL;
}

static void start(void *(*run)(void *), void *argument)
{
    pthread_t thread;
    if ((errno = pthread_create(&thread, NULL, run, argument)))
        fail("a thread");
    pthread_detach(thread);
}

static void read_answer(struct answer *into, const char *directory, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "rb");
    if (!file)
        fail(path);
    into->length = fread(into->bytes, 1, ANSWER_MAX, file);
    fclose(file);
}

int main(int count, char **arguments)
{
    if (count != 6) {
        fprintf(stderr, "plain PORT THREADS ROWS READS ANSWERS\n");
        return 2;
    }
    int threads = atoi(arguments[2]);
    if (threads < 0 || threads > THREADS_MAX) {
        fprintf(stderr, "THREADS: at most %d\n", THREADS_MAX);
        return 2;
    }
    rows = strtoul(arguments[3], NULL, 10);
    reads = strtoul(arguments[4], NULL, 10);
    if (rows == 0) {
        fprintf(stderr, "ROWS: at least 1\n");
        return 2;
    }
    read_answer(&status_answer, arguments[5], "status");
    read_answer(&index_answer, arguments[5], "index");
    read_answer(&ann_answer, arguments[5], "ann");
    table = mmap(NULL, rows * ROW, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (table == MAP_FAILED)
        fail("memory");
    madvise(table, rows * ROW, MADV_HUGEPAGE);
    for (size_t byte = 0; byte < rows * ROW; byte++)
        table[byte] = (int8_t)(byte * 31 >> 3);

    int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(arguments[1])) };
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 512))
        fail("listening");
    int epolls[THREADS_MAX];
    for (int thread = 0; thread < threads; thread++) {
        epolls[thread] = epoll_create1(0);
        start(serve_many, (void *)(intptr_t)epolls[thread]);
    }
    puts("ready");
    fflush(stdout);
    for (unsigned number = 0;; number++) {
        int socket = accept(listener, NULL, NULL);
        if (socket < 0) {
            if (errno == EINTR || errno == ECONNABORTED)
                continue;
            fail("accept");
        }
        setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        struct connection *from = calloc(1, sizeof *from);
        if (!from)
            fail("memory");
        from->socket = socket;
        from->random = number;
        if (threads == 0) {
            start(serve_one, from);
            continue;
        }
        struct epoll_event event = { .events = EPOLLIN, .data.ptr = from };
        if (epoll_ctl(epolls[number % (unsigned)threads], EPOLL_CTL_ADD, socket, &event))
            fail("epoll_ctl");
    }
}
