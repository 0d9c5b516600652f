/* Loaded before a program, this leaves Nagle's algorithm on: requests to turn it off are ignored. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

int setsockopt(int socket, int level, int option, const void *value, socklen_t length)
{
    static int (*original)(int, int, int, const void *, socklen_t);
    if (level == IPPROTO_TCP && option == TCP_NODELAY)
        return 0;
    if (!original)
        original = (int (*)(int, int, int, const void *, socklen_t))dlsym(RTLD_NEXT, "setsockopt");
    return original(socket, level, option, value, length);
}
