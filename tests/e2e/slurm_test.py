#!/usr/bin/python3
"""Slurm, for real: slurmctld and two slurmd on this machine, our task prolog, our sbatch wrapper, a service.

The daemons are Debian's, started by hand with a configuration in a folder of this test. Skipped, with the reason, where
they are not installed or this is not root.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "api" / "rest"))
from server import PATIENCE_SECONDS, Server, made_store  # noqa: E402

HELPERS = Path(os.environ.get("COMMTUNE_E2E_TUNE", "build/bin/tune")).resolve().parent
PROGRAMS = ["munged", "slurmctld", "slurmd", "srun", "sbatch", "scontrol", "sinfo"]
NODES = ("n1", "n2")


def missing():
    """Why this cannot be tried here, or nothing."""
    absent = [name for name in PROGRAMS if not shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin")]
    if absent:
        return f"not installed: {' '.join(absent)}"
    return "" if os.geteuid() == 0 else "slurmd needs root"


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class Slurm:
    """A cluster of two nodes on this machine, with our task prolog."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.processes = []
        for name in ("munge", "state", *(f"{kind}-{node}" for kind in ("spool", "tmp") for node in NODES)):
            (self.folder / name).mkdir()
        self.folder.chmod(0o755)  # munge refuses folders that others may write to
        (self.folder / "munge").chmod(0o700)
        self.configuration = self.folder / "slurm.conf"
        self.environment = {**os.environ, "SLURM_CONF": str(self.configuration), "PATH": os.environ["PATH"] + ":/usr/sbin:/sbin"}
        self.environment = {name: value for name, value in self.environment.items() if not name.startswith("COMMTUNE_")}
        self.configure()

    def configure(self):
        controller, *nodes = free_ports(1 + len(NODES))
        here = self.folder
        key = here / "munge" / "key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o600)
        self.configuration.write_text(f"""
ClusterName=lab
SlurmctldHost={socket.gethostname()}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={here}/munge/socket
CredType=cred/munge
SlurmctldPort={controller}
StateSaveLocation={here}/state
SlurmdSpoolDir={here}/spool-%n
TmpFS={here}/tmp-%n
SlurmctldPidFile={here}/slurmctld.pid
SlurmdPidFile={here}/slurmd-%n.pid
SlurmctldLogFile={here}/slurmctld.log
SlurmdLogFile={here}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MailProg=/bin/true
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
MinJobAge=300
TaskProlog={HELPERS / "task_prolog"}
NodeName={",".join(NODES)} NodeHostname={socket.gethostname()} NodeAddr=127.0.0.1 Port={",".join(map(str, nodes))} CPUs=2 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=10 State=UP
""", encoding="utf-8")

    def start(self):
        munge = self.folder / "munge"
        self.daemon("munged", "--foreground", "--force", f"--socket={munge}/socket", f"--key-file={munge}/key", f"--pid-file={munge}/pid",
                    f"--log-file={munge}/log", f"--seed-file={munge}/seed")
        self.wait_for(lambda: (munge / "socket").exists())
        self.daemon("slurmctld", "-c", "-D")
        for node in NODES:
            self.daemon("slurmd", "-D", "-N", node)
        self.wait_for(lambda: self.ask("sinfo", "--noheader", "--format=%D %t").split() == ["2", "idle"])

    def daemon(self, *command):
        with open(self.folder / f"{command[0]}-{len(self.processes)}.out", "wb") as said:
            self.processes.append(subprocess.Popen(command, env=self.environment, stdin=subprocess.DEVNULL, stdout=said, stderr=said))

    def wait_for(self, holds, seconds=PATIENCE_SECONDS):
        deadline = time.monotonic() + seconds
        while not holds():
            dead = [process.args[0] for process in self.processes if process.poll() is not None]
            if dead or time.monotonic() > deadline:
                said = "\n".join(path.read_text(errors="replace")[-1500:] for path in self.folder.glob("*.out"))
                raise RuntimeError(f"Slurm did not come up; ended: {dead}\n{said}")
            time.sleep(0.1)

    def ask(self, *command):
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False).stdout

    def stop(self):
        # Steps outlive the daemons: what a failed test left running would run on for ever.
        try:
            self.ask("scancel", "--user=root", "--full", "--signal=KILL")
            deadline = time.monotonic() + 30
            while self.ask("squeue", "--noheader").strip() and time.monotonic() < deadline:
                time.sleep(0.2)
        except subprocess.TimeoutExpired:
            pass  # there is no controller to ask
        for process in reversed(self.processes):
            process.terminate()
        for process in reversed(self.processes):
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class SlurmTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory(prefix="commtune-slurm-")
        cls.addClassCleanup(folder.cleanup)
        cls.home = Path(folder.name)
        cls.server = Server(made_store(cls.home / "store.db"))
        cls.addClassCleanup(lambda: cls.server.close())
        (cls.home / "slurm").mkdir()
        cls.slurm = Slurm(cls.home / "slurm")
        cls.addClassCleanup(cls.slurm.stop)
        cls.slurm.start()

    def variables(self, **more):
        # Two nodes that are one machine: their ranks do not share memory.
        return {**self.slurm.environment, "COMMTUNE_URL": self.server.url, "COMMTUNE_TUNE": os.environ["COMMTUNE_E2E_TUNE"],
                "COMMTUNE_SECONDS": str(PATIENCE_SECONDS), "COMMTUNE_MODEL": "resnet50", "COMMTUNE_CLUSTER": "lab", "OMPI_MCA_btl": "tcp,self", **more}

    def call(self, *command, status=0, **more):
        done = subprocess.run(command, env=self.variables(**more), cwd=self.home, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
        self.assertEqual(done.returncode, status, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}")
        return done

    def runs(self):
        return self.server.ask("GET", "/v1/runs?limit=1000").json()["rows"]

    def test_the_prolog_puts_the_plan_into_the_tasks_of_a_step(self):
        said = self.call("srun", "-N2", "--ntasks-per-node=2", "sh", "-c", 'echo "$SLURM_PROCID $SLURMD_NODENAME $COMMTUNE_PLAN $COMMTUNE_PLAN_DIGEST"').stdout
        tasks = sorted(line.split() for line in said.splitlines() if line[:1].isdigit())
        self.assertEqual([task[:2] for task in tasks], [["0", "n1"], ["1", "n1"], ["2", "n2"], ["3", "n2"]], said)
        self.assertEqual(len({tuple(task[2:]) for task in tasks}), 1, "all tasks of a job have the same plan")
        plan = self.server.ask("GET", f"/v1/plans/{tasks[0][2]}").json()
        self.assertEqual((plan["workers"], plan["digest"]), (4, tasks[0][3]))
        self.assertIn("commtune: plan", said)

    def test_a_job_runs_the_plan_and_its_time_comes_back(self):
        before = {run["id"] for run in self.runs()}
        self.call("sbatch", "--wait", "-N2", "--ntasks-per-node=2", "--output", "run.out", "--wrap",
                  f"{HELPERS}/commtune-slurm run -- --iterations 3 --warmup 1", COMMTUNE_PLAN=str(self.small_plan()))
        said = (self.home / "run.out").read_text(encoding="utf-8")
        new = [run for run in self.runs() if run["id"] not in before]
        self.assertEqual(len(new), 1, said)
        run = self.server.ask("GET", f"/v1/runs/{new[0]['id']}").json()
        self.assertEqual((run["state"], len(run["iteration_seconds"])), ("complete", 3))
        self.assertEqual(run["settings"]["settings"]["slurm"]["job_nodelist"], "n[1-2]")
        self.assertEqual(run["settings"]["workload"], "replay")
        self.assertIn(f"run {run['id']} of plan {run['plan']} is stored", said)

    def small_plan(self):
        """Of a model that is small enough for two nodes that share two cores."""
        tensors = [{"name": f"w{i}", "bytes": 65536} for i in range(2)]
        profile = {"format": "commtune/profile/1", "model": "small", "batch": 1, "data_type": "float32",
                   "layers": [{"name": tensor["name"], "forward_seconds": 0.01, "backward_seconds": 0.02, "update_seconds": 0, "macs_per_sample": 0,
                               "tensors": [tensor]} for tensor in tensors],
                   "origin": {"how": "derived", "device": "", "source": "a test", "note": ""}}
        answer = self.server.ask("POST", "/v1/plans", {"model": profile, "cluster": "lab"}).json()
        self.assertEqual(answer["status"], "planned", answer)
        return answer["id"]

    def test_the_wrapper_submits_with_the_plan_and_a_comment(self):
        script = self.home / "job.sh"
        script.write_text('#!/bin/sh\n#SBATCH --nodes=2 --ntasks-per-node=2\necho "plan $COMMTUNE_PLAN"\n', encoding="utf-8")
        done = self.call(str(HELPERS / "commtune-slurm"), "sbatch", "--wait", "--parsable", "--output", "job.out", str(script))
        job = done.stdout.strip()
        plan = (self.home / "job.out").read_text(encoding="utf-8").split("plan ")[-1].strip()
        self.assertEqual(self.server.ask("GET", f"/v1/plans/{plan}").json()["workers"], 4)
        self.assertIn(f"Comment=commtune plan {plan}: ", self.slurm.ask("scontrol", "show", "job", job))

    def test_jobs_start_when_the_service_is_down(self):
        nowhere = {"COMMTUNE_URL": "http://127.0.0.1:1"}
        said = self.call("srun", "-n1", "sh", "-c", 'echo "started with ${COMMTUNE_PLAN:-no} plan"', **nowhere).stdout
        self.assertIn("started with no plan", said)
        self.assertIn("the job starts without a plan", said)
        done = self.call(str(HELPERS / "commtune-slurm"), "sbatch", "--wait", "--output", "down.out", "--wrap", 'echo "started with ${COMMTUNE_PLAN:-no} plan"', **nowhere)
        self.assertIn("the job is submitted without a plan", done.stderr)
        self.assertIn("started with no plan", (self.home / "down.out").read_text(encoding="utf-8"))
        reported = self.call("srun", "-n1", str(HELPERS / "commtune-slurm"), "report", "0.25", **nowhere, COMMTUNE_PLAN="1")
        self.assertIn("what was measured is not stored", reported.stderr)


if __name__ == "__main__":
    why = missing()
    if why:
        print(f"skipped: {why}")
        sys.exit(77)
    unittest.main()
