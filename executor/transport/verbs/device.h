#pragma once
// The RDMA cards of this host, and the one that a rank has opened. For the sources of this folder.

#include <string>
#include <vector>

#include "executor/transport/transport.h"
#include "executor/transport/verbs/gid_choice.h"
#include "executor/transport/verbs/library.h"
#include "perfmodel/base/error.h"

namespace commtune::verbs {

/// Addresses of all ports of all cards; cards that cannot be opened are left out. Throws Error{kUnavailable}.
std::vector<Gid> list_gids();

/// A card as a rank uses it: by one port and one address of that.
class Device {
 public:
  /// gid     one of list_gids()
  /// throws  Error{kUnavailable}
  explicit Device(const Gid& gid);

  const Gid& gid() const { return gid_; }
  const ibv_port_attr& port() const { return port_; }
  const ibv_device_attr& limits() const { return limits_; }
  /// Asks the card anew: false where the link is down, or the card is gone.
  bool is_port_active() const;
  ibv_context* context() const { return context_.get(); }
  ibv_pd* domain() const { return domain_.get(); }

 private:
  Gid gid_;
  Owned<ibv_context> context_;
  ibv_port_attr port_{};
  ibv_device_attr limits_{};
  Owned<ibv_pd> domain_;
};

/// Kind of address, link layer and MTU, and the card's firmware.
EndFacts facts_of(const Device& device);

/// "creating a queue pair on mlx5_0:1, ...: Cannot allocate memory". Of the thread's errno, or of a status
/// that a call returned.
Error card_error(const std::string& what, const Gid& gid, int status);

}  // namespace commtune::verbs
