#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "api/actions/run.h"
#include "api/cli/commands.h"
#include "api/output/report.h"
#include "api/output/rows.h"
#include "api/question/fitted.h"
#include "api/question/models.h"
#include "api/question/plan_lookup.h"
#include "api/view/doubtful.h"
#include "api/view/page_json.h"
#include "api/view/row_json.h"
#include "perfmodel/base/error.h"
#include "perfmodel/cost/doubtful_fits.h"
#include "perfmodel/shipped_profiles.h"

namespace commtune::api {
namespace {

using nlohmann::json;

struct ShowFlags {
  std::string what, id;
  int limit = 50;
  FitAge fit_age;
};

/// What one kind of thing offers: a page of it, and one of it in full.
struct Shelf {
  std::string_view name;
  void (*list)(const Session& session, const Store& store, const ShowFlags& flags);
  void (*one)(const Session& session, const Store& store, const ShowFlags& flags);
};

RowId row_id(const ShowFlags& flags) {
  std::size_t used = 0;
  RowId id = 0;
  try {
    id = std::stoll(flags.id, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  if (used == 0 || used != flags.id.size() || id < 1)
    throw Error(ErrorCode::kBadInput,
                fmt::format("{} \"{}\": expected a whole number from 1", flags.what, flags.id));
  return id;
}

[[noreturn]] void throw_absent(const ShowFlags& flags) {
  throw Error(ErrorCode::kNotFound, fmt::format("{} {}: not in the database; `tune show {}` lists them",
                                                flags.what, flags.id, flags.what));
}

/// context  what a row's JSON and table need besides: nothing, or the age that marks fits
template <class Row, class... More>
void print_page(const Session& session, const PageOf<Row>& page, const More&... context) {
  if (session.json) {
    session.print_json(page_to_json(page, [&](const Row& row) { return to_json(row, context...); }));
    return;
  }
  session.print(page.rows.empty() ? "nothing stored yet\n" : to_table(page.rows, context...));
  if (page.next) session.print("there are more; --limit shows up to 1000\n");
}

template <class Row>
const Row& present(const std::optional<Row>& row, const ShowFlags& flags) {
  if (!row) throw_absent(flags);
  return *row;
}

/// What the probe warned of when it made the fits.
std::string doubtful_lines(const Cluster& cluster) {
  std::string out;
  for (const std::string& line : doubtful_fits(cluster)) out += fmt::format("doubtful: {}\n", line);
  return out;
}

void list_clusters(const Session& session, const Store& store, const ShowFlags& flags) {
  print_page(session, store.clusters({flags.limit, 0}));
}

/// A cluster by name or id, with its current fit and its probes.
void show_cluster(const Session& session, const Store& store, const ShowFlags& flags) {
  auto found = store.find_cluster(std::string_view(flags.id));
  const ClusterRow cluster = found ? *found : present(store.find_cluster(row_id(flags)), flags);
  const Page page{flags.limit, 0};
  if (session.json) {
    session.print_json(cluster_to_json(store, cluster, flags.fit_age, page));
    return;
  }
  const std::vector<TransportFit> fits = current_fits(store, cluster);
  const PageOf<SessionRow> probes = store.sessions(cluster.id, page);
  session.print(to_table(std::vector<ClusterRow>{cluster}) + "\n");
  for (const auto& [name, value] : cluster.facts) session.print(fmt::format("{}: {}\n", name, value));
  session.print("\nprobes\n" + (probes.rows.empty() ? "none\n" : to_table(probes.rows)));
  if (fits.empty()) session.print("\nno fit yet\n");
  for (const TransportFit& each : fits) {
    const FitRow& fit = *each.fit;
    session.print(fmt::format("\nfit {}{}\n{}{}{}", fit.id,
                              fits.size() > 1 ? " over " + fit.snapshot.transport : std::string(),
                              fit_table(fit.snapshot), doubtful_lines(fit.snapshot),
                              to_text(FitMarks{is_stale(fit, flags.fit_age), each.differences})));
  }
}

void list_fits(const Session& session, const Store& store, const ShowFlags& flags) {
  print_page(session, store.fits({}, {flags.limit, 0}), flags.fit_age);
}

void show_fit(const Session& session, const Store& store, const ShowFlags& flags) {
  const FitRow fit = present(store.find_fit(row_id(flags)), flags);
  if (session.json) {
    session.print_json(to_json(fit, flags.fit_age));
    return;
  }
  session.print(to_table(std::vector<FitSummary>{fit}, flags.fit_age) + "\n" + fit_table(fit.snapshot) +
                doubtful_lines(fit.snapshot) + to_text(marks_of(store, fit, fit.snapshot, flags.fit_age)));
}

/// Shipped ones first, since they can be used without having been stored.
void list_profiles(const Session& session, const Store& store, const ShowFlags& flags) {
  std::vector<ProfileSummary> shipped;
  for (const std::string& name : shipped_profile_names())
    shipped.push_back(summary_of(shipped_profile(name).value()));
  const PageOf<ProfileSummary> stored = store.profiles({flags.limit, 0});
  if (session.json) {
    session.print_json(profiles_to_json(shipped, stored));
    return;
  }
  session.print("shipped\n" + to_table(shipped));
  if (!stored.rows.empty()) session.print("\nused by stored plans\n" + to_table(stored.rows));
}

void show_profile(const Session& session, const Store& store, const ShowFlags& flags) {
  const bool is_number =
      flags.id.find_first_not_of("0123456789") == std::string::npos && flags.id.size() <= 12;
  const auto stored = is_number ? store.find_profile(row_id(flags)) : std::nullopt;
  const Profile profile = stored ? stored->profile : find_profile(store, flags.id);
  if (session.json) {
    session.print_json(commtune::to_json(profile));
    return;
  }
  session.print(to_table(std::vector<ProfileSummary>{summary_of(profile)}));
  session.print(fmt::format("\n{} on {}\n{}\n{}\n", profile.origin.how,
                            profile.origin.device.empty() ? "an unnamed device" : profile.origin.device,
                            profile.origin.source, profile.origin.note));
}

void list_plans(const Session& session, const Store& store, const ShowFlags& flags) {
  print_page(session, store.plans({}, {flags.limit, 0}));
}

/// What chose the plan, where that was a measurement, and the runs behind it: they are of the row that it was
/// predicted in.
std::string verified_text(const PlanRow& plan) {
  if (!plan.ranking.is_object() || !plan.ranking.contains("runs")) return {};
  const auto runs = plan.ranking.at("runs").get<std::map<std::string, std::vector<RowId>>>();
  return fmt::format("{}\nmeasured by runs {}\n", plan.ranking.at("answer").at("reason").get<std::string>(),
                     fmt::join(runs.at(plan.method), ", "));
}

void show_plan(const Session& session, const Store& store, const ShowFlags& flags) {
  const PlanRow plan = present(look_up_plan(store, flags.id), flags);
  if (session.json) {
    session.print_json(to_json_with_doubt(store, plan));
    return;
  }
  session.print(to_table(std::vector<PlanSummary>{plan}));
  for (const tuner::DoubtfulFit& fit : doubtful_fits_of(store, plan))
    session.print(fmt::format("rests on a doubtful fit: {}: {}\n", fit.fit, to_string(fit.quality)));
  if (plan.ranking.is_object() && plan.ranking.contains("marks"))
    session.print(to_text(marks_from_json(plan.ranking.at("marks"))));
  session.print(verified_text(plan));
  session.print("\nruns\n");
  const PageOf<RunSummary> runs = store.runs(plan.id, {flags.limit, 0});
  session.print(runs.rows.empty() ? "none\n" : to_table(runs.rows));
}

void list_runs(const Session& session, const Store& store, const ShowFlags& flags) {
  print_page(session, store.runs({}, {flags.limit, 0}));
}

void show_run(const Session& session, const Store& store, const ShowFlags& flags) {
  const RunRow run = present(store.find_run(row_id(flags)), flags);
  if (session.json) {
    session.print_json(to_json(run));
    return;
  }
  session.print(to_table(std::vector<RunSummary>{run}));
  for (const std::string& difference : run.differences)
    session.print(fmt::format("warning: the fit was made under other conditions: {}\n", difference));
  for (const double seconds : run.iteration_seconds) session.print(format_time(Seconds{seconds}) + "\n");
}

void list_probes(const Session& session, const Store& store, const ShowFlags& flags) {
  print_page(session, store.sessions({}, {flags.limit, 0}));
}

void show_samples(const Session& session, const Store& store, const ShowFlags& flags) {
  present(store.find_session(row_id(flags)), flags);
  print_page(session, store.samples(row_id(flags), {flags.limit, 0}));
}

constexpr Shelf kShelves[] = {
    {"clusters", list_clusters, show_cluster},
    {"fits", list_fits, show_fit},
    {"profiles", list_profiles, show_profile},
    {"plans", list_plans, show_plan},
    {"runs", list_runs, show_run},
    {"samples", list_probes, show_samples},
};

void run_show(const Session& session, ShowFlags flags) {
  const ResolvedSettings resolved = session.resolve();
  flags.fit_age = fit_age(resolved.settings);
  const Store store = open_store(resolved.settings);
  for (const Shelf& shelf : kShelves)
    if (shelf.name == flags.what) (flags.id.empty() ? shelf.list : shelf.one)(session, store, flags);
}

}  // namespace

void add_show_command(CLI::App& tune, Session& session) {
  CLI::App* command = tune.add_subcommand("show", "Show what the database knows");
  command->footer(
      "Examples:\n"
      "  tune show clusters            tune show clusters lab      with its fits and probes\n"
      "  tune show profiles            tune show profiles resnet50\n"
      "  tune show plans               tune show plans 12          with its runs; the plan by --json\n"
      "                                tune show plans latest      the one that was chosen last\n"
      "  tune show runs                tune show samples 3         samples of probe 3");
  auto flags = std::make_shared<ShowFlags>();
  std::vector<std::string> names;
  for (const Shelf& shelf : kShelves) names.emplace_back(shelf.name);
  command->add_option("WHAT", flags->what, "clusters, fits, profiles, plans, runs or samples")
      ->required()
      ->check(CLI::IsMember(names))
      ->type_name("");
  command->add_option(
      "ID", flags->id,
      "one of them: its id, name or (first digits of its) digest, for plans also \"latest\"; for samples "
      "the probe's id");
  command->add_option("--limit", flags->limit, "rows at most, 1 to 1000")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  add_common_flags(*command, session, {"fit_age"});
  command->callback([&session, flags] { session.action = [&session, flags] { run_show(session, *flags); }; });
}

}  // namespace commtune::api
