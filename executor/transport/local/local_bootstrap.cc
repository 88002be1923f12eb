#include "executor/transport/local/local_bootstrap.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "executor/transport/local/local.h"
#include "perfmodel/base/error.h"

namespace commtune {
namespace {

/// Where the ranks meet, round after round.
struct Meeting {
  explicit Meeting(std::size_t ranks) : records(ranks) {}
  std::mutex mutex;  // guards everything below
  std::condition_variable changed;
  std::vector<std::optional<std::vector<std::byte>>> records;  // by rank; empty: it has not come yet
  std::size_t arrived = 0;
  std::uint64_t round = 0;
  std::vector<std::uint64_t> sizes;  // of the last round's records
  std::vector<std::byte> all;        // those records
  std::shared_ptr<void> shared;      // what rank 0 has brought, until all have it
  std::optional<std::string> aborted;

  /// Everybody is here. No rank comes again before it has taken what this leaves.
  void end_round() {
    sizes.clear();
    all.clear();
    for (auto& record : records) {
      sizes.push_back(record->size());
      all.insert(all.end(), record->begin(), record->end());
      record.reset();
    }
    arrived = 0;
    ++round;
    changed.notify_all();
  }
};

class LocalPlace final : public LocalBootstrap {
 public:
  LocalPlace(std::shared_ptr<Meeting> meeting, Peers peers)
      : meeting_(std::move(meeting)), peers_(std::move(peers)) {}

  const Peers& peers() const override { return peers_; }
  std::vector<std::byte> all_gather(std::span<const std::byte> own, Deadline until) override;
  std::shared_ptr<void> share(std::shared_ptr<void> own, Deadline until) override;
  void abort(std::string_view why) noexcept override;

 private:
  const std::shared_ptr<Meeting> meeting_;  // shared by the places: the last one to go frees it
  const Peers peers_;
};

std::vector<std::byte> LocalPlace::all_gather(std::span<const std::byte> own, Deadline until) {
  std::unique_lock lock(meeting_->mutex);
  const std::uint64_t round = meeting_->round;
  meeting_->records[static_cast<std::size_t>(peers_.rank)].emplace(own.begin(), own.end());
  if (++meeting_->arrived == meeting_->records.size()) meeting_->end_round();
  const auto ended = [&] { return meeting_->round != round || meeting_->aborted; };
  if (until == Deadline::max()) {
    meeting_->changed.wait(lock, ended);
  } else {
    meeting_->changed.wait_until(lock, until, ended);
  }
  if (meeting_->round == round) {
    if (meeting_->aborted) throw Error(ErrorCode::kPeerLost, *meeting_->aborted);
    const auto absent =
        std::ranges::find_if(meeting_->records, [](const auto& record) { return !record.has_value(); });
    const auto rank = static_cast<int>(absent - meeting_->records.begin());
    throw Error(ErrorCode::kTimeout, fmt::format("waiting for {}: timed out", describe(peers_, rank)));
  }
  check_record_sizes(peers_, meeting_->sizes);
  return meeting_->all;
}

std::shared_ptr<void> LocalPlace::share(std::shared_ptr<void> own, Deadline until) {
  if (peers_.rank == 0) {
    const std::lock_guard lock(meeting_->mutex);
    meeting_->shared = std::move(own);
  }
  all_gather({}, until);
  std::shared_ptr<void> shared;
  {
    const std::lock_guard lock(meeting_->mutex);
    shared = meeting_->shared;
  }
  all_gather({}, until);
  if (peers_.rank == 0) {  // all have it
    const std::lock_guard lock(meeting_->mutex);
    meeting_->shared = nullptr;
  }
  return shared;
}

void LocalPlace::abort(std::string_view why) noexcept {
  const std::lock_guard lock(meeting_->mutex);
  if (!meeting_->aborted) {
    meeting_->aborted = fmt::format("{} ended the run: {}", describe(peers_, peers_.rank), why);
  }
  meeting_->changed.notify_all();
}

}  // namespace

std::vector<std::shared_ptr<Bootstrap>> make_local_bootstraps(int n, int ranks_per_host) {
  Peers peers = local_peers(n, ranks_per_host);
  const auto meeting = std::make_shared<Meeting>(peers.hosts.size());
  std::vector<std::shared_ptr<Bootstrap>> places;
  for (; peers.rank < n; ++peers.rank) places.push_back(std::make_shared<LocalPlace>(meeting, peers));
  return places;
}

}  // namespace commtune
