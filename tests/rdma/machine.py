"""A virtual machine with soft-RoCE cards, for a machine that has no RDMA card.

QEMU boots Debian's kernel, whose driver rdma_rxe makes RDMA cards of virtual Ethernet ones. The guest has no disk: it sees
this machine's files, read-only, under a layer in its memory, so every program that is installed or built here is there.
What comes back is the output and the exit status.

Kernel and boot archive are made once, of Debian's packages, in the user's cache. Python 3.9 or later, standard library only.
"""

import io
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Loaded before the guest sees any file of ours; all others come from the shared tree.
BOOT_MODULES = ("virtio_pci", "virtio_console", "9pnet_virtio", "9p", "overlay")
# Parts of the kernel's package that RDMA, its cables and shared files need.
KERNEL_PARTS = ("./boot/vmlinuz-*", "./lib/modules/*/modules.*", "./lib/modules/*/kernel/arch", "./lib/modules/*/kernel/crypto",
                "./lib/modules/*/kernel/lib", "./lib/modules/*/kernel/net", "./lib/modules/*/kernel/fs/9p",
                "./lib/modules/*/kernel/fs/configfs", "./lib/modules/*/kernel/fs/fscache", "./lib/modules/*/kernel/fs/netfs",
                "./lib/modules/*/kernel/fs/overlayfs", "./lib/modules/*/kernel/drivers/virtio", "./lib/modules/*/kernel/drivers/char",
                "./lib/modules/*/kernel/drivers/infiniband/core", "./lib/modules/*/kernel/drivers/infiniband/sw",
                "./lib/modules/*/kernel/drivers/net/*.ko")
KERNEL_PACKAGE = "linux-image-amd64"  # names the current one


class MachineError(Exception):
    """The machine itself could not be had, or stopped; whatever was to run in it has no result."""


class Unavailable(MachineError):
    """This machine cannot run such a machine; the text says what is missing."""


def run(*command, **more):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=more.pop("text", True), check=False, **more)
    if done.returncode != 0:
        raise MachineError(f"{shlex.join(str(word) for word in command)}: {str(done.stderr).strip() or done.returncode}")
    return done.stdout


def check_tools():
    if os.uname().machine != "x86_64":
        raise Unavailable("the virtual machine is made for x86-64 alone")
    for tool in ("qemu-system-x86_64", "busybox", "apt-get", "dpkg", "ip", "rdma", "ping"):
        if shutil.which(tool, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin") is None:
            raise Unavailable(f"{tool} is not installed: .ci/install rdma")


# ---- kernel and boot archive ----


def cpio(files):
    """An archive as the kernel unpacks it (newc): {path: (mode, bytes)}; folders have bytes None."""
    out = io.BytesIO()

    def entry(name, mode, data, number):
        encoded = name.encode() + b"\0"
        fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(encoded), 0)
        out.write(b"070701" + b"".join(b"%08X" % field for field in fields) + encoded)
        out.write(b"\0" * (-out.tell() % 4))
        out.write(data)
        out.write(b"\0" * (-out.tell() % 4))

    folders = sorted({str(parent) for name in files for parent in Path(name).parents if str(parent) != "."})
    for number, name in enumerate(folders, 1):
        entry(name, 0o040755, b"", number)
    for number, (name, (mode, data)) in enumerate(sorted(files.items()), len(folders) + 1):
        entry(name, 0o100000 | mode, data, number)
    entry("TRAILER!!!", 0, b"", 0)
    return out.getvalue()


def package_name():
    for line in run("apt-cache", "depends", KERNEL_PACKAGE).splitlines():
        word, _, name = line.strip().partition(": ")
        if word == "Depends":
            return name
    raise Unavailable(f"no package {KERNEL_PACKAGE} is known here: apt-get update")


def fetch_kernel(folder, package):
    print(f"rdma: fetching {package} (once)", file=sys.stderr, flush=True)
    try:
        run("apt-get", "download", "-qq", package, cwd=folder)
    except MachineError as error:
        raise Unavailable(f"the kernel cannot be fetched: {error}; try apt-get update") from None
    (archive,) = folder.glob("*.deb")
    unpack = subprocess.Popen(["dpkg", "--fsys-tarfile", str(archive)], stdout=subprocess.PIPE)
    run("tar", "-x", "--wildcards", "--no-wildcards-match-slash", *KERNEL_PARTS, cwd=folder, stdin=unpack.stdout)
    unpack.wait()
    archive.unlink()
    (kernel,) = (folder / "boot").glob("vmlinuz-*")
    kernel.rename(folder / "vmlinuz")
    (version,) = (folder / "lib/modules").iterdir()
    run("busybox", "depmod", "-b", folder, version.name)


def boot_archive(modules):
    """busybox and the modules that it loads first, with all that those need. modules: lib/modules/VERSION"""
    files = {"bin/busybox": (0o755, Path(shutil.which("busybox")).read_bytes())}
    base = f"lib/modules/{modules.name}"
    order = (modules / "modules.dep").read_text()
    files[f"{base}/modules.dep"] = (0o644, order.encode())
    for line in order.splitlines():
        module, _, needed = line.partition(":")
        if Path(module).name.removesuffix(".ko") in BOOT_MODULES:
            for name in (module, *needed.split()):
                files[f"{base}/{name}"] = (0o644, (modules / name).read_bytes())
    return cpio(files)


def cache():
    """A folder with vmlinuz, boot.cpio and lib/modules of Debian's current kernel."""
    package = package_name()
    place = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "commtune-rdma" / package
    if place.exists():
        return place
    place.parent.mkdir(parents=True, exist_ok=True)
    # Made aside and renamed: a run that is cut short, or another at the same time, leaves nothing half done.
    made = Path(tempfile.mkdtemp(prefix=package + ".", dir=place.parent))
    try:
        fetch_kernel(made, package)
        (modules,) = (made / "lib/modules").iterdir()
        (made / "boot.cpio").write_bytes(boot_archive(modules))
        made.chmod(0o755)
        made.rename(place)
    except OSError:
        if not place.exists():
            raise
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return place


# ---- the machine ----


def guest_files(hosts, command):
    script = f"cd {shlex.quote(os.getcwd())}\nexec {shlex.join(command)}\n"
    return {"init": (0o755, (HERE / "guest/init").read_bytes()), "guest/main": (0o644, (HERE / "guest/main").read_bytes()),
            "guest/hosts": (0o644, f"{hosts}\n".encode()), "guest/command": (0o644, script.encode())}


def accelerator():
    """KVM needs the driver of a real processor: what nested clouds offer in its place starts no ordinary kernel."""
    if os.access("/dev/kvm", os.W_OK) and any(Path(f"/sys/module/{name}").exists() for name in ("kvm_intel", "kvm_amd")):
        return ["-accel", "kvm", "-cpu", "host"]
    return ["-accel", "tcg,thread=multi", "-cpu", "max,la57=off"]


def share(tag, path):
    return ["-virtfs", f"local,mount_tag={tag},path={str(path).replace(',', ',,')},security_model=none,multidevs=remap,readonly=on"]


def qemu(made, scratch, cpus, megabytes):
    return ["qemu-system-x86_64", *accelerator(), "-smp", str(cpus), "-m", str(megabytes), "-nodefaults", "-no-user-config",
            "-display", "none", "-no-reboot", "-kernel", str(made / "vmlinuz"), "-initrd", str(scratch / "boot.cpio"),
            "-append", "console=ttyS0 panic=-1 quiet mitigations=off tsc=reliable no_timer_check random.trust_cpu=on",
            "-chardev", f"file,id=log,path={scratch / 'log'}", "-serial", "chardev:log", "-device", "virtio-serial-pci",
            "-chardev", "stdio,id=output,signal=off", "-device", "virtconsole,chardev=output",
            "-chardev", f"file,id=status,path={scratch / 'status'}", "-device", "virtserialport,chardev=status,name=status",
            *share("files", "/"), *share("modules", made / "lib/modules")]


def in_guest(command, hosts, seconds, cpus=2, megabytes=2048, heard=print):
    """Runs the command in a machine with so many cards, in the current folder; each line of output is told `heard`.

    returns  its exit status
    throws   Unavailable, or MachineError where the machine stopped or the time was over
    """
    check_tools()
    made = cache()
    with tempfile.TemporaryDirectory(prefix="commtune-rdma-") as name:
        scratch = Path(name)
        (scratch / "boot.cpio").write_bytes((made / "boot.cpio").read_bytes() + cpio(guest_files(hosts, command)))
        (scratch / "status").touch()
        end = time.monotonic() + seconds
        machine = subprocess.Popen(qemu(made, scratch, cpus, megabytes), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, start_new_session=True)
        try:
            follow(machine, end, heard)
            _, errors = machine.communicate(timeout=max(1, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise MachineError(f"stopped after {seconds} s\n{last_words(scratch)}") from None
        finally:
            if machine.poll() is None:
                os.killpg(machine.pid, signal.SIGKILL)
                machine.wait()
        status = (scratch / "status").read_text().strip()
        if not status:
            raise MachineError(f"the machine stopped before its command ended\n{errors.decode(errors='replace')}{last_words(scratch)}")
        return int(status)


def last_words(scratch):
    log = scratch / "log"
    return log.read_text(errors="replace")[-4000:] if log.exists() else ""


def follow(machine, end, heard):
    os.set_blocking(machine.stdout.fileno(), False)
    rest = b""
    while True:
        if time.monotonic() > end:
            raise subprocess.TimeoutExpired("qemu", 0)
        part = machine.stdout.read()
        if part is None:
            time.sleep(0.05)
            continue
        if part == b"":
            break
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            heard(line.decode(errors="replace").rstrip("\r"))
    if rest:
        heard(rest.decode(errors="replace"))
