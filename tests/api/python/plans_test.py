"""Where plans come from: files, services, and "auto", which nobody waits for."""

import http.server
import json
import threading
import time

import pytest
from models import Transformer, batches, make, step
from ranks import on_ranks

import commtune.torch

RANKS = 2


class Service(http.server.BaseHTTPRequestHandler):
    """Answers with one plan, whatever is asked, and keeps what is handed back."""

    plan, delay, runs = None, 0.0, None

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        time.sleep(self.delay)
        if self.path == "/v1/runs":
            self.runs.append((asked, self.headers["Authorization"]))
            return self.answer({"id": 1})
        self.answer({"id": 7} if asked["model"] == self.plan["layout"] and asked["workers"] == RANKS else {})

    def do_GET(self):
        self.answer({"plan": self.plan} if self.path == "/v1/plans/7" else {})

    def answer(self, document):
        text = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


def serve(plan, delay=0.0, runs=None):
    """Its address. runs: where what is handed back goes"""
    handler = type("Answers", (Service,), {"plan": plan, "delay": delay, "runs": runs})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_address[1]}"


def some_plan(model, optimizer):
    """Of two servers, so that it is no bucket plan of the default."""
    training = commtune.torch.wrap(model, optimizer, "buckets")
    digest = training.plan_digest
    plan = training.bucket_plan(commtune.BucketOptions(servers=2))
    training.adopt(plan)
    wanted = training.plan_digest
    training.close()
    return plan, digest, wanted


def trained(plan, rank, steps=3, until=None):
    """Digests of the plans in force after each step; ends when one is as wanted."""
    model, optimizer = make(Transformer, rank)
    training = commtune.torch.wrap(model, optimizer, plan)
    seen = []
    for batch in batches(Transformer, rank, steps):
        step(model, optimizer, *batch)
        seen.append(training.plan_digest)
        if seen[-1] == until:
            break
    training.close()
    return seen


def test_files_dictionaries_text_and_services(tmp_path):
    def body(rank):
        plan, _, wanted = some_plan(*make(Transformer, rank))
        file = tmp_path / f"plan{rank}.json"
        file.write_text(json.dumps(plan), encoding="utf-8")
        for source in (file, str(file), plan, json.dumps(plan), f"{serve(plan)}/v1/plans/7"):
            assert trained(source, rank, steps=1) == [wanted]

    on_ranks(RANKS, body)


def test_a_file_that_is_not_there_ends_all_ranks_with_its_name():
    def body(rank):
        with pytest.raises(commtune.CommtuneError, match="/no/such/plan.json"):
            trained("/no/such/plan.json", rank)

    on_ranks(RANKS, body)


def test_auto_takes_what_the_service_has(monkeypatch):
    def body(rank):
        plan, buckets, wanted = some_plan(*make(Transformer, rank))
        if rank == 0:
            monkeypatch.setenv("COMMTUNE_URL", serve(plan, delay=0.2))
        monkeypatch.setattr(commtune.torch.plans, "PATIENCE", 60.0)  # a busy machine may be slow
        seen = trained("auto", rank, steps=2000, until=wanted)
        assert seen[-1] == wanted
        assert set(seen) <= {buckets, wanted}

    on_ranks(RANKS, body)


def test_auto_waits_for_nobody(monkeypatch):
    def body(rank):
        plan, buckets, _ = some_plan(*make(Transformer, rank))
        monkeypatch.setenv("COMMTUNE_URL", serve(plan, delay=30.0))
        begun = time.monotonic()
        assert set(trained("auto", rank)) == {buckets}
        assert time.monotonic() - begun < 20

    on_ranks(RANKS, body)


def own_token(tmp_path, monkeypatch):
    token = tmp_path / "token"
    token.write_text("secret", encoding="ascii")
    token.chmod(0o600)
    monkeypatch.setenv("COMMTUNE_TOKEN_FILE", str(token))


def test_a_service_hears_how_long_steps_took_by_its_plan(tmp_path, monkeypatch):
    own_token(tmp_path, monkeypatch)

    def body(rank):
        runs = []
        plan, _, wanted = some_plan(*make(Transformer, rank))
        assert set(trained(f"{serve(plan, runs=runs)}/v1/plans/7", rank, steps=10)) == {wanted}
        if rank != 0:
            assert runs == []
            return
        [(run, authorization)] = runs
        assert authorization == "Bearer secret"
        assert (run["plan"], run["workload"]) == (7, "training")
        assert len(run["iteration_seconds"]) == 8  # without the first, and the last has no end
        assert min(run["iteration_seconds"]) > 0

    on_ranks(RANKS, body)


@pytest.mark.parametrize("why", ["no token", "too few steps", "accumulated gradients"])
def test_a_service_hears_nothing_of(tmp_path, monkeypatch, why):
    if why == "no token":
        monkeypatch.setenv("HOME", str(tmp_path))
    else:
        own_token(tmp_path, monkeypatch)

    def body(rank):
        runs = []
        model, optimizer = make(Transformer, rank)
        plan, _, _ = some_plan(model, optimizer)
        training = commtune.torch.wrap(model, optimizer, f"{serve(plan, runs=runs)}/v1/plans/7")
        for number, batch in enumerate(batches(Transformer, rank, 5 if why == "too few steps" else 10)):
            if why == "accumulated gradients" and number == 7:
                with training.no_sync():
                    step(model, optimizer, *batch)
            step(model, optimizer, *batch)
        training.close()
        assert runs == []

    on_ranks(RANKS, body)


def test_nothing_is_asked_of_other_hosts_in_the_clear():
    def body(rank):
        with pytest.raises(commtune.CommtuneError, match="must be https:// for another host"):
            trained("http://192.0.2.1/v1/plans/7", rank)

    on_ranks(RANKS, body)


def test_a_token_that_others_can_read_is_refused(tmp_path, monkeypatch):
    token = tmp_path / "token"
    token.write_text("secret", encoding="ascii")
    token.chmod(0o666)
    monkeypatch.setenv("COMMTUNE_TOKEN_FILE", str(token))

    def body(rank):
        with pytest.raises(commtune.CommtuneError, match="nobody else can read"):
            trained("http://127.0.0.1:1/v1/plans/7", rank)

    on_ranks(RANKS, body)
