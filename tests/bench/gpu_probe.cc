// What a probe says of a GPU beside what is timed directly, and beside a second probe: two ranks on one GPU,
// whose messages travel over the loopback interface.
//
//   build/tests/bench/gpu_probe      status 1 where a target is missed, 77 where there is no GPU

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "executor/memory/cuda/cuda_memory.h"
#include "executor/session/exchange.h"
#include "perfmodel/base/error.h"
#include "probes/probe.h"
#include "tests/bench/gpu_bench.h"
#include "tests/gpu/gpu_ranks.h"

namespace commtune::bench {
namespace {

constexpr int kRanks = 2, kProbes = 2, kRepetitions = 21;
constexpr std::size_t kCopied = std::size_t{4} << 20;  // bytes, as the probe copies
/// Of what is timed directly, or of twice what two probes differ by.
constexpr double kTarget = 0.1;
/// Two probes' slow-downs: of compute or traffic, as parts of what they take.
constexpr double kSlowDownTarget = 0.05;

class Silent final : public probes::EventSink {
  void on_progress(const probes::ProbeProgress& /*progress*/) override {}
  void on_sample(const probes::ProbeSample& /*sample*/) override {}
};

Cluster probed(Transport& transport) {
  probes::ProbeOptions options;
  options.budget = Seconds{8};
  options.last = 1_MiB;
  options.device = DeviceKind::kCuda;
  options.sm_share = 1;
  options.exclusive = false;
  options.cluster_name = "gpus";
  Silent sink;
  return probes::probe(transport, options, sink).cluster;
}

/// Medians of what each rank does at the same time as the other.
struct Direct {
  double upload = 0, download = 0;  ///< seconds of kCopied bytes
};

Direct timed(Communicator& ranks, Memory& memory) {
  const cuda::PinnedMemory host = cuda::allocate_pinned(kCopied);
  const Buffer buffer = memory.allocate(kCopied);
  const auto device = reinterpret_cast<CUdeviceptr>(buffer.address);
  const cuda::Stream stream;
  const auto median = [&](const std::function<CUresult()>& copy) {
    barrier(ranks, Clock::now() + std::chrono::seconds(60));
    std::vector<double> seconds;
    seconds.reserve(kRepetitions);
    for (int i = 0; i < kRepetitions; ++i)
      seconds.push_back(seconds_on(stream, [&] { cuda::expect(copy(), "cuMemcpyAsync"); }));
    return median_of(seconds);
  };
  const cuda::Driver& driver = cuda::driver();
  const Direct direct{
      median([&] { return driver.copy_to_device(device, host.get(), kCopied, stream.handle()); }),
      median([&] { return driver.copy_to_host(host.get(), device, kCopied, stream.handle()); })};
  memory.release(buffer);
  return direct;
}

struct Row {
  std::string what;
  std::array<double, kProbes> probes{};
  double direct = 0;  ///< 0: nothing to compare it with

  double apart() const { return std::abs(probes[0] - probes[1]) / std::max(probes[0], probes[1]); }
  double off() const { return std::abs((probes[0] + probes[1]) / 2 / direct - 1); }
  bool met() const { return direct == 0 || off() <= std::max(kTarget, 2 * apart()); }
};

/// Prints the table and the RESULT line; false where a target is missed.
bool tell(const std::vector<Row>& rows, const std::array<Cluster, kProbes>& clusters, bool judged) {
  fmt::print("{:<28} {:>12} {:>12} {:>12}\n", "", "a probe", "another", "directly");
  bool met = true;
  double worst = 0;
  for (const Row& row : rows) {
    fmt::print("{:<28} {:>9.2f} us {:>9.2f} us {:>12}\n", row.what, row.probes[0] * 1e6, row.probes[1] * 1e6,
               row.direct == 0 ? "-" : fmt::format("{:.2f} us", row.direct * 1e6));
    met = met && row.met();
    if (row.direct != 0) worst = std::max(worst, row.off());
  }
  const auto slow_down = [&](const char* what, Scalar Cluster::*of) {
    const double first = (clusters[0].*of).value, second = (clusters[1].*of).value;
    fmt::print("{:<28} {:>10.1f} % {:>10.1f} % {:>12}\n", what, first * 100, second * 100, "-");
    met = met && std::abs(first - second) <= kSlowDownTarget;
    return std::abs(first - second);
  };
  const double compute = slow_down("layers slow by", &Cluster::interference);
  const double traffic = slow_down("traffic slows by", &Cluster::contention);
  fmt::print(
      "\nRESULT gpu_probe ranks={} copies_off_worst={:.4f}(<={}) launch_aa={:.4f} "
      "interference_aa={:.4f}(<={}) "
      "contention_aa={:.4f}(<={}) excluded={} {}\n",
      kRanks, worst, kTarget, rows.front().apart(), compute, kSlowDownTarget, traffic, kSlowDownTarget,
      judged ? "none" : "all:stand-in", met || !judged ? "met" : "missed");
  return met || !judged;
}

bool compare(Transport& transport, Memory& memory) {
  std::array<Cluster, kProbes> clusters;
  for (Cluster& cluster : clusters) cluster = probed(transport);
  Communicator ranks(transport, memory);
  const Direct direct = timed(ranks, memory);
  if (ranks.rank() != 0) return true;
  const auto of_both = [&](auto value) { return std::array{value(clusters[0]), value(clusters[1])}; };
  const std::vector<Row> rows{
      {"a kernel's launch", of_both([](const Cluster& each) { return each.gpu.launch_seconds.value; })},
      {"4 MiB to the GPU",
       of_both([](const Cluster& each) { return each.gpu.upload_seconds_per_byte.value * kCopied; }),
       direct.upload},
      {"4 MiB to the host",
       of_both([](const Cluster& each) { return each.gpu.download_seconds_per_byte.value * kCopied; }),
       direct.download}};
  return tell(rows, clusters, !is_standin(dynamic_cast<const cuda::CudaMemory&>(memory).gpu()));
}

int run() {
  int status = 0;
  for (const std::string& end : tests::ends_of_gpu_ranks(kRanks, [](Transport&transport, Memory&memory) {
         if (!compare(transport, memory)) throw Error(ErrorCode::kConflict, "a target is missed");
         std::fflush(stdout);
       })) {
    if (end.empty()) continue;
    fmt::print(stderr, "gpu_probe: {}\n", end);
    status = 1;
  }
  return status;
}

}  // namespace
}  // namespace commtune::bench

int main() {
  return commtune::bench::exit_status("gpu_probe", commtune::tests::why_no_gpu_ranks, commtune::bench::run);
}
