// Functions of Linux that Swift's Glibc module does not contain: timers, process descriptors, file watches, terminal sizes.
#ifndef STORMY_CLINUX_H
#define STORMY_CLINUX_H

#include <sys/vfs.h>
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

// glibc declares these functions since version 2.36, in <sys/pidfd.h>. The system calls are older than the header.
static inline int clinux_pidfd_open(pid_t pid) {
    return (int)syscall(SYS_pidfd_open, pid, 0);
}
static inline int clinux_pidfd_send_signal(int pidfd, int signal) {
    return (int)syscall(SYS_pidfd_send_signal, pidfd, signal, (void *)0, 0);
}
// Clones a file copy-on-write, if the file system supports this (btrfs, xfs). If the file system cannot clone, returns -1 and
// sets errno.
static inline int clinux_clone_file(int destination, int source) {
    return ioctl(destination, FICLONE, source);
}
// Returns where the next data or the next hole begins at or after an offset, in a file of `end` bytes. If the file system does
// not report holes, the complete file is treated as data. glibc declares SEEK_DATA and SEEK_HOLE only for _GNU_SOURCE.
static inline off_t clinux_next_data(int descriptor, off_t offset, off_t end) {
    off_t data = lseek(descriptor, offset, 3 /* SEEK_DATA */);
    if (data < 0) return errno == ENXIO ? end : offset;
    return data < end ? data : end;
}
static inline off_t clinux_next_hole(int descriptor, off_t offset, off_t end) {
    off_t hole = lseek(descriptor, offset, 4 /* SEEK_HOLE */);
    return hole > offset && hole < end ? hole : end;
}
// Creates a file without a name in a folder. The kernel removes the file when its last descriptor is closed, even if the process
// crashes.
static inline int clinux_open_unnamed(const char *_Nonnull folder, mode_t mode) {
    return (int)syscall(SYS_openat, AT_FDCWD, folder, 020000000 /* __O_TMPFILE */ | O_DIRECTORY | O_RDWR | O_CLOEXEC, mode);
}
// Gives an unnamed file a name.
static inline int clinux_name_file(int descriptor, const char *_Nonnull path) {
    char place[32];
    snprintf(place, sizeof place, "/proc/self/fd/%d", descriptor);
    return linkat(AT_FDCWD, place, AT_FDCWD, path, AT_SYMLINK_FOLLOW);
}
// Reads the status of an open file from the cache of this machine. The call sends no request to a file server, and does not flush
// written bytes to the server. The structs below repeat the kernel's layout, because glibc declares statx() only for _GNU_SOURCE.
// Only the members that this function sets have a meaning.
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
    // A sandbox may refuse the statx call.
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
// Returns the time when a file was created, in nanoseconds since 1970, or 0 if the file system does not record this time.
static inline int64_t clinux_birth_time(const char *_Nonnull path) {
    struct clinux_statx status;
    long result = syscall(SYS_statx, AT_FDCWD, path, 0, 0x800 /* STATX_BTIME */, &status);
    if (result != 0 || (status.mask & 0x800) == 0) return 0;
    return status.born.seconds * 1000000000 + status.born.nanoseconds;
}
// Returns the id of the mount that contains the path. Before Linux 5.8, returns the device of the file system. Returns 0 if the
// path does not exist.
static inline uint64_t clinux_mount(const char *_Nonnull path) {
    struct clinux_statx status;
    long result = syscall(SYS_statx, AT_FDCWD, path, 0, 0x1000 /* STATX_MNT_ID */, &status);
    if (result == 0 && (status.mask & 0x1000) != 0) return status.mount;
    struct stat found;
    return stat(path, &found) == 0 ? (uint64_t)found.st_dev : 0;
}
// Returns the type of the file system that contains the path (statfs(2)). Returns 0 if the path does not exist.
static inline uint32_t clinux_filesystem_type(const char *_Nonnull path) {
    struct statfs status;
    return statfs(path, &status) == 0 ? (uint32_t)status.f_type : 0;
}
// Renames a file. Fails with EEXIST if the new name exists, so that no file is replaced.
static inline int clinux_rename_new(const char *_Nonnull from, const char *_Nonnull to) {
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 1 /* RENAME_NOREPLACE */);
}

// Creates a pipe. Programs that this process starts do not inherit the pipe.
static inline int clinux_pipe(int *_Nonnull ends) {
    return (int)syscall(SYS_pipe2, ends, O_CLOEXEC);
}

// Flushes stdout and stderr. Both are global variables, which Swift 6 cannot read safely. stdin is not flushed, because a thread
// may be waiting in it.
static inline void clinux_flush_output(void) {
    fflush(stdout);
    fflush(stderr);
}

static inline int clinux_open(const char *_Nonnull path, int flags, mode_t mode) {
    return open(path, flags, mode);
}

// Opens a file for SQLite. If SQLite cannot open a file for writing, SQLite opens the file for reading and keeps it read-only.
// Read-only use is correct if writing is not permitted. If the first call failed for a temporary reason, this function lets the
// second call fail with the same error.
int clinux_open_for_sqlite(const char *_Nonnull path, int flags, int mode);
// Returns the errno value of this thread's last call of clinux_open_for_sqlite, or 0 if the call succeeded.
int clinux_sqlite_open_fault(void);

// Reads a file for SQLite and records errors. SQLite itself reports an input error of a disk as a damaged database.
ssize_t clinux_pread_for_sqlite(int descriptor, void *_Nonnull bytes, size_t count, off_t offset);
// Returns the error of the last failed read of this thread as an errno value, and resets the error. Returns 0 if no read failed
// since the last call.
int clinux_sqlite_take_read_fault(void);

// Open-file-description locks. Child processes inherit these locks. In contrast to flock(), a process can test for a lock without
// taking the lock.
#ifndef F_OFD_GETLK
#define F_OFD_GETLK 36
#define F_OFD_SETLK 37
#define F_OFD_SETLKW 38
#endif
static inline int clinux_lock_file(int descriptor) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 0, .l_pid = 0};
    return fcntl(descriptor, F_OFD_SETLK, &lock);
}
// Confines this thread and its later threads. The threads cannot use a network, start a program, or see files outside one folder
// and /usr. If the kernel has no Landlock, access to files is not restricted. Returns 0, or -1 with errno.
int clinux_confine(const char *_Nonnull folder);

static inline int clinux_wait_for_lock(int descriptor) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 0, .l_pid = 0};
    return fcntl(descriptor, F_OFD_SETLKW, &lock);
}
static inline int clinux_wait_for_shared_lock(int descriptor) {
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 0, .l_pid = 0};
    return fcntl(descriptor, F_OFD_SETLKW, &lock);
}
// Takes a shared lock on a part of a file or folder. A length of 0 means all bytes from `start` to the end. A shared lock needs
// only a descriptor that is open for reading.
static inline int clinux_share_bytes(int descriptor, int64_t start, int64_t length) {
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = start, .l_len = length, .l_pid = 0};
    return fcntl(descriptor, F_OFD_SETLK, &lock);
}
// Waits until no other open file has a lock on the byte.
static inline int clinux_wait_for_byte(int descriptor, int64_t start) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = start, .l_len = 1, .l_pid = 0};
    return fcntl(descriptor, F_OFD_SETLKW, &lock);
}
static inline int clinux_unlock_bytes(int descriptor, int64_t start, int64_t length) {
    struct flock lock = {.l_type = F_UNLCK, .l_whence = SEEK_SET, .l_start = start, .l_len = length, .l_pid = 0};
    return fcntl(descriptor, F_OFD_SETLK, &lock);
}
// Returns 1 if the bytes are locked and 0 if not. Returns -1 and sets errno if this cannot be determined.
static inline int clinux_bytes_are_locked(int descriptor, int64_t start, int64_t length) {
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = start, .l_len = length, .l_pid = 0};
    return fcntl(descriptor, F_OFD_GETLK, &lock) == 0 ? lock.l_type != F_UNLCK : -1;
}
static inline int clinux_file_is_locked(int descriptor) { return clinux_bytes_are_locked(descriptor, 0, 0); }

// The settings of a detached child process. The child has only the three standard descriptors and `inherited`. The child's folder
// is "/". The child's signal mask is empty, or blocks SIGTERM until the child is ready for this signal.
typedef struct {
    const char *_Nonnull path;
    char *_Nullable const *_Nonnull arguments;
    char *_Nullable const *_Nonnull environment;
    int standard_input;   // -1 means /dev/null
    int standard_output;  // -1 means /dev/null
    int standard_error;   // -1 means the same descriptor as the output
    int inherited;        // becomes descriptor 3; -1 means none
    int starts_session;
    int blocks_sigterm;
} clinux_spawn_request;

// Returns the arguments of this process, followed by NULL. Swift's own list of arguments is read from /proc/self/maps, and is
// empty if that file cannot be opened or read.
char *_Nullable const *_Nonnull clinux_arguments(void);

// Returns the path with which the kernel started this program, or NULL. The path is relative if the caller used a relative path.
const char *_Nullable clinux_program_path(void);

// Starts a process. Returns 0, or an errno value.
int clinux_spawn(const clinux_spawn_request *_Nonnull request, pid_t *_Nonnull pid);

// Returns the version in `Package.swift`. If `make release` built the program, the number of later commits follows.
const char *_Nonnull clinux_stormy_version(void);

#endif
