/* A library that is loaded before a program and changes how it sends over TCP. The environment
 * says how:
 *
 *   NAGLE=on     Nagle's algorithm stays on: requests to turn it off (TCP_NODELAY) are ignored
 *   WRITES=two   an HTTP request leaves as two writes, first its head and then its body
 *
 * Without these variables all calls are passed on unchanged. Rust's standard library sends by send()
 * and writev(). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

/* The most bytes in which the end of a head is looked for. */
#define HEAD_MAX 8192
/* A message of more pieces is not divided. */
#define PIECES_MAX 64

static int nagle, two_writes;
static int (*set_option)(int, int, int, const void *, socklen_t);
static ssize_t (*send_bytes)(int, const void *, size_t, int);
static ssize_t (*write_pieces)(int, const struct iovec *, int);

static int says(const char *name, const char *value)
{
    const char *given = getenv(name);
    return given && strcmp(given, value) == 0;
}

__attribute__((constructor)) static void begin(void)
{
    nagle = says("NAGLE", "on");
    two_writes = says("WRITES", "two");
    set_option = (int (*)(int, int, int, const void *, socklen_t))dlsym(RTLD_NEXT, "setsockopt");
    send_bytes = (ssize_t (*)(int, const void *, size_t, int))dlsym(RTLD_NEXT, "send");
    write_pieces = (ssize_t (*)(int, const struct iovec *, int))dlsym(RTLD_NEXT, "writev");
}

int setsockopt(int socket, int level, int option, const void *value, socklen_t length)
{
    if (nagle && level == IPPROTO_TCP && option == TCP_NODELAY)
        return 0;
    return set_option(socket, level, option, value, length);
}

/* The length of the head if `bytes` begin with an HTTP request that has a body, or else 0. */
static size_t head(const char *bytes, size_t length)
{
    if (!two_writes || length < 5 || memcmp(bytes, "POST ", 5) != 0)
        return 0;
    const char *end = memmem(bytes, length < HEAD_MAX ? length : HEAD_MAX, "\r\n\r\n", 4);
    return end ? (size_t)(end + 4 - bytes) : 0;
}

/* Sends a message by two writes and returns the bytes sent. If the second write fails, the caller
 * sees that a part was sent, and goes on with the rest. */
static ssize_t both(ssize_t first, ssize_t second)
{
    return second < 0 ? first : first + second;
}

ssize_t send(int socket, const void *bytes, size_t length, int flags)
{
    size_t first = head(bytes, length);
    if (first == 0 || first == length)
        return send_bytes(socket, bytes, length, flags);
    ssize_t sent = send_bytes(socket, bytes, first, flags);
    if (sent != (ssize_t)first)
        return sent;
    return both(sent, send_bytes(socket, (const char *)bytes + first, length - first, flags));
}

ssize_t writev(int file, const struct iovec *pieces, int count)
{
    size_t first = count > 0 ? head(pieces[0].iov_base, pieces[0].iov_len) : 0;
    if (first == 0 || (count == 1 && first == pieces[0].iov_len) || count > PIECES_MAX)
        return write_pieces(file, pieces, count);
    struct iovec rest[PIECES_MAX];
    memcpy(rest, pieces, (size_t)count * sizeof *pieces);
    rest[0].iov_len = first;
    ssize_t sent = write_pieces(file, rest, 1);
    if (sent != (ssize_t)first)
        return sent;
    rest[0].iov_base = (char *)pieces[0].iov_base + first;
    rest[0].iov_len = pieces[0].iov_len - first;
    return both(sent, write_pieces(file, rest, count));
}
