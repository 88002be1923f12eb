#pragma once
// Which address of which RDMA card a rank uses. A card's port has a table of them (GIDs), and most of its
// entries lead nowhere: RoCE v1 is not routed, a link-local address ends at the switch, one of a container's
// overlay is another network's, one without a network device has lost it.
//
// No libibverbs here: plain data in, plain data out.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace commtune::verbs {

enum class GidKind : std::uint32_t { kInfiniBand, kRoceV1, kRoceV2 };

/// An entry of a port's table of addresses.
struct Gid {
  std::string device{};  ///< "mlx5_0", as ibv_devices prints it
  int port = 1;
  int index = 0;  ///< in the port's table
  GidKind kind = GidKind::kRoceV2;
  std::array<std::uint8_t, 16> address{};
  std::string network_device{};  ///< "eth0"; empty: none
  bool overlay = false;          ///< that device is a tunnel (VXLAN, Geneve, GRE, ...)
  bool active = false;           ///< the port is up
};

/// The address as an IPv4 one, in host byte order, if it is one.
std::optional<std::uint32_t> ipv4_of(const Gid& gid);
/// It means the same behind a router.
bool is_routable(const Gid& gid);
std::string_view name_of(GidKind kind);  ///< "RoCE v2"
/// "mlx5_0:1, GID 3 (RoCE v2, 10.0.0.1, eth0)".
std::string describe(const Gid& gid);
/// "GID 3, 10.0.0.1".
std::string describe_address(const Gid& gid);

/// What a user may say about it; each that is said must hold.
struct GidWish {
  std::string device{};  ///< "mlx5_0", or with its port "mlx5_0:1"
  int index = -1;        ///< of the table; -1: any
  std::string subnet{};  ///< "10.0.0.0/24" or "fd00::/64": of the address
  void check() const;    ///< throws Error{kBadInput} naming field, value and rule
};

/// The higher, the better; 0: cannot be used at all.
int score(const Gid& gid);

/// The best one that fits the wish.
///
/// nth     which of the cards to take where several have one that is as good: that many ranks of this host
///         choose before this one
/// throws  Error{kUnavailable} saying what there is, where none fits
const Gid& choose_gid(std::span<const Gid> gids, const GidWish& wish, std::size_t nth);

}  // namespace commtune::verbs
