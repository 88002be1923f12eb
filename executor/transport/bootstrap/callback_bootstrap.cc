#include "executor/transport/bootstrap/callback_bootstrap.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include "perfmodel/base/error.h"

namespace commtune {
namespace {

/// What tells hosts apart.
struct HostIdentity {
  std::array<char, 256> name{};
  std::array<char, 64> boot{};  // another one a start of a kernel: two hosts of one name have two
  bool operator==(const HostIdentity&) const = default;
};

HostIdentity own_host() {
  HostIdentity host;
  if (gethostname(host.name.data(), host.name.size() - 1) != 0)
    throw Error(ErrorCode::kUnavailable, fmt::format("gethostname: {}", std::strerror(errno)));
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  file >> boot;  // empty without /proc: the name decides alone
  boot.copy(host.boot.data(), host.boot.size() - 1);
  return host;
}

class CallbackBootstrap final : public Bootstrap {
 public:
  CallbackBootstrap(int rank, int ranks, AllGatherCallback all_gather) : all_gather_(std::move(all_gather)) {
    if (ranks < 1 || rank < 0 || rank >= ranks) {
      throw Error(ErrorCode::kBadInput,
                  fmt::format("rank = {} of {}: must be 0 to the number of ranks, less 1", rank, ranks));
    }
    peers_.rank = rank;
    for (int i = 0; i < ranks; ++i) {
      peers_.hosts.push_back("unknown");  // for what is said until they are known
      peers_.node.push_back(i);
    }
    find_peers();
  }

  const Peers& peers() const override { return peers_; }

  std::vector<std::byte> all_gather(std::span<const std::byte> own, Deadline /*until*/) override {
    const std::uint64_t size = own.size();
    const std::vector<std::byte> told = gather_equal(std::as_bytes(std::span(&size, 1)));
    std::vector<std::uint64_t> sizes(peers_.hosts.size());
    std::memcpy(sizes.data(), told.data(), told.size());
    check_record_sizes(peers_, sizes);
    return gather_equal(own);
  }

  void abort(std::string_view /*why*/) noexcept override {}

 private:
  std::vector<std::byte> gather_equal(std::span<const std::byte> own) {
    std::vector<std::byte> all = all_gather_(own);
    const std::size_t expected = own.size() * peers_.hosts.size();
    if (all.size() == expected) return all;
    throw Error(
        ErrorCode::kConflict,
        fmt::format("the all-gather that the job was joined with returned {} B: must be {}, {} of each of "
                    "{} ranks",
                    all.size(), expected, own.size(), peers_.hosts.size()));
  }

  void find_peers() {
    const std::vector<HostIdentity> hosts = commtune::all_gather(*this, own_host(), Deadline::max());
    for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
      peers_.hosts[rank] = hosts[rank].name.data();
      const auto first = std::find(hosts.begin(), hosts.end(), hosts[rank]);
      peers_.node[rank] = static_cast<int>(first - hosts.begin());
    }
  }

  const AllGatherCallback all_gather_;
  Peers peers_;
};

}  // namespace

std::shared_ptr<Bootstrap> make_callback_bootstrap(int rank, int ranks, AllGatherCallback all_gather) {
  return std::make_shared<CallbackBootstrap>(rank, ranks, std::move(all_gather));
}

}  // namespace commtune
