#pragma once
// What exporters ask about a plan.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/export/export.h"
#include "api/export/variables.h"
#include "perfmodel/plan.h"
#include "perfmodel/profile.h"

namespace commtune::api {

/// How a plan treats tensors.
struct PlanShape {
  std::vector<Bytes> sizes;  ///< of the messages, in the plan's order
  Bytes largest, smallest;
  std::size_t fused = 0;  ///< messages with several tensors
  std::size_t cut = 0;    ///< messages with part of a tensor
  bool by_priority = false;
  bool decoupled = false;
  bool windows = false;
  bool per_layer = false;
  bool waits_for_backward = false;
};
PlanShape shape_of(const Plan& plan);

/// One more environment variable of a target.
void set_variable(Exported& out, Variable variable, std::string value);

/// "export NAME=value" lines, for a shell to evaluate: whatever a value is, nothing of it is executed.
std::string shell_exports(const std::vector<std::pair<std::string, std::string>>& settings);

/// What a framework that has all-reduce alone cannot say of a road: servers, and an algorithm that is neither
/// its communication library's own choice nor the one that it has a setting for.
void add_road_gaps(const Road& road, std::string_view framework, std::optional<Collective> settable,
                   Exported& out);

/// That the plan lists its messages in an order of its own, for a framework that sends as gradients appear.
void add_order_gap(const Plan& plan, std::string_view framework, Exported& out);

/// What only our own executor can do, said for a framework that fuses and runs in the order of the gradients.
void add_common_gaps(const PlanShape& shape, std::string_view framework, Exported& out);

}  // namespace commtune::api
