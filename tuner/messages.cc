#include "tuner/messages.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

namespace commtune::tuner {

std::vector<Message> tensor_messages(const Profile& profile) {
  const std::vector<std::size_t> ones(profile.tensor_count(), 1);
  return fused_messages(profile, ones);
}

std::vector<Message> fused_messages(const Profile& profile, std::span<const std::size_t> sizes) {
  const std::vector<TensorRef> tensors = tensors_of(profile);
  assert(std::accumulate(sizes.begin(), sizes.end(), std::size_t{0}) == tensors.size());
  std::vector<Message> messages;
  messages.reserve(sizes.size());
  auto next = static_cast<TensorId>(tensors.size());
  for (const std::size_t size : sizes) {
    Message& message = messages.emplace_back();
    message.pieces.reserve(size);
    for (std::size_t i = 0; i < size; ++i) {
      --next;
      message.pieces.push_back({next, Bytes{0}, tensors[next].bytes});
    }
  }
  return messages;
}

std::uint64_t smallest_partition(const std::vector<Message>& messages) {
  constexpr std::uint64_t kMostPieces = std::uint64_t{1} << 22;  // of a plan: perfmodel/plan.cc
  std::uint64_t total = 0, ends = messages.size();  // of messages and pieces: each may be a cut more
  for (const Message& message : messages) {
    total += message_bytes(message).count;
    ends += message.pieces.size();
  }
  return ends < kMostPieces ? total / (kMostPieces - ends) + 1 : total;
}

namespace {

/// A piece without bytes is left out by a cut, as one that ends where the message is cut.
bool stays_whole(const Message& message, std::uint64_t most) {
  const auto is_empty = [](const Piece& piece) { return piece.length.count == 0; };
  return !message.pieces.empty() && message_bytes(message).count <= most &&
         std::ranges::none_of(message.pieces, is_empty);
}

}  // namespace

std::vector<Message> cut_messages(std::vector<Message> messages, Bytes limit, Bytes element) {
  const std::uint64_t least = (smallest_partition(messages) + element.count - 1) / element.count;
  const std::uint64_t most = std::max(limit.count / element.count, least) * element.count;
  std::vector<Message> cut;
  cut.reserve(messages.size());
  for (Message& message : messages) {
    if (stays_whole(message, most)) {
      cut.push_back(std::move(message));
      continue;
    }
    std::uint64_t room = 0;
    for (Piece piece : message.pieces) {
      while (piece.length.count > 0) {
        if (room == 0) {
          cut.emplace_back();
          room = most;
        }
        const Bytes length{std::min(piece.length.count, room)};
        cut.back().pieces.push_back({piece.tensor, piece.offset, length});
        piece.offset += length;
        piece.length = piece.length - length;
        room -= length.count;
      }
    }
  }
  return cut;
}

std::vector<std::int32_t> list_priorities(std::size_t messages) {
  std::vector<std::int32_t> priority(messages);
  std::iota(priority.begin(), priority.end(), 0);
  return priority;
}

std::vector<std::int32_t> layer_priorities(const std::vector<Message>& messages,
                                           const std::vector<TensorRef>& tensors) {
  std::vector<std::uint32_t> lowest;
  lowest.reserve(messages.size());
  for (const Message& message : messages) {
    std::uint32_t layer = std::numeric_limits<std::uint32_t>::max();
    for (const Piece& piece : message.pieces) layer = std::min(layer, tensors[piece.tensor].layer);
    lowest.push_back(layer);
  }
  std::vector<std::int32_t> urgent = list_priorities(messages.size());
  std::stable_sort(urgent.begin(), urgent.end(), [&](std::int32_t a, std::int32_t b) {
    return lowest[static_cast<std::size_t>(a)] < lowest[static_cast<std::size_t>(b)];
  });
  std::vector<std::int32_t> priority(messages.size());
  for (std::size_t i = 0; i < urgent.size(); ++i) {
    priority[static_cast<std::size_t>(urgent[i])] = static_cast<std::int32_t>(i);
  }
  return priority;
}

}  // namespace commtune::tuner
