#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "api/cli/commands.h"
#include "perfmodel/base/error.h"
#include "perfmodel/base/units.h"

namespace commtune::api {
namespace {

struct StoreFlags {
  std::string target, older;
  int keep = -1;
  bool dry_run = false;
};

void back_up(const Session& session, const StoreFlags& flags) {
  const ResolvedSettings resolved = session.resolve();
  const Store store = open_store(resolved.settings);
  store.backup(flags.target);
  if (session.json) {
    session.print_json({{"backup", flags.target}});
    return;
  }
  session.print(fmt::format("{} is a whole copy of {}\n", flags.target, store.path().string()));
}

void prune(const Session& session, const StoreFlags& flags) {
  PruneOptions options;
  options.dry_run = flags.dry_run;
  if (!flags.older.empty())
    options.before = system_now() - std::chrono::duration_cast<Timestamp::duration>(
                                        parse_flag("--older", flags.older, parse_duration));
  if (flags.keep >= 0) options.keep = flags.keep;
  if (!options.before && !options.keep)
    throw Error(ErrorCode::kBadInput, "tune store prune: say what to keep with --older, --keep or both");
  const ResolvedSettings resolved = session.resolve();
  Store store = open_store(resolved.settings);
  const PruneReport report = store.prune(options);
  const std::pair<const char*, std::int64_t> counts[] = {
      {"runs", report.runs},         {"plans", report.plans},     {"fits", report.fits},
      {"probes", report.sessions},   {"samples", report.samples}, {"profiles", report.profiles},
      {"clusters", report.clusters}, {"jobs", report.jobs},       {"answers", report.answers}};
  if (session.json) {
    nlohmann::json document{{"dry_run", flags.dry_run}, {"freed_bytes", report.freed.count}};
    for (const auto& [name, count] : counts) document[name] = count;
    session.print_json(document);
    return;
  }
  std::string text = flags.dry_run ? "would go:" : "gone:";
  for (const auto& [name, count] : counts) text += fmt::format(" {} {}", count, name);
  session.print(text + (flags.dry_run ? "\n" : fmt::format("; {} freed\n", format_size(report.freed))));
}

void check(const Session& session) {
  const ResolvedSettings resolved = session.resolve();
  const Store store = open_store(resolved.settings);
  const std::vector<std::string> findings = store.examine();
  if (session.json) {
    session.print_json({{"findings", findings}});
  } else {
    for (const std::string& finding : findings) session.print(finding + "\n");
    if (findings.empty()) session.print(fmt::format("{}: all is well\n", store.path().string()));
  }
  if (!findings.empty())
    throw Error(ErrorCode::kStorage, fmt::format("{} is damaged; restore a backup", store.path().string()));
}

}  // namespace

void add_store_command(CLI::App& tune, Session& session) {
  CLI::App* command = tune.add_subcommand("store", "Back up, prune and check the database");
  command->require_subcommand(1);
  command->footer(
      "Examples:\n"
      "  tune store backup /backups/commtune.db            while others read and write\n"
      "  tune store prune --older 2160h --keep 100         runs, plans and fits that nobody needs any more\n"
      "  tune store check                                  every page, index and reference");
  auto flags = std::make_shared<StoreFlags>();
  CLI::App* backup_command = command->add_subcommand("backup", "Copy it as it is now, while it is in use");
  backup_command
      ->add_option("FILE", flags->target,
                   "where the copy goes; a file there is replaced once the copy is whole")
      ->required();
  CLI::App* prune_command = command->add_subcommand("prune", "Delete what is old");
  prune_command->add_option("--older", flags->older, "delete only what is older than this")
      ->type_name("TIME");
  prune_command->add_option("--keep", flags->keep, "so many of each kind and cluster, the newest, stay")
      ->check(CLI::Range(0, 1'000'000'000));
  prune_command->add_flag("--dry-run", flags->dry_run, "count what would be deleted, and delete nothing");
  CLI::App* check_command = command->add_subcommand("check", "Examine it (status 8 when it is damaged)");
  for (CLI::App* each : {backup_command, prune_command, check_command}) add_common_flags(*each, session, {});
  backup_command->callback(
      [&session, flags] { session.action = [&session, flags] { back_up(session, *flags); }; });
  prune_command->callback(
      [&session, flags] { session.action = [&session, flags] { prune(session, *flags); }; });
  check_command->callback([&session] { session.action = [&session] { check(session); }; });
}

}  // namespace commtune::api
