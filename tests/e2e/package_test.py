#!/usr/bin/python3
"""The Debian package: made with cpack from this build, looked into, unpacked and used.

With --install (root, and Debian's debootstrap) it is also installed by apt in a new Debian 12 in a folder, and the
service is started there as its unit says, without systemd.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import urllib.request
from pathlib import Path

BUILD = Path(os.environ.get("COMMTUNE_E2E_BUILD", "build")).resolve()
SUITE = "bookworm"
MIRROR = [url for url in [os.environ.get("COMMTUNE_E2E_MIRROR")] if url]  # otherwise debootstrap's own
INSTALL = "--install" in sys.argv
FILES = ["usr/bin/tune", "usr/bin/tune-rank", "usr/bin/commtune-slurm", "usr/libexec/commtune/task_prolog",
         "usr/lib/systemd/system/commtune.service", "usr/include/commtune.h", "usr/lib/libcommtune.so.0", "usr/share/man/man1/tune.1", "usr/share/bash-completion/completions/tune"]


def said(*command, **more):
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900, **more)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(map(str, command))}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}")
    return done.stdout


class Package(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="commtune-package-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = Path(folder.name)
        said("cpack", "--config", str(BUILD / "CPackConfig.cmake"), "-B", str(cls.folder / "made"))
        cls.package = next((cls.folder / "made").glob("*.deb"))
        cls.root = cls.folder / "root"
        said("dpkg-deb", "--extract", str(cls.package), str(cls.root))

    def control(self, field):
        return said("dpkg-deb", "--field", str(self.package), field).strip()

    def assert_serves(self, *command, **more):
        """A service that prints its address, answers there, and ends when asked to."""
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, **more)
        try:
            url = server.stdout.readline().split()[-1]
            self.assertEqual(urllib.request.urlopen(url + "/readyz", timeout=600).read(), b"ok\n")
        finally:
            server.terminate()
            server.communicate(timeout=600)

    def test_it_has_what_it_should_and_names_what_it_needs(self):
        for name in FILES:
            self.assertTrue((self.root / name).is_file(), name)
        self.assertEqual(self.control("Package"), "commtune")
        needs = {item.split()[0] for item in self.control("Depends").split(", ")}
        self.assertLessEqual({"openmpi-bin", "openssh-client", "libc6", "libsqlite3-0", "libssl3", "init-system-helpers"}, needs)
        said("dpkg-deb", "--control", str(self.package), str(self.folder / "control"))
        for name in ("postinst", "prerm", "postrm"):
            said("sh", "-n", str(self.folder / "control" / name))
            self.assertEqual((self.folder / "control" / name).stat().st_mode & 0o777, 0o755)

    def test_a_program_is_built_with_its_library(self):
        source = self.folder / "version.c"
        source.write_text('#include <commtune.h>\n#include <stdio.h>\nint main(void) { return puts(commtune_version()) < 0; }\n', encoding="ascii")
        flags = said("pkg-config", "--cflags", "--libs", str(self.root / "usr/lib/pkgconfig/commtune.pc")).split()
        said("cc", str(source), "-o", str(self.folder / "version"), *flags)
        self.assertRegex(said(str(self.folder / "version"), env={"LD_LIBRARY_PATH": str(self.root / "usr/lib")}), r"^\d+\.\d+\.\d+\n$")

    def test_what_is_unpacked_runs(self):
        tune = str(self.root / "usr/bin/tune")
        self.assertRegex(said(tune, "--version"), r"^\d+\.\d+\.\d+\n$")
        home = {**os.environ, "HOME": str(self.folder), "XDG_RUNTIME_DIR": str(self.folder), "COMMTUNE_DB": str(self.folder / "store.db")}
        self.assertEqual(len(said(tune, "show", "plans", "--json", env=home).splitlines()[0]), 1)
        self.assert_serves(tune, "serve", "--listen", "127.0.0.1:0", env=home)

    def test_the_manual_names_every_command_and_flag(self):
        page = (self.root / "usr/share/man/man1/tune.1").read_text(encoding="utf-8").replace("\\-", "-")
        tune = str(self.root / "usr/bin/tune")
        commands = re.findall(r"^  ([a-z]+) +\S", said(tune, "--help").split("Subcommands:")[1].split("Examples:")[0], re.MULTILINE)
        self.assertGreater(len(commands), 10)
        for command in commands:
            self.assertIn(f".SS tune {command}\n", page)
            for flag in re.findall(r"^  (?:-\w,)?(--[a-z-]+)", said(tune, command, "--help"), re.MULTILINE):
                self.assertIn(flag, page, command)
        if shutil.which("man"):
            rendered = subprocess.run(["man", "--warnings", "-l", str(self.root / "usr/share/man/man1/tune.1")], capture_output=True, text=True,
                                      env={**os.environ, "MANWIDTH": "100", "LC_ALL": "C.UTF-8"}, check=True)
            self.assertEqual(rendered.stderr, "")
            self.assertIn("tune probe", rendered.stdout)

    def test_the_shell_completes_commands_flags_and_models(self):
        def completed(*words):
            script = f'source "$1"; COMP_WORDS=(tune {" ".join(repr(word) for word in words)}); COMP_CWORD={len(words)}; _tune; printf "%s\\n" "${{COMPREPLY[@]}}"'
            return said("bash", "-c", script, "bash", str(self.root / "usr/share/bash-completion/completions/tune")).split()
        self.assertEqual(completed("pro"), ["probe", "profile"])
        self.assertIn("resnet50", completed("resn"))
        self.assertEqual(completed("store", "b"), ["backup"])
        self.assertIn("--iterations", completed("run", "latest", "--it"))
        self.assertIn("--explain", completed("resnet50", "--ex"))
        self.assertEqual(completed("serve", "--nothing"), [])

    def test_the_unit_is_one_that_systemd_takes(self):
        if not shutil.which("systemd-analyze"):
            self.skipTest("no systemd-analyze here")
        unit = self.folder / "commtune.service"
        text = (self.root / "usr/lib/systemd/system/commtune.service").read_text(encoding="utf-8")
        unit.write_text(text.replace("ExecStart=tune ", f"ExecStart={self.root}/usr/bin/tune "), encoding="utf-8")
        done = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
        about_us = [line for line in done.stderr.splitlines() if "commtune" in line]
        self.assertEqual(about_us, [])

    @unittest.skipUnless(INSTALL, "fetches a whole Debian; asked for with --install")
    def test_it_installs_on_a_clean_system_and_starts(self):
        system = self.folder / "debian"
        said("debootstrap", "--variant=minbase", SUITE, str(system), *MIRROR)
        (system / "usr/sbin/policy-rc.d").write_text("#!/bin/sh\nexit 101\n", encoding="ascii")  # nothing starts by itself
        (system / "usr/sbin/policy-rc.d").chmod(0o755)
        for name in ("/etc/resolv.conf", "/etc/apt/apt.conf.d", "/etc/apt/sources.list", "/etc/apt/sources.list.d"):
            if Path(name).is_dir():
                shutil.copytree(name, str(system) + name, dirs_exist_ok=True)
            elif Path(name).exists():
                shutil.copy(name, str(system) + name)
        shutil.copy(self.package, system)
        inside = ["chroot", str(system), "env", "DEBIAN_FRONTEND=noninteractive", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"]
        said(*inside, "apt-get", "update", "-q")
        said(*inside, "apt-get", "install", "-q", "-y", "--no-install-recommends", f"/{self.package.name}")
        self.assertIn("ok installed", said(*inside, "dpkg-query", "-W", "-f", "${Status}", "commtune"))
        self.assertTrue((system / "etc/systemd/system/multi-user.target.wants/commtune.service").is_symlink(), "it is enabled")
        self.assertTrue((system / "var/lib/commtune/.ssh/id_ed25519").is_file(), "its user has a key")
        self.assert_serves(*inside, "runuser", "-u", "commtune", "--", "tune", "serve", "--db", "/var/lib/commtune/commtune.db", "--log", "json", "--listen", "127.0.0.1:0")
        said(*inside, "dpkg", "--purge", "commtune")
        self.assertFalse((system / "usr/bin/tune").exists())
        self.assertFalse((system / "var/lib/commtune").exists())


if __name__ == "__main__":
    if not shutil.which("cpack") or not shutil.which("dpkg-deb"):
        print("skipped: cpack or dpkg-deb is missing")
        sys.exit(77)
    unittest.main(argv=[argument for argument in sys.argv if argument != "--install"], verbosity=2)  # the reason of a skip is seen
