#pragma once
// Which server gets which partition in systems that give each one whole to a server.

#include <cstdint>
#include <vector>

#include "perfmodel/plan.h"
#include "perfmodel/profile.h"

namespace commtune::tuner {

/// The hash by which BytePS picks a key's server unless it is told otherwise (global.cc, BYTEPS_KEY_HASH_FN):
/// djb2 over the key's decimal digits, h = 33 h + digit from 5381.
std::uint64_t byteps_hash(std::uint64_t key);

/// The keys of a model's tensors under BytePS 0.2. Tensors are declared in the order of their names
/// (torch/__init__.py sorts them), and partition i of the d-th declared tensor has key (d << 16) + i
/// (operations.cc).
class TensorKeys {
 public:
  explicit TensorKeys(const Profile& profile);
  std::size_t tensors() const { return declared_.size(); }
  /// Which of so many servers gets a partition of a tensor.
  std::uint32_t server(TensorId tensor, std::uint64_t partition, int servers) const;

 private:
  std::vector<std::uint64_t> declared_;  ///< by tensor: its place in the order of names
  std::vector<std::uint64_t>
      first_hash_;  ///< by tensor: of its first partition, which mostly is the only one
};

/// Server of each message under BytePS 0.2's default.
///
/// messages  each a tensor's partition (its only piece), the partitions of a tensor in the order of offsets
std::vector<std::uint32_t> byteps_servers(const TensorKeys& keys, const std::vector<Message>& messages,
                                          int servers);

/// The same where all gradients were declared as one tensor: partition i has key i.
std::vector<std::uint32_t> byteps_servers_of_buffer(std::size_t partitions, int servers);

/// Whether a plan's road gives each message whole to one of several servers.
bool takes_messages_whole(const Road& road);

}  // namespace commtune::tuner
