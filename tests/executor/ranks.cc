#include "tests/executor/ranks.h"

#include <exception>
#include <thread>

namespace commtune::testing {

void on_ranks(int n, const std::function<void(Transport&)>& body, LocalOptions options) {
  const auto transports = make_local_transports(n, options);
  std::vector<std::exception_ptr> failures(transports.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < transports.size(); ++rank) {
      threads.emplace_back([&, rank] {
        try {
          body(*transports[rank]);
        } catch (const std::exception& error) {
          failures[rank] = std::current_exception();
          transports[rank]->abort(error.what());
        }
      });
    }
  }
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace commtune::testing
