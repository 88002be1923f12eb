#pragma once
// Which ranks a rank is connected to already.

#include <optional>
#include <utility>
#include <vector>

#include "executor/base/descriptor.h"
#include "executor/transport/transport.h"

namespace commtune::tcp {

class Places {
 public:
  explicit Places(const Peers& peers) : rank_(peers.rank), sockets_(peers.hosts.size()) {}

  bool is_taken(int rank) const { return static_cast<bool>(sockets_[static_cast<std::size_t>(rank)]); }
  /// The place is free.
  void give(int rank, Descriptor socket) { sockets_[static_cast<std::size_t>(rank)] = std::move(socket); }
  /// The lowest rank, other than this one, whose place is free.
  std::optional<int> first_free() const {
    for (int rank = 0; rank < static_cast<int>(sockets_.size()); ++rank) {
      if (rank != rank_ && !is_taken(rank)) return rank;
    }
    return std::nullopt;
  }
  /// By rank; the own entry is empty.
  std::vector<Descriptor> take() { return std::move(sockets_); }

 private:
  int rank_;
  std::vector<Descriptor> sockets_;
};

}  // namespace commtune::tcp
