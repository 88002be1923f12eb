#include "executor/transport/verbs/device.h"

#include <fmt/format.h>
#include <net/if.h>
#include <net/if_arp.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>

#include "perfmodel/base/error.h"

namespace commtune::verbs {
namespace {

struct FreeDeviceList {
  void operator()(ibv_device** list) const noexcept { library().free_device_list(list); }
};
using DeviceList = std::unique_ptr<ibv_device*, FreeDeviceList>;

struct Devices {
  DeviceList list;
  int count = 0;
};

Devices list_devices() {
  if (!loaded().why_not.empty()) throw Error(ErrorCode::kUnavailable, loaded().why_not);
  Devices devices;
  devices.list.reset((library().get_device_list)(&devices.count));
  if (!devices.list) {
    throw Error(ErrorCode::kUnavailable, fmt::format("listing RDMA devices: {}", std::strerror(errno)));
  }
  return devices;
}

/// As the header's inline function of this name does it, which would need the library when we are linked.
bool query(ibv_context* context, int port, ibv_port_attr& attributes) {
  attributes = {};
  const auto number = static_cast<std::uint8_t>(port);
  verbs_context* const extended = verbs_get_ctx_op(context, query_port);
  if (extended != nullptr) return extended->query_port(context, number, &attributes, sizeof attributes) == 0;
  return (library().query_port)(context, number, reinterpret_cast<_compat_ibv_port_attr*>(&attributes)) == 0;
}

GidKind kind_of(const ibv_gid_entry& entry) {
  switch (entry.gid_type) {
    case IBV_GID_TYPE_ROCE_V1:
      return GidKind::kRoceV1;
    case IBV_GID_TYPE_ROCE_V2:
      return GidKind::kRoceV2;
    default:
      return GidKind::kInfiniBand;
  }
}

/// The kernel says of some tunnels by a name what they are, of others by the kind of their packets.
bool is_tunnel(const std::string& network_device) {
  const std::string folder = "/sys/class/net/" + network_device;
  int type = 0;
  std::ifstream(folder + "/type") >> type;
  constexpr int kIp6Gre = 823;  // linux/if_arp.h, which goes with no header of the C library
  constexpr std::array kTunnels{ARPHRD_TUNNEL, ARPHRD_TUNNEL6, ARPHRD_SIT, ARPHRD_IPGRE, kIp6Gre};
  if (std::ranges::find(kTunnels, type) != kTunnels.end()) return true;
  std::ifstream lines(folder + "/uevent");
  for (std::string line; std::getline(lines, line);)
    if (line == "DEVTYPE=vxlan" || line == "DEVTYPE=geneve") return true;
  return false;
}

void append_gids(std::vector<Gid>& gids, ibv_device* device) {
  const Owned<ibv_context> context(library().open_device(device));
  if (!context) return;
  constexpr std::size_t kMostEntries = 1024;
  std::vector<ibv_gid_entry> entries(kMostEntries);
  const auto count =
      library().query_gid_table(context.get(), entries.data(), entries.size(), 0, sizeof(ibv_gid_entry));
  if (count < 0) return;
  entries.resize(static_cast<std::size_t>(count));
  for (const ibv_gid_entry& entry : entries) {
    Gid gid{.device = library().get_device_name(device),
            .port = static_cast<int>(entry.port_num),
            .index = static_cast<int>(entry.gid_index),
            .kind = kind_of(entry)};
    std::copy_n(std::begin(entry.gid.raw), gid.address.size(), gid.address.begin());
    std::array<char, IF_NAMESIZE> name{};
    if (entry.ndev_ifindex != 0 && if_indextoname(entry.ndev_ifindex, name.data()) != nullptr) {
      gid.network_device = name.data();
      gid.overlay = is_tunnel(gid.network_device);
    }
    ibv_port_attr port{};
    gid.active = query(context.get(), gid.port, port) && port.state == IBV_PORT_ACTIVE;
    gids.push_back(std::move(gid));
  }
}

}  // namespace

std::vector<Gid> list_gids() {
  const Devices devices = list_devices();
  std::vector<Gid> gids;
  for (int i = 0; i < devices.count; ++i) append_gids(gids, devices.list.get()[i]);
  return gids;
}

EndFacts facts_of(const Device& device) {
  const Gid& gid = device.gid();
  const bool ethernet = device.port().link_layer == IBV_LINK_LAYER_ETHERNET;
  constexpr int kSmallestMtu = 128;  // IBV_MTU_256 is 1, and each further one twice as many bytes
  EndFacts facts;
  facts.what[fmt::format("card_{}_{}", gid.device, gid.port)] =
      fmt::format("{}, {}, MTU {} B", name_of(gid.kind), ethernet ? "Ethernet" : "InfiniBand",
                  kSmallestMtu << static_cast<int>(device.port().active_mtu));
  facts.releases[fmt::format("gid_{}_{}", gid.device, gid.port)] = describe_address(gid);
  const std::string firmware = device.limits().fw_ver;
  if (!firmware.empty()) facts.releases["firmware_" + gid.device] = firmware;
  return facts;
}

Error card_error(const std::string& what, const Gid& gid, int status) {
  std::string text = fmt::format("{} on {}: {}", what, describe(gid), std::strerror(status));
  if (status == ENOMEM) text += ": may this user lock so much memory (ulimit -l)?";
  return {ErrorCode::kUnavailable, text};
}

Device::Device(const Gid& gid) : gid_(gid) {
  const Devices devices = list_devices();
  for (int i = 0; i < devices.count && !context_; ++i) {
    ibv_device* const device = devices.list.get()[i];
    if (gid.device != library().get_device_name(device)) continue;
    context_.reset(library().open_device(device));
    if (!context_) throw card_error("opening the RDMA device", gid, errno);
  }
  if (!context_) throw Error(ErrorCode::kUnavailable, fmt::format("RDMA device {} is gone", gid.device));
  if (!query(context_.get(), gid.port, port_))
    throw card_error("asking for the state of the port", gid, errno);
  if (const int status = library().query_device(context_.get(), &limits_); status != 0)
    throw card_error("asking for the limits of the device", gid, status);
  domain_.reset(library().alloc_pd(context_.get()));
  if (!domain_) throw card_error("making a protection domain", gid, errno);
}

bool Device::is_port_active() const {
  ibv_port_attr now{};
  return query(context_.get(), gid_.port, now) && now.state == IBV_PORT_ACTIVE;
}

}  // namespace commtune::verbs
