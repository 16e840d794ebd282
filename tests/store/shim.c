/* Calls of the system that change files, counted; at one of them the process is killed, or the call fails.

       cc -shared -fPIC -o shim.so shim.c -ldl
       LD_PRELOAD=./shim.so python faults.py

   Only files in one folder count. `shim_arm` names the folder, the call and what happens there. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum { COUNT, KILL_BEFORE, KILL_AFTER, KILL_WITHIN, FAIL_ONCE, FAIL_FROM_THEN_ON, CUT_SHORT };

static char folder[PATH_MAX];
static long target, made;
char shim_kinds[4096]; /* w for each call that writes bytes, - for others */
static int action, number;

/* Count from 1; `error` is the errno of the calls that fail. */
void shim_arm(const char *where, long call, int what, int error)
{
    snprintf(folder, sizeof folder, "%s", where);
    target = call, action = what, number = error, made = 0;
}

/* How many calls there were since. */
long shim_made(void) { return made; }

static int counts_path(const char *path) { return *folder && !strncmp(path, folder, strlen(folder)); }

static int counts_file(int file)
{
    char link[64], path[PATH_MAX];
    if (!*folder)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n < 0)
        return 0;
    path[n] = 0;
    return counts_path(path);
}

static int counts_at(int file, const char *path)
{
    return *path == '/' || file == AT_FDCWD ? counts_path(path) : counts_file(file);
}

static void die(void)
{
    kill(getpid(), SIGKILL);
    for (;;)
        pause();
}

/* What a call that counts must do: nothing but its work, fail, or write a part only. */
enum { WORK, FAIL, PART };

static int before(int writes)
{
    long now = __atomic_add_fetch(&made, 1, __ATOMIC_SEQ_CST);
    if (now <= (long)sizeof shim_kinds)
        shim_kinds[now - 1] = writes ? 'w' : '-';
    if (action == FAIL_FROM_THEN_ON && now >= target)
        return FAIL;
    if (now != target)
        return WORK;
    if (action == KILL_BEFORE || (action == KILL_WITHIN && !writes))
        die();
    if (action == FAIL_ONCE)
        return FAIL;
    return writes && (action == KILL_WITHIN || action == CUT_SHORT) ? PART : WORK;
}

static void after(void)
{
    if (made == target && (action == KILL_AFTER || action == KILL_WITHIN))
        die();
}

/* A function of the C library under its own name. */
#define REAL(name) \
    static __typeof__(name) *real; \
    if (!real) \
        real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

#define MADE(result, call) \
    do { \
        switch (before(0)) { \
        case FAIL: \
            errno = number; \
            return -1; \
        default: \
            result = call; \
            int kept = errno; \
            after(); \
            errno = kept; \
        } \
    } while (0)

#define PLAIN(name, counted, declared, given) \
    int name declared \
    { \
        REAL(name); \
        int result; \
        if (!(counted)) \
            return real given; \
        MADE(result, real given); \
        return result; \
    }

#define WRITING(name, declared, given, part) \
    ssize_t name declared \
    { \
        REAL(name); \
        if (!counts_file(file)) \
            return real given; \
        int what = before(1); \
        if (what == FAIL) { \
            errno = number; \
            return -1; \
        } \
        ssize_t result = what == PART && size > 1 ? real part : real given; \
        int kept = errno; \
        after(); \
        errno = kept; \
        return result; \
    }

WRITING(write, (int file, const void *text, size_t size), (file, text, size), (file, text, size / 2))
WRITING(pwrite, (int file, const void *text, size_t size, off_t at), (file, text, size, at), (file, text, size / 2, at))
WRITING(pwrite64, (int file, const void *text, size_t size, off64_t at), (file, text, size, at),
        (file, text, size / 2, at))

PLAIN(fsync, counts_file(file), (int file), (file))
PLAIN(fdatasync, counts_file(file), (int file), (file))
PLAIN(ftruncate, counts_file(file), (int file, off_t size), (file, size))
PLAIN(ftruncate64, counts_file(file), (int file, off64_t size), (file, size))
PLAIN(fchmod, counts_file(file), (int file, mode_t mode), (file, mode))
PLAIN(fchown, counts_file(file), (int file, uid_t owner, gid_t group), (file, owner, group))
PLAIN(chmod, counts_path(path), (const char *path, mode_t mode), (path, mode))
PLAIN(mkdir, counts_path(path), (const char *path, mode_t mode), (path, mode))
PLAIN(rmdir, counts_path(path), (const char *path), (path))
PLAIN(unlink, counts_path(path), (const char *path), (path))
PLAIN(unlinkat, counts_at(at, path), (int at, const char *path, int flags), (at, path, flags))
PLAIN(rename, counts_path(to), (const char *from, const char *to), (from, to))
PLAIN(renameat, counts_at(there, to), (int here, const char *from, int there, const char *to),
      (here, from, there, to))

/* Opening changes something if it may create or empty a file. */
#define CHANGES(flags) ((flags) & (O_CREAT | O_TRUNC))

#define OPENING(name, counted, declared, given) \
    int name declared \
    { \
        REAL(name); \
        va_list rest; \
        va_start(rest, flags); \
        mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0; \
        va_end(rest); \
        int result; \
        if (!CHANGES(flags) || !(counted)) \
            return real given; \
        MADE(result, real given); \
        return result; \
    }

OPENING(open, counts_path(path), (const char *path, int flags, ...), (path, flags, mode))
OPENING(open64, counts_path(path), (const char *path, int flags, ...), (path, flags, mode))
OPENING(openat, counts_at(at, path), (int at, const char *path, int flags, ...), (at, path, flags, mode))
OPENING(openat64, counts_at(at, path), (int at, const char *path, int flags, ...), (at, path, flags, mode))
