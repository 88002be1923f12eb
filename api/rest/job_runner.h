#pragma once
// Carries out queued jobs: `tune` as a child process with a fixed argument vector, one at a time per cluster.

#include <condition_variable>
#include <filesystem>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "api/launch/cancellation.h"
#include "api/question/question.h"
#include "api/rest/events.h"
#include "api/rest/http/message.h"
#include "api/rest/log.h"
#include "api/rest/metrics.h"
#include "api/rest/quota.h"
#include "api/rest/store_access.h"
#include "store/jobs.h"

namespace commtune::api::rest {

/// Job of api/openapi.yaml.
nlohmann::json to_json(const JobRow& job);
/// 202: the job, and where it can be followed.
Reply accepted(const JobRow& job);

/// The request of a job that runs plans of a question before it is answered (kind "tune").
///
/// model  a shipped name or a digest of the store, never the name of a file
nlohmann::json tune_job_request(const Question& question, const std::string& model);

/// The argument vector of a job: nothing of it is ever seen by a shell, and every value that a request gave
/// stands behind a flag's "=". Throws Error{kBadInput} for a kind that this version does not know.
std::vector<std::string> job_command(const JobRow& job, const Store& store,
                                     const std::filesystem::path& program);

class JobRunner {
 public:
  struct Parts {
    StoreAccess& store;
    Events& events;
    Metrics& metrics;
    Log& log;
    std::filesystem::path program;
  };
  /// Marks what a service that is gone left running as interrupted, then takes up what is queued.
  explicit JobRunner(Parts parts);
  ~JobRunner();
  JobRunner(const JobRunner&) = delete;
  JobRunner& operator=(const JobRunner&) = delete;

  /// Queues a job of the caller's and says so. Throws HttpRefusal where he has as many waiting as he may.
  JobRow enqueue(const NewJob& job, const Allowance& allowance);
  JobRow cancel(RowId id);
  /// The job is the caller's from then on. Throws as enqueue().
  JobRow resume(RowId id, const Allowance& allowance);
  int running() const;
  /// Asks running jobs to stop, waits for them, and marks them as interrupted.
  void stop();

 private:
  struct Active {
    Cancellation cancellation;
    std::thread thread;
    bool ended = false;
  };
  void serve();
  void forget_answers();
  void start(const JobRow& job);
  void carry_out(const JobRow& job, Cancellation& cancellation);
  void reap();
  JobRow announce(RowId id);
  void wake();

  const Parts parts_;
  const std::string owner_;
  mutable std::mutex mutex_;  // guards all below
  std::condition_variable woken_;
  std::map<RowId, std::unique_ptr<Active>> active_;
  bool wanted_ = true;  // somebody queued something, or a cluster became free
  bool stopping_ = false;
  std::thread dispatcher_;  // last
};

}  // namespace commtune::api::rest
