"""Where plans come from: files, services, and "auto", which nobody waits for."""

import http.server
import json
import os
import threading
import time

import pytest
from models import Transformer, batches, make, step
from ranks import on_ranks

import commtune.torch
from commtune.torch import service

RANKS = 2


class Service(http.server.BaseHTTPRequestHandler):
    """Answers with one plan, whatever is asked, and keeps what is handed back."""

    plan, delay, barrier, runs, scope = None, 0.0, "full", None, "operate"

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        time.sleep(self.delay)
        if self.path == "/v1/runs":
            self.runs.append((asked, self.headers["Authorization"]))
            return self.answer({"id": 1})
        wanted = {"model": self.plan["layout"], "cluster": "", "workers": RANKS, "barrier": self.barrier}
        self.answer({"id": 7} if asked == wanted else {})

    def do_GET(self):
        if self.path == "/v1/tokens?limit=1" and self.scope != "operate":
            return self.answer({}, 403)
        self.answer({"plan": self.plan} if self.path == "/v1/plans/7" else {})

    def answer(self, document, status=200):
        text = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


def serve(plan, delay=0.0, barrier="full", runs=None, scope="operate"):
    """Its address.

    barrier  of the one request that is answered
    runs     where what is handed back goes
    scope    what all tokens may do
    """
    answers = {"plan": plan, "delay": delay, "barrier": barrier, "runs": runs, "scope": scope}
    handler = type("Answers", (Service,), answers)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_address[1]}"


def some_plan(model, optimizer, **options):
    """Of two servers, so that it is no bucket plan of the default."""
    training = commtune.torch.wrap(model, optimizer, "buckets", **options)
    digest = training.plan_digest
    plan = training.bucket_plan(commtune.BucketOptions(servers=2))
    training.adopt(plan)
    wanted = training.plan_digest
    training.close()
    return plan, digest, wanted


def trained(plan, rank, steps=3, until=None, **options):
    """Digests of the plans in force after each step; ends when one is as wanted."""
    model, optimizer = make(Transformer, rank)
    training = commtune.torch.wrap(model, optimizer, plan, **options)
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


BARRIERS = pytest.mark.parametrize(("barrier", "asked"), [("full", "full"), ("layer", "per-layer")])


@BARRIERS
def test_auto_takes_what_the_service_has_for_the_barrier(monkeypatch, barrier, asked):
    def body(rank):
        plan, buckets, wanted = some_plan(*make(Transformer, rank), barrier=barrier)
        if rank == 0:
            monkeypatch.setenv("COMMTUNE_URL", serve(plan, delay=0.2, barrier=asked))
        monkeypatch.setattr(commtune.torch.plans, "PATIENCE", 60.0)  # a busy machine may be slow
        seen = trained("auto", rank, steps=2000, until=wanted, barrier=barrier)
        assert seen[-1] == wanted
        assert set(seen) <= {buckets, wanted}

    on_ranks(RANKS, body)


@BARRIERS
def test_auto_takes_what_the_database_has_for_the_barrier(tmp_path, monkeypatch, barrier, asked):
    """A `tune` that answers to what "auto" asks."""

    def body(rank):
        plan, _, wanted = some_plan(*make(Transformer, rank))
        if rank == 0:
            (tmp_path / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
            program = tmp_path / "tune"
            question = f"{plan['layout']} --workers {RANKS} --barrier {asked} --out"
            program.write_text(f'#!/bin/sh\n[ "$1 $2 $3 $4 $5 $6" = "{question}" ] && cp {tmp_path}/plan.json "$7"\n', encoding="utf-8")
            program.chmod(0o755)
            monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
            monkeypatch.delenv("COMMTUNE_URL", raising=False)
            monkeypatch.setenv("COMMTUNE_CLUSTER", "lab")
        monkeypatch.setattr(commtune.torch.plans, "PATIENCE", 60.0)
        assert trained("auto", rank, steps=2000, until=wanted, barrier=barrier)[-1] == wanted

    on_ranks(RANKS, body)


def test_auto_waits_for_nobody(monkeypatch):
    def body(rank):
        plan, buckets, _ = some_plan(*make(Transformer, rank))
        monkeypatch.setenv("COMMTUNE_URL", serve(plan, delay=30.0))
        begun = time.monotonic()
        assert set(trained("auto", rank)) == {buckets}
        assert time.monotonic() - begun < 20

    on_ranks(RANKS, body)


def own_token(tmp_path, monkeypatch, mode=0o600):
    token = tmp_path / "token"
    token.write_text("secret", encoding="ascii")
    token.chmod(mode)
    monkeypatch.setenv("COMMTUNE_TOKEN_FILE", str(token))
    return token


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
    own_token(tmp_path, monkeypatch, 0o666)

    def body(rank):
        with pytest.raises(commtune.CommtuneError, match="nobody else can read"):
            trained("http://127.0.0.1:1/v1/plans/7", rank)

    on_ranks(RANKS, body)


REFUSED = r"must be a file that is yours and that nobody else can read \(chmod 600\); it has mode "


def test_the_token_file_that_was_opened_is_looked_at(tmp_path, monkeypatch):
    path = own_token(tmp_path, monkeypatch, 0o666)
    private = tmp_path / "private"
    private.write_text("secret", encoding="ascii")
    private.chmod(0o600)

    def opened_and_then_replaced(*arguments, open=os.open):
        descriptor = open(*arguments)
        private.replace(path)
        return descriptor

    with monkeypatch.context() as patch, pytest.raises(commtune.CommtuneError, match=REFUSED + "666"):
        patch.setattr(os, "open", opened_and_then_replaced)
        service.token()
    assert service.token().text == "secret"


def test_a_pipe_is_no_token_and_not_waited_for(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "token", 0o600)
    monkeypatch.setenv("COMMTUNE_TOKEN_FILE", str(tmp_path / "token"))
    with pytest.raises(commtune.CommtuneError, match=REFUSED + "600"):
        service.token()


def test_a_token_file_holds_a_token_and_nothing_else(tmp_path, monkeypatch):
    path = own_token(tmp_path, monkeypatch)
    for text in ("", "secret\r\nX-Evil: 1", "s\u00e9cret", "s" * 513):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(commtune.CommtuneError, match="must hold a token and nothing else"):
            service.token()


def test_without_a_token_file_there_is_none_unless_one_was_named(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("COMMTUNE_TOKEN_FILE", raising=False)
    assert service.token() is None
    monkeypatch.setenv("COMMTUNE_TOKEN_FILE", str(tmp_path / "token"))
    with pytest.raises(commtune.CommtuneError, match="cannot be read"):
        service.token()


def test_the_usual_token_file_is_no_token_of_the_site(tmp_path, monkeypatch):
    folder = tmp_path / ".config" / "commtune"
    folder.mkdir(parents=True)
    own_token(folder, monkeypatch, 0o644)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COMMTUNE_TOKEN_FILE", "")  # names none
    with pytest.raises(commtune.CommtuneError, match=REFUSED + "644"):
        service.token()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: the token file of a whole site is root's")
def test_a_token_for_the_whole_site_may_only_ask_for_plans(tmp_path, monkeypatch):
    own_token(tmp_path, monkeypatch, 0o644)
    runs = []
    service.ask(f"{serve(None, runs=runs, scope='plan')}/v1/runs", {}, 30.0)
    assert runs == [({}, "Bearer secret")]
    with pytest.raises(commtune.CommtuneError, match="it may do more than ask for plans"):
        service.ask(f"{serve(None, runs=runs, scope='operate')}/v1/runs", {}, 30.0)
    assert len(runs) == 1  # it was not even asked
