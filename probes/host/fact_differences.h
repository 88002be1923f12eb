#pragma once
// What of a cluster is not as it was when its fits were made.

#include <map>
#include <string>
#include <vector>

namespace commtune::probes {

/// Named as in cluster_facts.h.
using Facts = std::map<std::string, std::string>;

/// What holds now and did not when a fit was made, a sentence each: "kernel of n1: Linux 6.1 when it was
/// fitted, Linux 6.5 now". Hosts of which nothing is known now take no part. A release that was not kept then
/// is taken to be the same; a revision that was not kept is the first.
std::vector<std::string> fact_differences(const Facts& fitted, const Facts& now);

/// The facts among these that belong to hosts of which `known` has some.
Facts of_known_hosts(const Facts& facts, const Facts& known);

}  // namespace commtune::probes
