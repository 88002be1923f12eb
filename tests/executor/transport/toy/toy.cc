// A transport that the product does not have: this folder, and a line in the registry's list. Its ranks are
// threads of one process; rank 0 makes the ends for all.

#include "tests/executor/transport/toy/toy.h"

#include <array>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "executor/transport/bootstrap/bootstrap.h"
#include "executor/transport/local/local.h"
#include "executor/transport/transport_kind.h"

COMMTUNE_DECLARE_TRANSPORT(toy)

namespace commtune::toy {

namespace {

/// Ends of the local transport, under another name.
class ToyTransport final : public Transport {
 public:
  explicit ToyTransport(std::unique_ptr<Transport> end) : end_(std::move(end)) {}

  std::string_view name() const override { return "toy"; }
  const Peers& peers() const override { return end_->peers(); }
  TransferId send(int to, Tag tag, std::span<const std::byte> data) override {
    return end_->send(to, tag, data);
  }
  TransferId receive(int from, Tag tag, std::span<std::byte> data) override {
    return end_->receive(from, tag, data);
  }
  std::span<const Completion> wait(Deadline until) override { return end_->wait(until); }
  void wake() noexcept override { end_->wake(); }
  void abort(std::string_view why) noexcept override { end_->abort(why); }

 private:
  const std::unique_ptr<Transport> end_;
};

}  // namespace

std::optional<std::string> unusable(const Bootstrap& bootstrap) {
  if (bootstrap.peers().rank != rank_without) return std::nullopt;
  return "no toy on this host";
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): as every transport is made
std::unique_ptr<Transport> make(std::shared_ptr<Bootstrap> bootstrap, const TransportOptions& /*options*/,
                                Deadline until) {
  const auto rank = static_cast<std::size_t>(bootstrap->peers().rank);
  std::array<Transport*, 8> given{};
  if (rank == 0) {
    auto ends = make_local_transports(bootstrap->peers().size());
    for (std::size_t each = 0; each < ends.size(); ++each) given.at(each) = ends[each].release();
  }
  return std::make_unique<ToyTransport>(
      std::unique_ptr<Transport>(all_gather(*bootstrap, given, until).front().at(rank)));
}

}  // namespace commtune::toy
