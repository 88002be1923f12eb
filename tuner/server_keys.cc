#include "tuner/server_keys.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>
#include <string_view>

namespace commtune::tuner {

namespace {

/// Bits of a key that count a tensor's partitions.
constexpr int kPartitionBits = 16;

std::vector<std::string_view> tensor_names(const Profile& profile) {
  std::vector<std::string_view> names;
  names.reserve(profile.tensor_count());
  for (const Layer& layer : profile.layers) {
    for (const Tensor& tensor : layer.tensors) names.emplace_back(tensor.name);
  }
  return names;
}

std::vector<std::uint64_t> declared_keys(const Profile& profile) {
  const std::vector<std::string_view> names = tensor_names(profile);
  std::vector<std::size_t> sorted(names.size());
  std::iota(sorted.begin(), sorted.end(), std::size_t{0});
  std::ranges::stable_sort(sorted, {}, [&](std::size_t tensor) { return names[tensor]; });
  std::vector<std::uint64_t> keys(names.size());
  for (std::uint64_t key = 0; key < sorted.size(); ++key) keys[sorted[key]] = key;
  return keys;
}

std::uint64_t key_of(std::uint64_t declared, std::uint64_t partition) {
  return (declared << kPartitionBits) + partition;
}

std::uint32_t server_of_hash(std::uint64_t hash, int servers) {
  return static_cast<std::uint32_t>(hash % static_cast<std::uint64_t>(servers));
}

}  // namespace

std::uint64_t byteps_hash(std::uint64_t key) {
  std::uint64_t hash = 5381;
  std::array<char, 20> digits{};  // of the largest key
  const char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), key).ptr;
  for (const char digit : std::string_view(digits.data(), end))
    hash = (hash << 5) + hash + static_cast<std::uint64_t>(digit);
  return hash;
}

TensorKeys::TensorKeys(const Profile& profile) : declared_(declared_keys(profile)) {
  first_hash_.reserve(declared_.size());
  for (const std::uint64_t declared : declared_) first_hash_.push_back(byteps_hash(key_of(declared, 0)));
}

std::uint32_t TensorKeys::server(TensorId tensor, std::uint64_t partition, int servers) const {
  const std::uint64_t hash =
      partition == 0 ? first_hash_[tensor] : byteps_hash(key_of(declared_[tensor], partition));
  return server_of_hash(hash, servers);
}

std::vector<std::uint32_t> byteps_servers(const TensorKeys& keys, const std::vector<Message>& messages,
                                          int servers) {
  std::vector<std::uint64_t> partitions(keys.tensors(), 0);
  std::vector<std::uint32_t> taken;
  taken.reserve(messages.size());
  for (const Message& message : messages) {
    const TensorId tensor = message.pieces.front().tensor;
    taken.push_back(keys.server(tensor, partitions[tensor]++, servers));
  }
  return taken;
}

std::vector<std::uint32_t> byteps_servers_of_buffer(std::size_t partitions, int servers) {
  std::vector<std::uint32_t> taken;
  taken.reserve(partitions);
  for (std::uint64_t key = 0; key < partitions; ++key)
    taken.push_back(server_of_hash(byteps_hash(key), servers));
  return taken;
}

bool takes_messages_whole(const Road& road) { return whole_message_servers(road) > 1; }

}  // namespace commtune::tuner
