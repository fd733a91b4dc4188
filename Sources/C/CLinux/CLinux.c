#define _GNU_SOURCE
#include "CLinux.h"

int clinux_spawn(const clinux_spawn_request *request, pid_t *pid) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int code = posix_spawn_file_actions_init(&actions);
    if (code != 0) return code;
    code = posix_spawnattr_init(&attributes);
    if (code != 0) {
        posix_spawn_file_actions_destroy(&actions);
        return code;
    }
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    if (request->standard_output >= 0) {
        posix_spawn_file_actions_adddup2(&actions, request->standard_output, 1);
        posix_spawn_file_actions_adddup2(&actions, request->standard_output, 2);
    } else {
        posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
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
