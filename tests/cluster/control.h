#pragma once
// What can be asked of a running switch: one request a line over a UNIX stream socket, one JSON object a line
// back. Hosts are counted from 1. Units are base units (bytes per second on the wire, nanoseconds, bytes);
// the scripts translate what people write.
//
//   status                                     settings, counters, how late deliveries were
//   set HOST KEY=NUMBER ...                    KEY: up, down (bytes per second), delay (ns), buffer (bytes)
//   cut HOST | restore HOST                    pulls the host's cable, plugs it in again
//   quit                                       ends the switch
//
// A refused request answers {"error": "..."} and changes nothing.

#include <string>
#include <string_view>

#include "tests/cluster/fabric.h"

namespace commtune::cluster {

struct ControlReply {
  std::string json;  ///< without a line end
  bool quit = false;
};

/// Carries out one request. Never throws on bad requests.
ControlReply handle_request(std::string_view request, Fabric& fabric);

/// Sets one of the keys that `set` and the switch's --port flag share. Throws Error{kBadInput} naming key,
/// value and rule.
void set_port_key(PortSettings& settings, std::string_view key, std::string_view value);

/// A whole number of at least `least`. Throws Error{kBadInput} naming `what`.
std::int64_t parse_count(std::string_view what, std::string_view text, std::int64_t least);

}  // namespace commtune::cluster
