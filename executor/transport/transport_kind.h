#pragma once
// A way for ranks to reach each other, before there are any: what its folder tells the registry.

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "executor/transport/transport.h"

namespace commtune {

class Bootstrap;

/// What every transport may be told; each takes what its kind says.
struct TransportOptions {
  std::string
      subnet;  ///< addresses to use, such as "10.0.0.0/24" or "fd00::/64"; empty: any that both ends share
  double pace = 0;  ///< bytes per second that a connection sends to another host at most; 0: no limit
  std::string own;  ///< what only that transport knows: "device=mlx5_0,connections=2"; empty: as it likes
};

/// Plain data: it needs none of the transport's libraries.
struct TransportKind {
  std::string_view name;      ///< as flags, orders and clusters have it: "tcp"
  bool takes_subnet = false;  ///< TransportOptions::subnet
  bool takes_pace = false;    ///< TransportOptions::pace
  std::string_view own{};     ///< keys that TransportOptions::own may have; empty: it takes none
  /// Its ranks are threads of one process, so nobody who starts processes can use it.
  bool one_process = false;
};

}  // namespace commtune

/// A transport's folder has a namespace of its name in commtune, with these three.
///
/// kKind     in a source of its own, out of unity builds: who only asks for names links nothing else
/// unusable  one line that says why this rank cannot use it ("no RDMA device"); empty: it can
/// make      connects the ranks, by that time and within the transport's own limit. Collective. Throws
///           Error{kTimeout}, Error{kPeerLost} or Error{kUnavailable}
#define COMMTUNE_DECLARE_TRANSPORT(NAME)                                                                 \
  namespace commtune::NAME {                                                                             \
  extern const TransportKind kKind;                                                                      \
  std::optional<std::string> unusable(const Bootstrap& bootstrap);                                       \
  std::unique_ptr<Transport> make(std::shared_ptr<Bootstrap> bootstrap, const TransportOptions& options, \
                                  Deadline until);                                                       \
  }
