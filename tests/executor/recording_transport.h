#pragma once
// A network that carries nothing: what is to be known of it is what it was asked for, and in which order.

#include <span>
#include <string>
#include <vector>

#include "executor/transport/transport.h"

namespace commtune::tests {

/// Ranks by the number of the host of each; host names are "h" and that number.
inline Peers peers_of(int rank, std::vector<int> node) {
  Peers peers{rank, {}, std::move(node)};
  for (const int each : peers.node) peers.hosts.push_back("h" + std::to_string(each));
  return peers;
}

/// One rank's end. Transfers end when the test says so, and are never given the same number twice.
class RecordingTransport final : public Transport {
 public:
  explicit RecordingTransport(Peers peers) : peers_(std::move(peers)) {}

  struct Started {
    int peer = 0;
    Tag tag = 0;
    std::size_t bytes = 0;
    bool receive = false;
    std::byte* address = nullptr;
  };
  const std::vector<Started>& started() const { return started_; }
  const std::vector<double>& shares() const { return shares_; }

  /// The next wait() reports its end; `tag` as the sender's.
  void end(TransferId id) { ended_.push_back({id, started_[id].tag, started_[id].bytes}); }
  void end(TransferId id, Tag tag, std::size_t bytes) { ended_.push_back({id, tag, bytes}); }

  std::string_view name() const override { return "recording"; }
  const Peers& peers() const override { return peers_; }
  TransferId send(int to, Tag tag, std::span<const std::byte> data) override {
    return start({to, tag, data.size(), false, const_cast<std::byte*>(data.data())});
  }
  TransferId receive(int from, Tag tag, std::span<std::byte> data) override {
    return start({from, tag, data.size(), true, data.data()});
  }
  std::span<const Completion> wait(Deadline /*until*/) override {
    reported_.swap(ended_);
    ended_.clear();
    return reported_;
  }
  void wake() noexcept override {}
  void share_links(std::span<const double> shares) override { shares_.assign(shares.begin(), shares.end()); }
  void abort(std::string_view /*why*/) noexcept override {}

 private:
  TransferId start(const Started& transfer) {
    started_.push_back(transfer);
    return static_cast<TransferId>(started_.size() - 1);
  }

  const Peers peers_;
  std::vector<Started> started_;
  std::vector<double> shares_;
  std::vector<Completion> ended_, reported_;
};

}  // namespace commtune::tests
