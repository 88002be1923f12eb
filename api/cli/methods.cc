#include <nlohmann/json.hpp>

#include "api/cli/commands.h"
#include "api/output/methods_text.h"
#include "api/view/methods_json.h"

namespace commtune::api {

void add_methods_command(CLI::App& tune, Session& session) {
  CLI::App* command =
      tune.add_subcommand("methods", "List the methods of the literature, and where each is the best");
  const auto where = std::make_shared<bool>(false);
  command->add_flag("--where", *where,
                    "every job of the sweep, with its best method and what the joint plan wins");
  command->footer(
      "Examples:\n"
      "  tune methods\n"
      "  tune methods --where\n"
      "  tune methods --json");
  add_common_flags(*command, session, {});
  command->callback([&session, where] {
    session.action = [&session, where] {
      if (session.json) return session.print_json(methods_to_json());
      session.print(*where ? where_best_table() : methods_table());
    };
  });
}

}  // namespace commtune::api
