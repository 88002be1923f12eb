#include "api/rest/job_runner.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "api/actions/context.h"
#include "api/launch/process.h"
#include "api/options.h"
#include "executor/transport/registry/kinds.h"
#include "perfmodel/base/error.h"
#include "store/owner.h"
#include "store/stored_replies.h"

namespace commtune::api::rest {
namespace {

using nlohmann::json;

constexpr std::chrono::hours kAnswersKept{24};  // under their Idempotency-Key
constexpr std::chrono::hours kSweepInterval{1};
constexpr int kMostLogLines = 10'000;
constexpr std::size_t kLongestLine = 4096, kLargestResult = 16U << 20U;
constexpr int kExitOfInterrupted = 130;

std::string host_list(const std::vector<Host>& hosts) {
  std::string list;
  for (const Host& host : hosts)
    list += fmt::format("{}{}:{}", list.empty() ? "" : ",", host.name, host.slots);
  return list;
}

/// What a job's request calls the times that a question has.
constexpr Knob in_seconds(Knob of, std::string_view name) {
  of.name = name;
  return of;
}

constexpr Knob kTuneRequest[] = {knob::kWorkers,
                                 knob::kServers,
                                 knob::kDedicatedServers,
                                 knob::kHashed,
                                 knob::kTransport,
                                 knob::kDraws,
                                 knob::kSeed,
                                 knob::kThorough,
                                 knob::kBarrier,
                                 knob::kWire,
                                 in_seconds(knob::kPlanTime, "plan_seconds"),
                                 in_seconds(knob::kCheck, "check_seconds"),
                                 knob::kStrict};

void add_tune_flags(const json& request, std::vector<std::string>& argv) {
  argv.push_back(request.at("model").get<std::string>());
  add_flags(request, kTuneRequest, argv);
  if (const auto explain = request.find("explain"); explain != request.end()) {
    argv.push_back(std::string(knob::kExplain.flag));
    if (explain->is_string()) argv.push_back("--method=" + explain->get<std::string>());
  }
  if (const auto verify = request.find("verify"); verify != request.end())
    add_flags(*verify, knob::kVerifyRequest, argv);
}

/// What a cluster is probed over where the request does not say: the same as before.
void add_transport_flags(const json& request, const ClusterRow& cluster, std::vector<std::string>& argv) {
  const ProbedOver before = probed_over(cluster.transport, cluster.facts);
  const std::string said = request.value("transport", std::string());
  const std::string over = said.empty() ? before.network.value_or("") : said;
  const TransportKind* const kind = find_transport(over);
  // What this program does not have is no word of its flag: where it is needed, `tune` says why that fails.
  if (said.empty() && kind != nullptr) argv.push_back("--network=" + over);
  if (!before.subnet.empty() && (over == knob::kAuto || (kind != nullptr && kind->takes_subnet)))
    argv.push_back("--subnet=" + before.subnet);
  if (!before.network_options.empty() && over == before.network)
    argv.push_back("--network-options=" + before.network_options);
}

/// What a child says while it runs.
class Listening {
 public:
  Listening(StoreAccess& store, RowId id) : store_(store), id_(id) {}

  /// True for a report of progress; anything else goes into the job's log.
  bool hear_error(std::string_view line) {
    const json document = json::parse(line, nullptr, false);
    if (document.is_object() && document.contains("progress") && document.at("progress").is_number()) {
      const double progress = std::clamp(document.at("progress").get<double>(), 0.0, 1.0);
      const std::string stage = document.value("what", std::string{}).substr(0, 255);
      store_.write([&](Store& store) { Jobs(store).report(id_, progress, stage); });
      return true;
    }
    last_ = std::string(line.substr(0, kLongestLine));
    note(last_);
    return false;
  }
  /// A line of the job's log.
  void note(std::string_view line) {
    if (++lines_ <= kMostLogLines)
      store_.write([&](Store& store) { Jobs(store).append_log(id_, line.substr(0, kLongestLine)); });
  }
  void hear_output(std::string_view line) {
    if (output_.size() + line.size() < kLargestResult) output_.append(line).append("\n");
  }

  json result() const { return json::parse(output_, nullptr, false); }
  const std::string& last_line() const { return last_; }

 private:
  StoreAccess& store_;
  const RowId id_;
  int lines_ = 0;
  std::string last_, output_;
};

struct Ending {  // NOLINT(bugprone-exception-escape): moving a nlohmann::json does not throw
  JobState state = JobState::kFailed;
  json result;
  std::string error;
};

Ending ending_of(const ProcessEnd& end, const Listening& listening, bool stopping, bool cancelled) {
  json result = listening.result();
  if (end.signal == 0 && end.status == 0) return {JobState::kComplete, std::move(result), {}};
  std::string why = listening.last_line();
  if (result.is_object() && result.contains("error")) why = result.at("error").value("message", why);
  if (stopping) return {JobState::kInterrupted, nullptr, "the service stopped; what was measured is kept"};
  if (cancelled) return {JobState::kCancelled, nullptr, why};
  if (end.status == kExitOfInterrupted) return {JobState::kInterrupted, nullptr, why};
  if (end.signal != 0) why = fmt::format("ended by signal {}{}{}", end.signal, why.empty() ? "" : ": ", why);
  return {JobState::kFailed, nullptr, why.empty() ? fmt::format("exit status {}", end.status) : why};
}

}  // namespace

json to_json(const JobRow& job) {
  const auto moment = [](const std::optional<Timestamp>& at) {
    return at ? json(to_iso8601(*at)) : json(nullptr);
  };
  return {{"id", job.id},
          {"kind", job.kind},
          {"state", to_string(job.state)},
          {"cluster", job.cluster ? json(*job.cluster) : json(nullptr)},
          {"request", job.request},
          {"requested_by", job.requested_by},
          {"progress", job.progress},
          {"stage", job.stage},
          {"attempts", job.attempts},
          {"cancel_requested", job.cancel_requested},
          {"error", job.error},
          {"result", job.result},
          {"started", moment(job.started)},
          {"ended", moment(job.ended)},
          {"created", to_iso8601(job.origin.created)},
          {"version", job.origin.version}};
}

Reply accepted(const JobRow& job) {
  Reply reply = json_reply(to_json(job), 202);
  reply.headers.emplace_back("Location", fmt::format("/v1/jobs/{}", job.id));
  return reply;
}

json tune_job_request(const Question& question, const std::string& model) {
  json request{{"cluster", question.cluster.name},
               {"model", model},
               {"draws", question.draws},
               {"seed", question.seed},
               {"strict", question.strict}};
  const Allocation& allocation = question.allocation;
  if (allocation.workers > 0) request["workers"] = allocation.workers;
  if (allocation.limits.colocated_servers > 0) request["servers"] = allocation.limits.colocated_servers;
  if (allocation.limits.dedicated_servers > 0)
    request["dedicated_servers"] = allocation.limits.dedicated_servers;
  if (allocation.limits.hashed) request["hashed"] = true;
  if (question.thorough) request["thorough"] = true;
  if (question.barrier) request["barrier"] = to_string(*question.barrier);
  if (question.wire != WireFormat::kAsIs) request["wire"] = to_string(question.wire);
  if (!question.cluster.transport.empty()) request["transport"] = question.cluster.transport;
  if (question.explain) request["explain"] = question.explain->empty() ? json(true) : json(*question.explain);
  if (question.plan_time) request["plan_seconds"] = question.plan_time->count();
  if (question.check) request["check_seconds"] = question.check->count();
  if (const auto& verify = question.verify)
    request["verify"] = {{"plans", verify->plans}, {"budget_seconds", verify->budget.count()}};
  return request;
}

std::vector<std::string> job_command(const JobRow& job, const Store& store,
                                     const std::filesystem::path& program) {
  const auto cluster = job.cluster ? store.find_cluster(*job.cluster) : std::nullopt;
  if (!cluster)
    throw Error(ErrorCode::kNotFound,
                fmt::format("job {}: its cluster is not in the store any more", job.id));
  std::vector<std::string> argv{program.string()};
  if (job.kind == "probe") {
    argv.emplace_back("probe");
    add_flags(job.request, knob::kProbeRequest, argv);
  } else if (job.kind == "run") {
    argv.emplace_back("run");
    argv.push_back(job.request.at("plan").dump());
    add_flags(job.request, knob::kRunRequest, argv);
  } else if (job.kind == "tune") {
    argv.emplace_back("plan");
    add_tune_flags(job.request, argv);
  } else {
    throw Error(ErrorCode::kBadInput,
                fmt::format("job {}: kind \"{}\" is unknown to this version", job.id, job.kind));
  }
  argv.push_back("--db=" + store.path().string());
  argv.push_back("--cluster=" + cluster->name);
  argv.push_back("--host-list=" + host_list(cluster->hosts));
  // A plan says itself what it goes over, or its cluster does.
  if (job.kind == "probe") add_transport_flags(job.request, *cluster, argv);
  argv.emplace_back("--progress=json");
  argv.emplace_back("--json");
  return argv;
}

JobRunner::JobRunner(Parts parts) : parts_(std::move(parts)), owner_(this_process()) {
  const std::vector<RowId> abandoned =
      parts_.store.write([](Store& store) { return Jobs(store).interrupt_abandoned(is_gone); });
  for (const RowId id : abandoned)
    parts_.log.say(Level::kWarning, "job_interrupted",
                   {{"job", id}, {"why", std::string("its service is gone")}});
  dispatcher_ = std::thread([this] { serve(); });
}

JobRunner::~JobRunner() { stop(); }

void JobRunner::wake() {
  const std::lock_guard lock(mutex_);
  wanted_ = true;
  woken_.notify_all();
}

int JobRunner::running() const {
  const std::lock_guard lock(mutex_);
  int count = 0;
  for (const auto& [id, active] : active_) count += active->ended ? 0 : 1;
  return count;
}

JobRow JobRunner::announce(RowId id) {
  const auto reader = parts_.store.reader();
  const auto job = Jobs(*reader).find(id);
  if (!job) throw Error(ErrorCode::kNotFound, fmt::format("job {}: there is none in the store", id));
  parts_.events.publish("job", to_json(*job));
  return *job;
}

JobRow JobRunner::enqueue(const NewJob& job, const Allowance& allowance) {
  NewJob owned = job;
  owned.requested_by = allowance.caller.name;
  owned.token = allowance.caller.token;
  RowId id = 0;
  parts_.store.write([&](Store& store) {
    within_quotas(store, allowance, {Held::kWaitingJobs}, [&] { id = Jobs(store).enqueue(owned); });
  });
  JobRow row = announce(id);
  wake();  // now: events tell of a job that it waits before they tell that it runs
  return row;
}

JobRow JobRunner::cancel(RowId id) {
  parts_.store.write([&](Store& store) { Jobs(store).request_cancel(id); });
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = active_.find(id); found != active_.end()) found->second->cancellation.cancel();
  }
  return announce(id);
}

JobRow JobRunner::resume(RowId id, const Allowance& allowance) {
  parts_.store.write([&](Store& store) {
    within_quotas(store, allowance, {Held::kWaitingJobs},
                  [&] { Jobs(store).requeue(id, allowance.caller.token); });
  });
  JobRow row = announce(id);
  wake();
  return row;
}

void JobRunner::forget_answers() {
  try {
    parts_.store.write([](Store& store) { StoredReplies(store).forget(system_now() - kAnswersKept); });
  } catch (const std::exception& error) {
    parts_.log.say(Level::kWarning, "answers_not_forgotten", {{"why", std::string(error.what())}});
  }
}

void JobRunner::serve() {
  auto swept = std::chrono::steady_clock::time_point::min();
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    // Also looks now and then: another service of this database may have queued something, or be gone.
    woken_.wait_for(lock, std::chrono::seconds(5), [this] { return wanted_ || stopping_; });
    wanted_ = false;
    reap();
    if (stopping_) break;
    lock.unlock();
    if (const auto now = std::chrono::steady_clock::now(); now - kSweepInterval > swept) {
      swept = now;
      forget_answers();
    }
    try {
      while (auto job = parts_.store.write([this](Store& store) { return Jobs(store).take_next(owner_); })) {
        start(*job);
        announce(job->id);
      }
    } catch (const std::exception& error) {
      parts_.log.say(Level::kError, "jobs_not_taken_up", {{"why", std::string(error.what())}});
    }
    lock.lock();
  }
}

/// Joins the threads of jobs that have ended. With the lock held.
void JobRunner::reap() {
  for (auto it = active_.begin(); it != active_.end();) {
    if (!it->second->ended) {
      ++it;
      continue;
    }
    it->second->thread.join();
    it = active_.erase(it);
  }
}

void JobRunner::start(const JobRow& job) {
  const std::lock_guard lock(mutex_);
  // A job that was resumed has its id again; the thread that had it has ended.
  reap();
  Active& active = *active_.insert_or_assign(job.id, std::make_unique<Active>()).first->second;
  if (stopping_) active.cancellation.cancel();
  active.thread = std::thread([this, job, &active] {
    carry_out(job, active.cancellation);
    const std::lock_guard ended_lock(mutex_);
    active.ended = true;
    wanted_ = true;
    woken_.notify_all();
  });
}

void JobRunner::carry_out(const JobRow& job, Cancellation& cancellation) {
  const auto begin = std::chrono::steady_clock::now();
  Ending ending;
  try {
    Listening listening(parts_.store, job.id);
    ProcessOptions options;
    {
      const auto reader = parts_.store.reader();
      options.argv = job_command(job, *reader, parts_.program);
    }
    listening.note(fmt::format("{}", fmt::join(options.argv, " ")));
    options.ending = {{SIGINT, std::chrono::seconds(20)}, {SIGTERM, std::chrono::seconds(5)}};
    ProcessHooks hooks;
    hooks.on_output = [&](std::string_view line) { listening.hear_output(line); };
    hooks.on_error = [&](std::string_view line) {
      if (listening.hear_error(line)) {
        announce(job.id);
      } else {
        parts_.events.publish("log", {{"job", job.id}, {"text", line.substr(0, kLongestLine)}});
      }
    };
    parts_.log.say(Level::kInfo, "job_started",
                   {{"job", job.id}, {"kind", job.kind}, {"by", job.requested_by}});
    const ProcessEnd end = run_process(options, hooks, cancellation);
    bool stopping = false;
    {
      const std::lock_guard lock(mutex_);
      stopping = stopping_;
    }
    ending = ending_of(end, listening, stopping, cancellation.requested());
    listening.note(to_string(ending.state));
  } catch (const std::exception& error) {
    ending = {JobState::kFailed, nullptr, error.what()};
  }
  try {
    parts_.store.write(
        [&](Store& store) { Jobs(store).finish(job.id, ending.state, ending.result, ending.error); });
    const JobRow ended = announce(job.id);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (job.kind == "probe" && ended.state == JobState::kComplete) {
      parts_.metrics.probe_duration.observe(seconds);
      if (ended.result.is_object())
        parts_.events.publish("fit", {{"id", ended.result.value("fit", RowId{0})}});
    }
    if (job.kind == "tune" && ended.state == JobState::kComplete && ended.result.is_object())
      parts_.events.publish("plan", {{"id", ended.result.value("id", RowId{0})}});
    parts_.log.say(
        ended.state == JobState::kFailed ? Level::kWarning : Level::kInfo, "job_ended",
        {{"job", job.id}, {"state", to_string(ended.state)}, {"seconds", seconds}, {"why", ended.error}});
  } catch (const std::exception& error) {
    parts_.log.say(Level::kError, "job_end_not_stored",
                   {{"job", job.id}, {"why", std::string(error.what())}});
  }
}

void JobRunner::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (const auto& [id, active] : active_) active->cancellation.cancel();
    woken_.notify_all();
  }
  if (dispatcher_.joinable()) dispatcher_.join();
  for (const auto& [id, active] : active_)
    if (active->thread.joinable()) active->thread.join();
  active_.clear();
}

}  // namespace commtune::api::rest
