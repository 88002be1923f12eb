#!/usr/bin/env python3
"""Help, settings and small mistakes: what a new user meets first."""

import json
import unittest

import product


class Help(product.Product):
    def test_every_command_has_help_with_an_example(self):
        for command in ([], ["plan"], ["probe"], ["run"], ["show"], ["scale"], ["map"], ["config"], ["methods"], ["resnet50"]):
            with self.subTest(command=command):
                self.assertIn("xample", self.ok(*command, "--help"))

    def test_without_arguments_it_says_what_it_does(self):
        text = self.ok()
        self.assertIn("Exit status:", text)
        self.assertIn("tune probe --hosts", text)

    def test_it_says_that_a_run_replays(self):
        for command in ([], ["run"]):
            with self.subTest(command=command):
                text = " ".join(self.ok(*command, "--help").split())
                self.assertRegex(text, r"[Rr]eplay.*nothing is trained")
        self.assertIn("nothing is trained", self.ok("manual", "man"))

    def test_it_tells_its_version(self):
        self.assertRegex(self.ok("--version"), r"^\d+\.\d+\.\d+\n$")


def plain(roff):
    """Text as roff prints it."""
    return roff.replace("\\-", "-").replace("\\&", "").replace("\\e", "\\")


class Manual(product.Product):
    """The manual page and each command's help are one text, in the same form throughout."""

    NAMES = ("Open MPI", "IPv4")  # what may begin a phrase with a capital letter

    def setUp(self):
        super().setUp()
        self.page = self.ok("manual", "man")
        self.commands = {}  # name -> (description, {flag: text}, what follows)
        for section in self.page.split(".SH COMMANDS\n")[1].split(".SH ")[0].split(".SS ")[1:]:
            head, *entries = section.split(".TP\n.B ")
            name, description = head.split("\n")[:2]
            flags = dict(entry.split(".PP")[0].rstrip("\n").split("\n", 1) for entry in entries)
            footer = section.partition(".PP\n.nf\n")[2].partition("\n.fi")[0]
            self.commands[plain(name)] = (
                plain(description),
                {plain(flag): plain(text) for flag, text in flags.items()},
                plain(footer),
            )

    def test_help_says_the_same_of_each_flag(self):
        for command, (description, flags, footer) in self.commands.items():
            text = self.ok(*command.split()[1:], "--help")
            with self.subTest(command=command):
                self.assertIn(description, text)
                self.assertIn(footer, text)
                self.assertIn("-h, --help", flags)
            for flag, about in flags.items():
                with self.subTest(command=command, flag=flag):
                    self.assertIn(about, text)

    def test_each_flag_is_described_by_a_phrase_that_ends_with_its_default(self):
        for command, (_, flags, _) in self.commands.items():
            for flag, about in flags.items():
                with self.subTest(command=command, flag=flag):
                    if flag.startswith(("-h", "--help")):
                        continue  # the parser's own
                    self.assertTrue(about[0].islower() or about[0].isdigit() or about.startswith(self.NAMES), about)
                    self.assertNotRegex(about, r"\.$")
                    if "default" in about:
                        self.assertRegex(about, r" \(default: [^()]+\)$")
                        self.assertEqual(about.count("default"), 1)

    def test_each_command_says_what_to_do_and_shows_examples(self):
        for command, (description, _, footer) in self.commands.items():
            with self.subTest(command=command):
                self.assertRegex(description, r"^[A-Z][a-z]+,? ")
                self.assertNotRegex(description, r"\.$")
                if command.count(" ") == 1:
                    self.assertTrue(footer.startswith("Examples:\n  "), footer)

    def test_the_page_has_examples_and_exit_statuses_as_sections(self):
        for section in ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "COMMANDS", "EXAMPLES", "EXIT STATUS", "FILES"):
            self.assertIn(f"\n.SH {section}\n", self.page)
        self.assertIn("\n  9    ", plain(self.page).split(".SH EXIT STATUS")[1])


class Mistakes(product.Product):
    def test_an_unknown_flag_is_bad_input(self):
        self.assertIn("--clutser", self.refused(2, "probe", "--clutser", "lab"))

    def test_a_misspelt_command_is_recognised(self):
        self.assertIn('did you mean "probe"?', self.refused(2, "prob"))

    def test_errors_are_json_when_json_is_asked_for(self):
        done = self.tune("resnet50", "--json")
        self.assertEqual(done.returncode, 3)
        self.assertEqual(json.loads(done.stdout)["error"]["code"], "not_found")

    def test_a_size_without_sense_names_its_flag(self):
        self.assertIn("-e: ", self.refused(2, "probe", "-e", "big"))

    def test_a_cluster_that_was_not_probed_says_how_to(self):
        message = self.refused(3, "resnet50", "--cluster", "lab")
        self.assertIn('cluster "lab" has not been probed', message)
        self.assertIn("tune probe --cluster lab", message)

    def test_what_is_not_stored_is_said(self):
        for what in ("clusters", "fits", "plans", "runs", "samples"):
            with self.subTest(what=what):
                self.assertIn(f"{what} 77: not in the database", self.refused(3, "show", what, "77"))
        self.assertIn("expected a whole number", self.refused(2, "show", "runs", "x"))


class Plans(product.Product):
    def test_a_plan_is_shown_by_every_name_that_runs_it(self):
        self.made_cluster()
        chosen = self.json("show", "plans", "1")
        for name in ("latest", chosen["digest"], chosen["digest"][:4]):
            with self.subTest(name=name):
                self.assertEqual(self.json("show", "plans", name)["id"], 1)

    def test_the_latest_of_no_plans_says_how_to_make_one(self):
        self.assertIn("start with: tune MODEL", self.refused(3, "show", "plans", "latest"))


class Settings(product.Product):
    def test_config_says_where_each_value_came_from(self):
        folder = self.home / ".config" / "commtune"
        folder.mkdir(parents=True)
        (folder / "config.json").write_text('{"local_ranks": 3}', encoding="utf-8")
        rows = {row["name"]: row for row in self.json("config", "--cluster", "lab")["settings"]}
        self.assertEqual((rows["db"]["value"], rows["db"]["source"]), (str(self.database), "COMMTUNE_DB"))
        self.assertEqual((rows["cluster"]["value"], rows["cluster"]["source"]), ("lab", "--cluster"))
        self.assertEqual(rows["local_ranks"]["value"], "3")
        self.assertTrue(rows["local_ranks"]["source"].endswith("config.json"))
        self.assertEqual(rows["mpirun"]["source"], "default")

    def test_a_malformed_variable_refuses_to_start(self):
        for command in (["config"], ["show", "plans"], ["probe"], ["resnet50"]):
            with self.subTest(command=command):
                message = self.refused(2, *command, COMMTUNE_LOCAL_RANKS="many")
                self.assertEqual(message, 'tune: COMMTUNE_LOCAL_RANKS = "many": must be a whole number from 1 to 65536')

    def test_the_database_is_found_by_flag_variable_and_xdg(self):
        self.ok("show", "plans", "--db", str(self.home / "flag.db"))
        self.assertTrue((self.home / "flag.db").exists())
        self.assertFalse(self.database.exists())
        self.ok("show", "plans")
        self.assertTrue(self.database.exists())
        self.ok("show", "plans", COMMTUNE_DB="", XDG_DATA_HOME=str(self.home / "data"))
        self.assertTrue((self.home / "data" / "commtune" / "commtune.db").exists())


if __name__ == "__main__":
    unittest.main(verbosity=2)
