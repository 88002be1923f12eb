#pragma once
// A plan as the settings of another framework. Every one says what of the plan it could not express.

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "perfmodel/nccl/tuning_table.h"
#include "perfmodel/plan.h"
#include "perfmodel/profile.h"

namespace commtune::api {

struct Exported {
  std::string target;
  std::vector<std::pair<std::string, std::string>>
      settings;                            ///< name and value (a flag has none), in the target's words
  std::string text;                        ///< to be pasted: shell exports, arguments, Python, JSON or CSV
  std::vector<std::string> not_expressed;  ///< what these settings cannot say; empty: all of it
  /// Of an iteration with a setting, by the setting's name; those of which that can be said.
  std::vector<std::pair<std::string, Seconds>> predicted = {};
};

/// How long an iteration of a plan takes where the exported one would run; nothing where its road was not
/// measured there. Empty: no cluster is known.
using PredictedTime = std::function<std::optional<Seconds>(const Plan&)>;

/// What is known of where the plan would run.
struct ExportPlace {
  PredictedTime predict{};
  NcclTuningTable nccl{};  ///< empty where NCCL was not measured there
};

/// One line of the registry of targets.
struct ExportTarget {
  std::string_view name;  ///< "ddp"
  std::string_view what;  ///< one line
  Exported (*write)(const Plan& plan, const Profile& profile, const ExportPlace& place);
};

std::span<const ExportTarget> export_targets();

/// Throws Error{kNotFound} for a target that is not in the registry, with the closest one.
Exported export_plan(std::string_view target, const Plan& plan, const Profile& profile,
                     const ExportPlace& place = {});

nlohmann::json to_json(const Exported& exported);

// The targets. The plan satisfies check().
Exported export_ddp(const Plan& plan, const Profile& profile, const ExportPlace& place);
Exported export_ddp_single(const Plan& plan, const Profile& profile, const ExportPlace& place);
Exported export_fsdp2(const Plan& plan, const Profile& profile, const ExportPlace& place);
Exported export_deepspeed(const Plan& plan, const Profile& profile, const ExportPlace& place);
Exported export_megatron(const Plan& plan, const Profile& profile, const ExportPlace& place);
Exported export_horovod(const Plan& plan, const Profile& profile, const ExportPlace& place);
Exported export_byteps(const Plan& plan, const Profile& profile, const ExportPlace& place);
Exported export_nccl(const Plan& plan, const Profile& profile, const ExportPlace& place);
Exported export_env(const Plan& plan, const Profile& profile, const ExportPlace& place);

}  // namespace commtune::api
