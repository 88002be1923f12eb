#include "executor/transport/verbs/regions.h"

#include <fmt/format.h>

#include <cerrno>
#include <utility>

namespace commtune::verbs {
namespace {

constexpr int kPeerWrites = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;

Region of_kept(const ibv_mr& region) { return {region.lkey, region.rkey, nullptr}; }

Region of_own(Owned<ibv_mr> region) {
  Region result{region->lkey, region->rkey, nullptr};
  result.hold = std::shared_ptr<const ibv_mr>(
      region.release(), [](const ibv_mr* made) { Release{}(const_cast<ibv_mr*>(made)); });
  return result;
}

}  // namespace

Regions::Regions(const Device& device, bool relaxed)
    : device_(device), peer_writes_(kPeerWrites | (relaxed ? IBV_ACCESS_RELAXED_ORDERING : 0)) {}

Region Regions::frames(std::span<std::byte> memory) const { return of_own(make(memory, kPeerWrites)); }

Region Regions::readable(std::span<const std::byte> memory) const {
  if (const ibv_mr* const kept = find(memory)) return of_kept(*kept);
  return make_passing(memory, 0);
}

Region Regions::writable(std::span<std::byte> memory) const {
  if (const ibv_mr* const kept = find(memory)) return of_kept(*kept);
  return make_passing(memory, peer_writes_);
}

void Regions::keep(std::span<std::byte> memory) {
  if (memory.empty()) return;
  kept_[memory.data()] = make(memory, peer_writes_);
  ++kept_count_;
}

void Regions::release(std::span<std::byte> memory) noexcept { kept_.erase(memory.data()); }

const ibv_mr* Regions::find(std::span<const std::byte> memory) const {
  auto after = kept_.upper_bound(memory.data());
  if (after == kept_.begin()) return nullptr;
  const ibv_mr* const region = std::prev(after)->second.get();
  const std::byte* const end = static_cast<const std::byte*>(region->addr) + region->length;
  return memory.data() + memory.size() <= end ? region : nullptr;
}

Region Regions::make_passing(std::span<const std::byte> memory, int access) const {
  Region region = of_own(make(memory, access));
  ++passing_count_;
  return region;
}

Owned<ibv_mr> Regions::make(std::span<const std::byte> memory, int access) const {
  // The library takes no pointer to const, and changes nothing.
  auto* const begin = const_cast<std::byte*>(memory.data());
  const auto address = reinterpret_cast<std::uint64_t>(begin);
  Owned<ibv_mr> region(
      (library().reg_mr)(device_.domain(), begin, memory.size(), address, static_cast<unsigned int>(access)));
  if (!region)
    throw card_error(fmt::format("registering {} B of memory", memory.size()), device_.gid(), errno);
  return region;
}

}  // namespace commtune::verbs
