#pragma once
// Where a training program's plan comes from.

#include <optional>
#include <string>
#include <string_view>

#include "perfmodel/base/units.h"
#include "perfmodel/plan.h"
#include "perfmodel/tensor_layout.h"

namespace commtune::api {

struct BucketOptions {
  Bytes first = 1_MiB, others = 25_MiB;  ///< what the first bucket and the others hold at least
  int servers = 0;                       ///< colocated parameter servers; 0: all-reduce by a ring
  Barrier barrier = Barrier::kFull;
};

/// A plan that needs no measurement: whole tensors in buckets, in the order in which gradients appear.
/// throws  Error{kBadInput} for more servers than workers
Plan bucket_plan(const TensorLayout& layout, int workers, const BucketOptions& options = {});

/// A plan as a training program names it: JSON text (begins with '{'), "buckets" or a file's path. What the
/// service answers for a plan is taken for the plan in it.
/// throws  Error{kNotFound} for a file that cannot be read, Error{kBadInput} naming the place in it
Plan plan_from(std::string_view source, const TensorLayout& layout, int workers);

}  // namespace commtune::api
