#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "api/actions/tokens.h"
#include "api/cli/commands.h"
#include "api/output/report.h"
#include "api/output/table.h"
#include "perfmodel/base/units.h"

namespace commtune::api {
namespace {

struct TokenFlags {
  std::string name, expires;
  std::vector<std::string> scopes;
  RowId id = 0;
};

std::string moment(const std::optional<Timestamp>& at) { return at ? when(*at) : "-"; }

void make(const Session& session, const TokenFlags& flags) {
  const ResolvedSettings resolved = session.resolve();
  Store store = open_store(resolved.settings);
  std::optional<Timestamp> expires;
  if (!flags.expires.empty())
    expires = system_now() + std::chrono::duration_cast<Timestamp::duration>(
                                 parse_flag("--expires", flags.expires, parse_duration));
  const MadeToken made = make_token(store, flags.name, flags.scopes, expires);
  if (session.json) {
    nlohmann::json document = to_json(Tokens(store).find(made.id).value());
    document["token"] = made.secret;
    session.print_json(document);
    return;
  }
  session.say(fmt::format("token {} \"{}\"; this is the only time that it is shown:", made.id, flags.name));
  session.print(made.secret + "\n");
}

void list(const Session& session) {
  const ResolvedSettings resolved = session.resolve();
  Store store = open_store(resolved.settings);
  const PageOf<TokenRow> page = Tokens(store).list(Page{1000, 0});
  if (session.json) {
    nlohmann::json rows = nlohmann::json::array();
    for (const TokenRow& row : page.rows) rows.push_back(to_json(row));
    session.print_json(
        {{"rows", std::move(rows)}, {"next", page.next ? nlohmann::json(*page.next) : nlohmann::json()}});
    return;
  }
  Table table({{"id"}, {"name", Align::kLeft}, {"scopes", Align::kLeft}, {"made"}, {"expires"}, {"revoked"}});
  for (const TokenRow& row : page.rows)
    table.add({std::to_string(row.id), row.name, fmt::format("{}", fmt::join(row.scopes, ", ")),
               when(row.origin.created), moment(row.expires), moment(row.revoked)});
  session.print(page.rows.empty() ? "no tokens yet\n" : table.text());
}

void revoke(const Session& session, const TokenFlags& flags) {
  const ResolvedSettings resolved = session.resolve();
  Store store = open_store(resolved.settings);
  Tokens(store).revoke(flags.id);
  if (session.json) {
    session.print_json(to_json(Tokens(store).find(flags.id).value()));
    return;
  }
  session.print(fmt::format("token {} is revoked; a running service refuses it from now on\n", flags.id));
}

}  // namespace

void add_token_command(CLI::App& tune, Session& session) {
  CLI::App* command = tune.add_subcommand("token", "Make, list and revoke tokens of the service");
  command->require_subcommand(1);
  command->footer(
      "Examples:\n"
      "  tune token make slurm --scope plan --expires 2160h\n"
      "  tune token list\n"
      "  tune token revoke 3\n"
      "Scopes: read; plan (also asks for plans and hands in results); operate (also probes, runs, tokens).");
  auto flags = std::make_shared<TokenFlags>();
  CLI::App* make_command = command->add_subcommand("make", "Make a token; it is shown once");
  make_command->add_option("NAME", flags->name, "what it is for")->required();
  make_command->add_option("--scope", flags->scopes, "what it may do")
      ->required()
      ->check(CLI::IsMember({"read", "plan", "operate"}))
      ->type_name("read|plan|operate")
      ->expected(1)
      ->take_all();
  make_command->add_option("--expires", flags->expires, "how long it holds")
      ->type_name("TIME")
      ->default_str("for ever");
  CLI::App* list_command = command->add_subcommand("list", "List all tokens, without their secrets");
  CLI::App* revoke_command = command->add_subcommand("revoke", "Refuse a token from now on");
  revoke_command->add_option("ID", flags->id, "its number, as listed")->required();
  for (CLI::App* each : {make_command, list_command, revoke_command}) add_common_flags(*each, session, {});
  make_command->callback(
      [&session, flags] { session.action = [&session, flags] { make(session, *flags); }; });
  list_command->callback([&session] { session.action = [&session] { list(session); }; });
  revoke_command->callback(
      [&session, flags] { session.action = [&session, flags] { revoke(session, *flags); }; });
}

}  // namespace commtune::api
