// A preloaded library that simulates a disk which keeps only synced data.
//
// The library writes a record of each change to files below BACKGROUND_UNSYNCED_ROOT into the journal
// BACKGROUND_UNSYNCED_JOURNAL. A record contains the data that is needed to undo the change. A launch inherits variables with
// this prefix. A sync of a file removes the records of the file's content and of its creation. A sync of a folder removes the
// records of its names. When every process is dead, power_cut.py undoes the remaining changes. The journal must be on the same
// file system, because it contains a hard link to every file in a record.
//
// As on ext4, XFS and Btrfs, the sync of a new file also makes the file's name durable. Renames, links and removals need a sync
// of the folder.
//
// The library sees only writes through libc, which SQLite, Foundation and Stormy's code use. The library does not see writes to
// memory mappings. Stormy's processes write to only one mapping: SQLite's index of the write-ahead log. SQLite creates this index
// again.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static const char *root, *journal;
static size_t root_length;

#define REAL(result, name, ...) \
    static result (*real)(__VA_ARGS__); \
    if (!real) real = dlsym(RTLD_NEXT, name)

__attribute__((constructor)) static void begin(void) {
    root = getenv("BACKGROUND_UNSYNCED_ROOT");
    journal = getenv("BACKGROUND_UNSYNCED_JOURNAL");
    if (!root || !journal) root = NULL;
    else root_length = strlen(root);
}

// Makes a system call directly, so that the library's own file operations are not recorded.
static long raw(long number, long a, long b, long c, long d) {
    REAL(long, "syscall", long, ...);
    return real(number, a, b, c, d, 0L, 0L);
}

static void fail(const char *what) {
    dprintf(2, "unsynced: %s: %s\n", what, strerror(errno));
    abort();
}

static int is_below(const char *path) {
    return root && strncmp(path, root, root_length) == 0 && (path[root_length] == '/' || path[root_length] == 0);
}

// Gets the path of a descriptor's file. Returns 0 if the file is not below the root or has no path.
static int place_of(int descriptor, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    long length = raw(SYS_readlinkat, AT_FDCWD, (long)link, (long)path, PATH_MAX - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    return is_below(path);
}

// Gets the absolute path of a name relative to a folder. Returns 0 if the path is not below the root.
static int absolute(int folder, const char *name, char *path) {
    char base[PATH_MAX];
    if (name[0] == '/') snprintf(path, PATH_MAX, "%s", name);
    else {
        if (folder == AT_FDCWD) { if (!getcwd(base, sizeof base)) return 0; }
        else {
            char link[64];
            snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
            long length = raw(SYS_readlinkat, AT_FDCWD, (long)link, (long)base, PATH_MAX - 1);
            if (length <= 0) return 0;
            base[length] = 0;
        }
        if (snprintf(path, PATH_MAX, "%s/%s", base, name) >= PATH_MAX) return 0;
    }
    return is_below(path);
}

// Locks the journal for one writer. Each recorded change is made before the next record is written.
static int lock(void) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/lock", journal);
    int descriptor = (int)raw(SYS_openat, AT_FDCWD, (long)path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (descriptor < 0) fail("lock");
    while (flock(descriptor, LOCK_EX) != 0) if (errno != EINTR) fail("flock");
    return descriptor;
}

static void unlock(int descriptor) { raw(SYS_close, descriptor, 0, 0, 0); }

static void append(const char *name, const void *head, size_t size, const void *data, size_t length) {
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", journal, name);
    int descriptor = (int)raw(SYS_openat, AT_FDCWD, (long)path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (descriptor < 0) fail(name);
    struct iovec parts[2] = {{(void *)head, size}, {(void *)data, length}};
    if (raw(SYS_writev, descriptor, (long)parts, length ? 2 : 1, 0) != (long)(size + length)) fail(name);
    raw(SYS_close, descriptor, 0, 0, 0);
}

// Creates a hard link in the journal, so that the file can be found after its names have changed.
static void hold(const char *path, uint64_t inode) {
    char held[PATH_MAX];
    snprintf(held, sizeof held, "%s/i-%llu", journal, (unsigned long long)inode);
    raw(SYS_linkat, AT_FDCWD, (long)path, AT_FDCWD, (long)held);
}

struct change { uint64_t offset, old_size, length; int64_t seconds, nanoseconds; };

// Records the content that a write will replace. The journal must be locked.
static void note_content(int descriptor, const char *path, uint64_t offset, uint64_t length) {
    struct stat is;
    if (fstat(descriptor, &is) != 0 || !S_ISREG(is.st_mode) || is.st_nlink == 0) return;
    struct change change = {offset, (uint64_t)is.st_size, 0, is.st_mtim.tv_sec, is.st_mtim.tv_nsec};
    if (offset < change.old_size) {
        change.length = change.old_size - offset;
        if (change.length > length) change.length = length;
    }
    char *old = malloc(change.length + 1);
    if (change.length) {
        // A second descriptor is opened only if this descriptor is write-only. Closing a second descriptor would release SQLite's
        // locks on the file.
        int reader = (fcntl(descriptor, F_GETFL) & O_ACCMODE) == O_WRONLY
            ? (int)raw(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0) : descriptor;
        if (reader < 0) fail(path);
        if (raw(SYS_pread64, reader, (long)old, (long)change.length, (long)offset) != (long)change.length) fail("read");
        if (reader != descriptor) raw(SYS_close, reader, 0, 0, 0);
    }
    hold(path, is.st_ino);
    char name[64];
    snprintf(name, sizeof name, "c-%llu", (unsigned long long)is.st_ino);
    append(name, &change, sizeof change, old, change.length);
    free(old);
}

static void parent_of(const char *path, char *folder) {
    snprintf(folder, PATH_MAX, "%s", path);
    char *slash = strrchr(folder, '/');
    if (slash) *slash = 0;
}

static uint64_t inode_at(const char *path) {
    struct stat is;
    return raw(SYS_newfstatat, AT_FDCWD, (long)path, (long)&is, AT_SYMLINK_NOFOLLOW) == 0 ? is.st_ino : 0;
}

// Writes one line. It contains the kind of change, the inode of the file, the inode that was replaced at the second name, the
// inodes of the folders, and the names.
static void note_name(const char *what, uint64_t inode, uint64_t replaced, const char *from, const char *to) {
    char folder[PATH_MAX], other[PATH_MAX], line[3 * PATH_MAX];
    parent_of(from, folder);
    if (to) parent_of(to, other);
    int length = snprintf(
        line, sizeof line, "%s%c%llu%c%llu%c%llu%c%llu%c%s%c%s%c\n", what, 0, (unsigned long long)inode, 0, (unsigned long long)replaced, 0,
        (unsigned long long)inode_at(folder), 0, (unsigned long long)(to ? inode_at(other) : 0), 0, from, 0, to ? to : "", 0);
    append("names", line, (size_t)length, NULL, 0);
}

static void note_sync(int descriptor) {
    struct stat is;
    if (fstat(descriptor, &is) != 0) return;
    char name[PATH_MAX];
    if (S_ISREG(is.st_mode)) {
        snprintf(name, sizeof name, "%s/c-%llu", journal, (unsigned long long)is.st_ino);
        raw(SYS_unlinkat, AT_FDCWD, (long)name, 0, 0);
    }
    char line[128];
    int length = snprintf(line, sizeof line, "synced%c%llu%c0%c0%c0%c%c%c\n", 0, (unsigned long long)is.st_ino, 0, 0, 0, 0, 0, 0);
    append("names", line, (size_t)length, NULL, 0);
}

// MARK: Content

static ssize_t noted_write(int descriptor, const void *data, size_t count, int64_t at, int has_place) {
    char path[PATH_MAX];
    long result;
    if (!root || count == 0 || !place_of(descriptor, path)) {
        return has_place ? raw(SYS_pwrite64, descriptor, (long)data, (long)count, at) : raw(SYS_write, descriptor, (long)data, (long)count, 0);
    }
    int held = lock();
    int64_t offset = at;
    if (!has_place) {
        struct stat is;
        int flags = fcntl(descriptor, F_GETFL);
        offset = flags & O_APPEND && fstat(descriptor, &is) == 0 ? is.st_size : lseek(descriptor, 0, SEEK_CUR);
    }
    if (offset >= 0) note_content(descriptor, path, (uint64_t)offset, count);
    result = has_place ? raw(SYS_pwrite64, descriptor, (long)data, (long)count, at) : raw(SYS_write, descriptor, (long)data, (long)count, 0);
    int error = errno;
    unlock(held);
    errno = error;
    return result;
}

ssize_t write(int descriptor, const void *data, size_t count) { return noted_write(descriptor, data, count, 0, 0); }
ssize_t pwrite(int descriptor, const void *data, size_t count, off_t at) { return noted_write(descriptor, data, count, at, 1); }
ssize_t pwrite64(int descriptor, const void *data, size_t count, off_t at) { return noted_write(descriptor, data, count, at, 1); }

ssize_t writev(int descriptor, const struct iovec *parts, int count) {
    ssize_t sum = 0;
    char path[PATH_MAX];
    if (!root || !place_of(descriptor, path)) return raw(SYS_writev, descriptor, (long)parts, count, 0);
    for (int part = 0; part < count; part++) {
        ssize_t done = write(descriptor, parts[part].iov_base, parts[part].iov_len);
        if (done < 0) return sum ? sum : done;
        sum += done;
        if ((size_t)done < parts[part].iov_len) break;
    }
    return sum;
}

int ftruncate(int descriptor, off_t size) {
    char path[PATH_MAX];
    if (!root || !place_of(descriptor, path)) return (int)raw(SYS_ftruncate, descriptor, size, 0, 0);
    int held = lock();
    note_content(descriptor, path, (uint64_t)size, UINT64_MAX);
    int result = (int)raw(SYS_ftruncate, descriptor, size, 0, 0), error = errno;
    unlock(held);
    errno = error;
    return result;
}
int ftruncate64(int descriptor, off_t size) { return ftruncate(descriptor, size); }

int fallocate(int descriptor, int mode, off_t offset, off_t length) {
    char path[PATH_MAX];
    if (!root || !place_of(descriptor, path)) return (int)raw(SYS_fallocate, descriptor, mode, offset, length);
    int held = lock();
    note_content(descriptor, path, (uint64_t)offset, (uint64_t)length);
    int result = (int)raw(SYS_fallocate, descriptor, mode, offset, length), error = errno;
    unlock(held);
    errno = error;
    return result;
}
int fallocate64(int descriptor, int mode, off_t offset, off_t length) { return fallocate(descriptor, mode, offset, length); }
int posix_fallocate(int descriptor, off_t offset, off_t length) { return fallocate(descriptor, 0, offset, length) == 0 ? 0 : errno; }
int posix_fallocate64(int descriptor, off_t offset, off_t length) { return posix_fallocate(descriptor, offset, length); }

// Below the root these calls fail, so that programs copy with read and write instead. The library can record such copies.
ssize_t copy_file_range(int from, off_t *at, int to, off_t *place, size_t count, unsigned flags) {
    char path[PATH_MAX];
    if (root && place_of(to, path)) { errno = EXDEV; return -1; }
    REAL(ssize_t, "copy_file_range", int, off_t *, int, off_t *, size_t, unsigned);
    return real(from, at, to, place, count, flags);
}
ssize_t sendfile(int to, int from, off_t *at, size_t count) {
    char path[PATH_MAX];
    if (root && place_of(to, path)) { errno = EINVAL; return -1; }
    REAL(ssize_t, "sendfile", int, int, off_t *, size_t);
    return real(to, from, at, count);
}
ssize_t sendfile64(int to, int from, off_t *at, size_t count) { return sendfile(to, from, at, count); }
int ioctl(int descriptor, unsigned long request, ...) {
    va_list arguments;
    va_start(arguments, request);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    // The two numbers are FICLONE and FICLONERANGE.
    if (root && (request == 0x40049409 || request == 0x4020940d)) { errno = EOPNOTSUPP; return -1; }
    return (int)raw(SYS_ioctl, descriptor, (long)request, (long)argument, 0);
}

static int synced(long number, int descriptor) {
    char path[PATH_MAX];
    if (!root || !place_of(descriptor, path)) return (int)raw(number, descriptor, 0, 0, 0);
    int held = lock();
    int result = 0, error = 0;
    // The data is not synced to the real disk, because the test does not need it.
    note_sync(descriptor);
    unlock(held);
    errno = error;
    return result;
}
int fsync(int descriptor) { return synced(SYS_fsync, descriptor); }
int fdatasync(int descriptor) { return synced(SYS_fdatasync, descriptor); }

// MARK: Names

static int noted_open(int folder, const char *name, int flags, mode_t mode) {
    char path[PATH_MAX];
    if (!root || !(flags & (O_CREAT | O_TRUNC)) || (flags & O_TMPFILE) == O_TMPFILE || !absolute(folder, name, path)) {
        return (int)raw(SYS_openat, folder, (long)name, flags, mode);
    }
    int held = lock();
    uint64_t before = inode_at(path);
    if (before && flags & O_TRUNC) {
        int existing = (int)raw(SYS_openat, AT_FDCWD, (long)path, O_RDWR | O_CLOEXEC, 0);
        if (existing >= 0) {
            note_content(existing, path, 0, UINT64_MAX);
            raw(SYS_close, existing, 0, 0, 0);
        }
    }
    int descriptor = (int)raw(SYS_openat, folder, (long)name, flags, mode), error = errno;
    if (descriptor >= 0 && !before) {
        hold(path, inode_at(path));
        note_name("made", inode_at(path), 0, path, NULL);
    }
    unlock(held);
    errno = error;
    return descriptor;
}

static mode_t mode_of(int flags, va_list arguments) {
    return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? (mode_t)va_arg(arguments, int) : 0;
}
#define OPEN(name, folder_parameter, folder) \
    int name(folder_parameter const char *path, int flags, ...) { \
        va_list arguments; \
        va_start(arguments, flags); \
        mode_t mode = mode_of(flags, arguments); \
        va_end(arguments); \
        return noted_open(folder, path, flags, mode); \
    }
#define COMMA ,
OPEN(open, , AT_FDCWD)
OPEN(open64, , AT_FDCWD)
OPEN(openat, int from COMMA, from)
OPEN(openat64, int from COMMA, from)
int creat(const char *path, mode_t mode) { return noted_open(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }

static int noted_temporary(int descriptor, const char *name) {
    char path[PATH_MAX];
    int error = errno;
    if (descriptor >= 0 && root && absolute(AT_FDCWD, name, path)) {
        int held = lock();
        hold(path, inode_at(path));
        note_name("made", inode_at(path), 0, path, NULL);
        unlock(held);
    }
    errno = error;
    return descriptor;
}
#define TEMPORARY(name, parameters, arguments, ...) \
    int name parameters { \
        REAL(int, #name, __VA_ARGS__); \
        return noted_temporary(real arguments, pattern); \
    }
TEMPORARY(mkstemp, (char *pattern), (pattern), char *)
TEMPORARY(mkstemp64, (char *pattern), (pattern), char *)
TEMPORARY(mkostemp, (char *pattern, int flags), (pattern, flags), char *, int)
TEMPORARY(mkostemp64, (char *pattern, int flags), (pattern, flags), char *, int)
TEMPORARY(mkstemps, (char *pattern, int suffix), (pattern, suffix), char *, int)
TEMPORARY(mkostemps, (char *pattern, int suffix, int flags), (pattern, suffix, flags), char *, int, int)

static int noted_rename(int from_folder, const char *from, int to_folder, const char *to, unsigned flags) {
    char first[PATH_MAX], second[PATH_MAX];
    int is_ours = root && absolute(from_folder, from, first) + absolute(to_folder, to, second) > 0;
    REAL(long, "syscall", long, ...);
    if (!is_ours) return (int)real(SYS_renameat2, (long)from_folder, (long)from, (long)to_folder, (long)to, (long)flags, 0L);
    int held = lock();
    uint64_t inode = inode_at(first), replaced = inode_at(second);
    hold(first, inode);
    if (replaced) hold(second, replaced);
    int result = (int)real(SYS_renameat2, (long)from_folder, (long)from, (long)to_folder, (long)to, (long)flags, 0L), error = errno;
    if (result == 0) note_name("renamed", inode, replaced, first, second);
    unlock(held);
    errno = error;
    return result;
}
int rename(const char *from, const char *to) { return noted_rename(AT_FDCWD, from, AT_FDCWD, to, 0); }
int renameat(int a, const char *from, int b, const char *to) { return noted_rename(a, from, b, to, 0); }
int renameat2(int a, const char *from, int b, const char *to, unsigned flags) { return noted_rename(a, from, b, to, flags); }

static int noted_unlink(int folder, const char *name, int flags) {
    char path[PATH_MAX];
    if (!root || flags & AT_REMOVEDIR || !absolute(folder, name, path)) return (int)raw(SYS_unlinkat, folder, (long)name, flags, 0);
    int held = lock();
    uint64_t inode = inode_at(path);
    if (inode) hold(path, inode);
    int result = (int)raw(SYS_unlinkat, folder, (long)name, flags, 0), error = errno;
    if (result == 0) note_name("removed", inode, 0, path, NULL);
    unlock(held);
    errno = error;
    return result;
}
int unlink(const char *path) { return noted_unlink(AT_FDCWD, path, 0); }
int unlinkat(int folder, const char *path, int flags) { return noted_unlink(folder, path, flags); }

static int noted_link(int from_folder, const char *from, int to_folder, const char *to, int flags) {
    char path[PATH_MAX];
    REAL(long, "syscall", long, ...);
    if (!root || !absolute(to_folder, to, path)) {
        return (int)real(SYS_linkat, (long)from_folder, (long)from, (long)to_folder, (long)to, (long)flags, 0L);
    }
    int held = lock();
    int result = (int)real(SYS_linkat, (long)from_folder, (long)from, (long)to_folder, (long)to, (long)flags, 0L), error = errno;
    if (result == 0) {
        // This may be the first name of a file that was opened without a name (O_TMPFILE). In this case fsync makes the name
        // durable, as for a new file.
        struct stat information;
        int is_first = lstat(path, &information) == 0 && information.st_nlink == 1;
        hold(path, inode_at(path));
        note_name(is_first ? "made" : "linked", inode_at(path), 0, path, NULL);
    }
    unlock(held);
    errno = error;
    return result;
}
int link(const char *from, const char *to) { return noted_link(AT_FDCWD, from, AT_FDCWD, to, 0); }
int linkat(int a, const char *from, int b, const char *to, int flags) { return noted_link(a, from, b, to, flags); }

long syscall(long number, ...) {
    va_list arguments;
    va_start(arguments, number);
    long a = va_arg(arguments, long), b = va_arg(arguments, long), c = va_arg(arguments, long);
    long d = va_arg(arguments, long), e = va_arg(arguments, long), f = va_arg(arguments, long);
    va_end(arguments);
    if (number == SYS_renameat2) return noted_rename((int)a, (const char *)b, (int)c, (const char *)d, (unsigned)e);
    REAL(long, "syscall", long, ...);
    return real(number, a, b, c, d, e, f);
}
