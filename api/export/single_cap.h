#pragma once
// The best single size of buckets, for frameworks that have one for all of them.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/export/ddp_buckets.h"
#include "api/export/export.h"
#include "perfmodel/plan.h"
#include "perfmodel/profile.h"

namespace commtune::api {

/// How a framework fills buckets whose size is `cap`, in the order in which gradients appear.
using BucketRule = BucketGroups (*)(const Profile& profile, Bytes cap);

/// Buckets of one size, and what is known of their iteration.
struct SingleCap {
  BucketGroups groups;
  Bytes cap;
  std::optional<Seconds> predicted;
};

/// Whole buckets one after the other, over the plan's own all-reduce, or a ring where the plan has servers:
/// what a framework that all-reduces its buckets does with these, as a plan.
Plan bucket_plan(const Plan& plan, const Profile& profile, const BucketGroups& groups);

/// Of an iteration of bucket_plan(); nothing where it cannot be predicted.
std::optional<Seconds> predicted_time(const Plan& plan, const Profile& profile, const BucketGroups& groups,
                                      const PredictedTime& predict);

/// The single size with the least predicted time, of those that make 1, 2, 3, ... equal buckets and the one
/// that makes the plan's own messages, if there is one. Without predictions that one, or else the one that
/// makes about as many buckets as the plan has messages.
///
/// cost  O(number of tensors) predictions at most
SingleCap best_single_cap(const Plan& plan, const Profile& profile, BucketRule rule,
                          const PredictedTime& predict);

/// Caps that divide the gradients into 1, 2, 3, ... buckets, and further apart from ten on.
std::vector<Bytes> caps_to_try(const Profile& profile);

/// "the best single cap, 1.00 s an iteration predicted", or that there are as many buckets as messages.
std::string describe(const SingleCap& single);
/// ", 1.00 s an iteration predicted"; empty where it cannot be.
std::string prediction_text(const std::optional<Seconds>& time);

/// What one size for all buckets cannot say of the plan's messages.
void add_single_cap_gaps(const Plan& plan, const Profile& profile, const SingleCap& single,
                         std::string_view framework, Exported& out);

}  // namespace commtune::api
