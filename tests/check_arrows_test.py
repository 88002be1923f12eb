#!/usr/bin/python3
"""Each kind of arrow that the design forbids is found, in small made-up trees; what it allows passes."""

import subprocess
import tempfile
import unittest
from pathlib import Path

CHECK = Path(__file__).with_name("check-arrows")

# A tree with which nothing is wrong: a folder with ordered rooms, one above it, and a header that is made at build time.
FINE = {
    "CMakeLists.txt": "add_library(commtune_base INTERFACE)\nadd_library(commtune::base ALIAS commtune_base)\n",
    "perfmodel/CMakeLists.txt": """
        set(sources fit/fit.cc)  # not "bound.cc"
        add_library(perfmodel base/units.cc ${sources} plan.cc bound/bound.cc)
        add_library(commtune::perfmodel ALIAS perfmodel)
        target_link_libraries(perfmodel PUBLIC commtune::base)
    """,
    "perfmodel/base/units.h": "",
    "perfmodel/base/units.cc": '#include "perfmodel/base/units.h"\n',
    "perfmodel/fit/fit.h": '#include "perfmodel/base/units.h"\n',
    "perfmodel/fit/fit.cc": '#include "perfmodel/fit/fit.h"\n',
    "perfmodel/plan.h": '#include "perfmodel/fit/fit.h"\n',
    "perfmodel/plan.cc": '#include "perfmodel/plan.h"\n',
    "perfmodel/bound/bound.h": '#include "perfmodel/plan.h"\n// #include "tuner/tuner.h"\n/*\n#include "tuner/tuner.h"\n*/\n',
    "perfmodel/bound/bound.cc": '#include <vector>\n#include "perfmodel/bound/bound.h"\n',
    "tuner/CMakeLists.txt": """
        add_library(tuner tuner.cc methods/bsp.cc)
        add_library(commtune::tuner ALIAS tuner)
        target_link_libraries(tuner
          PUBLIC commtune::perfmodel
          PRIVATE "fmt::fmt")
    """,
    "tuner/methods/method.h": '#include "perfmodel/plan.h"\n',
    "tuner/methods/bsp.cc": '#include "tuner/methods/method.h"\n#include "tuner/generated_table.h"\n',
    "tuner/tuner.h": "",
    "tuner/tuner.cc": '#include "tuner/tuner.h"\n#include "perfmodel/plan.h"\n',
}


def run(changes):
    """The checker on FINE with these files in place of its own; None takes one away."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {**FINE, **changes}.items():
            if text is not None:
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
        return subprocess.run([CHECK, folder], capture_output=True, text=True, check=False)


class Arrows(unittest.TestCase):
    def passes(self, changes):
        done = run(changes)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def finds(self, changes, place, *said):
        done = run(changes)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        line = next((line for line in done.stdout.splitlines() if line.startswith(place + ": ")), None)
        self.assertIsNotNone(line, f"{place} is not in\n{done.stdout}")
        for text in said:
            self.assertIn(text, line)

    def test_a_tree_whose_arrows_go_down_passes(self):
        self.passes({})

    def test_rooms_that_nobody_has_moved_into_are_not_missed(self):
        self.passes({name: None for name in FINE if name.startswith("perfmodel/bound/")})

    def test_a_folder_includes_one_above_it(self):
        self.finds({"perfmodel/plan.cc": '\n#include "tuner/tuner.h"\n'}, "perfmodel/plan.cc:2", "from perfmodel/ up to tuner/", "perfmodel/ uses no other folder")

    def test_a_folder_includes_one_beside_it(self):
        self.finds({"tuner/tuner.cc": '#include "store/store.h"\n', "store/store.h": ""}, "tuner/tuner.cc:1", "from tuner/ up to store/", "tuner/ uses perfmodel/")

    def test_the_product_includes_nothing_of_the_tests(self):
        self.finds({"tuner/tuner.cc": '#include "tests/support.h"\n'}, "tuner/tuner.cc:1", "of the tests")

    def test_a_link_line_goes_up(self):
        text = FINE["perfmodel/CMakeLists.txt"].replace("PUBLIC", "PUBLIC commtune::tuner\n PRIVATE")
        self.finds({"perfmodel/CMakeLists.txt": text}, "perfmodel/CMakeLists.txt:5", "perfmodel links tuner", "from perfmodel/ up to tuner/")

    def test_a_room_includes_one_after_it(self):
        self.finds({"perfmodel/fit/fit.cc": '#include "perfmodel/fit/fit.h"\n#include "perfmodel/bound/bound.h"\n'}, "perfmodel/fit/fit.cc:2", "from perfmodel/fit/ up to perfmodel/bound/")

    def test_a_room_includes_files_at_the_top_that_come_after_it(self):
        self.finds({"perfmodel/fit/fit.cc": '#include "perfmodel/plan.h"\n'}, "perfmodel/fit/fit.cc:1", "up to the files at the top of perfmodel/")

    def test_a_room_without_a_place_in_the_order_needs_one(self):
        self.finds({"perfmodel/attic/box.h": ""}, "perfmodel/attic/box.h:1", "perfmodel/attic/ has no place in the order", "ROOMS")

    def test_rooms_without_an_order_form_no_circle(self):
        rooms = {"tuner/search/a.h": '#include "tuner/methods/b.h"\n', "tuner/methods/b.h": "", "tuner/methods/c.h": '#include "tuner/search/d.h"\n', "tuner/search/d.h": ""}
        self.finds(rooms, "tuner/search/a.h:1", "rooms in a circle", "tuner/methods/ -> tuner/search/ -> tuner/methods/")
        self.finds(rooms, "tuner/methods/c.h:1", "rooms in a circle")

    def test_rooms_inside_a_room_form_no_circle(self):
        self.finds({"executor/transport/tcp/a.h": '#include "executor/transport/mpi/b.h"\n', "executor/transport/mpi/b.h": "",
                    "executor/transport/mpi/c.h": '#include "executor/transport/tcp/a.h"\n'}, "executor/transport/mpi/c.h:1", "rooms in a circle")

    def test_a_room_and_a_file_beside_it_form_no_circle(self):
        self.finds({"tuner/kind.h": '#include "tuner/methods/list.h"\n', "tuner/methods/list.h": "", "tuner/methods/other.h": '#include "tuner/kind.h"\n'},
                   "tuner/kind.h:1", "rooms in a circle")

    def test_files_beside_rooms_may_stand_above_and_below_them(self):
        self.passes({"tuner/tuner.cc": '#include "tuner/tuner.h"\n#include "tuner/methods/list.h"\n', "tuner/methods/list.h": '#include "tuner/methods/method.h"\n'})

    def test_headers_form_no_circle(self):
        self.finds({"tuner/methods/method.h": '#include "tuner/tuner.h"\n', "tuner/tuner.h": '#pragma once\n#include "tuner/methods/method.h"\n'}, "tuner/tuner.h:2", "files in a circle", "tuner/methods/method.h -> tuner/tuner.h")

    def test_targets_form_no_circle(self):
        text = "add_library(a a.cc)\nadd_library(b b.cc)\ntarget_link_libraries(a PRIVATE b)\ntarget_link_libraries(b PRIVATE a)\n"
        self.finds({"store/CMakeLists.txt": text}, "store/CMakeLists.txt:4", "targets in a circle")

    def test_a_target_names_what_its_sources_include(self):
        text = FINE["tuner/CMakeLists.txt"].replace("commtune::perfmodel", "commtune::base")
        self.finds({"tuner/CMakeLists.txt": text}, "tuner/methods/method.h:1", "commtune::perfmodel, not linked by tuner (1 more", "target_link_libraries(tuner ...) of tuner/CMakeLists.txt")

    def test_what_another_target_names_does_not_count(self):
        text = "add_library(api a.cc)\ntarget_link_libraries(api PRIVATE commtune::tuner)\n"
        self.finds({"api/CMakeLists.txt": text, "api/a.cc": '#include "perfmodel/plan.h"\n'}, "api/a.cc:1", "not linked by api")

    def test_includes_are_found_beside_the_file_too(self):
        self.finds({"perfmodel/plan.cc": '#include "plan.h"\n', "perfmodel/plan.h": '#include "bound/bound.h"\n'}, "perfmodel/plan.h:1", "up to perfmodel/bound/")

    def test_a_folder_without_sources_is_refused(self):
        done = run({name: None for name in FINE if name != "CMakeLists.txt"})
        self.assertEqual(done.returncode, 1)
        self.assertIn("no sources", done.stderr)


if __name__ == "__main__":
    unittest.main()
