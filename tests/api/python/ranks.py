"""Ranks of torch.distributed as forked processes of a test, so that PyTorch is loaded once."""

import multiprocessing
import os
import queue
import tempfile
import traceback
from pathlib import Path

import torch
import torch.distributed as dist

torch.set_num_threads(1)


def _run(body, rank, ranks, store, results):
    try:
        dist.init_process_group("gloo", store=dist.FileStore(store, ranks), rank=rank, world_size=ranks)
        results.put((rank, None, body(rank)))
        dist.barrier()
    except BaseException:
        results.put((rank, traceback.format_exc(), None))
        results.close()
        results.join_thread()
        os._exit(1)
    results.close()
    results.join_thread()
    os._exit(0)


def on_ranks(ranks, body, seconds=300):
    """What body(rank) returns on each rank; numbers and lists, no tensors. Raises the first failure's text."""
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder) / "store")
        processes = [context.Process(target=_run, args=(body, rank, ranks, store, results), daemon=True) for rank in range(ranks)]
        for process in processes:
            process.start()
        try:
            return _collect(ranks, results, seconds)
        finally:
            for process in processes:
                process.join(10)
                if process.is_alive():
                    process.kill()


def _collect(ranks, results, seconds):
    found = {}
    while len(found) < ranks:
        try:
            rank, failure, value = results.get(timeout=seconds)
        except queue.Empty:
            raise AssertionError(f"no answer of ranks {sorted(set(range(ranks)) - set(found))} within {seconds} s") from None
        if failure is not None:
            raise AssertionError(f"rank {rank}:\n{failure}")
        found[rank] = value
    return [found[rank] for rank in range(ranks)]
