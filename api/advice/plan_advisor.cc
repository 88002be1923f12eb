#include "api/advice/plan_advisor.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <map>
#include <string>
#include <utility>

#include "perfmodel/base/error.h"
#include "perfmodel/shipped_profiles.h"
#include "tuner/planning.h"

namespace commtune::api {
namespace {

Seconds machine_time() { return std::chrono::steady_clock::now().time_since_epoch(); }

/// Adds what one model's plans need to what others' need.
void add(std::vector<probes::RoadNeed>& needs, const tuner::Information& information, int workers,
         double part) {
  for (const tuner::RoadValue& road : information.roads) {
    if (!(road.value > 0)) continue;
    auto need = std::ranges::find(needs, road.road, &probes::RoadNeed::road);
    if (need == needs.end()) {
      needs.push_back({road.road, workers, 0, road.smallest, road.largest});
      need = std::prev(needs.end());
    }
    need->value += part * road.value;
    need->smallest = std::min(need->smallest, road.smallest);
    need->largest = std::max(need->largest, road.largest);
  }
}

std::string text_of(const std::map<std::string, std::string>& choices) {
  std::string text;
  for (const auto& [model, road] : choices) {
    if (!text.empty()) text += "; ";
    text.append(model).append(": ").append(road);
  }
  return text;
}

}  // namespace

std::vector<Profile> shipped_profiles() {
  std::vector<Profile> profiles;
  for (const std::string& name : shipped_profile_names()) profiles.push_back(shipped_profile(name).value());
  return profiles;
}

PlanAdvisor::PlanAdvisor(PlanAdvisorOptions options) : options_(std::move(options)) {
  assert(!options_.profiles.empty());
  if (!options_.clock) options_.clock = machine_time;
}

probes::Advice PlanAdvisor::advise(const Cluster& known, Seconds limit) {
  const Seconds until = options_.clock() + limit;
  const std::size_t count = options_.profiles.size();
  probes::Advice advice;
  std::map<std::string, std::string> choices;
  bool certain = options_.are_all;
  std::size_t planned = 0;
  for (; planned < count; ++planned) {
    if (options_.clock() >= until) break;
    const Profile& profile = options_.profiles[(first_ + planned) % count];
    const auto information = plan(profile, known, until);
    const bool open = !information || !information->complete || information->most() > tuner::kIndifferent;
    certain = certain && !open;
    if (!information) continue;
    choices[profile.model] = describe(information->chosen());
    if (open) add(advice.needs, *information, known.ranks(), 1.0 / static_cast<double>(count));
  }
  if (count > 0) first_ = (first_ + planned) % count;
  // What nobody would notice is not worth a probe's time.
  std::erase_if(advice.needs, [](const probes::RoadNeed& need) { return need.value <= tuner::kIndifferent; });
  advice.choice = text_of(choices);
  advice.certain = certain && planned == count;
  return advice;
}

/// Nothing where no road can be priced yet, or not in time; nor where the model cannot be planned at all,
/// which is no reason to end a probe.
std::optional<tuner::Information> PlanAdvisor::plan(const Profile& profile, const Cluster& known,
                                                    Seconds until) const {
  tuner::InformationOptions options;
  options.roads = options_.roads;
  options.out_of_time = [&] { return options_.clock() >= until; };
  try {
    return tuner::value_of_information(profile, known, options);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace commtune::api
