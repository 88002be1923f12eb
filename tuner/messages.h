#pragma once
// Building blocks of plans: lists of messages, in the order in which gradients appear.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "perfmodel/base/units.h"
#include "perfmodel/plan.h"
#include "perfmodel/profile.h"

namespace commtune::tuner {

/// Credit of a plan that limits nothing.
inline constexpr Bytes kUnlimited{std::uint64_t{1} << 40};

/// Every tensor in a message of its own, in the order in which gradients appear: the last one first.
std::vector<Message> tensor_messages(const Profile& profile);

/// Neighbours of tensor_messages() fused: sizes[i] tensors in group i, together all tensors.
std::vector<Message> fused_messages(const Profile& profile, std::span<const std::size_t> sizes);

/// Every message cut into as few messages of at most `limit` bytes as possible, all but the last of a message
/// exactly `limit` (rounded down to whole elements, at least one, and at least smallest_partition).
std::vector<Message> cut_messages(std::vector<Message> messages, Bytes limit, Bytes element);

/// The limit below which messages would be cut into more pieces than a plan may have (2^22): a few lines of
/// JSON can name terabytes, and their slices are not to fill the memory.
std::uint64_t smallest_partition(const std::vector<Message>& messages);

/// Priorities 0, 1, 2, ... in list order.
std::vector<std::int32_t> list_priorities(std::size_t messages);

/// Priorities by the lowest layer that a message carries, lower first; in list order among equals.
std::vector<std::int32_t> layer_priorities(const std::vector<Message>& messages,
                                           const std::vector<TensorRef>& tensors);

}  // namespace commtune::tuner
