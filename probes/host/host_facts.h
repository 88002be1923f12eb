#pragma once
// What is known of this host without timing anything: its part of a cluster's fingerprint.

#include <map>
#include <string>

namespace commtune::probes {

/// "cpu" (model and number of processors), "kernel", "interfaces" (those that are up with an address, with
/// their MTU; loopback left out). What cannot be read is left out.
std::map<std::string, std::string> host_facts();

}  // namespace commtune::probes
