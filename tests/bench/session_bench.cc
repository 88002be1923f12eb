// What it costs to change plans between two iterations, and what a session costs an iteration. Ranks are
// threads that sockets on the loopback interface connect: it says what ranks have to tell each other and do,
// not what a network adds.

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "executor/session/session.h"
#include "executor/transport/local/local_bootstrap.h"
#include "executor/transport/tcp/tcp.h"
#include "perfmodel/plan.h"
#include "perfmodel/shipped_profiles.h"

namespace commtune {
namespace {

constexpr int kWorkers = 3, kRanks = 4;
constexpr int kSwitches = 200;
constexpr double kSmall = 1.0 / 4096;  // of the model's bytes: gradients that take no time

double microseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

/// Tensors of the layout, last first, in messages of so many.
Plan plan_of(const TensorLayout& layout, const Road& road, std::size_t fused) {
  Plan plan;
  plan.method = "bench";
  plan.layout = digest(layout);
  plan.workers = kWorkers;
  plan.road = road;
  for (std::size_t i = layout.tensors.size(); i-- > 0;) {
    if (plan.messages.empty() || plan.messages.back().pieces.size() == fused) {
      plan.priority.push_back(static_cast<std::int32_t>(plan.messages.size()));
      plan.messages.emplace_back();
    }
    plan.messages.back().pieces.push_back({static_cast<TensorId>(i), {}, layout.tensors[i].bytes});
  }
  return plan;
}

struct Times {
  std::vector<double> first, again, iterations;  // microseconds
};

double quantile_of(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(q * static_cast<double>(values.size() - 1))];
}

/// Every plan in turn, two iterations each.
void train(Session& session, const std::vector<Plan>& plans, std::vector<float>& memory, Times& times) {
  const auto all = static_cast<TensorId>(session.layout().tensors.size());
  for (int i = 0; i < kSwitches; ++i) {
    const Clock::time_point begin = Clock::now();
    session.adopt(plans[static_cast<std::size_t>(i) % plans.size()]);
    const Clock::time_point adopted = Clock::now();
    (static_cast<std::size_t>(i) < plans.size() ? times.first : times.again)
        .push_back(microseconds(adopted - begin));
    for (int k = 0; k < 2; ++k) {
      std::fill(memory.begin(), memory.end(), 1.0F);
      const Clock::time_point start = Clock::now();
      session.begin_iteration();
      session.ready({0, all});
      session.wait({0, all}, Clock::now());
      times.iterations.push_back(microseconds(Clock::now() - start));
      if (std::ranges::any_of(memory, [](float value) { return value != kWorkers; })) {
        fmt::print(stderr, "a gradient is not the sum\n");
        std::_Exit(3);
      }
    }
  }
}

Times run(const TensorLayout& layout, const std::vector<Plan>& plans, std::uint64_t& lost) {
  Times times;
  std::vector<std::jthread> threads;
  for (const auto& place : make_local_bootstraps(kRanks, kRanks)) {
    threads.emplace_back([&, place] {
      const auto transport = make_tcp_transport(place);
      const bool trains = place->peers().rank < kWorkers;
      std::vector<float> memory(trains ? layout.bytes().count / sizeof(float) : 0);
      Gradients gradients;
      std::byte* at = std::as_writable_bytes(std::span(memory)).data();
      for (const Tensor& tensor : layout.tensors) {
        if (!trains) break;
        gradients.emplace_back(at, tensor.bytes.count);
        at += tensor.bytes.count;
      }
      SessionOptions options;
      options.workers = kWorkers;
      options.result = Result::kSum;
      Session session(*transport, layout, gradients, options);
      if (!trains) return session.serve();
      Times own;
      train(session, plans, memory, own);
      session.leave();
      if (place->peers().rank != 0) return;
      times = std::move(own);
      lost = std::uint64_t{2} * kSwitches - session.iteration();
    });
  }
  threads.clear();
  return times;
}

int bench() {
  const auto profile = shipped_profile("resnet50");
  const TensorLayout layout = layout_of(scaled(*profile, kSmall, 1));
  const std::vector<Plan> plans = {
      plan_of(layout, AllReduce{Collective::kRing}, 1),
      plan_of(layout, ParameterServer{1, Placement::kDedicated, Assignment::kEven}, 8),
      plan_of(layout, ParameterServer{kWorkers, Placement::kColocated, Assignment::kEven}, 40)};
  std::uint64_t lost = 0;
  const Times first = run(layout, plans, lost);
  const Times second = run(layout, plans, lost);
  const double a = quantile_of(first.again, 0.5);
  const double b = quantile_of(second.again, 0.5);
  fmt::print("{:<28} {:>10} {:>10}\n", "", "median us", "p95 us");
  const auto row = [](const char* what, const std::vector<double>& values) {
    fmt::print("{:<28} {:>10.1f} {:>10.1f}\n", what, quantile_of(values, 0.5), quantile_of(values, 0.95));
  };
  row("switch, a plan for the first", first.first);
  row("switch, a known plan", first.again);
  row("iteration, tiny gradients", first.iterations);
  fmt::print(
      "RESULT session ranks={} tensors={} switches={} switch_us={:.1f} switch_p95_us={:.1f} first_us={:.1f} "
      "iterations_lost={} aa_switch={:.4f} excluded=none\n",
      kRanks, layout.tensors.size(), kSwitches, a, quantile_of(first.again, 0.95),
      quantile_of(first.first, 0.5), lost, std::abs(a - b) / std::min(a, b));
  return lost == 0 ? 0 : 1;
}

}  // namespace
}  // namespace commtune

int main() { return commtune::bench(); }
