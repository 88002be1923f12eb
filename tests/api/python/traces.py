"""Traces of small networks as PyTorch's profiler records them, and as chakra_trace_link joins them.

    tests/api/python/run LIBRARY python tests/api/python/traces.py FOLDER      makes tests/api/import/data anew
"""

import json
import sys
from pathlib import Path

import torch
from torch import nn
from torch.profiler import ExecutionTraceObserver, ProfilerActivity, profile, schedule

STEPS = 2


class Network(nn.Module):
    """A convolution, a norm and two linear layers: 8 gradients."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.head = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 10))

    def forward(self, images):
        return self.head(torch.relu(self.norm(self.stem(images))).mean((2, 3)))


def record(folder, model, inputs, loss, *, shapes=True, modules=False):
    """The paths of the profiler's trace and of PyTorch's execution trace of the same steps."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    kineto, execution = folder / "kineto.json", folder / "execution.json"
    with profile(
        activities=[ProfilerActivity.CPU],
        record_shapes=shapes,
        with_stack=modules,
        schedule=schedule(wait=1, warmup=1, active=STEPS),
        execution_trace_observer=ExecutionTraceObserver().register_callback(str(execution)),
        on_trace_ready=lambda done: done.export_chrome_trace(str(kineto)),
    ) as profiler:
        for _ in range(STEPS + 2):
            optimizer.zero_grad()
            loss(model(inputs)).backward()
            optimizer.step()
            profiler.step()
    return kineto, execution


def attribute(node, name):
    return next(one["value"] for one in node["attrs"] if one["name"] == name)


def linked(kineto, execution):
    """The execution trace with the times of the other one, by the numbers of recorded functions: what chakra_trace_link
    (mlcommons/chakra, src/trace_link/trace_linker.py) does for what runs on a processor."""
    times = {event["args"]["Record function id"]: event for event in kineto["traceEvents"] if "Record function id" in event.get("args", {})}
    for node in execution["nodes"]:
        event = times.get(attribute(node, "rf_id"))
        if event is not None:
            node |= {"ts": event["ts"], "inclusive_dur": event["dur"], "exclusive_dur": event["dur"], "inter_thread_dep": None}
    return execution


def matters(name, sequence):
    """What joins the passes, and the gradients; not what operators do inside."""
    return sequence is not None or "autograd::" in name or name.startswith("nn.Module: ")


def shortened(kineto, execution):
    """Without what is large and no reader looks at."""
    keys = ("ph", "cat", "name", "pid", "tid", "ts", "dur", "args")
    kineto["traceEvents"] = [
        {key: event[key] for key in keys if key in event}
        for event in kineto["traceEvents"]
        if event["ph"] == "X" and matters(event["name"], event["args"].get("Sequence number"))
    ]
    shapes = ("Input Dims", "Input type")
    for event in kineto["traceEvents"]:
        kept = ("Sequence number", "Fwd thread id", "Record function id", *(shapes if "AccumulateGrad" in event["name"] else ()))
        event["args"] = {name: value for name, value in event["args"].items() if name in kept}
    execution["nodes"] = [node for node in execution["nodes"] if matters(node["name"], attribute(node, "seq_id") if attribute(node, "seq_id") >= 0 else None)]
    for node in execution["nodes"]:
        node["attrs"] = [one for one in node["attrs"] if one["name"] in ("rf_id", "seq_id", "tid")]
        node["inputs"] = {name: node["inputs"][name] for name in ("shapes", "types")} if "AccumulateGrad" in node["name"] else {}
        del node["outputs"]
    kineto["host_name"] = "host"


def main(folder):
    torch.manual_seed(1)
    torch.set_num_threads(1)
    paths = record(folder, Network(), torch.randn(4, 3, 16, 16), lambda out: out.square().mean(), modules=True)
    kineto, execution = (json.loads(path.read_text()) for path in paths)
    shortened(kineto, execution)
    for name, document in (("profiler.json", kineto), ("chakra.json", linked(kineto, execution))):
        (folder / name).write_text(json.dumps(document, separators=(",", ":")) + "\n")
    for path in paths:
        path.unlink()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
