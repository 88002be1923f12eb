#include "tests/executor/random_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "executor/roads/all_reduce/all_reduce.h"
#include "perfmodel/base/overloaded.h"
#include "tests/perfmodel/random_steps.h"

namespace commtune::tests {
namespace {

using Random = std::mt19937_64;

std::size_t below(Random& random, std::size_t n) {
  return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
}
bool chance(Random& random, double p) { return std::bernoulli_distribution(p)(random); }

Profile random_profile(Random& random) {
  Profile profile;
  profile.model = "random";
  profile.origin.how = "derived";
  profile.type = std::array{DataType::kFloat32, DataType::kFloat16, DataType::kBfloat16}[below(random, 3)];
  const std::size_t element = element_size(profile.type).count;
  const std::size_t layers = 1 + below(random, 8);
  for (std::size_t i = 0; i < layers; ++i) {
    Layer layer;
    layer.name = fmt::format("layer{}", i);
    layer.forward = Seconds{1e-6 * static_cast<double>(below(random, 80))};
    layer.backward = Seconds{1e-6 * static_cast<double>(below(random, 80))};
    layer.update = Seconds{1e-6 * static_cast<double>(below(random, 10))};
    for (std::size_t t = below(random, 4); t > 0; --t) {
      // Mostly short, some around the number of workers, some of several chunks.
      const std::size_t elements =
          1 + below(random, std::array<std::size_t, 3>{8, 300, 20000}[below(random, 3)]);
      layer.tensors.push_back({fmt::format("layer{}.tensor{}", i, t), Bytes{elements * element}});
    }
    profile.layers.push_back(std::move(layer));
  }
  if (profile.tensor_count() == 0) profile.layers[0].tensors.push_back({"only", Bytes{12 * element}});
  return profile;
}

/// Every tensor cut at random into pieces.
std::vector<Piece> random_pieces(Random& random, const Profile& profile) {
  const std::size_t element = element_size(profile.type).count;
  std::vector<Piece> pieces;
  TensorId id = 0;
  for (const TensorRef& tensor : tensors_of(profile)) {
    std::size_t at = 0;
    while (at < tensor.bytes.count) {
      const std::size_t left = (tensor.bytes.count - at) / element;
      const std::size_t length = (chance(random, 0.6) ? left : 1 + below(random, left)) * element;
      pieces.push_back({id, Bytes{at}, Bytes{length}});
      at += length;
    }
    ++id;
  }
  return pieces;
}

std::vector<Step> random_sequence(Random& random, std::size_t messages) {
  std::vector<Step> sequence;
  std::vector<std::uint32_t> reduced;
  std::uint32_t next = 0;
  while (sequence.size() < 2 * messages) {
    if (next < messages && (reduced.empty() || chance(random, 0.5))) {
      sequence.push_back({next, Stage::kReduce});
      reduced.push_back(next++);
    } else {
      const std::size_t i = below(random, reduced.size());
      sequence.push_back({reduced[i], Stage::kDistribute});
      reduced.erase(reduced.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  return sequence;
}

}  // namespace

std::vector<Road> roads_for(int workers) {
  std::vector<Road> roads = {AllReduce{Collective::kRing},
                             AllReduce{Collective::kHalvingDoubling},
                             AllReduce{Collective::kRecursiveDoubling},
                             AllReduce{Collective::kOneShot},
                             AllReduce{Collective::kDoubleBinaryTree},
                             AllReduce{Collective::kHierarchical}};
  for (const LocalSum local_sum : {LocalSum::kNone, LocalSum::kFirst}) {
    for (const Assignment assignment : {Assignment::kEven, Assignment::kHashed}) {
      for (int servers = 1; servers <= 3; ++servers) {
        const int first = servers % 2 == 0 ? 0 : workers - 1;  // then the next ones are workers 0 and 1
        if (servers <= workers)
          roads.emplace_back(ParameterServer{servers, Placement::kColocated, assignment, local_sum, first});
        roads.emplace_back(ParameterServer{servers, Placement::kDedicated, assignment, local_sum});
      }
    }
  }
  return roads;
}

namespace {

/// What comes back, cut at random, asked for in any order that the messages allow.
void pull_apart(Random& random, const Profile& profile, Plan& plan) {
  std::vector<Piece> pieces = random_pieces(random, profile);
  std::shuffle(pieces.begin(), pieces.end(), random);
  for (const Piece& piece : pieces) {
    if (plan.pulls.empty() || chance(random, 0.5)) plan.pulls.emplace_back();
    plan.pulls.back().pieces.push_back(piece);
  }
  plan.order = Order::kList;
  plan.sequence = random_steps(random, plan);
}

/// Half of the plans on servers that take messages whole say which takes what, and a third of all has
/// windows.
void deal_out(Random& random, Plan& plan) {
  const auto servers = match(
      plan.road, [](const AllReduce&) { return 0; },
      [](const ParameterServer& of) { return of.assignment == Assignment::kHashed ? of.servers : 0; });
  if (servers > 0 && chance(random, 0.5)) {
    for (std::size_t i = 0; i < plan.messages.size(); ++i)
      plan.server.push_back(static_cast<std::uint32_t>(below(random, static_cast<std::size_t>(servers))));
  }
  if (!chance(random, 0.3)) return;
  for (std::size_t i = 0; i < plan.messages.size(); ++i)
    plan.window.push_back(Bytes{std::array<std::uint64_t, 3>{0, 30000, 1 << 30}[below(random, 3)]});
}

Plan plan_of(Random& random, const Profile& profile, int workers, const Road& road) {
  Plan plan;
  plan.method = "random";
  plan.model = profile.model;
  plan.profile = digest(profile);
  plan.workers = workers;
  plan.road = road;
  std::vector<Piece> pieces = random_pieces(random, profile);
  std::shuffle(pieces.begin(), pieces.end(), random);
  for (const Piece& piece : pieces) {
    if (plan.messages.empty() || chance(random, 0.5)) plan.messages.emplace_back();
    plan.messages.back().pieces.push_back(piece);
  }
  plan.priority.resize(plan.messages.size());
  std::iota(plan.priority.begin(), plan.priority.end(), 0);
  std::shuffle(plan.priority.begin(), plan.priority.end(), random);
  plan.release = chance(random, 0.2) ? Release::kBackward : Release::kGradient;
  plan.barrier = chance(random, 0.5) ? Barrier::kFull : Barrier::kPerLayer;
  plan.credit = Bytes{std::array<std::uint64_t, 3>{0, 30000, 1 << 30}[below(random, 3)]};
  const auto may_decouple = [&](const AllReduce& all_reduce) {
    if (algorithm(all_reduce.algorithm).reduce != nullptr && chance(random, 0.5)) {
      plan.sequence = random_sequence(random, plan.messages.size());
    }
  };
  const auto may_have_priorities = [&](const ParameterServer&) {
    const bool by_priority = chance(random, 0.7);
    plan.order = by_priority && !needs_one_order(road) ? Order::kPriority : Order::kList;
    if (may_pull_apart(road) && chance(random, 0.4)) pull_apart(random, profile, plan);
  };
  match(road, may_decouple, may_have_priorities);
  deal_out(random, plan);
  return plan;
}

}  // namespace

Plan random_plan(std::uint64_t seed, const Profile& profile, int workers, const Road& road) {
  Random random(seed);
  return plan_of(random, profile, workers, road);
}

RandomJob random_job(std::uint64_t seed, int workers, const Road& road) {
  Random random(seed);
  const Profile profile = random_profile(random);
  RandomJob job{profile, plan_of(random, profile, workers, road)};
  if (profile.type == DataType::kFloat32) {
    job.plan.wire =
        std::array{WireFormat::kAsIs, WireFormat::kBfloat16, WireFormat::kFloat16}[below(random, 3)];
  }
  return job;
}

Profile profile_of(const std::vector<std::size_t>& elements, Seconds layer_time) {
  Profile profile;
  profile.model = "small";
  profile.origin.how = "derived";
  for (const std::size_t count : elements) {
    Layer layer;
    layer.name = fmt::format("layer{}", profile.layers.size());
    layer.forward = layer.backward = layer_time;
    layer.tensors.push_back({layer.name + ".weight", Bytes{4 * count}});
    profile.layers.push_back(std::move(layer));
  }
  return profile;
}

Plan wait_free_plan(const Profile& profile, int workers, const Road& road) {
  Plan plan;
  plan.method = "wfbp";
  plan.model = profile.model;
  plan.profile = digest(profile);
  plan.workers = workers;
  plan.road = road;
  const auto tensors = tensors_of(profile);
  for (std::size_t i = tensors.size(); i-- > 0;) {
    plan.priority.push_back(static_cast<std::int32_t>(plan.messages.size()));
    plan.messages.push_back({{{static_cast<TensorId>(i), Bytes{0}, tensors[i].bytes}}});
  }
  return plan;
}

}  // namespace commtune::tests
