/* A disk that can lose power or run full, put between a process and its files by LD_PRELOAD.
 *
 * Environment:
 *   DISK_ROOT    only files below this directory are looked at
 *   DISK_SHADOW  the folder for the content that is on the disk for sure, outside of DISK_ROOT
 *   DISK_FULL    while a file of this name exists, writes fail with ENOSPC
 *   DISK_REFUSED a file, outside of DISK_ROOT, that grows by a byte with each write that fails so
 *
 * These count as being on the disk:
 *   - of a file, its content at its last fsync or fdatasync;
 *   - of a directory, its names at its last fsync, and the name that a file in it had when that
 *     file was synced (ext4, XFS and btrfs commit a new file's name with it).
 * Everything else may be lost. The shadow is brought up to date after the real sync and before
 * the caller hears of it, so nothing that was promised is missing in it, whenever the process dies.
 *
 * Files in DISK_SHADOW, where KEY is inode-birthseconds-birthnanoseconds:
 *   KEY.data   the content of a file
 *   KEY.dir    "KEY NAME\n" for each name of a directory
 *   KEY.link   the same, for names that came after KEY.dir was written
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define RANGES_MAX 64
#define FILES_MAX 4096
#define KEY_BYTES 80

struct range { off_t from, to; };

/* The ranges of a file that were written since its last sync. */
struct dirty {
    char key[KEY_BYTES];
    int count;
    struct range ranges[RANGES_MAX];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct dirty *files[FILES_MAX];
static const char *root, *shadow, *full, *refused;

static int (*real_open)(const char *, int, ...);
static int (*real_openat)(int, const char *, int, ...);
static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_writev)(int, const struct iovec *, int);
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static int (*real_ftruncate)(int, off_t);
static int (*real_fsync)(int);
static int (*real_fdatasync)(int);

static void die(const char *what) {
    perror(what);
    _exit(99);
}

__attribute__((constructor)) static void start(void) {
    real_open = dlsym(RTLD_NEXT, "open");
    real_openat = dlsym(RTLD_NEXT, "openat");
    real_write = dlsym(RTLD_NEXT, "write");
    real_writev = dlsym(RTLD_NEXT, "writev");
    real_pwrite = dlsym(RTLD_NEXT, "pwrite");
    real_ftruncate = dlsym(RTLD_NEXT, "ftruncate");
    real_fsync = dlsym(RTLD_NEXT, "fsync");
    real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
    root = getenv("DISK_ROOT");
    shadow = getenv("DISK_SHADOW");
    full = getenv("DISK_FULL");
    refused = getenv("DISK_REFUSED");
}

/* The path of an open file below the root; 0 if it is another. */
static int path_of(int fd, char *path) {
    char link[64];
    if (!root) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length < 0) return 0;
    path[length] = 0;
    size_t prefix = strlen(root);
    return strncmp(path, root, prefix) == 0 && (path[prefix] == '/' || path[prefix] == 0);
}

static int key_at(int directory, const char *name, int flags, char *key, mode_t *mode) {
    struct statx st;
    if (statx(directory, name, flags | AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS | STATX_BTIME, &st))
        return 0;
    snprintf(key, KEY_BYTES, "%llu-%lld-%u", (unsigned long long)st.stx_ino,
             (long long)st.stx_btime.tv_sec, st.stx_btime.tv_nsec);
    *mode = st.stx_mode;
    return 1;
}

static struct dirty *dirty_of(const char *key) {
    for (int i = 0; i < FILES_MAX; i++) {
        if (!files[i]) {
            files[i] = calloc(1, sizeof **files);
            strcpy(files[i]->key, key);
            return files[i];
        }
        if (!strcmp(files[i]->key, key)) return files[i];
    }
    errno = ENFILE;
    die("disk.c: too many files");
    return 0;
}

/* Notes a written range. Called with the lock held. */
static void mark(const char *key, off_t from, off_t to) {
    struct dirty *file = dirty_of(key);
    for (int i = 0; i < file->count; i++) {
        struct range *range = &file->ranges[i];
        if (from <= range->to && to >= range->from) {
            if (from < range->from) range->from = from;
            if (to > range->to) range->to = to;
            return;
        }
    }
    if (file->count == RANGES_MAX) {
        /* There are too many to tell apart: one range from the first to the last replaces them. */
        for (int i = 1; i < file->count; i++) {
            if (file->ranges[i].from < file->ranges[0].from) file->ranges[0].from = file->ranges[i].from;
            if (file->ranges[i].to > file->ranges[0].to) file->ranges[0].to = file->ranges[i].to;
        }
        file->count = 1;
        mark(key, from, to);
        return;
    }
    file->ranges[file->count++] = (struct range){from, to};
}

static void mark_fd(int fd, off_t from, off_t to) {
    char path[PATH_MAX], key[KEY_BYTES];
    mode_t mode;
    if (from < to && path_of(fd, path) && key_at(fd, "", AT_EMPTY_PATH, key, &mode)) {
        pthread_mutex_lock(&lock);
        mark(key, from, to);
        pthread_mutex_unlock(&lock);
    }
}

/* Counts a write that fails. */
static void count_refused(void) {
    if (!refused) return;
    int count = real_open(refused, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (count < 0 || real_write(count, "x", 1) != 1) die("disk.c: counting");
    close(count);
}

static int is_full(int fd) {
    char path[PATH_MAX];
    if (!full || access(full, F_OK) || !path_of(fd, path)) return 0;
    count_refused();
    return 1;
}

static void shadow_path(char *path, const char *key, const char *kind) {
    snprintf(path, PATH_MAX, "%s/%s.%s", shadow, key, kind);
}

static int is_zero(const char *bytes, ssize_t count) {
    return !bytes[0] && !memcmp(bytes, bytes + 1, (size_t)count - 1);
}

static void copy_range(const char *from_path, int to, struct range range) {
    static char buffer[1 << 16];
    int from = real_open(from_path, O_RDONLY | O_CLOEXEC);
    if (from < 0) die("disk.c: reading what was synced");
    for (off_t at = range.from; at < range.to;) {
        size_t part = sizeof buffer;
        if ((off_t)part > range.to - at) part = (size_t)(range.to - at);
        ssize_t got = pread(from, buffer, part, at);
        if (got < 0) die("disk.c: reading what was synced");
        if (got == 0) break;
        /* Holes stay holes. */
        off_t data = lseek(to, at, SEEK_DATA);
        if (!is_zero(buffer, got) || (data >= 0 && data < at + got))
            if (real_pwrite(to, buffer, (size_t)got, at) != got) die("disk.c: shadow");
        at += got;
    }
    close(from);
}

/* A file was synced: its content and its name are on the disk. */
static void keep_file(int fd, const char *path, const char *key) {
    char to_path[PATH_MAX], parent[PATH_MAX], parent_key[KEY_BYTES], link_path[PATH_MAX], proc[64];
    mode_t mode;
    struct stat st;
    if (fstat(fd, &st)) return;
    shadow_path(to_path, key, "data");
    int to = real_open(to_path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (to < 0) die("disk.c: shadow");
    struct dirty *file = dirty_of(key);
    if (real_ftruncate(to, st.st_size)) die("disk.c: shadow");
    snprintf(proc, sizeof proc, "/proc/self/fd/%d", fd);
    for (int i = 0; i < file->count; i++) {
        struct range range = file->ranges[i];
        if (range.to > st.st_size) range.to = st.st_size;
        copy_range(proc, to, range);
    }
    file->count = 0;
    close(to);

    if (access(path, F_OK)) return; /* it has no name any more */
    strcpy(parent, path);
    char *slash = strrchr(parent, '/');
    *slash = 0;
    if (!key_at(AT_FDCWD, parent, 0, parent_key, &mode)) return;
    shadow_path(link_path, parent_key, "link");
    int link = real_open(link_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    char line[PATH_MAX + KEY_BYTES];
    int length = snprintf(line, sizeof line, "%s %s\n", key, slash + 1);
    if (link < 0 || real_write(link, line, (size_t)length) != length) die("disk.c: shadow");
    close(link);
}

/* A directory was synced: its names are on the disk. */
static void keep_directory(const char *path, const char *key) {
    char to_path[PATH_MAX], draft[PATH_MAX + 8], entry_key[KEY_BYTES];
    mode_t mode;
    DIR *directory = opendir(path);
    if (!directory) return;
    shadow_path(to_path, key, "dir");
    snprintf(draft, sizeof draft, "%s.new", to_path);
    FILE *to = fopen(draft, "w");
    if (!to) die("disk.c: shadow");
    struct dirent *entry;
    while ((entry = readdir(directory))) {
        if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..")) continue;
        if (key_at(dirfd(directory), entry->d_name, 0, entry_key, &mode))
            fprintf(to, "%s %s\n", entry_key, entry->d_name);
    }
    closedir(directory);
    if (fclose(to) || rename(draft, to_path)) die("disk.c: shadow");
    shadow_path(to_path, key, "link");
    unlink(to_path);
}

static int sync_with(int (*real)(int), int fd) {
    char path[PATH_MAX], key[KEY_BYTES];
    mode_t mode;
    if (!shadow || !path_of(fd, path) || !key_at(fd, "", AT_EMPTY_PATH, key, &mode)) return real(fd);
    pthread_mutex_lock(&lock);
    int result = real(fd);
    int error = errno;
    if (!result) {
        if (S_ISDIR(mode)) keep_directory(path, key);
        else keep_file(fd, path, key);
    }
    pthread_mutex_unlock(&lock);
    errno = error;
    return result;
}

int fsync(int fd) { return sync_with(real_fsync, fd); }
int fdatasync(int fd) { return sync_with(real_fdatasync, fd); }

ssize_t write(int fd, const void *bytes, size_t count) {
    if (is_full(fd)) { errno = ENOSPC; return -1; }
    ssize_t written = real_write(fd, bytes, count);
    if (root && written > 0) {
        int error = errno;
        off_t end = lseek(fd, 0, SEEK_CUR);
        if (end >= written) mark_fd(fd, end - written, end);
        errno = error;
    }
    return written;
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    if (is_full(fd)) { errno = ENOSPC; return -1; }
    ssize_t written = real_writev(fd, parts, count);
    if (root && written > 0) {
        int error = errno;
        off_t end = lseek(fd, 0, SEEK_CUR);
        if (end >= written) mark_fd(fd, end - written, end);
        errno = error;
    }
    return written;
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) {
    if (is_full(fd)) { errno = ENOSPC; return -1; }
    ssize_t written = real_pwrite(fd, bytes, count, at);
    if (root && written > 0) mark_fd(fd, at, at + written);
    return written;
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off_t at) { return pwrite(fd, bytes, count, at); }

int ftruncate(int fd, off_t length) {
    struct stat st;
    if (is_full(fd)) { errno = ENOSPC; return -1; }
    int known = root && !fstat(fd, &st);
    int result = real_ftruncate(fd, length);
    /* If it grows again, what was cut off reads as zeros. */
    if (!result && known) mark_fd(fd, length < st.st_size ? length : st.st_size, st.st_size);
    return result;
}

int ftruncate64(int fd, off_t length) { return ftruncate(fd, length); }

/* A file that is new or emptied is written from its beginning. */
static int opened(int fd, int flags) {
    if (fd >= 0 && root && flags & (O_CREAT | O_TRUNC)) {
        int error = errno;
        mark_fd(fd, 0, (off_t)1 << 60);
        errno = error;
    }
    return fd;
}

#define MODE(flags, last) \
    mode_t mode = 0; \
    if (flags & (O_CREAT | O_TMPFILE)) { va_list list; va_start(list, last); mode = va_arg(list, mode_t); va_end(list); }

int open(const char *path, int flags, ...) { MODE(flags, flags) return opened(real_open(path, flags, mode), flags); }
int open64(const char *path, int flags, ...) { MODE(flags, flags) return opened(real_open(path, flags | O_LARGEFILE, mode), flags); }
int openat(int at, const char *path, int flags, ...) { MODE(flags, flags) return opened(real_openat(at, path, flags, mode), flags); }
int openat64(int at, const char *path, int flags, ...) { MODE(flags, flags) return opened(real_openat(at, path, flags | O_LARGEFILE, mode), flags); }
