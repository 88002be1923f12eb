#!/usr/bin/python3
"""The package without PyTorch: ranks as threads, gradients as arrays."""

import array
import threading
import unittest

import commtune

TENSORS = [("a.weight", 4000), ("a.bias", 40), ("b.weight", 8000)]


class Meeting:
    """How ranks of one process tell each other what they know."""

    def __init__(self, ranks):
        self.records, self.barrier = [b""] * ranks, threading.Barrier(ranks)

    def all_gather(self, rank):
        def gather(own):
            self.records[rank] = own
            self.barrier.wait(timeout=100)
            everyone = list(self.records)
            self.barrier.wait(timeout=100)
            return everyone

        return gather


def on_ranks(ranks, body):
    """body(rank, all_gather) on each; raises the first failure."""
    meeting, failures = Meeting(ranks), []

    def run(rank):
        try:
            body(rank, meeting.all_gather(rank))
        except BaseException as error:
            failures.append(error)
            meeting.barrier.abort()

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for failure in failures:
        raise failure


class Member:
    """A rank that trains."""

    def __init__(self, rank, ranks, all_gather, **options):
        self.session = commtune.Session(rank, ranks, all_gather, timeout=100, **options)
        self.gradients = [array.array("f", bytes(size)) for _, size in TENSORS]
        self.session.layout("float32", TENSORS, [gradient.buffer_info()[0] for gradient in self.gradients])
        self.rank = rank

    def step(self):
        self.session.begin()
        for index in reversed(range(len(TENSORS))):
            for place in range(len(self.gradients[index])):
                self.gradients[index][place] = self.rank + index
            self.session.ready(index)
        for index in range(len(TENSORS)):
            self.session.wait(index)
        self.session.wait_all()


class Sessions(unittest.TestCase):
    def test_gradients_are_means_under_each_plan(self):
        def body(rank, all_gather):
            member = Member(rank, 3, all_gather)
            with member.session as session:
                for servers in (0, 2):
                    plan = session.bucket_plan(commtune.BucketOptions(first_bytes=1, bytes=5000, servers=servers, per_layer=servers > 0))
                    self.assertEqual(plan["layout"], session.layout_digest)
                    session.adopt(plan if rank == 0 else None)
                    for _ in range(3):
                        member.step()
                    for index, gradient in enumerate(member.gradients):
                        self.assertEqual(set(gradient), {1.0 + index})
                    self.assertTrue(session.is_back(0))
                    self.assertEqual(session.are_back(), bytes([1] * len(member.gradients)))
                statistics = session.statistics()
                self.assertEqual((statistics.iterations, statistics.gradient_bytes), (6, 12040))
                self.assertEqual(len(session.message_times()), statistics.messages)

        on_ranks(3, body)

    def test_a_plan_that_rank_zero_announces_is_in_force_on_all_from_the_same_step(self):
        def body(rank, all_gather):
            member = Member(rank, 3, all_gather, announced_plans=True)
            with member.session as session:
                session.adopt("buckets" if rank == 0 else None)
                before = session.plan_digest
                member.step()
                first = 4
                if rank == 0:
                    self.assertEqual(session.announce(session.bucket_plan(commtune.BucketOptions(servers=2))), first)
                for number in range(2, 8):
                    member.step()
                    self.assertEqual(session.plan_digest == before, number < first, number)
                self.assertEqual(session.refusal, "")
                with self.assertRaisesRegex(commtune.BadCall, "only rank 0" if rank else "JSON|cannot"):
                    session.announce("{" if rank == 0 else "buckets")

        on_ranks(3, body)

    def test_errors_have_kinds_and_say_what_to_do(self):
        def body(rank, all_gather):
            member = Member(rank, 2, all_gather)
            with member.session as session:
                with self.assertRaisesRegex(commtune.BadCall, "commtune_adopt.. comes first"):
                    session.begin()
                session.adopt("buckets")
                plan = {**session.bucket_plan(), "workers": 3}
                with self.assertRaisesRegex(commtune.PlanRefused, "the plan is for 3 workers"):
                    session.adopt(plan)
                with self.assertRaisesRegex(commtune.BadCall, "tensor = 9: must be less than 3"):
                    session.ready(9)
                member.step()

        on_ranks(2, body)

    def test_a_rank_that_fails_is_named_to_the_others(self):
        def body(rank, all_gather):
            member = Member(rank, 2, all_gather)
            expected = (ZeroDivisionError, "no such number") if rank == 1 else (commtune.PeerLost, "rank 1 .*ZeroDivisionError: no such number")
            with self.assertRaisesRegex(*expected), member.session as session:
                session.adopt("buckets")
                if rank == 1:
                    raise ZeroDivisionError("no such number")
                member.step()

        on_ranks(2, body)

    def test_what_the_rendezvous_raises_comes_out(self):
        def broken(_own):
            raise KeyError("no store")

        with self.assertRaisesRegex(KeyError, "no store"):
            commtune.Session(0, 2, broken)

    def test_the_package_is_as_old_as_its_library(self):
        self.assertEqual(commtune.library_version(), commtune.__version__)


if __name__ == "__main__":
    unittest.main()
