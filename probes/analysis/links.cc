#include "probes/analysis/links.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

namespace commtune::probes {

namespace {

// Latencies vary more than times per byte (kSameClass), and small differences do not matter: a host is late
// from this ratio and from this excess in seconds on. Smaller ones would make a group of hosts that are only
// busy; larger ones would miss another switch on the way.
constexpr double kLate = 1.5;
constexpr double kLateSeconds = 50e-6;
// The fast class begins at this quantile of the times: the very fastest may be a measurement's luck, and from
// the median on, a class that few links belong to would not be seen.
constexpr double kFastQuantile = 0.1;

double quantile(std::vector<double> values, double q) {
  const auto index = static_cast<std::size_t>(q * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(index), values.end());
  return values[index];
}

double median_of(const std::vector<double>& values) { return quantile(values, 0.5); }

/// Directed times between hosts; 0 where nothing was measured.
class Matrix {
 public:
  explicit Matrix(int n) : n_(n), values_(static_cast<std::size_t>(n) * static_cast<std::size_t>(n)) {}
  int size() const { return n_; }
  double& at(int from, int to) { return values_[index(from, to)]; }
  double at(int from, int to) const { return values_[index(from, to)]; }

  std::vector<double> measured() const {
    std::vector<double> result;
    std::copy_if(values_.begin(), values_.end(), std::back_inserter(result), [](double v) { return v > 0; });
    return result;
  }

 private:
  std::size_t index(int from, int to) const {
    return static_cast<std::size_t>(from) * static_cast<std::size_t>(n_) + static_cast<std::size_t>(to);
  }
  int n_;
  std::vector<double> values_;
};

Matrix latency_matrix(const LinkReport& report) {
  Matrix matrix(static_cast<int>(report.hosts.size()));
  for (const HostLink& link : report.links) {
    matrix.at(link.from, link.to) = link.latency.count();
  }
  return matrix;
}

Matrix beta_matrix(const LinkReport& report) {
  Matrix matrix(static_cast<int>(report.hosts.size()));
  for (const HostLink& link : report.links) {
    matrix.at(link.from, link.to) = link.beta.value;
  }
  return matrix;
}

using Groups = std::vector<std::vector<int>>;

/// Components of the graph whose edges are the pairs with at least one direction in the fast class.
Groups components(const Matrix& matrix, double limit) {
  std::vector<int> group(static_cast<std::size_t>(matrix.size()), -1);
  Groups groups;
  for (int start = 0; start < matrix.size(); ++start) {
    if (group[static_cast<std::size_t>(start)] >= 0) {
      continue;
    }
    std::vector<int> members{start};
    group[static_cast<std::size_t>(start)] = static_cast<int>(groups.size());
    for (std::size_t next = 0; next < members.size(); ++next) {
      for (int other = 0; other < matrix.size(); ++other) {
        const double out = matrix.at(members[next], other);
        const double back = matrix.at(other, members[next]);
        const bool fast = (out > 0 && out <= limit) || (back > 0 && back <= limit);
        if (fast && group[static_cast<std::size_t>(other)] < 0) {
          group[static_cast<std::size_t>(other)] = static_cast<int>(groups.size());
          members.push_back(other);
        }
      }
    }
    std::sort(members.begin(), members.end());
    groups.push_back(std::move(members));
  }
  return groups;
}

/// Hosts that are alone are slow hosts, not groups: a group has two members at least. Those left over join
/// the largest group. One group when fewer than two remain.
Groups real_groups(Groups groups) {
  std::vector<int> alone;
  std::erase_if(groups, [&](const std::vector<int>& group) {
    if (group.size() == 1) {
      alone.push_back(group.front());
    }
    return group.size() == 1;
  });
  if (groups.empty()) {
    groups.emplace_back();
  }
  auto largest = std::max_element(groups.begin(), groups.end(),
                                  [](const auto& a, const auto& b) { return a.size() < b.size(); });
  largest->insert(largest->end(), alone.begin(), alone.end());
  std::sort(largest->begin(), largest->end());
  return groups;
}

Groups all_together(int hosts) {
  std::vector<int> all(static_cast<std::size_t>(hosts));
  std::iota(all.begin(), all.end(), 0);
  return {all};
}

/// Which hosts are closer to each other, by time per byte.
Groups groups_by_bandwidth(const Matrix& beta) {
  const auto values = beta.measured();
  if (values.empty()) return all_together(beta.size());
  return real_groups(components(beta, quantile(values, kFastQuantile) * kSameClass));
}

/// The same by latency.
Groups groups_by_latency(const Matrix& latency) {
  const auto values = latency.measured();
  if (values.empty()) return all_together(latency.size());
  const double fast = quantile(values, kFastQuantile);
  return real_groups(components(latency, std::max(fast * kLate, fast + kLateSeconds)));
}

std::vector<int> group_of(const Groups& groups, int hosts) {
  std::vector<int> result(static_cast<std::size_t>(hosts), 0);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const int host : groups[g]) {
      result[static_cast<std::size_t>(host)] = static_cast<int>(g);
    }
  }
  return result;
}

enum class Direction { kSends, kReceives };

/// The host's times in one direction within its group.
std::vector<double> times_of(const Matrix& matrix, const std::vector<int>& group, int host,
                             Direction direction) {
  std::vector<double> result;
  for (int other = 0; other < matrix.size(); ++other) {
    const double value = direction == Direction::kSends ? matrix.at(host, other) : matrix.at(other, host);
    if (other != host && value > 0 &&
        group[static_cast<std::size_t>(other)] == group[static_cast<std::size_t>(host)]) {
      result.push_back(value);
    }
  }
  return result;
}

/// What a host's card does in one direction: its fastest link there, since a slow card has no fast link while
/// a healthy one has some as long as one other host is healthy. 0 when nothing was measured.
double card_time(const Matrix& matrix, const std::vector<int>& group, int host, Direction direction) {
  const std::vector<double> times = times_of(matrix, group, host, direction);
  return times.empty() ? 0 : *std::min_element(times.begin(), times.end());
}

/// Per host: time per byte of its card over its class's.
struct HostRatios {
  std::vector<double> sends, receives;  ///< 1 where nothing departs
  std::vector<double> normal;           ///< per host: the time per byte of its class
};

HostRatios host_ratios(const Matrix& beta, const Groups& groups) {
  const std::vector<int> group = group_of(groups, beta.size());
  const auto hosts = static_cast<std::size_t>(beta.size());
  HostRatios ratios{std::vector<double>(hosts, 1), std::vector<double>(hosts, 1),
                    std::vector<double>(hosts, 0)};
  for (const std::vector<int>& members : groups) {
    std::vector<double> all;
    for (const int host : members) {
      const std::vector<double> times = times_of(beta, group, host, Direction::kSends);
      all.insert(all.end(), times.begin(), times.end());
    }
    if (all.empty()) {
      continue;
    }
    const double fast = quantile(all, kFastQuantile);
    for (const int host : members) {
      const auto i = static_cast<std::size_t>(host);
      ratios.normal[i] = fast;
      const double out = card_time(beta, group, host, Direction::kSends) / fast;
      const double in = card_time(beta, group, host, Direction::kReceives) / fast;
      ratios.sends[i] = out > kSameClass ? out : 1;
      ratios.receives[i] = in > kSameClass ? in : 1;
    }
  }
  return ratios;
}

std::string rounded(double value, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string times_as_slow(double ratio) { return rounded(ratio, 1) + " times as slow as its class"; }

std::string instead_of(double ratio, double normal) {
  return " (" + format_bandwidth(SecondsPerByte{normal * ratio}) + ", not " +
         format_bandwidth(SecondsPerByte{normal}) + ")";
}

/// With two hosts nobody can say whether the sender or the receiver is the slow one: that is a slow pair.
void add_host_verdicts(LinkReport& report, const HostRatios& ratios) {
  if (report.hosts.size() < 3) {
    return;
  }
  for (std::size_t host = 0; host < report.hosts.size(); ++host) {
    const bool sends = ratios.sends[host] > 1;
    const bool receives = ratios.receives[host] > 1;
    if (!sends && !receives) {
      continue;
    }
    const double ratio = std::max(ratios.sends[host], ratios.receives[host]);
    const VerdictKind kind = sends && receives ? VerdictKind::kSlowHost
                             : sends           ? VerdictKind::kSlowSend
                                               : VerdictKind::kSlowReceive;
    const std::string direction = sends && receives ? "" : sends ? " when it sends" : " when it receives";
    report.verdicts.push_back({kind, static_cast<int>(host), -1, ratio,
                               "host " + report.hosts[host] + " is " + times_as_slow(ratio) + direction +
                                   instead_of(ratio, ratios.normal[host])});
  }
}

/// What a pair's direction should take: the slower of its two cards, or of its pair of groups.
double expected_beta(const Matrix& beta, const HostRatios& ratios, const std::vector<int>& group, int from,
                     int to) {
  const auto a = static_cast<std::size_t>(from);
  const auto b = static_cast<std::size_t>(to);
  double expected = std::max(ratios.normal[a], ratios.normal[b]);
  if (beta.size() > 2) {
    expected = std::max(ratios.sends[a] * ratios.normal[a], ratios.receives[b] * ratios.normal[b]);
  }
  if (group[a] == group[b]) {
    return expected;
  }
  std::vector<double> across;
  for (int i = 0; i < beta.size(); ++i) {
    for (int j = 0; j < beta.size(); ++j) {
      if (beta.at(i, j) > 0 && group[static_cast<std::size_t>(i)] == group[a] &&
          group[static_cast<std::size_t>(j)] == group[b]) {
        across.push_back(beta.at(i, j));
      }
    }
  }
  return std::max(expected, median_of(across));
}

void add_pair_verdicts(LinkReport& report, const Matrix& beta, const Groups& groups,
                       const HostRatios& ratios) {
  const std::vector<int> group = group_of(groups, beta.size());
  for (const HostLink& link : report.links) {
    const double expected = expected_beta(beta, ratios, group, link.from, link.to);
    if (link.beta.value <= 0 || expected <= 0 || link.beta.value <= expected * kSameClass) {
      continue;
    }
    const double ratio = link.beta.value / expected;
    report.verdicts.push_back({VerdictKind::kSlowPair, link.from, link.to, ratio,
                               "from host " + report.hosts[static_cast<std::size_t>(link.from)] +
                                   " to host " + report.hosts[static_cast<std::size_t>(link.to)] + " is " +
                                   times_as_slow(ratio) + instead_of(ratio, expected)});
  }
}

void add_latency_verdicts(LinkReport& report, const Matrix& latency) {
  if (latency.size() < 3) {
    return;
  }
  const std::vector<int> group = group_of(report.groups, latency.size());
  for (const std::vector<int>& members : report.groups) {
    std::vector<double> all;
    for (const int host : members) {
      const std::vector<double> times = times_of(latency, group, host, Direction::kSends);
      all.insert(all.end(), times.begin(), times.end());
    }
    if (all.empty()) {
      continue;
    }
    const double fast = quantile(all, kFastQuantile);
    for (const int host : members) {
      const double out = card_time(latency, group, host, Direction::kSends);
      if (out > std::max(fast * kLate, fast + kLateSeconds)) {
        report.verdicts.push_back({VerdictKind::kLateHost, host, -1, out / fast,
                                   "messages of host " + report.hosts[static_cast<std::size_t>(host)] +
                                       " take " + format_time(Seconds{out}) + " one way, not " +
                                       format_time(Seconds{fast})});
      }
    }
  }
}

/// Samples of one direction between two hosts: the latency is that of the smallest message alone, the time
/// per byte that of the largest streamed size.
struct Direct {
  std::optional<Sample> alone, streamed;
};

void take_smaller(std::optional<Sample>& kept, const Sample& sample) {
  if (!kept || sample.size <= kept->size) kept = sample;
}

void take_larger(std::optional<Sample>& kept, const Sample& sample) {
  if (!kept || sample.size >= kept->size) kept = sample;
}

std::string_view name_of(VerdictKind kind) {
  switch (kind) {
    case VerdictKind::kSlowHost:
      return "slow-host";
    case VerdictKind::kSlowSend:
      return "slow-send";
    case VerdictKind::kSlowReceive:
      return "slow-receive";
    case VerdictKind::kSlowPair:
      return "slow-pair";
    case VerdictKind::kLateHost:
      return "late-host";
  }
  return "unknown";
}

}  // namespace

std::vector<int> host_of_rank(std::span<const std::string> rank_hosts) {
  std::map<std::string, int> known;
  std::vector<int> result;
  for (const std::string& name : rank_hosts) {
    result.push_back(known.emplace(name, static_cast<int>(known.size())).first->second);
  }
  return result;
}

std::vector<std::string> distinct_hosts(std::span<const std::string> rank_hosts) {
  std::vector<std::string> result;
  for (const std::string& name : rank_hosts) {
    if (std::find(result.begin(), result.end(), name) == result.end()) {
      result.push_back(name);
    }
  }
  return result;
}

LinkReport analyse_links(std::span<const ProbeSample> samples, std::span<const std::string> rank_hosts) {
  LinkReport report;
  report.hosts = distinct_hosts(rank_hosts);
  const std::vector<int> host = host_of_rank(rank_hosts);
  const auto ranks = static_cast<int>(host.size());

  std::map<std::pair<int, int>, Direct> directions;
  for (const ProbeSample& sample : samples) {
    const Quantity& quantity = sample.quantity;
    if (quantity.subject != Subject::kMessage || quantity.source >= ranks || quantity.destination >= ranks) {
      continue;
    }
    const int from = host[static_cast<std::size_t>(quantity.source)];
    const int to = host[static_cast<std::size_t>(quantity.destination)];
    if (from == to) {
      continue;
    }
    if (quantity.in_flight == 1) {
      take_smaller(directions[{from, to}].alone, sample.sample);
      take_smaller(directions[{to, from}].alone, sample.sample);  // half a round trip serves both ways
    } else {
      take_larger(directions[{from, to}].streamed, sample.sample);
    }
  }
  for (const auto& [ends, direct] : directions) {
    HostLink link{ends.first, ends.second, {}, {}};
    if (direct.alone) link.latency = direct.alone->time;
    if (direct.streamed) {
      link.beta.value = direct.streamed->time.count() / static_cast<double>(direct.streamed->size.count);
    }
    report.links.push_back(link);
  }

  const Matrix beta = beta_matrix(report);
  const Matrix latency = latency_matrix(report);
  const Groups by_bandwidth = groups_by_bandwidth(beta);
  report.groups = by_bandwidth.size() > 1 ? by_bandwidth : groups_by_latency(latency);
  // Groups that latency alone tells apart are of one class of bandwidth, with all their slow hosts.
  const HostRatios ratios = host_ratios(beta, by_bandwidth);
  add_host_verdicts(report, ratios);
  add_pair_verdicts(report, beta, by_bandwidth, ratios);
  add_latency_verdicts(report, latency);
  return report;
}

std::map<std::string, double> host_scores(const LinkReport& report) {
  std::vector<double> slowest(report.hosts.size(), 0);  // bytes per second; 0: not measured
  double fastest = 0;
  for (const HostLink& link : report.links) {
    if (!(link.beta.value > 0)) continue;
    const double rate = 1 / link.beta.value;
    fastest = std::max(fastest, rate);
    for (const int end : {link.from, link.to}) {
      double& own = slowest[static_cast<std::size_t>(end)];
      own = own > 0 ? std::min(own, rate) : rate;
    }
  }
  std::map<std::string, double> scores;
  for (std::size_t i = 0; i < report.hosts.size(); ++i) {
    scores[report.hosts[i]] = slowest[i] > 0 ? 100 * slowest[i] / fastest : 100;
  }
  for (const Verdict& verdict : report.verdicts) {
    if (verdict.kind != VerdictKind::kLateHost) continue;
    scores[report.hosts[static_cast<std::size_t>(verdict.host)]] /= 2;
  }
  return scores;
}

nlohmann::json to_json(const LinkReport& report) {
  nlohmann::json links = nlohmann::json::array();
  for (const HostLink& link : report.links) {
    links.push_back({{"from", link.from},
                     {"to", link.to},
                     {"latency_seconds", link.latency.count()},
                     {"beta_seconds_per_byte", link.beta.value}});
  }
  nlohmann::json verdicts = nlohmann::json::array();
  for (const Verdict& verdict : report.verdicts) {
    nlohmann::json entry{{"kind", name_of(verdict.kind)},
                         {"host", verdict.host},
                         {"ratio", verdict.ratio},
                         {"text", verdict.text}};
    if (verdict.other >= 0) entry["other"] = verdict.other;
    verdicts.push_back(std::move(entry));
  }
  return {{"hosts", report.hosts}, {"links", links}, {"groups", report.groups}, {"verdicts", verdicts}};
}

}  // namespace commtune::probes
