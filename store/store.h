#pragma once
// The store: clusters, samples, fits, profiles, plans and runs in one SQLite file, with where they came from.
//
// Promises
//   Nothing measured is overwritten: samples, fits, plans and finished runs are only added; a new fit
//   supersedes the one before it.
//   A call that writes is one transaction. When it returns, the rows are on the disk (write-ahead log,
//   synchronous=FULL): they survive kill -9, and a loss of power on hardware that honours fsync. When it
//   throws, nothing of it is stored, and everything before it still is.
//
// Threads and processes
//   A Store is one connection: one thread at a time. Every further thread opens its own (reader()). Any
//   number of readers, in this and in other processes, see the last committed state and never wait for the
//   writer; writers take turns, each waiting up to OpenOptions::busy_timeout for the others.
//
// Errors
//   kStorage   the file cannot be opened, read or written (not a database, another program's, a newer
//              version's, damaged, read-only, disk full); the message starts with its path
//   kConflict  another process held the write lock for longer than busy_timeout; a second running session
//   kNotFound  an id or name that a call refers to does not exist
//   kBadInput  a value breaks a rule: the message names field, value and rule
//   Looking up what may be absent returns an empty optional.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "store/rows.h"

namespace commtune {

enum class Access {
  kReadWrite,  ///< creates the file and its folders when absent, brings an older version up to date
  kReadOnly,   ///< changes nothing; the file must exist and be of the current version
};

/// How much of the file is examined when it is opened.
enum class OpenCheck {
  kQuick,  ///< SQLite's quick_check: reads every page once (about a second for a gigabyte that is cached)
  kNone,   ///< only what it takes to know that it is ours
};

struct OpenOptions {
  Access access = Access::kReadWrite;
  OpenCheck check = OpenCheck::kQuick;
  std::chrono::milliseconds busy_timeout{5000};  ///< how long a writer waits for another
  std::string version = "unknown";               ///< of the program; written into every row
  WallClock clock = system_now;
  std::optional<Bytes> max_size{};  ///< the file refuses to grow beyond this, as on a full disk
};

/// What prune() takes away: what is older than `before` and beyond the newest `keep`. At least one is set.
struct PruneOptions {
  std::optional<Timestamp> before{};  ///< absent: of any age
  std::optional<int> keep{};          ///< newest rows of each kind and cluster that stay; absent: none
  bool dry_run = false;               ///< only count
};

/// How many rows went.
struct PruneReport {
  std::int64_t runs = 0, plans = 0, fits = 0, sessions = 0, samples = 0, profiles = 0, clusters = 0, jobs = 0,
               answers = 0;
  Bytes freed;  ///< by which the file gets smaller; 0 in a dry run
};

/// What was ended because nobody works on it any more.
struct Abandoned {
  std::vector<RowId> runs, sessions;
};

/// Checks a plan and writes it out for Store::add_plan; needs no store, so any thread can. Throws
/// Error{kBadInput} as that does.
///
/// profile  the one that has the id plan.profile, or will have
PlanTexts write_out(const NewPlan& plan, const Profile& profile);

class Store {
 public:
  /// What this program reads and writes (PRAGMA user_version).
  static int schema_version();

  /// path  a file, or ":memory:" for a store that ends with the object
  static Store open(const std::filesystem::path& path, OpenOptions options = {});

  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store();

  /// Another connection to the same file, read-only, for another thread. Does not repeat the check of the
  /// file. Throws Error{kBadInput} for ":memory:".
  Store reader() const;

  const std::filesystem::path& path() const;

  /// Runs `work` as one transaction: all that it writes through this store is kept, or, when it throws,
  /// nothing. May be nested; an inner one that throws undoes its own part only.
  void atomically(const std::function<void()>& work);

  /// Ends the runs and sessions whose owner is gone (store/owner.h) as interrupted: a process that was killed
  /// could not. Samples and what else it had stored stay.
  Abandoned interrupt_abandoned(const std::function<bool(const std::string& owner)>& gone);

  // ---- clusters ----

  /// Stores name, transport, fingerprint, facts and hosts (not the fits), or finds the row of the same name,
  /// transport, fingerprint and hosts and marks it as seen now, with these facts as its newest. Throws
  /// Error{kBadInput} when the name is empty.
  RowId put_cluster(const Cluster& cluster);
  /// Notes what was seen of a cluster in passing, by a run: ClusterRow::newest_facts. Facts that are not
  /// among these stay as they were seen last; the cluster stays current or not. Throws Error{kNotFound}.
  void see_facts(RowId id, const std::map<std::string, std::string>& facts);
  std::optional<ClusterRow> find_cluster(RowId id) const;
  /// The current one of this name: the latest seen.
  std::optional<ClusterRow> find_cluster(std::string_view name) const;
  /// The latest seen of this name over this transport.
  std::optional<ClusterRow> find_cluster(std::string_view name, std::string_view transport) const;
  /// The latest seen of the same name over each other transport, where that was on the same hosts; the latest
  /// of all first.
  std::vector<ClusterRow> over_other_transports(const ClusterRow& cluster) const;
  /// Cheap, whatever the cluster's size and the length of its history: what to ask before reading it again.
  std::optional<ClusterState> cluster_state(std::string_view name) const;
  PageOf<ClusterRow> clusters(const Page& page = {}) const;

  // ---- probe sessions and their samples ----

  /// Throws Error{kConflict}, naming its owner, when a session on this cluster is running already.
  RowId start_session(const NewSession& session);
  /// Takes up a session that was interrupted or failed: it is running again. Throws Error{kConflict} when
  /// another one is, or when this one is not resumable or complete.
  void resume_session(RowId id, const std::string& owner);
  /// state  anything but kRunning. Throws Error{kConflict} when it is not running.
  void end_session(RowId id, WorkState state, const std::string& error = {});
  std::optional<SessionRow> find_session(RowId id) const;
  std::optional<SessionRow> running_session(RowId cluster) const;
  /// The newest session of this cluster, if it is resumable and was interrupted or failed.
  std::optional<SessionRow> resumable_session(RowId cluster) const;
  /// cluster  absent: of all
  PageOf<SessionRow> sessions(std::optional<RowId> cluster = {}, const Page& page = {}) const;

  /// Keeps what has just been measured. Throws Error{kConflict} when the session is not running.
  RowId append_sample(RowId session, const NewSample& sample);
  void append_samples(RowId session, std::span<const NewSample> samples);
  /// Adds to a complete session, which stays so, what runs of whole plans told of its cluster's costs later.
  /// Throws Error{kConflict} when the session is not complete.
  void supplement_samples(RowId session, std::span<const NewSample> samples);
  PageOf<SampleRow> samples(RowId session, const Page& page = {}) const;
  std::vector<SampleRow> all_samples(RowId session) const;

  // ---- fits ----

  /// Supersedes the current fit of the session's cluster row. The snapshot's name, transport, fingerprint and
  /// hosts must be the cluster row's, and it has one transport's fits only; Error{kBadInput} otherwise.
  RowId add_fit(const NewFit& fit);
  std::optional<FitRow> find_fit(RowId id) const;
  std::optional<FitRow> current_fit(RowId cluster) const;
  /// Of the current cluster of this name. Absent too when the cluster has changed and was not fitted since.
  std::optional<FitRow> current_fit(std::string_view cluster_name) const;
  PageOf<FitSummary> fits(std::optional<RowId> cluster = {}, const Page& page = {}) const;
  std::vector<FitCurveRow> fit_curves(RowId fit) const;

  // ---- profiles ----

  /// Stores the profile, or finds the one with the same digest and model name. One that was timed again has
  /// another digest: it is a row of its own, with the same layout.
  ///
  /// token  as NewPlan::token, if it is stored now
  RowId put_profile(const Profile& profile, std::optional<TokenId> token = {});
  std::optional<ProfileRow> find_profile(RowId id) const;
  std::optional<ProfileRow> find_profile(std::string_view digest) const;
  /// The newest whose layout_digest() this is.
  std::optional<ProfileRow> find_profile_of_layout(std::string_view layout) const;
  PageOf<ProfileSummary> profiles(const Page& page = {}) const;

  // ---- plans ----

  /// The plan must satisfy check() for its profile; Error{kBadInput} otherwise.
  RowId add_plan(const NewPlan& plan);
  /// The same with what write_out() made of this plan and the profile that it names: nothing is checked
  /// again.
  RowId add_plan(const NewPlan& plan, const PlanTexts& texts);
  std::optional<PlanRow> find_plan(RowId id) const;
  /// The newest plan whose digest starts with `prefix` (at least 4 digits). Throws Error{kBadInput} when
  /// plans with different digests do.
  std::optional<PlanRow> find_plan(std::string_view prefix) const;
  /// What was compared for the newest plan with exactly this digest, if its ranking has the member `name`
  /// with the value `value`. Much cheaper than find_plan where it has not: nothing is parsed then.
  std::optional<PlanRanking> find_ranking(std::string_view digest, const std::string& name,
                                          const nlohmann::json& value) const;
  PageOf<PlanSummary> plans(std::optional<RowId> cluster = {}, const Page& page = {}) const;

  // ---- runs ----

  RowId start_run(const NewRun& run);
  /// Throws Error{kConflict} when the run has ended already.
  void finish_run(RowId id, const RunResult& result);
  /// Both at once, for a result that comes from elsewhere.
  RowId add_run(const NewRun& run, const RunResult& result);
  std::optional<RunRow> find_run(RowId id) const;
  PageOf<RunSummary> runs(std::optional<RowId> plan = {}, const Page& page = {}) const;
  PageOf<RunSummary> runs_on(RowId cluster, const Page& page = {}) const;

  // ---- upkeep ----

  /// Copies the store as it is now to `target`, while others read and write. The copy is examined, written
  /// out, and only then takes the place of what was there, so a backup that fails leaves the one before.
  /// Throws Error{kBadInput} when the target is the store itself, Error{kConflict} when it is a store in use.
  void backup(const std::filesystem::path& target) const;

  /// Deletes what is old, from the runs down: nothing that a kept row refers to, nothing that is running or
  /// can be resumed, no cluster's current fit. Tokens stay.
  PruneReport prune(const PruneOptions& options);

  /// Changes when another connection, of this or another process, has committed since the last call: what was
  /// read before may be out of date. Microseconds.
  std::int64_t data_version() const;

  /// Examines every page, index and reference; the first few findings, none when all is well. Takes much
  /// longer than OpenCheck::kQuick.
  std::vector<std::string> examine() const;

 private:
  friend class Jobs;
  friend class Tokens;
  friend class StoredReplies;
  friend class Quotas;
  struct Impl;
  explicit Store(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace commtune
