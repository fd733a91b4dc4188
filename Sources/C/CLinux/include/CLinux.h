// What Swift's Glibc module leaves out of Linux: timers, process descriptors, file watches, terminal sizes.
#ifndef STORMY_CLINUX_H
#define STORMY_CLINUX_H

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/timerfd.h>
#include <sys/types.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

// glibc 2.36 declares these in <sys/pidfd.h>; the system calls are older than the header.
static inline int clinux_pidfd_open(pid_t pid) {
    return (int)syscall(SYS_pidfd_open, pid, 0);
}
static inline int clinux_pidfd_send_signal(int pidfd, int signal) {
    return (int)syscall(SYS_pidfd_send_signal, pidfd, signal, (void *)0, 0);
}
// A copy-on-write copy of a whole file, where the file system can (btrfs, xfs): -1 and errno otherwise.
static inline int clinux_clone_file(int destination, int source) {
    return ioctl(destination, FICLONE, source);
}
// Where data and holes begin from an offset on, in a file of `end` bytes: all is data if the file system knows no holes. glibc declares the
// numbers for _GNU_SOURCE alone.
static inline off_t clinux_next_data(int descriptor, off_t offset, off_t end) {
    off_t data = lseek(descriptor, offset, 3 /* SEEK_DATA */);
    if (data < 0) return errno == ENXIO ? end : offset;
    return data < end ? data : end;
}
static inline off_t clinux_next_hole(int descriptor, off_t offset, off_t end) {
    off_t hole = lseek(descriptor, offset, 4 /* SEEK_HOLE */);
    return hole > offset && hole < end ? hole : end;
}
// A file in a folder that has no name: it is gone with its last descriptor, however the process ends.
static inline int clinux_open_unnamed(const char *_Nonnull folder, mode_t mode) {
    return (int)syscall(SYS_openat, AT_FDCWD, folder, 020000000 /* __O_TMPFILE */ | O_DIRECTORY | O_RDWR | O_CLOEXEC, mode);
}
// Gives it a name.
static inline int clinux_name_file(int descriptor, const char *_Nonnull path) {
    char place[32];
    snprintf(place, sizeof place, "/proc/self/fd/%d", descriptor);
    return linkat(AT_FDCWD, place, AT_FDCWD, path, AT_SYMLINK_FOLLOW);
}
// The status of an open file as this machine knows it: a file server is not asked, and bytes that wait to be written are not sent to it.
// glibc declares statx() for _GNU_SOURCE alone; the layout is the kernel's. Only the members that are set here have a meaning.
struct clinux_statx_time {
    int64_t seconds;
    uint32_t nanoseconds;
    int32_t reserved;
};
struct clinux_statx {
    uint32_t mask, block_size;
    uint64_t attributes;
    uint32_t links, user, group;
    uint16_t mode, spare;
    uint64_t inode, size, blocks, attributes_mask;
    struct clinux_statx_time accessed, born, changed, modified;
    uint32_t special_major, special_minor, device_major, device_minor;
    uint64_t mount;
    uint64_t spares[13];
};
static inline int clinux_cached_status(int descriptor, struct stat *_Nonnull found) {
    struct clinux_statx status;
    long result = syscall(SYS_statx, descriptor, "", 0x5000 /* AT_EMPTY_PATH | AT_STATX_DONT_SYNC */, 0x7ff /* STATX_BASIC_STATS */, &status);
    // A sandbox may not know the call.
    if (result != 0) return fstat(descriptor, found);
    found->st_dev = makedev(status.device_major, status.device_minor);
    found->st_ino = status.inode;
    found->st_mode = status.mode;
    found->st_size = (off_t)status.size;
    found->st_mtim.tv_sec = status.modified.seconds;
    found->st_mtim.tv_nsec = status.modified.nanoseconds;
    found->st_ctim.tv_sec = status.changed.seconds;
    found->st_ctim.tv_nsec = status.changed.nanoseconds;
    return 0;
}
// When a file was made, in nanoseconds since 1970; 0 if the file system does not record it.
static inline int64_t clinux_birth_time(const char *_Nonnull path) {
    struct clinux_statx status;
    long result = syscall(SYS_statx, AT_FDCWD, path, 0, 0x800 /* STATX_BTIME */, &status);
    if (result != 0 || (status.mask & 0x800) == 0) return 0;
    return status.born.seconds * 1000000000 + status.born.nanoseconds;
}
// The mount that a path leads to; the file system's device before Linux 5.8. 0 if nothing is there.
static inline uint64_t clinux_mount(const char *_Nonnull path) {
    struct clinux_statx status;
    long result = syscall(SYS_statx, AT_FDCWD, path, 0, 0x1000 /* STATX_MNT_ID */, &status);
    if (result == 0 && (status.mask & 0x1000) != 0) return status.mount;
    struct stat found;
    return stat(path, &found) == 0 ? (uint64_t)found.st_dev : 0;
}
// A new name, or EEXIST: never in place of what is there.
static inline int clinux_rename_new(const char *_Nonnull from, const char *_Nonnull to) {
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 1 /* RENAME_NOREPLACE */);
}

// Both ends are closed in programs that are started.
static inline int clinux_pipe(int *_Nonnull ends) {
    return (int)syscall(SYS_pipe2, ends, O_CLOEXEC);
}

// stdout and stderr are variables, which Swift 6 does not read. Standard input is left alone: a thread may wait in it.
static inline void clinux_flush_output(void) {
    fflush(stdout);
    fflush(stderr);
}

static inline int clinux_open(const char *_Nonnull path, int flags, mode_t mode) {
    return open(path, flags, mode);
}

// How SQLite opens files. SQLite reads a file that it cannot open for writing, and keeps that file read-only. That is right for a file that may
// not be written, but not for a file that cannot be opened for now: here the second call then fails like the first.
int clinux_open_for_sqlite(const char *_Nonnull path, int flags, int mode);
// Why the last call of this thread failed: an errno value. 0 if the call succeeded.
int clinux_sqlite_open_fault(void);

// How SQLite reads files. SQLite reports an input error of a disk as a damaged database.
ssize_t clinux_pread_for_sqlite(int descriptor, void *_Nonnull bytes, size_t count, off_t offset);
// Why a read of this thread failed since the last call of this function: an errno value. 0 if none failed.
int clinux_sqlite_take_read_fault(void);

// Open-file-description locks: inherited by children, and unlike flock() they can be asked about without being taken.
#ifndef F_OFD_GETLK
#define F_OFD_GETLK 36
#define F_OFD_SETLK 37
#define F_OFD_SETLKW 38
#endif
static inline int clinux_lock_file(int descriptor) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 0, .l_pid = 0};
    return fcntl(descriptor, F_OFD_SETLK, &lock);
}
// From here on this thread, and those that it makes, reach no network, start no program and see no files but those of one folder, and what
// lies below /usr. Where the kernel has no Landlock files are reached as before. Returns 0, or -1 with errno.
int clinux_confine(const char *_Nonnull folder);

static inline int clinux_wait_for_lock(int descriptor) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 0, .l_pid = 0};
    return fcntl(descriptor, F_OFD_SETLKW, &lock);
}
static inline int clinux_wait_for_shared_lock(int descriptor) {
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 0, .l_pid = 0};
    return fcntl(descriptor, F_OFD_SETLKW, &lock);
}
// Of a part of a file or folder; length 0: all that follows. A shared lock needs no more than a descriptor to read from.
static inline int clinux_share_bytes(int descriptor, int64_t start, int64_t length) {
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = start, .l_len = length, .l_pid = 0};
    return fcntl(descriptor, F_OFD_SETLK, &lock);
}
// Returns when no other open file has a lock on the byte.
static inline int clinux_wait_for_byte(int descriptor, int64_t start) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = start, .l_len = 1, .l_pid = 0};
    return fcntl(descriptor, F_OFD_SETLKW, &lock);
}
static inline int clinux_unlock_bytes(int descriptor, int64_t start, int64_t length) {
    struct flock lock = {.l_type = F_UNLCK, .l_whence = SEEK_SET, .l_start = start, .l_len = length, .l_pid = 0};
    return fcntl(descriptor, F_OFD_SETLK, &lock);
}
// 1 or 0; -1 and errno if that is unknown.
static inline int clinux_bytes_are_locked(int descriptor, int64_t start, int64_t length) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = start, .l_len = length, .l_pid = 0};
    return fcntl(descriptor, F_OFD_GETLK, &lock) == 0 ? lock.l_type != F_UNLCK : -1;
}
static inline int clinux_file_is_locked(int descriptor) { return clinux_bytes_are_locked(descriptor, 0, 0); }

// How a detached child is started. Everything but the three standard descriptors and `inherited` is closed in it,
// its folder is "/", and its signal mask is empty, or has SIGTERM blocked until it is ready to hear it.
typedef struct {
    const char *_Nonnull path;
    char *_Nullable const *_Nonnull arguments;
    char *_Nullable const *_Nonnull environment;
    int standard_input;   // -1: /dev/null
    int standard_output;  // -1: /dev/null
    int standard_error;   // -1: as the output
    int inherited;        // becomes descriptor 3; -1: none
    int starts_session;
    int blocks_sigterm;
} clinux_spawn_request;

// The arguments of this process, ended by NULL. Swift's own list needs /proc/self/maps, and is empty if that file cannot be opened or read.
char *_Nullable const *_Nonnull clinux_arguments(void);

// 0, or an errno value.
int clinux_spawn(const clinux_spawn_request *_Nonnull request, pid_t *_Nonnull pid);

// The version in `Package.swift`, with the commits after it if `make release` built the program.
const char *_Nonnull clinux_stormy_version(void);

#endif
