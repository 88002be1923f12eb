#include "executor/transport/verbs/gid_choice.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>

#include "executor/base/ip_network.h"
#include "perfmodel/base/error.h"

namespace commtune::verbs {
namespace {

// More of them than a message has room for says nothing.
constexpr std::size_t kMostListed = 4;

std::string text_of(const Gid& gid) { return to_text(IpAddress{gid.address}); }

std::string card_of(const Gid& gid) { return fmt::format("{}:{}", gid.device, gid.port); }

bool fits(const Gid& gid, const GidWish& wish) {
  if (!wish.device.empty() && wish.device != gid.device && wish.device != card_of(gid)) return false;
  if (wish.index >= 0 && wish.index != gid.index) return false;
  if (wish.subnet.empty()) return true;
  const auto network = read_network(wish.subnet);
  return network && network->contains(IpAddress{gid.address});
}

std::string text_of(const GidWish& wish) {
  std::string text;
  const auto add = [&](std::string_view what) {
    text += fmt::format("{}{}", text.empty() ? "" : ", ", what);
  };
  if (!wish.device.empty()) add("device " + wish.device);
  if (wish.index >= 0) add(fmt::format("GID index {}", wish.index));
  if (!wish.subnet.empty()) add("an address in " + wish.subnet);
  return text;
}

std::string why_none(std::span<const Gid> gids, const GidWish& wish) {
  if (gids.empty()) return "no RDMA device of this host has an address (GID)";
  std::string there;
  for (const Gid& gid : gids.first(std::min(gids.size(), kMostListed)))
    there += fmt::format("{}{}{}", there.empty() ? "" : "; ", describe(gid), gid.active ? "" : ", port down");
  if (gids.size() > kMostListed) there += fmt::format("; and {} more", gids.size() - kMostListed);
  const std::string asked = text_of(wish);
  return fmt::format("no RDMA port that is up has {}; there are: {}",
                     asked.empty() ? std::string("an address (GID)") : asked, there);
}

}  // namespace

std::string_view name_of(GidKind kind) {
  switch (kind) {
    case GidKind::kInfiniBand:
      return "InfiniBand";
    case GidKind::kRoceV1:
      return "RoCE v1";
    case GidKind::kRoceV2:
      return "RoCE v2";
  }
  return "?";
}

std::optional<std::uint32_t> ipv4_of(const Gid& gid) {
  constexpr std::array<std::uint8_t, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  if (!std::equal(kMapped.begin(), kMapped.end(), gid.address.begin())) return std::nullopt;
  std::uint32_t address = 0;
  for (std::size_t i = 12; i < 16; ++i) address = (address << 8) | gid.address[i];
  return address;
}

bool is_routable(const Gid& gid) {
  const bool link_local = gid.address[0] == 0xfe && (gid.address[1] & 0xc0) == 0x80;
  const auto ipv4 = ipv4_of(gid);
  return !link_local && (!ipv4 || (*ipv4 >> 16) != 0xa9fe);  // 169.254.0.0/16
}

std::string describe(const Gid& gid) {
  return fmt::format("{}, GID {} ({}, {}{}{})", card_of(gid), gid.index, name_of(gid.kind), text_of(gid),
                     gid.network_device.empty() ? "" : ", ", gid.network_device);
}

std::string describe_address(const Gid& gid) { return fmt::format("GID {}, {}", gid.index, text_of(gid)); }

void GidWish::check() const {
  if (!subnet.empty() && !read_network(subnet)) {
    throw Error(ErrorCode::kBadInput, fmt::format("subnet = '{}': must be {}", subnet, kNetworkRule));
  }
  if (index < -1 || index > 65535) {
    throw Error(ErrorCode::kBadInput, fmt::format("GID index = {}: must be between 0 and 65535", index));
  }
}

int score(const Gid& gid) {
  const bool nothing = std::ranges::all_of(gid.address, [](std::uint8_t byte) { return byte == 0; });
  if (!gid.active || nothing) return 0;
  if (gid.kind == GidKind::kInfiniBand) return 32;  // routed by its subnet manager, whatever the address says
  int sum = 1;
  if (gid.kind == GidKind::kRoceV2) sum += 16;
  if (!gid.network_device.empty()) sum += 8;
  if (!gid.overlay) sum += 4;
  if (is_routable(gid)) sum += 2;
  if (ipv4_of(gid)) sum += 1;
  return sum;
}

const Gid& choose_gid(std::span<const Gid> gids, const GidWish& wish, std::size_t nth) {
  int best = 0;
  for (const Gid& gid : gids)
    if (fits(gid, wish)) best = std::max(best, score(gid));
  if (best == 0) throw Error(ErrorCode::kUnavailable, why_none(gids, wish));
  std::vector<const Gid*> first_of_card;
  for (const Gid& gid : gids) {
    if (!fits(gid, wish) || score(gid) != best) continue;
    const bool known =
        std::ranges::any_of(first_of_card, [&](const Gid* other) { return card_of(*other) == card_of(gid); });
    if (!known) first_of_card.push_back(&gid);
  }
  return *first_of_card[nth % first_of_card.size()];
}

}  // namespace commtune::verbs
