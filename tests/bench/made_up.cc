#include "tests/bench/made_up.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "perfmodel/cost/stage_cost.h"
#include "perfmodel/fit/curve_ops.h"

namespace commtune::bench {

namespace {

double unit(std::mt19937_64& random) { return std::uniform_real_distribution<double>(0, 1)(random); }

double log_uniform(std::mt19937_64& random, double low, double high) {
  return low * std::pow(high / low, unit(random));
}

bool one_in_three(std::mt19937_64& random) { return random() % 3 == 0; }

Cluster made_up_cluster(std::mt19937_64& random, int workers) {
  Cluster cluster;
  cluster.name = "made-up";
  for (int i = 0; i < workers; ++i) cluster.hosts.push_back({"h" + std::to_string(i), 1});
  const double alpha = log_uniform(random, 1e-6, 5e-4), beta = 8e-9 / log_uniform(random, 0.2, 200);
  LinkFit link;
  link.alone.curve = Curve{Seconds{alpha}, SecondsPerByte{beta}};
  link.streamed.curve = Curve{Seconds{alpha * (0.05 + 0.45 * unit(random))}, SecondsPerByte{beta}};
  link.alone.largest = link.streamed.largest = Bytes{std::uint64_t{1} << 40};
  cluster.links[LinkClass::kInterHost] = link;
  cluster.reduce_seconds_per_byte.value = beta * log_uniform(random, 0.01, 0.5);
  if (one_in_three(random)) cluster.copy_seconds_per_byte.value = beta * log_uniform(random, 0.005, 0.1);
  if (one_in_three(random)) cluster.interference.value = 0.2 * unit(random);
  return cluster;
}

}  // namespace

Profile made_up_profile(std::mt19937_64& random, int layers) {
  Profile profile;
  profile.model = "made-up";
  profile.batch = 32;
  const double forward = log_uniform(random, 5e-3, 0.5) / layers, ratio = 1 + 1.5 * unit(random);
  const double bytes = log_uniform(random, 2e6, 2e9) / layers, growth = 4 * (unit(random) - 0.3);
  for (int i = 0; i < layers; ++i) {
    Layer layer;
    layer.name = "l" + std::to_string(i);
    layer.forward = Seconds{forward * log_uniform(random, 0.3, 3)};
    layer.backward = layer.forward * ratio * log_uniform(random, 0.8, 1.25);
    // Convolutional networks hold their parameters late, others spread them; single layers may stick out.
    const double place = std::exp(growth * (static_cast<double>(i) / layers - 0.5));
    const double outlier = random() % 25 == 0 ? 20 : 1;
    const double size = bytes * place * outlier * log_uniform(random, 0.1, 3);
    layer.tensors.push_back({layer.name + ".weight", Bytes{4 * static_cast<std::uint64_t>(1 + size / 4)}});
    if (random() % 2 == 0) layer.tensors.push_back({layer.name + ".bias", Bytes{4 * (16 + random() % 2048)}});
    profile.layers.push_back(std::move(layer));
  }
  return profile;
}

namespace {

double communication_ratio(const MadeUpJob& job) {
  const double compute = (job.profile.forward() + job.profile.backward() + job.profile.update()).count();
  const RoadCost ring = road_cost(AllReduce{}, job.cluster, job.workers);
  return ring.both.alone(job.profile.gradient_bytes()).count() / compute;
}

}  // namespace

MadeUpJob made_up_job(std::mt19937_64& random) {
  MadeUpJob job;
  do {
    job.workers = static_cast<int>(log_uniform(random, 2, 257));
    job.dedicated_servers = one_in_three(random) ? job.workers : 0;
    job.profile = made_up_profile(random, static_cast<int>(log_uniform(random, 6, 251)));
    job.cluster = made_up_cluster(random, job.workers);
    const double compute = (job.profile.forward() + job.profile.backward() + job.profile.update()).count();
    if (one_in_three(random)) job.cluster.jitter_seconds.value = compute * 0.01 * unit(random);
    job.communication_ratio = communication_ratio(job);
  } while (job.communication_ratio < 0.1 || job.communication_ratio > 10);
  return job;
}

MadeUpJob small_heavy_job(std::mt19937_64& random, int layers) {
  MadeUpJob job;
  do {
    job.workers = static_cast<int>(log_uniform(random, 2, 9));
    job.profile = made_up_profile(random, layers);
    job.cluster = made_up_cluster(random, job.workers);
    job.communication_ratio = communication_ratio(job);
  } while (job.communication_ratio < 2 || job.communication_ratio > 10);
  return job;
}

void share_hosts(MadeUpJob& job, int slots) {
  std::vector<Host>& hosts = job.cluster.hosts;
  hosts.resize(static_cast<std::size_t>((job.workers + slots - 1) / slots));
  for (Host& host : hosts) host.slots = slots;
  LinkFit inside = job.cluster.links.at(LinkClass::kInterHost);
  for (Fit* fit : {&inside.alone, &inside.streamed}) fit->curve = recalibrated(fit->curve, 0.1, 0.1);
  job.cluster.links[LinkClass::kIntraHost] = std::move(inside);
}

}  // namespace commtune::bench
