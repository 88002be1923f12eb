#pragma once
// How DistributedDataParallel and others fill their buckets, and the caps that make them fill them as wanted.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "perfmodel/plan.h"
#include "perfmodel/profile.h"

namespace commtune::api {

/// Numbers of tensors in buckets, in the order in which gradients appear (the last tensor first); together
/// all tensors.
using BucketGroups = std::vector<std::size_t>;

/// What is in a bucket.
struct GroupBytes {
  std::uint64_t all = 0;
  std::uint64_t smallest = std::numeric_limits<std::uint64_t>::max();  ///< tensor
  std::uint64_t last = 0;                                              ///< tensor
};
std::vector<GroupBytes> bytes_of(const Profile& profile, const BucketGroups& groups);

/// What the plan's messages are as buckets: nothing unless each is a run of whole tensors that follow each
/// other. Messages may be listed in any order.
std::optional<BucketGroups> consecutive_groups(const Plan& plan, const Profile& profile);

/// Whether the plan lists its messages in the order in which their gradients appear.
bool in_order_of_gradients(const Plan& plan);

/// The buckets after the first iterations, where one cap holds for all: a bucket is closed by the tensor
/// with which it reaches the cap (compute_bucket_assignment_by_size in
/// torch/csrc/distributed/c10d/reducer.cpp).
///
/// first  cap of the first bucket
BucketGroups groups_by_cap(const Profile& profile, Bytes first, Bytes cap);

/// The buckets of a framework that closes one before the gradient with which it would have more than `size`;
/// a larger gradient has one of its own (reduce_independent_p_g_buckets_and_remove_grads in
/// deepspeed/runtime/zero/stage_1_and_2.py).
BucketGroups groups_within(const Profile& profile, Bytes size);

/// Caps in MiB, as text, that make those buckets: the numbers with the fewest decimals that do. DDP takes
/// them times 2^20, without a fraction. The caps hold in whatever order the gradients of one bucket appear.
std::vector<std::string> cap_list(const Profile& profile, const BucketGroups& groups);

/// One cap in MiB for groups that groups_by_cap() made with it; no more than `cap`.
std::string one_cap(const Profile& profile, const BucketGroups& groups, Bytes cap);

/// The same buckets, each to the end of the layer in which it ended: a layer's gradients appear together, and
/// which of them is first is PyTorch's matter.
BucketGroups with_whole_layers(const Profile& profile, const BucketGroups& groups);

}  // namespace commtune::api
