// Attempts by single system calls: attempts NAME [ARGUMENTS]. Says PWNED and
// exits with 0 when the attempt worked, and else "refused" and exits with 1.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/ipc.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static const char *name;

static int told(long result) {
    if (result >= 0) {
        printf("PWNED %s\n", name);
        return 0;
    }
    printf("refused %s: %s\n", name, strerror(errno));
    return 1;
}

static int is(const char *other) { return !strcmp(name, other); }

static int internet(char **v, struct sockaddr_in *to) {
    to->sin_family = AF_INET;
    to->sin_port = htons(atoi(v[3]));
    return inet_pton(AF_INET, v[2], &to->sin_addr);
}

static int unix_socket(const char *path, int hidden) {
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    int s = socket(AF_UNIX, SOCK_STREAM, 0);
    strncpy(to.sun_path + hidden, path, sizeof to.sun_path - 1 - hidden);
    socklen_t size = hidden ? sizeof(sa_family_t) + 1 + strlen(path) : sizeof to;
    return s < 0 ? -1 : connect(s, (void *)&to, size);
}

static char *taken(size_t mib) {
    char *p = mmap(0, mib << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return 0;
    memset(p, 1, mib << 20);
    return p;
}

int main(int c, char **v) {
    setvbuf(stdout, 0, _IONBF, 0);
    name = v[1];
    char room[512] = {0};
    // Namespaces and mounts
    if (is("unshare_user")) return told(unshare(CLONE_NEWUSER));
    if (is("unshare_net")) return told(unshare(CLONE_NEWNET));
    if (is("clone_user")) {
        long r = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
        if (r == 0) _exit(0);
        return told(r);
    }
    if (is("clone3_user")) {
        struct clone_args a = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
        long r = syscall(SYS_clone3, &a, sizeof a);
        if (r == 0) _exit(0);
        return told(r);
    }
    if (is("setns")) {
        int fd = open("/proc/1/ns/net", O_RDONLY);
        return told(fd < 0 ? -1 : setns(fd, 0));
    }
    if (is("mount_tmpfs")) return told(mount("t", "/tmp", "tmpfs", 0, ""));
    if (is("bind_rw")) return told(mount(v[2], v[2], NULL, MS_BIND | MS_REMOUNT, NULL));
    if (is("umount")) return told(umount2(v[2], MNT_DETACH));
    if (is("chroot")) return told(chroot("/tmp"));
    // Other processes
    if (is("ptrace_parent")) return told(ptrace(PTRACE_SEIZE, getppid(), 0, 0));
    if (is("vm_readv")) {
        struct iovec here = {room, 8}, there = {room, 8};
        return told(process_vm_readv(getppid(), &here, 1, &there, 1, 0));
    }
    if (is("mem_init")) return told(open("/proc/1/mem", O_RDWR));
    if (is("environ_init")) {
        int fd = open("/proc/1/environ", O_RDONLY);
        return told(fd < 0 ? -1 : read(fd, room, 4) > 0 ? 0 : -1);
    }
    if (is("root_init")) return told(open("/proc/1/root/etc", O_RDONLY));
    if (is("signal")) return told(kill(atoi(v[2]), 0));
    // What others of the same user get of the machine, and share with it. They are
    // left as they are.
    if (is("limit_of")) {
        struct rlimit now;
        if (prlimit(atoi(v[2]), RLIMIT_CORE, 0, &now)) return told(-1);
        return told(prlimit(atoi(v[2]), RLIMIT_CORE, &now, 0));
    }
    if (is("nice_of")) return told(setpriority(PRIO_PROCESS, atoi(v[2]), getpriority(PRIO_PROCESS, atoi(v[2]))));
    if (is("nice_of_all")) return told(setpriority(PRIO_USER, 0, 19));
    if (is("cores_of")) {
        cpu_set_t set;
        if (sched_getaffinity(atoi(v[2]), sizeof set, &set)) return told(-1);
        return told(sched_setaffinity(atoi(v[2]), sizeof set, &set));
    }
    if (is("disk_of")) return told(syscall(SYS_ioprio_set, 1, atoi(v[2]), (2 << 13) | 4));
    if (is("shared")) {
        int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600);
        if (id >= 0) shmctl(id, IPC_RMID, 0);
        return told(id);
    }
    if (is("queue")) {
        long id = syscall(SYS_mq_open, "attempts", O_CREAT | O_RDWR, 0600, 0);
        if (id >= 0) syscall(SYS_mq_unlink, "attempts");
        return told(id);
    }
    if (is("lease")) {
        int fd = open(v[2], O_RDONLY);
        return told(fd < 0 ? -1 : fcntl(fd, F_SETLEASE, F_WRLCK));
    }
    if (is("subvolume")) {
        // Whatever file system it is: one that has none was asked, too.
        unsigned long long read_only = 2;
        int fd = open(v[2], O_RDONLY | O_DIRECTORY);
        long result = ioctl(fd, 0x4008941a, &read_only);
        return told(result < 0 && errno == ENOTTY ? 0 : result);
    }
    if (is("datagram")) {
        struct sockaddr_un to = {.sun_family = AF_UNIX};
        strncpy(to.sun_path, v[2], sizeof to.sun_path - 1);
        int s = socket(AF_UNIX, SOCK_DGRAM, 0);
        return told(s < 0 ? -1 : sendto(s, "x", 1, 0, (void *)&to, sizeof to));
    }
    // Terminals, keys, kernel interfaces
    if (is("tiocsti")) {
        int fd = open("/dev/tty", O_RDWR);
        return told(ioctl(fd < 0 ? 0 : fd, TIOCSTI, "x"));
    }
    if (is("pts_tiocsti")) {
        int m = posix_openpt(O_RDWR | O_NOCTTY);
        if (m < 0) return told(-1);
        grantpt(m);
        unlockpt(m);
        int s = open(ptsname(m), O_RDWR);
        return told(s < 0 ? -1 : ioctl(s, TIOCSTI, "x"));
    }
    if (is("keyctl")) return told(syscall(SYS_keyctl, 0, -3, 1));
    if (is("add_key")) return told(syscall(SYS_add_key, "user", "k", "x", 1, -3));
    if (is("io_uring")) return told(syscall(SYS_io_uring_setup, 8, room));
    if (is("uffd")) return told(syscall(SYS_userfaultfd, 1));
    if (is("fh")) {
        struct file_handle *h = (void *)room;
        int m;
        h->handle_bytes = 128;
        return told(name_to_handle_at(AT_FDCWD, "/etc", h, &m, 0));
    }
    if (is("open_by_handle")) {
        struct file_handle *h = (void *)room;
        h->handle_bytes = 8;
        h->handle_type = 1;
        *(int *)h->f_handle = 2;
        return told(open_by_handle_at(open("/etc", O_RDONLY), h, O_RDONLY));
    }
    if (is("mknod_blk")) return told(mknod("blk", S_IFBLK | 0600, makedev(254, 0)));
    if (is("x32")) return told(syscall(0x40000000 | 101, 16, getppid(), 0, 0));
    if (is("persona")) return told(personality(ADDR_NO_RANDOMIZE) == -1 ? -1 : 0);
    if (is("sethostname")) return told(sethostname("x", 1));
    if (is("setuid0")) return told(setuid(0));
    // Network
    if (is("sock")) return told(socket(atoi(v[2]), atoi(v[3]), atoi(v[4])));
    if (is("abstract")) return told(unix_socket(v[2], 1));
    if (is("unixpath")) return told(unix_socket(v[2], 0));
    if (is("tcp") || is("udp") || is("fastopen")) {
        struct sockaddr_in to = {0};
        struct timeval patience = {2, 0};
        internet(v, &to);
        int s = socket(AF_INET, is("udp") ? SOCK_DGRAM : SOCK_STREAM, 0);
        setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
        if (is("tcp")) return told(connect(s, (void *)&to, sizeof to));
        return told(sendto(s, "x", 1, is("udp") ? 0 : MSG_FASTOPEN, (void *)&to, sizeof to));
    }
    // Files
    if (is("fdleak")) {
        for (int fd = 3; fd < 4096; fd++)
            if (fcntl(fd, F_GETFD) != -1) return told(0);
        errno = EBADF;
        return told(-1);
    }
    if (is("chmod")) return told(chmod(v[2], 0777));
    if (is("utime")) return told(utimensat(AT_FDCWD, v[2], NULL, 0));
    if (is("link")) return told(link(v[2], v[3]));
    if (is("rename")) return told(rename(v[2], v[3]));
    if (is("xchg")) return told(syscall(SYS_renameat2, AT_FDCWD, v[2], AT_FDCWD, v[3], 2));
    if (is("tmpfile_link")) {
        int fd = open(".", O_TMPFILE | O_RDWR, 0600);
        if (fd < 0) return told(-1);
        sprintf(room, "/proc/self/fd/%d", fd);
        return told(linkat(AT_FDCWD, room, AT_FDCWD, v[2], AT_SYMLINK_FOLLOW));
    }
    // Too much of everything
    if (is("membomb")) {
        for (int i = 0; i < atoi(v[2]); i += 16)
            if (!taken(16)) return told(-1);
        return told(0);
    }
    if (is("memfork")) {
        for (int j = 0; j < atoi(v[3]); j++)
            if (fork() == 0) {
                for (int i = 0; i < atoi(v[2]) && taken(16); i += 16) {}
                sleep(5);
                _exit(0);
            }
        while (wait(0) > 0) {}
        return told(0);
    }
    if (is("memfd")) {
        int fd = memfd_create("b", 0);
        char *block = taken(16);
        for (int i = 0; block && i < atoi(v[2]); i += 16)
            if (write(fd, block, 16 << 20) != 16 << 20) return told(-1);
        return told(0);
    }
    // Slowly enough to be looked at.
    if (is("memfds") || is("segments")) {
        char *block = taken(16);
        for (int i = 0; block && i < atoi(v[2]); i += 16) {
            if (is("memfds")) {
                if (write(memfd_create("b", 0), block, 16 << 20) != 16 << 20) return told(-1);
            } else {
                int id = shmget(IPC_PRIVATE, 16 << 20, IPC_CREAT | 0600);
                char *at = id < 0 ? (void *)-1 : shmat(id, 0, 0);
                if (at == (void *)-1) return told(-1);
                shmctl(id, v[3] ? IPC_RMID : IPC_STAT, &(struct shmid_ds){0});
                memcpy(at, block, 16 << 20);
                shmdt(at);
            }
            usleep(50000);
        }
        return told(0);
    }
    if (is("forkbomb")) {
        int count = 0, most = atoi(v[2]);
        for (; count < most; count++) {
            pid_t child = fork();
            if (child < 0) return told(-1);
            if (child == 0) {
                pause();
                _exit(0);
            }
        }
        sleep(2);
        return told(0);
    }
    if (is("nameless")) {
        int fd = open("nameless", O_CREAT | O_RDWR, 0600);
        unlink("nameless");
        static char block[4 << 20];
        memset(block, 1, sizeof block);
        for (int i = 0; i < atoi(v[2]); i += 4) {
            if (write(fd, block, sizeof block) != sizeof block) return told(-1);
            usleep(50000);
        }
        return told(0);
    }
    if (is("fds")) {
        for (int i = 0; i < atoi(v[2]); i++)
            if (open("/dev/null", O_RDONLY) < 0) return told(-1);
        return told(0);
    }
    if (is("lend")) {
        const char *how = v[2], *file = v[3];
        int bits = atoi(v[4]) == 2 ? S_ISGID : S_ISUID, mode = bits | 0755;
        struct { unsigned long long flags, mode, resolve; } large = {O_CREAT | O_WRONLY, mode, 0};
        struct stat found;
        unlink(file);
        umask(0);
        int plain = strstr("chmod fchmod fchmodat fchmodat2", how) != 0;
        int fd = plain ? open(file, O_CREAT | O_WRONLY, 0755) : -1;
        if (!strcmp(how, "chmod")) syscall(SYS_chmod, file, mode);
        if (!strcmp(how, "fchmod")) fchmod(fd, mode);
        if (!strcmp(how, "fchmodat")) syscall(SYS_fchmodat, AT_FDCWD, file, mode);
        if (!strcmp(how, "fchmodat2")) syscall(452, AT_FDCWD, file, mode, 0);
        if (!strcmp(how, "open")) syscall(SYS_open, file, O_CREAT | O_WRONLY, mode);
        if (!strcmp(how, "openat")) syscall(SYS_openat, AT_FDCWD, file, O_CREAT | O_WRONLY, mode);
        if (!strcmp(how, "openat2")) syscall(437, AT_FDCWD, file, &large, sizeof large);
        if (!strcmp(how, "creat")) syscall(SYS_creat, file, mode);
        if (!strcmp(how, "mknod")) syscall(SYS_mknod, file, S_IFREG | mode, 0);
        if (!strcmp(how, "mknodat")) syscall(SYS_mknodat, AT_FDCWD, file, S_IFREG | mode, 0);
        if (!strcmp(how, "tmpfile")) {
            char at[64];
            fd = syscall(SYS_openat, AT_FDCWD, ".", O_TMPFILE | O_WRONLY, mode);
            snprintf(at, sizeof at, "/proc/self/fd/%d", fd);
            linkat(AT_FDCWD, at, AT_FDCWD, file, AT_SYMLINK_FOLLOW);
        }
        if (!strcmp(how, "capability")) {
            // CAP_SETUID, permitted and effective.
            unsigned int data[5] = {0x02000001, 1 << 7, 0, 0, 0};
            fd = open(file, O_CREAT | O_WRONLY, 0755);
            return told(setxattr(file, "security.capability", data, sizeof data, 0));
        }
        return told(!stat(file, &found) && (found.st_mode & bits) ? 0 : -1);
    }
    if (is("unlimited")) {
        struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
        return told(setrlimit(RLIMIT_FSIZE, &all));
    }
    printf("unknown %s\n", name);
    return 2;
}
