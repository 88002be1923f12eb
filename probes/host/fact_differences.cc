#include "probes/host/fact_differences.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <set>
#include <string_view>

#include "executor/base/wire_revision.h"
#include "probes/analysis/fit_cluster.h"

namespace commtune::probes {

namespace {

constexpr std::string_view kHost = "host.", kRelease = "release.", kSetting = "setting.";

/// A fact's name in its parts: "host.n1.example.org.cpu" is "cpu" of "n1.example.org". Facts' own names have
/// no dot, hosts' may.
struct Named {
  std::string_view group;  ///< kHost, kRelease, kSetting, or empty
  std::string_view host;   ///< empty where it belongs to none
  std::string_view what;
};

Named named(std::string_view name) {
  for (const std::string_view group : {kHost, kRelease}) {
    const std::size_t dot = name.rfind('.');
    if (name.starts_with(group) && dot >= group.size())
      return {group, name.substr(group.size(), dot - group.size()), name.substr(dot + 1)};
  }
  if (name.starts_with(kSetting)) return {kSetting, {}, name.substr(kSetting.size())};
  return {{}, {}, name};
}

std::string words(const Named& name) {
  if (name.group == kHost) return std::string(name.what) + " of " + std::string(name.host);
  if (name.group == kRelease) return "release of " + std::string(name.what) + " on " + std::string(name.host);
  if (name.group == kSetting) return "setting " + std::string(name.what);
  return std::string(name.what);
}

std::set<std::string_view> hosts_in(const Facts& facts) {
  std::set<std::string_view> hosts;
  for (const auto& [name, value] : facts) {
    const Named fact = named(name);
    if (fact.group == kHost) hosts.insert(fact.host);
  }
  return hosts;
}

Facts with_revision(Facts facts) {
  facts.try_emplace(std::string(kWireRevisionFact), std::to_string(kFirstWireRevision));
  return facts;
}

/// "n7", "n7 and n8", "n7, n8 and 5 more"
std::string list_of(const std::vector<std::string_view>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, names.size()); ++i)
    text += (i == 0 ? "" : ", ") + std::string(names[i]);
  return names.size() > 3 ? text + " and " + std::to_string(names.size() - 3) + " more" : text;
}

}  // namespace

std::vector<std::string> fact_differences(const Facts& fitted, const Facts& now) {
  const Facts before = with_revision(fitted), after = with_revision(now);
  const std::set<std::string_view> known = hosts_in(before), here = hosts_in(after);
  std::vector<std::string> differences;
  std::vector<std::string_view> strangers;
  std::set_difference(here.begin(), here.end(), known.begin(), known.end(), std::back_inserter(strangers));
  if (!strangers.empty())
    differences.push_back(list_of(strangers) + ": not among the hosts that were probed");
  const auto look_at = [&](const std::string& name, const std::string* then, const std::string* at_present) {
    const Named fact = named(name);
    const bool of_a_host = fact.group == kHost || fact.group == kRelease;
    if (of_a_host && !(known.contains(fact.host) && here.contains(fact.host))) return;
    if (fact.group == kRelease && (then == nullptr || at_present == nullptr)) return;
    if (then != nullptr && at_present != nullptr && *then == *at_present) return;
    differences.push_back(words(fact) + ": " + (then == nullptr ? "absent" : *then) +
                          " when it was fitted, " + (at_present == nullptr ? "absent" : *at_present) +
                          " now");
  };
  for (const auto& [name, value] : before) {
    const auto found = after.find(name);
    look_at(name, &value, found == after.end() ? nullptr : &found->second);
  }
  for (const auto& [name, value] : after)
    if (!before.contains(name)) look_at(name, nullptr, &value);
  return differences;
}

Facts of_known_hosts(const Facts& facts, const Facts& known) {
  const std::set<std::string_view> hosts = hosts_in(known);
  Facts result;
  for (const auto& [name, value] : facts)
    if (hosts.contains(named(name).host)) result[name] = value;
  return result;
}

}  // namespace commtune::probes
