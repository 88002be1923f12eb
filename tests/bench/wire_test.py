#!/usr/bin/env python3
"""What tests/bench/wire makes of its measurements."""

import importlib.util
import sys
import unittest
from importlib.machinery import SourceFileLoader
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
LOADER = SourceFileLoader("wire", str(HERE / "wire"))
wire = importlib.util.module_from_spec(importlib.util.spec_from_loader("wire", LOADER))
LOADER.exec_module(wire)
import noise  # noqa: E402  of the bench's folder


def plan(predicted, medians, sent, on_cards):
    made = wire.Plan("made up", Path("made-up.json"))
    made.predicted, made.medians, made.sent, made.on_cards = predicted, medians, sent, on_cards
    return made


def judged(cast_sent=50.0, cast_cards=51, predicted=0.102):
    plain = plan(0.2, [0.2, 0.2], 100.0, [100, 102])
    cast = plan(predicted, [0.1, 0.1], cast_sent, [cast_cards, cast_cards])
    return wire.goals_of(plain, plan(0.2, [0.202], 100.0, [100]), cast, cast)


class Judgement(unittest.TestCase):
    def test_half_the_bytes_and_good_predictions_are_met(self):
        goals, apart, sent = judged()
        self.assertEqual(noise.verdict(goals), "met")
        self.assertAlmostEqual(apart, 0.01)
        self.assertEqual(sent, 0.5)

    def test_one_byte_more_than_half_is_missed(self):
        self.assertEqual(noise.verdict(judged(cast_sent=50.0001)[0]), "missed")

    def test_cards_may_send_headers_but_not_much_more(self):
        self.assertEqual(noise.verdict(judged(cast_cards=54)[0]), "met")
        self.assertEqual(noise.verdict(judged(cast_cards=60)[0]), "missed")

    def test_a_prediction_far_off_is_missed(self):
        self.assertEqual(noise.verdict(judged(predicted=0.12)[0]), "missed")

    def test_the_result_line_has_every_target(self):
        goals, apart, sent = judged()
        line = wire.result_line(goals, apart, sent, 2.0, "none")
        for word in ("card_ratio=", "error_as_it_is=", "error_cast=0.0200(<=0.08)", "sent_ratio=0.500000", "gain=2.000", "excluded=none"):
            self.assertIn(word, line)


if __name__ == "__main__":
    unittest.main()
