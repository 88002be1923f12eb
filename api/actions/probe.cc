#include "api/actions/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "api/options.h"
#include "api/question/models.h"
#include "api/view/sample_rows.h"
#include "executor/transport/registry/kinds.h"
#include "perfmodel/base/error.h"
#include "perfmodel/base/json_reader.h"
#include "probes/analysis/fit_cluster.h"
#include "store/owner.h"

namespace commtune::api {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kFlushInterval{500};
/// What a transport gets where those before it took all: less tells nothing.
constexpr Seconds kLeastBudget{1};

/// What is stored of one probe while it runs.
class Recording {
 public:
  Recording(Context& context, const ProbeRequest& request, const probes::ProbeOptions& options)
      : context_(context), request_(request), options_(options) {}

  /// Samples of the last probe of this name if it was cut short, with the fingerprint that they belong to.
  void find_earlier(ProbeOrder& order) {
    if (request_.fresh) return;
    const auto cluster = context_.store.find_cluster(request_.cluster, request_.placing.network);
    if (!cluster) return;
    end_orphan(cluster->id);
    resumable_ = context_.store.resumable_session(cluster->id);
    if (!resumable_) return;
    order.earlier_fingerprint = cluster->fingerprint;
    for (const SampleRow& row : context_.store.all_samples(resumable_->id))
      order.earlier.push_back(from_row(row));
  }

  void on_facts(const nlohmann::json& value) {
    const JsonPlace place(value);
    probes::ClusterFacts facts;
    facts.name = request_.cluster;
    facts.transport = place["transport"].name();
    const JsonPlace hosts = place["rank_hosts"];
    for (std::size_t i = 0, n = hosts.size(1, 1U << 20U); i < n; ++i)
      facts.rank_hosts.push_back(hosts[i].name());
    const JsonPlace named = place["facts"];
    for (const auto& [name, fact] : named.object().items()) facts.facts[name] = named[name].text();
    // A fit of no samples is a cluster that is known by nothing but its facts.
    cluster_ = context_.store.put_cluster(probes::fit_cluster({}, facts));
    end_orphan(*cluster_);
    if (resumable_ && resumable_->cluster == *cluster_ && resumable_->samples > 0) {
      context_.store.resume_session(resumable_->id, this_process());
      session_ = resumable_->id;
      resumed_samples_ = static_cast<int>(resumable_->samples);
      context_.note(fmt::format("going on from {} samples of the interrupted probe {}; --fresh starts over",
                                resumed_samples_, resumable_->id));
      return;
    }
    NewSession session;
    session.cluster = *cluster_;
    session.settings = settings_of(options_);
    session.budget = options_.budget.value_or(Seconds{});
    session.owner = this_process();
    session_ = context_.store.start_session(session);
  }

  void on_sample(const nlohmann::json& value) {
    pending_.push_back(to_row(probes::probe_sample_from_json(value)));
    if (SteadyClock::now() - flushed_ >= kFlushInterval) flush();
  }

  void flush() {
    if (!pending_.empty() && session_) context_.store.append_samples(*session_, pending_);
    pending_.clear();
    flushed_ = SteadyClock::now();
  }

  /// Keeps what can be kept after a failure; the failure itself is what the caller reports.
  void abandon(WorkState state, const std::string& why) noexcept {
    if (!session_) return;
    try {
      flush();
      context_.store.end_session(*session_, state, why);
    } catch (const std::exception&) {
      pending_.clear();  // the store is what failed: its session is found orphaned by the next probe
    }
  }

  /// Samples and the fit in one transaction.
  RowId complete(const Cluster& cluster) {
    RowId fit = 0;
    context_.store.atomically([&] {
      flush();
      context_.store.end_session(session(), WorkState::kComplete);
      fit = context_.store.add_fit({session(), cluster, settings_of(options_)});
    });
    return fit;
  }

  RowId session() const { return session_.value(); }
  RowId cluster() const { return cluster_.value(); }
  bool started() const { return session_.has_value(); }
  int resumed_samples() const { return resumed_samples_; }
  std::int64_t stored_samples() const {
    const auto row = session_ ? context_.store.find_session(*session_) : std::nullopt;
    return row ? row->samples : 0;
  }

 private:
  /// A session whose process was killed still counts as running; nobody else can end it.
  void end_orphan(RowId cluster) {
    const auto running = context_.store.running_session(cluster);
    if (running && is_gone(running->owner))
      context_.store.end_session(running->id, WorkState::kInterrupted,
                                 fmt::format("its process ({}) is gone", running->owner));
  }

  Context& context_;
  const ProbeRequest& request_;
  const probes::ProbeOptions& options_;
  std::optional<SessionRow> resumable_;
  std::optional<RowId> cluster_, session_;
  int resumed_samples_ = 0;
  std::vector<NewSample> pending_;
  SteadyClock::time_point flushed_ = SteadyClock::now();
};

void hear(Context& context, Recording& recording, const LaunchReport& report) {
  if (const auto* progress = std::get_if<Progressed>(&report)) context.progress(*progress);
  const auto* found = std::get_if<Found>(&report);
  if (found != nullptr && found->kind == "facts") recording.on_facts(found->value);
  if (found != nullptr && found->kind == "sample") recording.on_sample(found->value);
}

/// Runs the job and sees to it that the session ends whatever happens.
nlohmann::json launch_recorded(Context& context, const ProbeRequest& request, const ProbeOrder& order,
                               Recording& recording) {
  try {
    return launch(
        to_json(Order(order)), launch_options(context, request.placing, 0),
        [&](const LaunchReport& report) { hear(context, recording, report); }, context.cancellation);
  } catch (const Error& error) {
    const bool interrupted = error.code() == ErrorCode::kInterrupted;
    recording.abandon(interrupted ? WorkState::kInterrupted : WorkState::kFailed, error.what());
    throw;
  } catch (const std::exception& error) {
    recording.abandon(WorkState::kFailed, error.what());
    throw;
  }
}

[[noreturn]] void throw_stopped(Recording& recording) {
  recording.abandon(WorkState::kInterrupted, "stopped by the user");
  throw Error(
      ErrorCode::kInterrupted,
      fmt::format("probe interrupted; its {} samples are kept, and the same command goes on from them",
                  recording.stored_samples()));
}

ProbeOutcome read_outcome(const nlohmann::json& result, Recording& recording) {
  const JsonPlace place(result);
  ProbeOutcome outcome;
  outcome.cluster = cluster_from_json(result.at("cluster"));
  outcome.links = result.at("links");
  outcome.within_budget = place["end"].name() != "budget";
  outcome.would_measure = result.at("would_measure").get<std::vector<std::string>>();
  outcome.notes = result.at("notes").get<std::vector<std::string>>();
  outcome.elapsed = Seconds{place["elapsed_seconds"].number(0, 1e9)};
  outcome.budget_split = result.value("budget_split", nlohmann::json::object());
  outcome.traffic = Bytes{place["traffic_bytes"].integer(0, ~0ULL)};
  for (const nlohmann::json& tool : result.at("tools"))
    outcome.tools.push_back(probes::tool_result_from_json(tool));
  outcome.resumed_samples = recording.resumed_samples();
  outcome.cluster_id = recording.cluster();
  outcome.session = recording.session();
  return outcome;
}

/// All transports of this program that join processes, the one that is used where nobody says last: what is
/// seen last is the cluster's own.
std::vector<const TransportKind*> default_last() {
  std::vector<const TransportKind*> kinds;
  std::ranges::copy_if(transport_kinds(), std::back_inserter(kinds),
                       [](const TransportKind* kind) { return joins_processes(*kind); });
  std::stable_partition(kinds.begin(), kinds.end(),
                        [](const TransportKind* kind) { return kind->name != kDefaultNetwork; });
  return kinds;
}

/// Whether a transport does not work on these hosts.
bool is_unusable(const Error& error) {
  return error.code() == ErrorCode::kUnavailable || error.code() == ErrorCode::kTimeout ||
         error.code() == ErrorCode::kPeerLost;
}

/// Divides what a probe may take among those over several transports.
class Shares {
 public:
  Shares(const ProbeRequest& request, std::size_t transports)
      : request_(request), left_(transports), begin_(SteadyClock::now()) {}

  ProbeRequest next(const TransportKind& kind) {
    ProbeRequest own = request_;
    own.placing.network = kind.name;
    if (!kind.takes_subnet) own.placing.subnet.clear();
    if (kind.own.empty()) own.placing.network_options.clear();
    if (own.options.budget) {
      const Seconds left = *own.options.budget - (SteadyClock::now() - begin_);
      own.options.budget = std::max(left / static_cast<double>(left_), kLeastBudget);
    }
    if (own.options.traffic.count > 0)
      own.options.traffic.count = std::max<std::uint64_t>(1, own.options.traffic.count / all_);
    --left_;
    return own;
  }

 private:
  const ProbeRequest& request_;
  std::size_t left_;
  const std::size_t all_ = left_;
  const SteadyClock::time_point begin_;
};

/// The same context, with progress told as a part of the whole.
Context one_of_several(Context& context, std::string_view transport, std::size_t index, std::size_t count) {
  Listener listener{
      [&context, transport, index, count](const Progressed& progress) {
        context.progress({fmt::format("{}: {}", transport, progress.what),
                          (static_cast<double>(index) + progress.fraction) / static_cast<double>(count),
                          progress.left});
      },
      context.listener.note};
  return {context.settings, context.environment, context.store, context.cancellation, std::move(listener)};
}

}  // namespace

ProbeOutcome probe_cluster(Context& context, const ProbeRequest& request) {
  ProbeOrder order;
  request.placing.check();
  order.network = request.placing.network;
  order.subnet = request.placing.subnet;
  order.network_options = request.placing.network_options;
  order.options = request.options;
  order.compare = request.compare;
  order.options.cluster_name = request.cluster;
  order.options.settings = transport_settings(context, request.placing);
  for (const std::string& model : request.models) {
    order.profiles.push_back(find_profile(context.store, model));
    order.options.models.push_back(order.profiles.back().model);
  }
  order.options.check();
  say_notes(context, request.placing.hosts);

  Recording recording(context, request, order.options);
  recording.find_earlier(order);
  const nlohmann::json result = launch_recorded(context, request, order, recording);
  if (!recording.started()) throw Error(ErrorCode::kUnavailable, "the ranks never said where they are");
  if (result.value("end", "") == "stopped") throw_stopped(recording);
  ProbeOutcome outcome = read_outcome(result, recording);
  try {
    outcome.fit = recording.complete(outcome.cluster);
  } catch (const std::exception& error) {
    recording.abandon(WorkState::kFailed, error.what());
    throw;
  }
  return outcome;
}

TransportProbes probe_all_transports(Context& context, const ProbeRequest& request) {
  const std::vector<const TransportKind*> kinds = default_last();
  TransportProbes probes;
  std::optional<Error> why;
  Shares shares(request, kinds.size());
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    Context own = one_of_several(context, kinds[i]->name, i, kinds.size());
    try {
      probes.outcomes.push_back(probe_cluster(own, shares.next(*kinds[i])));
    } catch (const Error& error) {
      if (!is_unusable(error)) throw;
      context.note(fmt::format("not probed over {}: {}", kinds[i]->name, error.what()));
      probes.unusable.push_back({std::string(kinds[i]->name), error.what()});
      if (!why) why = error;
    }
  }
  if (probes.outcomes.empty()) throw Error(*why);
  return probes;
}

void check_probed_over(std::string_view transport) {
  if (transport == knob::kAuto || !not_between_processes(transport)) return;
  throw Error(ErrorCode::kBadInput,
              fmt::format("transport: \"{}\": expected {} or one of {}", transport.substr(0, 64), knob::kAuto,
                          transport_names(joins_processes)));
}

std::optional<std::string> not_compared(const ProbeOutcome& outcome) {
  std::vector<std::string> reasons;
  for (const probes::ToolResult& tool : outcome.tools) {
    if (tool.problem.empty()) return std::nullopt;
    std::string reason = tool.tool + ": " + tool.problem;
    if (std::find(reasons.begin(), reasons.end(), reason) == reasons.end())
      reasons.push_back(std::move(reason));
  }
  if (reasons.empty()) return std::nullopt;
  return fmt::format("{}", fmt::join(reasons, "; "));
}

nlohmann::json to_json(const ProbeOutcome& outcome) {
  nlohmann::json tools = nlohmann::json::array();
  for (const probes::ToolResult& tool : outcome.tools) tools.push_back(probes::to_json(tool));
  return {{"cluster_id", outcome.cluster_id},
          {"session", outcome.session},
          {"fit", outcome.fit},
          {"cluster", commtune::to_json(outcome.cluster)},
          {"links", outcome.links},
          {"within_budget", outcome.within_budget},
          {"would_measure", outcome.would_measure},
          {"notes", outcome.notes},
          {"elapsed_seconds", outcome.elapsed.count()},
          {"budget_split", outcome.budget_split},
          {"traffic_bytes", outcome.traffic.count},
          {"resumed_samples", outcome.resumed_samples},
          {"tools", std::move(tools)}};
}

nlohmann::json to_json(const TransportProbes& probes) {
  nlohmann::json out = to_json(probes.outcomes.back());
  nlohmann::json others = nlohmann::json::array(), unusable = nlohmann::json::array();
  for (std::size_t i = 0; i + 1 < probes.outcomes.size(); ++i) others.push_back(to_json(probes.outcomes[i]));
  for (const TransportProbes::Refused& each : probes.unusable)
    unusable.push_back({{"transport", each.transport}, {"why", each.why}});
  out["others"] = std::move(others);
  out["unusable"] = std::move(unusable);
  return out;
}

}  // namespace commtune::api
