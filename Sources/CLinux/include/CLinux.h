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
static inline int clinux_open(const char *path, int flags, mode_t mode) {
    return open(path, flags, mode);
}

#endif
