/*
 * What a process does to the files below one directory, written down; and faults at a chosen operation.
 *
 * Preloaded (LD_PRELOAD) before the C library; does nothing until fault_arm is called. Each operation below the root is one line of
 * the journal, written after it was done, in the order in which they took effect (operations are done one at a time):
 *
 *     create INO PATH        a file that was not there; it is also linked into the graveyard under its number, so that
 *                            its bytes outlive its names and its number is not given away again
 *     write INO PATH
 *     truncate INO SIZE PATH
 *     sync INO SIZE PATH     fsync or fdatasync of a file, with its size then
 *     dirsync PATH           fsync of a directory
 *     rename FROM TO
 *     unlink PATH
 *     mkdir PATH
 *     fail CLASS PATH        an operation that was made to fail
 *
 * A rule is ACTION:CLASS:N: at the Nth operation of CLASS (create, write, truncate, sync, rename, unlink, mkdir, or any) below the
 * root, before it is done,
 * ACTION happens: "kill", or an error number that it fails with; with "+" behind the number all later ones of that class fail too.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define REAL(type, name) ((type)dlsym(RTLD_NEXT, #name))
#define MOST_FILES 4096

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static char root[PATH_MAX], grave[PATH_MAX], class_of_rule[16];
static int armed, journal = -1, error_of_rule, for_ever;
static long countdown;
static char ours[MOST_FILES]; /* descriptors of files and directories below the root */

void fault_arm(const char *root_, const char *grave_, const char *journal_, const char *rule)
{
    char action[16] = "";
    snprintf(root, sizeof root, "%s", root_);
    snprintf(grave, sizeof grave, "%s", grave_);
    journal = REAL(int (*)(const char *, int, ...), open)(journal_, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    sscanf(rule, "%15[^:]:%15[^:]:%ld", action, class_of_rule, &countdown);
    error_of_rule = atoi(action); /* 0 for "kill" */
    for_ever = strchr(action, '+') != NULL;
    armed = 1;
}

/* The path below the root, NULL if it lies elsewhere. */
static const char *below(int directory, const char *path, char *buffer)
{
    if (!armed)
        return NULL;
    if (path[0] == '/') {
        snprintf(buffer, PATH_MAX, "%s", path);
    } else if (directory == AT_FDCWD) {
        if (getcwd(buffer, PATH_MAX) == NULL)
            return NULL;
        size_t length = strlen(buffer);
        snprintf(buffer + length, PATH_MAX - length, "/%s", path);
    } else {
        char link[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
        ssize_t length = readlink(link, buffer, PATH_MAX - 1);
        if (length < 0)
            return NULL;
        snprintf(buffer + length, PATH_MAX - length, "/%s", path);
    }
    size_t length = strlen(root);
    if (strncmp(buffer, root, length) != 0 || (buffer[length] != '/' && buffer[length] != 0))
        return NULL;
    return buffer[length] == 0 ? "." : buffer + length + 1;
}

static const char *of_descriptor(int fd, char *buffer)
{
    if (!armed || fd < 0 || fd >= MOST_FILES || !ours[fd])
        return NULL;
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, buffer, PATH_MAX - 1);
    if (length < 0)
        return NULL;
    buffer[length] = 0;
    size_t skip = strlen(root);
    return buffer[skip] == 0 ? "." : buffer + skip + 1;
}

static void note(const char *format, ...)
{
    char line[2 * PATH_MAX];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (REAL(ssize_t(*)(int, const void *, size_t), write)(journal, line, length) != length)
        abort();
}

/* Whether the operation is to fail: then errno says how. Dies if it is the one to die at. */
static int struck(const char *class, const char *name)
{
    if (strcmp(class_of_rule, "any") != 0 && strcmp(class_of_rule, class) != 0)
        return 0;
    countdown--;
    if (countdown > 0 || (countdown < 0 && !for_ever))
        return 0;
    if (error_of_rule == 0) {
        kill(getpid(), SIGKILL);
        for (;;)
            pause();
    }
    note("fail\t%s\t%s\n", class, name);
    errno = error_of_rule;
    return 1;
}

static int open_noted(int (*real)(const char *, int, ...), const char *path, const char *name, int flags, mode_t mode)
{
    struct stat found;
    pthread_mutex_lock(&turn);
    int new = (flags & O_CREAT) && lstat(path, &found) != 0;
    int fd = new && struck("create", name) ? -1 : real(path, flags, mode);
    if (fd >= 0 && fd < MOST_FILES) {
        ours[fd] = 1;
        if (fstat(fd, &found) == 0 && S_ISREG(found.st_mode)) {
            if (new) {
                char tomb[PATH_MAX + 32];
                snprintf(tomb, sizeof tomb, "%s/%lu", grave, (unsigned long)found.st_ino);
                if (link(path, tomb) != 0)
                    abort();
                note("create\t%lu\t%s\n", (unsigned long)found.st_ino, name);
            } else if (flags & O_TRUNC) {
                note("truncate\t%lu\t0\t%s\n", (unsigned long)found.st_ino, name);
            }
        }
    }
    int error = errno;
    pthread_mutex_unlock(&turn);
    errno = error;
    return fd;
}

#define OPEN(function)                                                                              \
    int function(const char *path, int flags, ...)                                                  \
    {                                                                                               \
        char buffer[PATH_MAX];                                                                      \
        va_list args;                                                                               \
        va_start(args, flags);                                                                      \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;                     \
        va_end(args);                                                                               \
        int (*real)(const char *, int, ...) = REAL(int (*)(const char *, int, ...), function);      \
        const char *name = below(AT_FDCWD, path, buffer);                                           \
        return name == NULL ? real(path, flags, mode) : open_noted(real, path, name, flags, mode);  \
    }
OPEN(open)
OPEN(open64)

int close(int fd)
{
    if (fd >= 0 && fd < MOST_FILES)
        ours[fd] = 0;
    return REAL(int (*)(int), close)(fd);
}

/* Does an operation on a descriptor under the lock, between the rule and the journal. */
#define ON_DESCRIPTOR(type, failed, class, call, noting)                      \
    char buffer[PATH_MAX];                                                    \
    const char *name = of_descriptor(fd, buffer);                             \
    if (name == NULL)                                                         \
        return call;                                                          \
    pthread_mutex_lock(&turn);                                                \
    type result = struck(class, name) ? (failed) : call;                            \
    int error = errno;                                                        \
    struct stat found;                                                        \
    if (result != (type)(failed) && fstat(fd, &found) == 0) {                 \
        noting;                                                               \
    }                                                                         \
    pthread_mutex_unlock(&turn);                                              \
    errno = error;                                                            \
    return result

#define NUMBER (unsigned long)found.st_ino
#define SIZE (long)found.st_size

ssize_t write(int fd, const void *data, size_t size)
{
    ssize_t (*real)(int, const void *, size_t) = REAL(ssize_t(*)(int, const void *, size_t), write);
    ON_DESCRIPTOR(ssize_t, -1, "write", real(fd, data, size), note("write\t%lu\t%s\n", NUMBER, name));
}

static int sync_noted(int (*real)(int), int fd)
{
    ON_DESCRIPTOR(int, -1, "sync", real(fd),
                  if (S_ISDIR(found.st_mode)) note("dirsync\t%s\n", name);
                  else note("sync\t%lu\t%ld\t%s\n", NUMBER, SIZE, name));
}

int fsync(int fd) { return sync_noted(REAL(int (*)(int), fsync), fd); }
int fdatasync(int fd) { return sync_noted(REAL(int (*)(int), fdatasync), fd); }

static int truncate_noted(int (*real)(int, off_t), int fd, off_t size)
{
    ON_DESCRIPTOR(int, -1, "truncate", real(fd, size), note("truncate\t%lu\t%ld\t%s\n", NUMBER, SIZE, name));
}

int ftruncate(int fd, off_t size) { return truncate_noted(REAL(int (*)(int, off_t), ftruncate), fd, size); }
int ftruncate64(int fd, off_t size) { return truncate_noted(REAL(int (*)(int, off_t), ftruncate64), fd, size); }

/* Does an operation on a path under the lock. */
#define ON_PATH(directory, path, class, call, noting)      \
    char buffer[PATH_MAX];                                 \
    const char *name = below(directory, path, buffer);     \
    if (name == NULL)                                      \
        return call;                                       \
    pthread_mutex_lock(&turn);                             \
    int result = struck(class, name) ? -1 : call;                \
    int error = errno;                                     \
    if (result == 0)                                       \
        noting;                                            \
    pthread_mutex_unlock(&turn);                           \
    errno = error;                                         \
    return result

int unlink(const char *path)
{
    int (*real)(const char *) = REAL(int (*)(const char *), unlink);
    ON_PATH(AT_FDCWD, path, "unlink", real(path), note("unlink\t%s\n", name));
}

int unlinkat(int directory, const char *path, int flags)
{
    int (*real)(int, const char *, int) = REAL(int (*)(int, const char *, int), unlinkat);
    ON_PATH(directory, path, "unlink", real(directory, path, flags), note("unlink\t%s\n", name));
}

int rmdir(const char *path)
{
    int (*real)(const char *) = REAL(int (*)(const char *), rmdir);
    ON_PATH(AT_FDCWD, path, "unlink", real(path), note("unlink\t%s\n", name));
}

int mkdir(const char *path, mode_t mode)
{
    int (*real)(const char *, mode_t) = REAL(int (*)(const char *, mode_t), mkdir);
    ON_PATH(AT_FDCWD, path, "mkdir", real(path, mode), note("mkdir\t%s\n", name));
}

int rename(const char *from, const char *path)
{
    int (*real)(const char *, const char *) = REAL(int (*)(const char *, const char *), rename);
    char buffer_from[PATH_MAX];
    const char *before = below(AT_FDCWD, from, buffer_from);
    ON_PATH(AT_FDCWD, path, "rename", real(from, path), note("rename\t%s\t%s\n", before ? before : "/", name));
}
