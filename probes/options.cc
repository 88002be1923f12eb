#include "probes/options.h"

#include <algorithm>
#include <cmath>

#include "perfmodel/base/error.h"

namespace commtune::probes {

namespace {

void require(bool holds, const std::string& field, const std::string& value, const std::string& rule) {
  if (!holds) throw Error(ErrorCode::kBadInput, field + " = " + value + ": must be " + rule);
}

}  // namespace

// Enough for three sizes of every road, alone and streamed, and a third of it to refine them: on 98 % of the
// curves of the clusters that tests/bench/sampling draws. Two hosts of several ranks have as many roads as
// four of one: inside hosts, between them, and both. The start of the ranks comes on top, on emulated
// clusters 0.2 s on 4 hosts and 0.5 s on 8, so a probe of 4 hosts ends within 10 s and one of 8 within 18 s.
//
// On paper, beyond what was emulated: N hosts have N - 1 rounds of pairs up to most_pairs_hosts and 12 above,
// so 1,024 hosts have as many as 13 do, 1.2 s at 102 ms a round (1 Gb/s, 200 us). What grows is the lead that
// a command needs to reach all ranks, 15 us each (coordinator.cc): 15 ms at 1,024, of which 60 s hold at most
// some 3,900. So a probe ends within kFixed + kPerHost N up to 35 hosts and within 60 s beyond, and measures
// fewer sizes there; would_measure says which.
Seconds default_budget(int hosts, int ranks) {
  // Rounds of pairs, sub-groups and latencies of rings grow with the number of hosts.
  constexpr Seconds kFixed{1.8}, kPerHost{1.85}, kMost{60.0};
  constexpr int kHostsOfRanks = 4;  // that several ranks a host count as, at most
  return std::min(kFixed + kPerHost * std::max(hosts, std::min(ranks, kHostsOfRanks)), kMost);
}

void ProbeOptions::check() const {
  if (budget) {
    require(std::isfinite(budget->count()) && budget->count() > 0, "budget",
            std::to_string(budget->count()) + " s", "positive");
  }
  if (sm_share) {
    const std::string value = std::to_string(*sm_share);
    require(*sm_share > 0 && *sm_share <= 1, "sm_share", value, "over 0, at most 1");
    require(device == DeviceKind::kCuda, "sm_share", value,
            "left out where messages do not lie on GPUs (device = cuda)");
  }
  require(first.count >= 4 && first.count % 4 == 0, "first size", std::to_string(first.count) + " B",
          "at least 4 B and whole float32 elements");
  require(last >= first, "last size", std::to_string(last.count) + " B",
          "at least the first size, " + std::to_string(first.count) + " B");
  require(std::isfinite(factor) && factor > 1, "factor", std::to_string(factor), "above 1");
  require(warmup >= 0, "warm-up", std::to_string(warmup), "at least 0");
  require(iterations >= 1, "iterations", std::to_string(iterations), "at least 1");
  require(max_iterations >= iterations, "most iterations", std::to_string(max_iterations),
          "at least the iterations, " + std::to_string(iterations));
  require(std::isfinite(width) && width > 0 && width < 1, "width", std::to_string(width), "between 0 and 1");
  for (const ParameterServer& server : servers) {
    require(server.servers >= 1, "servers", std::to_string(server.servers), "at least 1");
  }
  for (const int group : groups) require(group >= 2, "group", std::to_string(group), "at least 2 ranks");
  require(most_pairs_hosts >= 2, "most hosts for all pairs", std::to_string(most_pairs_hosts), "at least 2");
  require(std::isfinite(timeout.count()) && timeout.count() > 0, "timeout",
          std::to_string(timeout.count()) + " s", "positive");
}

}  // namespace commtune::probes
