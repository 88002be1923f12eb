#pragma once
// The flags of every command that asks about a model on a probed cluster.

#include <CLI/CLI.hpp>
#include <string>

#include "api/cli/session.h"
#include "api/question/question.h"
#include "tuner/tuner.h"

namespace commtune::api {

struct JobFlags {
  std::string model;
  std::string cluster_file;
  std::string transport;  ///< empty: all that the cluster was probed over
  std::string barrier;    ///< empty: each method's own
  double scale_bytes = 1, scale_time = 1;
  tuner::TuneOptions options;
  Allocation allocation;  ///< but for what `options` has
  Overrides overrides;

  bool scaled() const { return scale_bytes != 1 || scale_time != 1; }
  /// Finds the model; the cluster is the file's, or the settings'. Throws what find_profile and
  /// read_cluster_file throw, and Error{kBadInput}.
  Question question(Work& work) const;
};

/// Adds MODEL, --cluster-file, --transport, --dedicated, --scale-bytes, --scale-time, --draws, --seed,
/// --thorough and --barrier. The flags must outlive the app.
void add_job_flags(CLI::App& command, JobFlags& flags);

}  // namespace commtune::api
