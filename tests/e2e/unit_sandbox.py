"""A systemd unit without systemd: starts its program as the user, with the environment and within the limits that it
names. What cannot be imitated is listed below; a directive that nobody has thought of is an error.

Called in a mount namespace of its own, as root: unit_sandbox.py UNIT
"""

import ctypes
import os
import pwd
import re
import resource
import shlex
import struct
import subprocess
import sys
from pathlib import Path

# About starting and stopping, or narrower than what is imitated of others.
LEFT_OUT = {"Restart", "KillSignal", "TimeoutStopSec", "TasksMax", "ProtectKernelModules", "ProtectKernelLogs", "ProtectClock", "ProtectHostname",
            "RestrictRealtime", "RestrictSUIDSGID", "LockPersonality", "SystemCallArchitectures", "ProtectControlGroups"}
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP = 24, 38, 22
ALLOW, KILL = 0x7FFF0000, 0x80000000
EPERM, ENOSYS, EAFNOSUPPORT = 1, 38, 97
FAMILIES = {"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10, "AF_NETLINK": 16}


def directives(text):
    """Of the section [Service]; the last line of a name counts."""
    section = text.split("[Service]")[1].split("\n[")[0]
    return dict(line.split("=", 1) for line in section.splitlines() if "=" in line and not line.startswith("#"))


def call(*command):
    subprocess.run(command, check=True)


# ---- the file system ----

def hide(folder):
    if Path(folder).is_dir():
        call("mount", "-t", "tmpfs", "-o", "mode=000,ro", "none", folder)


def is_seen(place, mount):
    """Whether this mount is what one finds at its place: another one may lie over it, or over a folder above it."""
    try:
        found = os.open(place, os.O_PATH)
    except OSError:
        return False
    told = Path(f"/proc/self/fdinfo/{found}").read_text(encoding="ascii")
    os.close(found)
    return f"mnt_id:\t{mount}\n" in told


def make_read_only():
    for line in Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines():
        mount, place = line.split()[0], line.split()[4]
        if not re.match(r"/(dev|proc|sys)(/|$)", place) and is_seen(place, mount):
            call("mount", "-o", "remount,bind,ro", place)


def private_devices():
    call("mount", "-t", "tmpfs", "-o", "mode=755", "none", "/mnt")
    for name in ("null", "zero", "full", "random", "urandom", "tty"):
        (Path("/mnt") / name).touch()
        call("mount", "--bind", f"/dev/{name}", f"/mnt/{name}")
    for name in ("shm", "pts"):
        (Path("/mnt") / name).mkdir()
        call("mount", "--rbind", f"/dev/{name}", f"/mnt/{name}")
    for name, target in (("fd", "/proc/self/fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2"), ("ptmx", "pts/ptmx")):
        (Path("/mnt") / name).symlink_to(target)
    call("mount", "--move", "/mnt", "/dev")


def arrange_files(unit, user):
    state = Path("/var/lib") / unit.pop("StateDirectory")
    state.mkdir(exist_ok=True)
    os.chown(state, user.pw_uid, user.pw_gid)
    state.chmod(int(unit.pop("StateDirectoryMode"), 8))
    if unit.pop("PrivateDevices") == "yes":
        private_devices()
    if unit.pop("ProtectSystem") == "strict":
        make_read_only()
        call("mount", "--bind", state, state)
        call("mount", "-o", "remount,bind,rw", state)
    if unit.pop("ProtectHome") == "yes":
        for folder in ("/home", "/root", "/run/user"):
            hide(folder)
    if unit.pop("PrivateTmp") == "yes":
        for folder in ("/tmp", "/var/tmp"):
            call("mount", "-t", "tmpfs", "-o", "mode=1777", "none", folder)
    if unit.pop("ProtectKernelTunables") == "yes":
        call("mount", "--bind", "/proc/sys", "/proc/sys")
        call("mount", "-o", "remount,bind,ro", "/proc/sys")
    return state


# ---- system calls ----

def numbers():
    text = next(Path("/usr/include").glob("**/asm/unistd_64.h")).read_text(encoding="ascii")
    return {name: int(number) for name, number in re.findall(r"#define __NR_(\w+) (\d+)", text)}


def group(name):
    """The names of systemd's group of system calls."""
    said = subprocess.run(["systemd-analyze", "syscall-filter", name], capture_output=True, text=True, check=True).stdout
    names = set()
    for line in said.splitlines()[1:]:
        word = line.strip()
        if word and not word.startswith("#"):
            names |= group(word) if word.startswith("@") else {word}
    return names


class Filter:
    """Instructions of a classic BPF over struct seccomp_data."""

    def __init__(self):
        self.code = []

    def add(self, code, value, yes=0, no=0):
        self.code.append(struct.pack("=HBBI", code, yes, no, value))

    def load(self, offset):
        self.add(0x20, offset)

    def argument(self, index):
        self.load(16 + 8 * index)  # its lower half

    def answer(self, value):
        self.add(0x06, value)

    def refuse_if_any(self, number, index, bits, errno):
        """A call with one of these bits in an argument."""
        self.add(0x15, number, 0, 4)
        self.argument(index)
        self.add(0x45, bits, 0, 1)
        self.answer(0x00050000 | errno)
        self.load(0)

    def refuse_if_all(self, number, index, bits, errno):
        self.add(0x15, number, 0, 5)
        self.argument(index)
        self.add(0x54, bits)
        self.add(0x15, bits, 0, 1)
        self.answer(0x00050000 | errno)
        self.load(0)

    def refuse_other(self, number, index, values, errno):
        self.add(0x15, number, 0, len(values) + 3)
        self.argument(index)
        for i, value in enumerate(values):
            self.add(0x15, value, len(values) - i, 0)
        self.answer(0x00050000 | errno)
        self.load(0)

    def install(self):
        libc = ctypes.CDLL(None, use_errno=True)
        text = ctypes.create_string_buffer(b"".join(self.code))
        program = ctypes.create_string_buffer(struct.pack("=HxxxxxxQ", len(self.code), ctypes.addressof(text)))
        if libc.prctl(PR_SET_SECCOMP, 2, program, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "seccomp")


def filter_of(unit):
    number = numbers()
    made = Filter()
    made.load(0)
    if unit.pop("MemoryDenyWriteExecute") == "yes":
        made.refuse_if_all(number["mmap"], 2, 2 | 4, EPERM)
        made.refuse_if_any(number["mprotect"], 2, 4, EPERM)
        made.refuse_if_any(number["pkey_mprotect"], 2, 4, EPERM)
        made.refuse_if_any(number["shmat"], 2, 0o100000, EPERM)
    if unit.pop("RestrictNamespaces") == "yes":
        kinds = 0x7E020000 | 0x80
        made.refuse_if_any(number["clone"], 0, kinds, EPERM)
        made.refuse_if_any(number["unshare"], 0, kinds, EPERM)
        made.add(0x15, number["clone3"], 0, 1)
        made.answer(0x00050000 | ENOSYS)
    made.refuse_other(number["socket"], 0, [FAMILIES[name] for name in unit.pop("RestrictAddressFamilies").split()], EAFNOSUPPORT)
    allowed = group(unit.pop("SystemCallFilter"))
    for name in sorted(allowed & number.keys()):
        made.add(0x15, number[name], 0, 1)
        made.answer(ALLOW)
    made.answer(KILL)  # as systemd does: a program that needs another call shows it
    return made


# ---- the process ----

def environment_of(unit, user, state):
    made = {"PATH": PATH, "LANG": "C.UTF-8", "HOME": user.pw_dir, "USER": user.pw_name, "LOGNAME": user.pw_name, "SHELL": user.pw_shell,
            "STATE_DIRECTORY": str(state)}
    file = Path(unit.pop("EnvironmentFile").removeprefix("-"))
    if file.exists():
        for line in file.read_text(encoding="utf-8").splitlines():
            if "=" in line and not line.startswith("#"):
                name, value = line.split("=", 1)
                made[name] = value.strip("\"'")
    return made


def command_of(unit, environment):
    words = []
    for word in shlex.split(unit.pop("ExecStart")):
        words += environment.get(word[1:], "").split() if word.startswith("$") else [word]
    return words


def give_up_rights(unit, user):
    libc = ctypes.CDLL(None, use_errno=True)
    kept = unit.pop("CapabilityBoundingSet")
    if kept:
        raise SystemExit(f"unit_sandbox: CapabilityBoundingSet={kept}: only none is imitated")
    for capability in range(64):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    os.initgroups(user.pw_name, user.pw_gid)
    os.setresgid(*[user.pw_gid] * 3)
    os.setresuid(*[user.pw_uid] * 3)
    if unit.pop("NoNewPrivileges") == "yes":
        libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def main():
    unit = directives(Path(sys.argv[1]).read_text(encoding="utf-8"))
    user = pwd.getpwnam(unit.pop("User"))
    if unit.pop("Group") != "commtune":
        raise SystemExit("unit_sandbox: the group is the user's own")
    program = filter_of(unit)
    state = arrange_files(unit, user)
    environment = environment_of(unit, user, state)
    command = command_of(unit, environment)
    files = min(int(unit.pop("LimitNOFILE")), resource.getrlimit(resource.RLIMIT_NOFILE)[1])  # a container may not raise its own
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    os.umask(int(unit.pop("UMask"), 8))
    os.chdir("/")
    give_up_rights(unit, user)
    unknown = unit.keys() - LEFT_OUT
    if unknown:
        raise SystemExit(f"unit_sandbox: {sorted(unknown)}: imitate them, or say why not")
    program.install()
    os.execvpe(command[0], command, environment)


if __name__ == "__main__":
    main()
