#include "api/export/ddp_buckets.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

namespace commtune::api {
namespace {

constexpr double kMiB = 1024.0 * 1024.0;

/// A bucket of a group's tensors is closed by the last of them if its cap is above `open` and at most `all`.
struct CapRange {
  std::uint64_t open = 0;
  std::uint64_t all = std::numeric_limits<std::uint64_t>::max();
};

/// The fewest decimals that name a cap of the range, as DDP reads it.
std::string roundest(const CapRange& range) {
  constexpr int kMostDecimals = 6;
  double power = 1;
  for (int decimals = 0; decimals <= kMostDecimals; ++decimals, power *= 10) {
    const double cap = std::floor(static_cast<double>(range.all) / kMiB * power) / power;
    if (static_cast<std::uint64_t>(cap * kMiB) > range.open) return fmt::format("{:.{}f}", cap, decimals);
  }
  return fmt::format("{}", static_cast<double>(range.all) / kMiB);  // exact: a division by a power of two
}

/// Of a bucket that nothing follows: any cap that it does not reach before its end.
CapRange range_of_last(std::uint64_t bytes) {
  return {bytes - 1, bytes + static_cast<std::uint64_t>(kMiB) - 1};
}

/// Half-open range of tensors that a message carries, if it is a run of whole ones.
std::optional<TensorRange> run_of(const Message& message, const std::vector<TensorRef>& tensors) {
  TensorRange run{message.pieces.front().tensor, message.pieces.front().tensor + 1};
  for (const Piece& piece : message.pieces) {
    if (piece.length != tensors[piece.tensor].bytes) return std::nullopt;
    run.first = std::min(run.first, piece.tensor);
    run.end = std::max(run.end, piece.tensor + 1);
  }
  if (run.end - run.first != message.pieces.size()) return std::nullopt;
  return run;
}

}  // namespace

std::vector<GroupBytes> bytes_of(const Profile& profile, const BucketGroups& groups) {
  const std::vector<TensorRef> tensors = tensors_of(profile);
  std::vector<GroupBytes> out;
  out.reserve(groups.size());
  auto tensor = tensors.rbegin();
  for (const std::size_t group : groups) {
    GroupBytes bytes;
    for (std::size_t i = 0; i < group; ++i, ++tensor) {
      bytes.last = tensor->bytes.count;
      bytes.all += bytes.last;
      bytes.smallest = std::min(bytes.smallest, bytes.last);
    }
    out.push_back(bytes);
  }
  return out;
}

std::optional<BucketGroups> consecutive_groups(const Plan& plan, const Profile& profile) {
  const std::vector<TensorRef> tensors = tensors_of(profile);
  std::vector<TensorRange> runs;
  runs.reserve(plan.messages.size());
  for (const Message& message : plan.messages) {
    const std::optional<TensorRange> run = run_of(message, tensors);
    if (!run) return std::nullopt;
    runs.push_back(*run);
  }
  std::ranges::sort(runs, std::greater{}, &TensorRange::first);
  BucketGroups groups;
  groups.reserve(runs.size());
  for (const TensorRange& run : runs) groups.push_back(run.end - run.first);
  return groups;
}

bool in_order_of_gradients(const Plan& plan) {
  return std::ranges::is_sorted(plan.messages, std::greater{},
                                [](const Message& message) { return message.pieces.front().tensor; });
}

BucketGroups groups_by_cap(const Profile& profile, Bytes first, Bytes cap) {
  BucketGroups groups;
  bool full = true;
  Bytes filled;
  const std::vector<TensorRef> tensors = tensors_of(profile);
  for (auto tensor = tensors.rbegin(); tensor != tensors.rend(); ++tensor) {
    if (full) {
      groups.push_back(0);
      filled = Bytes{0};
    }
    ++groups.back();
    filled += tensor->bytes;
    full = filled >= (groups.size() == 1 ? first : cap);
  }
  return groups;
}

BucketGroups groups_within(const Profile& profile, Bytes size) {
  BucketGroups groups;
  Bytes filled;
  const std::vector<TensorRef> tensors = tensors_of(profile);
  for (auto tensor = tensors.rbegin(); tensor != tensors.rend(); ++tensor) {
    if (groups.empty() || filled + tensor->bytes > size) {
      groups.push_back(0);
      filled = Bytes{0};
    }
    ++groups.back();
    filled += tensor->bytes;
  }
  return groups;
}

std::vector<std::string> cap_list(const Profile& profile, const BucketGroups& groups) {
  std::vector<std::string> caps;
  caps.reserve(groups.size());
  const std::vector<GroupBytes> all = bytes_of(profile, groups);
  for (const GroupBytes& bytes : all) {
    const bool last = caps.size() + 1 == groups.size();
    caps.push_back(
        roundest(last ? range_of_last(bytes.all) : CapRange{bytes.all - bytes.smallest, bytes.all}));
  }
  return caps;
}

std::string one_cap(const Profile& profile, const BucketGroups& groups, Bytes cap) {
  const std::vector<GroupBytes> all = bytes_of(profile, groups);
  if (all.size() == 1) return roundest(range_of_last(all.front().all));
  CapRange range{0, cap.count};
  for (const GroupBytes& bytes : all) range.open = std::max(range.open, bytes.all - bytes.last);
  return roundest(range);
}

BucketGroups with_whole_layers(const Profile& profile, const BucketGroups& groups) {
  const std::vector<TensorRef> tensors = tensors_of(profile);
  BucketGroups out;
  std::size_t end = tensors.size(), wanted = tensors.size();
  for (const std::size_t group : groups) {
    const std::size_t first = end;
    wanted -= group;
    end = std::min(end, wanted);  // the layer of the bucket before may have had all of this one
    while (end > 0 && end < first && tensors[end].layer == tensors[end - 1].layer) --end;
    if (end < first) out.push_back(first - end);
  }
  return out;
}

}  // namespace commtune::api
