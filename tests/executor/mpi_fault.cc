// A rank of a job in which the last rank fails on purpose, as its argument says; see mpi_fault_test.py.

#include <fmt/format.h>

#include <csignal>
#include <cstdio>
#include <string_view>

#include "executor/replay/run.h"
#include "executor/transport/mpi/mpi.h"
#include "perfmodel/base/error.h"
#include "tests/executor/random_plan.h"

int main(int argc, char** argv) {
  using namespace commtune;
  const std::string_view how = argc > 1 ? argv[1] : "";
  const auto transport = make_mpi_transport();
  const int rank = transport->peers().rank;
  const int ranks = transport->peers().size();
  const bool fails = rank == ranks - 1;
  const Profile profile = tests::profile_of({20000, 300, 50000}, Seconds{2e-3});
  Plan plan = tests::wait_free_plan(profile, ranks, AllReduce{});
  if (how == "disagree" && fails) plan.credit = Bytes{1};
  RunOptions options;
  options.iterations = 1000;
  options.timeout = Seconds{5};
  const auto fail_in_the_middle = [&](const RunProgress& progress) {
    if (!fails || progress.phase != RunProgress::Phase::kTiming || progress.done != 5) return;
    if (how == "kill") std::raise(SIGKILL);
    if (how == "stop") std::raise(SIGSTOP);
    if (how == "memory") throw std::bad_alloc();
  };
  try {
    run_plan(*transport, plan, profile, options, fail_in_the_middle);
  } catch (const Error& error) {
    fmt::print(stderr, "rank {}: {}\n", rank, error.what());
    if (error.code() == ErrorCode::kConflict) return 3;  // the same on every rank, and nothing is under way
    transport->abort(error.what());
  } catch (const std::exception& error) {
    fmt::print(stderr, "rank {} (host {}): {}\n", rank,
               transport->peers().hosts[static_cast<std::size_t>(rank)], error.what());
    transport->abort(error.what());
  }
  return 0;
}
