#define _GNU_SOURCE
#include "CLinux.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

// The path and the error of the last failed call. If SQLite cannot open a file for writing, it calls the function again directly,
// with the same string and for reading.
static _Thread_local struct {
    const char *path;
    int fault;
} last_open;

int clinux_open_for_sqlite(const char *path, int flags, int mode) {
    int first = last_open.path == path && (flags & O_ACCMODE) == O_RDONLY ? last_open.fault : 0;
    last_open.path = NULL;
    int may_read = first == EACCES || first == EPERM || first == EROFS;
    if (first != 0 && !may_read) {
        errno = first;
        return -1;
    }
    int descriptor = open(path, flags, mode);
    if (descriptor >= 0) {
        last_open.fault = 0;
        return descriptor;
    }
    last_open.fault = first != 0 ? first : errno;
    // SQLite does not try to open a folder a second time.
    if ((flags & O_ACCMODE) == O_RDWR && errno != EISDIR) last_open.path = path;
    return -1;
}

int clinux_sqlite_open_fault(void) { return last_open.fault; }

static _Thread_local int last_read_fault;

ssize_t clinux_pread_for_sqlite(int descriptor, void *bytes, size_t count, off_t offset) {
    ssize_t done = pread(descriptor, bytes, count, offset);
    if (done < 0 && errno != EINTR) last_read_fault = errno;
    return done;
}

int clinux_sqlite_take_read_fault(void) {
    int fault = last_read_fault;
    last_read_fault = 0;
    return fault;
}

// Keeps ended children until this process waits for them. If this process inherits an ignored SIGCHLD, the kernel removes an ended
// child at once. Its exit code is then lost, and another process can get its number.
static void keep_ended_children(void) {
    struct sigaction action;
    if (sigaction(SIGCHLD, NULL, &action) != 0) return;
    if (action.sa_handler != SIG_IGN && !(action.sa_flags & SA_NOCLDWAIT)) return;
    if (action.sa_handler == SIG_IGN) action.sa_handler = SIG_DFL;
    action.sa_flags &= ~SA_NOCLDWAIT;
    sigaction(SIGCHLD, &action, NULL);
}

int clinux_spawn(const clinux_spawn_request *request, pid_t *pid) {
    keep_ended_children();
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int code = posix_spawn_file_actions_init(&actions);
    if (code != 0) return code;
    code = posix_spawnattr_init(&attributes);
    if (code != 0) {
        posix_spawn_file_actions_destroy(&actions);
        return code;
    }
    // If one of the given descriptors were 0, 1 or 2, the order of these calls would matter. Descriptors that this project
    // creates are higher.
    if (request->standard_input >= 0) {
        posix_spawn_file_actions_adddup2(&actions, request->standard_input, 0);
    } else {
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    }
    int error = request->standard_error >= 0 ? request->standard_error : request->standard_output;
    if (request->standard_output >= 0) {
        posix_spawn_file_actions_adddup2(&actions, request->standard_output, 1);
    } else {
        posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    }
    if (error >= 0) {
        posix_spawn_file_actions_adddup2(&actions, error, 2);
    } else {
        posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    }
    if (request->inherited >= 0) posix_spawn_file_actions_adddup2(&actions, request->inherited, 3);
    posix_spawn_file_actions_addclosefrom_np(&actions, request->inherited >= 0 ? 4 : 3);
    posix_spawn_file_actions_addchdir_np(&actions, "/");

    sigset_t mask;
    sigset_t defaults;
    sigemptyset(&mask);
    if (request->blocks_sigterm) sigaddset(&mask, SIGTERM);
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGTERM);
    sigaddset(&defaults, SIGINT);
    sigaddset(&defaults, SIGHUP);
    sigaddset(&defaults, SIGPIPE);
    sigaddset(&defaults, SIGXFSZ);
    // A program that inherits an ignored SIGCHLD does not get the exit codes of its children.
    sigaddset(&defaults, SIGCHLD);
    posix_spawnattr_setsigmask(&attributes, &mask);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    if (request->starts_session) flags |= POSIX_SPAWN_SETSID;
    posix_spawnattr_setflags(&attributes, flags);

    code = posix_spawn(pid, request->path, &actions, &attributes, request->arguments, request->environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return code;
}

// Landlock's rights of version 1, and later rights. Older headers do not declare the later rights.
enum {
    may_look = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR,
    may_change = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG,
    all_of_version_1 = (1 << 13) - 1,
    may_move_elsewhere = 1 << 13,
    may_truncate = 1 << 14,
};

static int allow(int ruleset, const char *path, unsigned long long rights) {
    struct landlock_path_beneath_attr beneath = {.allowed_access = rights};
    beneath.parent_fd = open(path, O_PATH | O_CLOEXEC);
    if (beneath.parent_fd < 0) return -1;
    int code = (int)syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &beneath, 0);
    close(beneath.parent_fd);
    return code;
}

static int confine_files(const char *folder) {
    long version = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    // The kernel has no Landlock, or Landlock is switched off.
    if (version < 1) return 0;
    struct landlock_ruleset_attr handled = {.handled_access_fs = all_of_version_1};
    unsigned long long change = may_change;
    if (version >= 2) handled.handled_access_fs |= may_move_elsewhere;
    if (version >= 3) {
        handled.handled_access_fs |= may_truncate;
        change |= may_truncate;
    }
    int ruleset = (int)syscall(SYS_landlock_create_ruleset, &handled, sizeof handled, 0);
    if (ruleset < 0) return -1;
    // Libraries read their character tables below /usr.
    int code = allow(ruleset, folder, may_look | change);
    if (code == 0) allow(ruleset, "/usr", may_look);
    if (code == 0) code = (int)syscall(SYS_landlock_restrict_self, ruleset, 0);
    close(ruleset);
    return code;
}

static int confine_calls(void) {
#if defined(__x86_64__)
    const unsigned architecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
    const unsigned architecture = AUDIT_ARCH_AARCH64;
#else
    return 0;
#endif
#if defined(__x86_64__) || defined(__aarch64__)
    // These calls would use a network or a local socket, start a program, inspect or end another process, or share memory. Other
    // calls in the list change the permissions, the owner or the times of a file. Landlock does not restrict these calls.
    static const unsigned refused[] = {
        SYS_socket, SYS_socketpair, SYS_connect, SYS_bind, SYS_listen, SYS_accept, SYS_accept4, SYS_execve, SYS_execveat, SYS_ptrace,
        SYS_process_vm_readv, SYS_process_vm_writev, SYS_kill, SYS_tkill, SYS_tgkill, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo,
        SYS_pidfd_open, SYS_pidfd_getfd, SYS_pidfd_send_signal, SYS_io_uring_setup, SYS_bpf, SYS_mount, SYS_unshare, SYS_setns,
        SYS_keyctl, SYS_add_key, SYS_request_key, SYS_userfaultfd, SYS_perf_event_open, SYS_open_by_handle_at, SYS_chroot,
        SYS_shmget, SYS_shmat, SYS_shmctl, SYS_msgget, SYS_semget, SYS_mq_open, SYS_sched_setaffinity, SYS_setpriority,
        SYS_fchmod, SYS_fchmodat, SYS_fchown, SYS_fchownat, SYS_utimensat, SYS_setxattr, SYS_lsetxattr, SYS_fsetxattr,
        SYS_removexattr, SYS_lremovexattr, SYS_fremovexattr, 452 /* fchmodat2 */,
#if defined(__x86_64__)
        SYS_fork, SYS_vfork, SYS_chmod, SYS_chown, SYS_lchown, SYS_utime, SYS_utimes, SYS_futimesat,
#endif
    };
    enum { count = sizeof refused / sizeof refused[0], thread = 0x00010000 };
    struct sock_filter program[2 * count + 20];
    int length = 0;
#define STEP(...) program[length++] = (struct sock_filter)__VA_ARGS__
#define LOAD(field) STEP(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field)))
#define ANSWER(what) STEP(BPF_STMT(BPF_RET | BPF_K, what))
    LOAD(arch);
    // On another architecture, system calls have different numbers.
    STEP(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, architecture, 1, 0));
    ANSWER(SECCOMP_RET_KILL_PROCESS);
    LOAD(nr);
    // Calls of the x32 ABI have this bit in their numbers. Without this check, they would bypass the list.
    STEP(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x40000000, 0, 1));
    ANSWER(SECCOMP_RET_ERRNO | EPERM);
    for (int index = 0; index < count; index++) {
        STEP(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, refused[index], 0, 1));
        ANSWER(SECCOMP_RET_ERRNO | EPERM);
    }
    // Threads are allowed, and new processes are refused. The filter cannot read the arguments of clone3, so clone3 fails with
    // ENOSYS. glibc then uses clone, whose arguments the filter can read.
    STEP(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1));
    ANSWER(SECCOMP_RET_ERRNO | ENOSYS);
    STEP(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4));
    LOAD(args[0]);
    STEP(BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, thread, 0, 1));
    ANSWER(SECCOMP_RET_ALLOW);
    ANSWER(SECCOMP_RET_ERRNO | EPERM);
    // A process may change only its own limits.
    STEP(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prlimit64, 0, 4));
    LOAD(args[0]);
    STEP(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1));
    ANSWER(SECCOMP_RET_ALLOW);
    ANSWER(SECCOMP_RET_ERRNO | EPERM);
    ANSWER(SECCOMP_RET_ALLOW);
    struct sock_fprog filter = {.len = (unsigned short)length, .filter = program};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0);
#endif
}

int clinux_confine(const char *folder) {
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
    return confine_files(folder) == 0 && confine_calls() == 0 ? 0 : -1;
}

static char *no_arguments[] = {NULL};
static char *const *arguments = no_arguments;

// glibc calls constructors with the arguments of main.
__attribute__((constructor)) static void keep_arguments(int count, char **values) {
    (void)count;
    if (values != NULL) arguments = values;
}

char *_Nullable const *_Nonnull clinux_arguments(void) { return arguments; }

const char *clinux_program_path(void) { return (const char *)getauxval(AT_EXECFN); }

const char *clinux_stormy_version(void) { return STORMY_VERSION; }
