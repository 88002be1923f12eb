#include "api/c/commtune.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "api/c/measuring.h"
#include "api/c/plan_source.h"
#include "api/c/training_session.h"
#include "executor/transport/bootstrap/callback_bootstrap.h"
#include "executor/transport/mpi/job.h"
#include "perfmodel/base/error.h"
#include "perfmodel/base/json_reader.h"

struct commtune_session {
  commtune::api::TrainingSession session;
  std::string refusal{};  // that the caller reads
};

namespace commtune::api {
namespace {

/// Of this thread's last call that failed.
std::string& last_message() {
  thread_local std::string message;
  return message;
}

commtune_code code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kBadInput:
      return COMMTUNE_BAD_INPUT;
    case ErrorCode::kPoorFit:
      return COMMTUNE_POOR_FIT;
    case ErrorCode::kNotFound:
      return COMMTUNE_NOT_FOUND;
    case ErrorCode::kConflict:
      return COMMTUNE_CONFLICT;
    case ErrorCode::kTimeout:
      return COMMTUNE_TIMEOUT;
    case ErrorCode::kPeerLost:
      return COMMTUNE_PEER_LOST;
    case ErrorCode::kStorage:
      return COMMTUNE_STORAGE;
    case ErrorCode::kUnavailable:
      return COMMTUNE_UNAVAILABLE;
    case ErrorCode::kInterrupted:
      return COMMTUNE_INTERRUPTED;
  }
  return COMMTUNE_DEFECT;
}

commtune_code failed(commtune_code code, const char* what) noexcept {
  try {
    last_message() = what;
  } catch (...) {
    last_message().clear();
  }
  return code;
}

/// Runs what a function of the interface does; whatever it throws becomes a code and this thread's message.
template <typename Body>
commtune_code guarded(const Body& body) noexcept {
  try {
    body();
    return COMMTUNE_OK;
  } catch (const BadCall& error) {
    return failed(COMMTUNE_BAD_CALL, error.what());
  } catch (const PlanRefused& error) {
    return failed(COMMTUNE_PLAN_REFUSED, error.what());
  } catch (const Error& error) {
    return failed(code_of(error.code()), error.what());
  } catch (const std::exception& error) {
    return failed(COMMTUNE_DEFECT, error.what());
  } catch (...) {
    return failed(COMMTUNE_DEFECT, "something that is no std::exception was thrown");
  }
}

void expect(bool holds, const char* rule) {
  if (!holds) throw BadCall(rule);
}

/// The same for a function of a session.
template <typename Body>
commtune_code on(commtune_session* session, const Body& body) noexcept {
  return guarded([&] {
    expect(session != nullptr, "session is NULL: commtune_join() makes one");
    body(session->session);
  });
}

TrainingOptions training_options(const commtune_join_options& options) {
  TrainingOptions training;
  if (options.transport != nullptr) training.transport = options.transport;
  if (options.subnet != nullptr) training.network.subnet = options.subnet;
  training.network.pace = options.pace_bytes_per_second;
  training.session.at_the_plans_pace = options.pace_bytes_per_second == 0;
  expect(options.timeout_seconds >= 0, "timeout_seconds: must be 0 or more");
  expect(options.result == COMMTUNE_MEAN || options.result == COMMTUNE_SUM,
         "result: must be COMMTUNE_MEAN or COMMTUNE_SUM");
  if (options.timeout_seconds > 0) training.session.timeout = Seconds{options.timeout_seconds};
  training.session.workers = options.workers;
  training.session.chunk = Bytes{options.chunk_bytes};
  training.session.announced_plans = options.announced_plans != 0;
  training.session.own_barrier = options.own_barrier != 0;
  training.session.result = options.result == COMMTUNE_SUM ? Result::kSum : Result::kMean;
  return training;
}

std::shared_ptr<Bootstrap> join(const commtune_join_options& options) {
  if (options.all_gather == nullptr) return join_mpi_job();
  const auto all_gather = [call = options.all_gather, context = options.context,
                           ranks = options.ranks](std::span<const std::byte> own) {
    std::vector<std::byte> all(own.size() * static_cast<std::size_t>(ranks));
    if (const int status = call(context, own.data(), own.size(), all.data()); status != 0)
      throw Error(ErrorCode::kUnavailable, fmt::format("all_gather returned {}", status));
    return all;
  };
  expect(options.ranks >= 1, "ranks: must be at least 1");
  return make_callback_bootstrap(options.rank, options.ranks, all_gather);
}

std::optional<DataType> type_of(commtune_type type) {
  switch (type) {
    case COMMTUNE_FLOAT32:
      return DataType::kFloat32;
    case COMMTUNE_FLOAT16:
      return DataType::kFloat16;
    case COMMTUNE_BFLOAT16:
      return DataType::kBfloat16;
  }
  return std::nullopt;
}

TensorLayout layout_from(commtune_type type, std::span<const commtune_tensor> tensors) {
  const std::optional<DataType> known = type_of(type);
  expect(known.has_value(), "type: must be COMMTUNE_FLOAT32, COMMTUNE_FLOAT16 or COMMTUNE_BFLOAT16");
  expect(!tensors.empty(), "count: there must be at least one tensor");
  TensorLayout layout{.type = *known, .tensors = {}};
  layout.tensors.reserve(tensors.size());
  for (const commtune_tensor& tensor : tensors) {
    if (tensor.name == nullptr) throw BadCall(fmt::format("tensors[{}].name is NULL", layout.tensors.size()));
    if (tensor.bytes == 0 || tensor.bytes % element_size(*known).count != 0) {
      throw BadCall(fmt::format("tensors[{}].bytes = {}: must be a positive multiple of {}",
                                layout.tensors.size(), tensor.bytes, element_size(*known).count));
    }
    layout.tensors.push_back({tensor.name, Bytes{tensor.bytes}});
  }
  return layout;
}

/// What a program says of its gradients.
struct GivenLayout {
  commtune_type type;
  std::span<const commtune_tensor> tensors;
  void* const* memory;  // an address a tensor, or nullptr
};

void lay_out(TrainingSession& training, const GivenLayout& given, std::optional<int> gpu) {
  expect(given.tensors.data() != nullptr, "tensors must not be NULL");
  training.set_layout(
      layout_from(given.type, given.tensors),
      given.memory == nullptr ? std::span<void* const>{} : std::span(given.memory, given.tensors.size()),
      gpu);
}

BucketOptions bucket_options(const commtune_bucket_options* options) {
  BucketOptions buckets;
  if (options == nullptr) return buckets;
  if (options->first_bytes > 0) buckets.first = Bytes{options->first_bytes};
  if (options->bytes > 0) buckets.others = Bytes{options->bytes};
  buckets.servers = options->servers;
  buckets.barrier = options->per_layer != 0 ? Barrier::kPerLayer : Barrier::kFull;
  return buckets;
}

/// For who gives it to commtune_free().
char* copied(const std::string& text) {
  char* const memory = static_cast<char*>(std::malloc(text.size() + 1));
  if (memory == nullptr) throw std::bad_alloc();
  std::memcpy(memory, text.c_str(), text.size() + 1);
  return memory;
}

/// What this rank alone cannot do, and no other rank has heard of, leaves the session as it is.
template <typename Body>
Plan readable(const Body& body) {
  try {
    return body();
  } catch (const Error& error) {
    throw BadCall(error.what());
  }
}

/// JSON text as what `read` makes of it; errors begin with the text's name.
template <typename Read>
auto read_as(const Read& read, const char* text, const char* name) {
  const nlohmann::json document = parse_json(text, name);
  try {
    return read(document);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", name, error.what()));
  }
}

RankProbe rank_probe(const commtune_probe_options* options, int rank) {
  RankProbe probe;
  if (options == nullptr) return probe;
  if (options->cluster != nullptr) probe.cluster = options->cluster;
  expect(options->budget_seconds >= 0, "budget_seconds: must be 0 or more");
  if (options->budget_seconds > 0) probe.budget = Seconds{options->budget_seconds};
  probe.traffic = Bytes{options->traffic_bytes};
  if (options->profile != nullptr && rank == 0)
    probe.profile = read_as(profile_from_json, options->profile, "profile");
  return probe;
}

double since(Clock::time_point begin, Clock::time_point moment) { return Seconds(moment - begin).count(); }

}  // namespace
}  // namespace commtune::api

using commtune::api::BadCall;
using commtune::api::expect;
using commtune::api::guarded;
using commtune::api::on;
using commtune::api::TrainingSession;

const char* commtune_code_name(commtune_code code) {
  switch (code) {
    case COMMTUNE_OK:
      return "ok";
    case COMMTUNE_DEFECT:
      return "defect";
    case COMMTUNE_BAD_INPUT:
      return "bad_input";
    case COMMTUNE_NOT_FOUND:
      return "not_found";
    case COMMTUNE_POOR_FIT:
      return "poor_fit";
    case COMMTUNE_CONFLICT:
      return "conflict";
    case COMMTUNE_TIMEOUT:
      return "timeout";
    case COMMTUNE_PEER_LOST:
      return "peer_lost";
    case COMMTUNE_STORAGE:
      return "storage";
    case COMMTUNE_UNAVAILABLE:
      return "unavailable";
    case COMMTUNE_INTERRUPTED:
      return "interrupted";
    case COMMTUNE_PLAN_REFUSED:
      return "plan_refused";
    case COMMTUNE_BAD_CALL:
      return "bad_call";
  }
  return "unknown";
}

const char* commtune_last_message(void) { return commtune::api::last_message().c_str(); }

const char* commtune_version(void) { return COMMTUNE_VERSION; }

commtune_code commtune_join(const commtune_join_options* options, commtune_session** session) {
  return guarded([&] {
    expect(options != nullptr && session != nullptr, "options and session must not be NULL");
    *session = nullptr;
    commtune::api::TrainingOptions training = commtune::api::training_options(*options);
    *session = new commtune_session{{commtune::api::join(*options), std::move(training)}};
  });
}

int commtune_rank(const commtune_session* session) {
  return session == nullptr ? -1 : session->session.peers().rank;
}

int commtune_ranks(const commtune_session* session) {
  return session == nullptr ? -1 : session->session.peers().size();
}

commtune_code commtune_layout(commtune_session* session, commtune_type type, size_t count,
                              const commtune_tensor* tensors, void* const* memory) {
  return on(session, [&](TrainingSession& training) {
    commtune::api::lay_out(training, {type, {tensors, count}, memory}, std::nullopt);
  });
}

commtune_code commtune_layout_on_gpu(commtune_session* session, commtune_type type, size_t count,
                                     const commtune_tensor* tensors, int gpu, void* const* memory) {
  return on(session, [&](TrainingSession& training) {
    commtune::api::lay_out(training, {type, {tensors, count}, memory}, gpu);
  });
}

void* commtune_gradient(const commtune_session* session, size_t tensor) {
  return session == nullptr ? nullptr : session->session.gradient(tensor);
}

const char* commtune_layout_digest(const commtune_session* session) {
  return session == nullptr ? "" : session->session.layout_digest().c_str();
}

const char* commtune_plan_digest(const commtune_session* session) {
  return session == nullptr ? "" : session->session.plan_digest().c_str();
}

commtune_code commtune_bucket_plan(const commtune_session* session, const commtune_bucket_options* options,
                                   char** json) {
  return guarded([&] {
    expect(session != nullptr && json != nullptr, "session and json must not be NULL");
    const commtune::Plan plan = commtune::api::readable([&] {
      return commtune::api::bucket_plan(session->session.layout(), session->session.workers(),
                                        commtune::api::bucket_options(options));
    });
    *json = commtune::api::copied(commtune::to_json(plan).dump());
  });
}

void commtune_free(char* text) { std::free(text); }

commtune_code commtune_adopt(commtune_session* session, const char* plan) {
  return on(session, [&](TrainingSession& training) {
    std::optional<commtune::Plan> own;
    if (plan != nullptr)
      own = commtune::api::readable(
          [&] { return commtune::api::plan_from(plan, training.layout(), training.workers()); });
    training.adopt(own);
  });
}

commtune_code commtune_announce(commtune_session* session, const char* plan, uint64_t* first) {
  return on(session, [&](TrainingSession& training) {
    expect(plan != nullptr && first != nullptr, "plan and first must not be NULL");
    *first = training.announce(commtune::api::readable(
        [&] { return commtune::api::plan_from(plan, training.layout(), training.workers()); }));
  });
}

const char* commtune_refusal(commtune_session* session) {
  if (session == nullptr) return "";
  session->refusal = session->session.refusal();
  return session->refusal.c_str();
}

commtune_code commtune_begin(commtune_session* session) {
  return on(session, [](TrainingSession& training) { training.begin(); });
}

commtune_code commtune_ready(commtune_session* session, size_t tensor) {
  return on(session, [&](TrainingSession& training) { training.ready(tensor); });
}

commtune_code commtune_ready_after(commtune_session* session, size_t tensor, void* stream) {
  return on(session, [&](TrainingSession& training) { training.ready_after(tensor, stream); });
}

commtune_code commtune_is_back(commtune_session* session, size_t tensor, int* back) {
  return on(session, [&](TrainingSession& training) {
    expect(back != nullptr, "back must not be NULL");
    *back = training.is_back(tensor) ? 1 : 0;
  });
}

commtune_code commtune_are_back(commtune_session* session, size_t tensors, unsigned char* back) {
  return on(session, [&](TrainingSession& training) {
    expect(back != nullptr, "back must not be NULL");
    training.are_back({back, tensors});
  });
}

commtune_code commtune_wait(commtune_session* session, size_t tensor) {
  return on(session, [&](TrainingSession& training) { training.wait(tensor); });
}

commtune_code commtune_wait_all(commtune_session* session) {
  return on(session, [](TrainingSession& training) { training.wait_all(); });
}

commtune_code commtune_get_statistics(commtune_session* session, commtune_statistics* statistics) {
  return on(session, [&](TrainingSession& training) {
    expect(statistics != nullptr, "statistics must not be NULL");
    statistics->iterations = training.iterations();
    statistics->messages = training.messages();
    statistics->gradient_bytes = training.layout().bytes().count;
    statistics->waited_seconds = training.waited().count();
    statistics->copied_seconds = training.copied().count();
  });
}

commtune_code commtune_get_message_times(commtune_session* session, size_t capacity,
                                         commtune_message_times* times, size_t* count) {
  return on(session, [&](TrainingSession& training) {
    expect(count != nullptr && (times != nullptr || capacity == 0), "times and count must not be NULL");
    const auto moments = training.message_times();
    const auto begin = training.begun();
    *count = moments.size();
    for (size_t i = 0; i < std::min(capacity, moments.size()); ++i) {
      using commtune::api::since;
      times[i] = {since(begin, moments[i].queued), since(begin, moments[i].started),
                  since(begin, moments[i].reduced), since(begin, moments[i].distributed)};
    }
  });
}

commtune_code commtune_serve(commtune_session* session) {
  return on(session, [](TrainingSession& training) { training.serve(); });
}

commtune_code commtune_leave(commtune_session* session) {
  return on(session, [](TrainingSession& training) { training.leave(); });
}

commtune_code commtune_look_for_lost(commtune_session* session, double seconds) {
  return on(session, [&](TrainingSession& training) {
    expect(seconds >= 0, "seconds: must be 0 or more");
    training.look_for_lost(commtune::Seconds{seconds});
  });
}

void commtune_abort(commtune_session* session, const char* why) {
  static_cast<void>(on(session, [&](TrainingSession& training) {
    training.abort(why == nullptr ? "a rank ended the session" : why);
  }));
}

void commtune_destroy(commtune_session* session) { delete session; }

commtune_code commtune_probe(const commtune_join_options* join, const commtune_probe_options* options,
                             char** cluster) {
  return guarded([&] {
    expect(join != nullptr && cluster != nullptr, "join and cluster must not be NULL");
    *cluster = nullptr;
    const commtune::api::TrainingOptions training = commtune::api::training_options(*join);
    std::shared_ptr<commtune::Bootstrap> bootstrap = commtune::api::join(*join);
    const commtune::api::RankProbe wanted = commtune::api::rank_probe(options, bootstrap->peers().rank);
    const auto found = commtune::api::probe_by_ranks(std::move(bootstrap), training, wanted);
    if (found) *cluster = commtune::api::copied(commtune::to_json(*found).dump());
  });
}

commtune_code commtune_plan(const char* profile, const char* cluster, int workers, int full_barrier,
                            char** plan, double* seconds) {
  return guarded([&] {
    expect(profile != nullptr && cluster != nullptr && plan != nullptr,
           "profile, cluster and plan must not be NULL");
    using commtune::Barrier;
    using commtune::api::read_as;
    const auto model = read_as(commtune::profile_from_json, profile, "profile");
    const auto network = read_as(commtune::cluster_from_json, cluster, "cluster");
    const commtune::api::PlannedTime planned = commtune::api::plan_for(
        model, network, workers, full_barrier != 0 ? Barrier::kFull : Barrier::kPerLayer);
    *plan = commtune::api::copied(commtune::to_json(planned.plan).dump());
    if (seconds != nullptr) *seconds = planned.iteration.count();
  });
}
