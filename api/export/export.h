#pragma once
// A plan as the settings of another framework. Every one says what of the plan it could not express.

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "perfmodel/plan.h"
#include "perfmodel/profile.h"

namespace commtune::api {

struct Exported {
  std::string target;
  std::vector<std::pair<std::string, std::string>> settings;  ///< name and value, in the target's own words
  std::string text;                        ///< to be pasted: shell exports, Python, or the tuner's CSV
  std::vector<std::string> not_expressed;  ///< what these settings cannot say; empty: all of it
  /// Of an iteration with a setting, by the setting's name; those of which that can be said.
  std::vector<std::pair<std::string, Seconds>> predicted = {};
};

/// How long an iteration of a plan takes where the exported one would run; nothing where its road was not
/// measured there. Empty: no cluster is known.
using PredictedTime = std::function<std::optional<Seconds>(const Plan&)>;

/// One line of the registry of targets.
struct ExportTarget {
  std::string_view name;  ///< "ddp"
  std::string_view what;  ///< one line
  Exported (*write)(const Plan& plan, const Profile& profile, const PredictedTime& predict);
};

std::span<const ExportTarget> export_targets();

/// Throws Error{kNotFound} for a target that is not in the registry, with the closest one.
Exported export_plan(std::string_view target, const Plan& plan, const Profile& profile,
                     const PredictedTime& predict = {});

nlohmann::json to_json(const Exported& exported);

// The targets. The plan satisfies check().
Exported export_ddp(const Plan& plan, const Profile& profile, const PredictedTime& predict);
Exported export_horovod(const Plan& plan, const Profile& profile, const PredictedTime& predict);
Exported export_byteps(const Plan& plan, const Profile& profile, const PredictedTime& predict);
Exported export_nccl(const Plan& plan, const Profile& profile, const PredictedTime& predict);
Exported export_env(const Plan& plan, const Profile& profile, const PredictedTime& predict);

}  // namespace commtune::api
