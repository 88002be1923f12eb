#include "tests/executor/ranks.h"

#include <chrono>
#include <exception>
#include <thread>

namespace commtune::tests {
namespace {

/// ends  a rank's each: of a job that abort() ends
template <typename Ends, typename Body>
void on_threads(const Ends& ends, const Body& body) {
  std::vector<std::exception_ptr> failures(ends.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < ends.size(); ++rank) {
      threads.emplace_back([&, rank] {
        try {
          body(ends[rank]);
        } catch (const std::exception& error) {
          failures[rank] = std::current_exception();
          ends[rank]->abort(error.what());
        }
      });
    }
  }
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace

void on_ranks(int n, const std::function<void(Transport&)>& body, LocalOptions options) {
  on_threads(make_local_transports(n, options), [&](const auto& end) { body(*end); });
}

void on_bootstraps(int n, const std::function<void(const std::shared_ptr<Bootstrap>&)>& body,
                   int ranks_per_host) {
  on_threads(make_local_bootstraps(n, ranks_per_host), body);
}

void synchronize(Bootstrap& bootstrap) { bootstrap.all_gather({}, Clock::now() + std::chrono::seconds(200)); }

}  // namespace commtune::tests
