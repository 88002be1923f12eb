// Every rank of an mpirun job runs this program: whole runs over the real transport. Any rank count from 2
// on.

#include <fmt/format.h>

#include <cstdio>
#include <vector>

#include "executor/replay/run.h"
#include "executor/transport/mpi/mpi.h"
#include "tests/executor/random_plan.h"

int main() {
  using namespace commtune;
  const auto transport = make_mpi_transport();
  const int ranks = transport->peers().size();
  try {
    int runs = 0;
    for (int workers = std::max(1, ranks - 3); workers <= ranks; ++workers) {
      std::vector<Road> roads = tests::roads_for(workers);
      roads.emplace_back(AllReduce{Collective::kLibrary});
      for (const Road& road : roads) {
        const auto job = tests::random_job(17 + static_cast<std::uint64_t>(runs), workers, road);
        if (ranks_of(job.plan) != ranks) continue;
        RunOptions options;
        options.iterations = 3;
        options.timeout = Seconds{200};
        // Compares every element with the serial reference, and throws.
        run_plan(*transport, job.plan, job.profile, options);
        ++runs;
      }
    }
    if (runs == 0) throw std::runtime_error("no road fits this number of ranks");
    if (transport->peers().rank == 0) fmt::print("{} plans ran\n", runs);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    transport->abort(error.what());
    return 1;
  }
  return 0;
}
