#include "api/cli/manual.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <sstream>
#include <string_view>
#include <vector>

#include "api/cli/commands.h"
#include "api/cli/knob_flags.h"
#include "api/version.h"
#include "perfmodel/base/error.h"
#include "perfmodel/shipped_profiles.h"

namespace commtune::api {
namespace {

/// Text that roff prints as it is.
std::string plain(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool line_begins = i == 0 || text[i - 1] == '\n';
    if (line_begins && (text[i] == '.' || text[i] == '\'')) out += "\\&";
    if (text[i] == '\\') {
      out += "\\e";
    } else if (text[i] == '-') {
      out += "\\-";
    } else {
      out += text[i];
    }
  }
  return out;
}

std::vector<const CLI::App*> shown_commands(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App* command) { return !command->get_group().empty(); });
}

std::vector<const CLI::Option*> shown_options(const CLI::App& app) {
  return app.get_options([](const CLI::Option* option) { return !option->get_group().empty(); });
}

/// "-H, --host-list LIST"
std::string heading(const CLI::Option& option) {
  std::string text;
  if (!option.nonpositional()) text = option.get_name(true, false);
  for (const std::string& name : option.get_snames()) text += (text.empty() ? "-" : ", -") + name;
  for (const std::string& name : option.get_lnames()) text += (text.empty() ? "--" : ", --") + name;
  if (option.nonpositional() && option.get_items_expected_max() > 0 && !option.get_type_name().empty())
    text += " " + option.get_type_name();
  return text;
}

std::string option_text(const CLI::Option& option) {
  return fmt::format(".TP\n.B {}\n{}\n", plain(heading(option)), plain(described(option)));
}

std::string options_text(const CLI::App& app) {
  std::string text;
  for (const CLI::Option* option : shown_options(app)) text += option_text(*option);
  return text;
}

std::string example_text(const std::string& footer) {
  return footer.empty() ? std::string() : fmt::format(".PP\n.nf\n{}\n.fi\n", plain(footer));
}

/// The parts of the text after the flags, "Examples:" and such, as sections of their own.
std::string sections(const std::string& footer) {
  std::string text, block;
  const auto end_block = [&] {
    if (!block.empty()) text += fmt::format(".nf\n{}\n.fi\n", plain(block));
    block.clear();
  };
  std::istringstream lines(footer);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line.front() != ' ' && line.back() == ':') {
      end_block();
      line.pop_back();
      std::transform(line.begin(), line.end(), line.begin(), [](unsigned char c) { return std::toupper(c); });
      text += ".SH " + plain(line) + "\n";
    } else if (!line.empty()) {
      block += (block.empty() ? "" : "\n") + line;
    }
  }
  end_block();
  return text;
}

void add_commands(const CLI::App& app, const std::string& before, std::string& text) {
  for (const CLI::App* command : shown_commands(app)) {
    const std::string name = before + " " + command->get_name();
    text += fmt::format(".SS {}\n{}\n", plain(name), plain(command->get_description()));
    text += options_text(*command) + example_text(command->get_footer());
    add_commands(*command, name, text);
  }
}

std::vector<std::string> words_of(const CLI::App& app) {
  std::vector<std::string> words;
  for (const CLI::App* command : shown_commands(app)) words.push_back(command->get_name());
  for (const CLI::Option* option : shown_options(app))
    for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
  return words;
}

/// One line of a shell's `case`: after these commands, these words.
void add_cases(const CLI::App& app, const std::string& path, std::string& text) {
  text += fmt::format("    \"{}\") words=\"{}\" ;;\n", path, fmt::join(words_of(app), " "));
  for (const CLI::App* command : shown_commands(app))
    add_cases(*command, path.empty() ? command->get_name() : path + " " + command->get_name(), text);
}

/// All paths of commands, so that a shell can tell them from other words.
void add_paths(const CLI::App& app, const std::string& path, std::string& text) {
  for (const CLI::App* command : shown_commands(app)) {
    const std::string name = path.empty() ? command->get_name() : path + " " + command->get_name();
    text += (text.empty() ? "" : "|") + fmt::format("\"{}\"", name);
    add_paths(*command, name, text);
  }
}

}  // namespace

std::string manual_page(const CLI::App& tune) {
  std::string text = fmt::format(
      ".TH TUNE 1 \"\" \"commtune {}\" \"User Commands\"\n.SH NAME\n"
      "tune \\- how a distributed training job should move its gradients\n.SH SYNOPSIS\n.B tune\n.I "
      "MODEL\n[flags]\n.br\n.B tune\n.I COMMAND\n[flags]\n"
      ".SH DESCRIPTION\n{}\n.SH OPTIONS\n",
      kVersion, plain(tune.get_description()));
  text += options_text(tune);
  text += ".SH COMMANDS\n";
  add_commands(tune, "tune", text);
  text += sections(tune.get_footer());
  text +=
      ".SH FILES\n.TP\n.B ~/.config/commtune/config.json\nsettings; "
      ".B tune config\nprints them all with where each came from\n";
  return text;
}

std::string bash_completion(const CLI::App& tune, std::span<const std::string> models) {
  std::string paths, cases;
  add_paths(tune, "", paths);
  add_cases(tune, "", cases);
  return fmt::format(
      R"(# Completion of tune(1) for bash; made by `tune manual bash`.
_tune() {{
  local word path= words
  COMPREPLY=()
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "${{path:+$path }}$word" in
    {}) path="${{path:+$path }}$word" ;;
    esac
  done
  case "$path" in
{}  esac
  [ -n "$path" ] || words="$words {}"
  [[ -z $path && $COMP_CWORD -gt 1 ]] && words=$(_tune_plan_flags)
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}")
}}
_tune_plan_flags() {{ echo "{}"; }}
complete -o default -F _tune tune
)",
      paths, cases, fmt::join(models, " "), fmt::join(words_of(*tune.get_subcommand("plan")), " "));
}

void add_manual_command(CLI::App& tune, Session& session) {
  CLI::App* command = tune.add_subcommand("manual", "Print the manual page or a shell's completion");
  command->group("");  // for packagers
  auto what = std::make_shared<std::string>();
  command->add_option("WHAT", *what, "man or bash")->required()->check(CLI::IsMember({"man", "bash"}));
  command->callback([&tune, &session, what] {
    session.action = [&tune, &session, what] {
      session.print(*what == "man" ? manual_page(tune) : bash_completion(tune, shipped_profile_names()));
    };
  });
}

}  // namespace commtune::api
