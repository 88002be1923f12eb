#include "perfmodel/cost/card_load.h"

#include <algorithm>

namespace commtune {

namespace {

/// What a card's own workers push, as so many workers' gradients. Inside one host every worker has a card.
double pushed_by(const Card& card, const ParameterServer& road, const Topology& place, bool inside) {
  if (road.local_sum == LocalSum::kNone) return card.workers;
  return inside ? card.workers / place.per_host : std::min(1.0, card.workers);
}

}  // namespace

Push push_of(const ParameterServer& road, const Topology& place) {
  if (road.local_sum == LocalSum::kNone) return {1.0 * place.workers, 1.0 * place.workers};
  return {1.0 * place.hosts, 1.0 * place.hosts * place.fewest};
}

CardLoad load_of(const ParameterServer& road, const Topology& place) {
  const double n = push_of(road, place).bytes, all = road.servers;
  const bool inside = inside_one_host(place, road);
  CardLoad load;
  double with = 0, without = 0;
  for (const Card& card : cards_of(place, road)) {
    const double pushed = pushed_by(card, road, place, inside);
    const double own = pushed * (all - card.servers) / all;
    const double answers = card.servers * (n - pushed) / all;
    const double slowdown = inside ? 1 : card.slowdown.time_per_byte;
    load.stage = std::max(load.stage, slowdown * std::max(own, answers));
    load.together = std::max(load.together, slowdown * (own + answers));
    load.one = std::max(load.one, slowdown * std::max(pushed, card.servers > 0 ? n - pushed : 0));
    double& side = card.servers > 0 ? with : without;
    side = std::max(side, slowdown * (own + answers));
    if (!inside) load.latency = std::max(load.latency, card.slowdown.latency);
  }
  load.servers_bind = without > 0 && with > without;
  load.workers_bind = with > 0 && without > with;
  return load;
}

}  // namespace commtune
