#pragma once
// How the service's many threads use the store: readers from a pool, and one thread that writes for all of
// them, several callers' changes in one transaction.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <type_traits>
#include <vector>

#include "store/store.h"

namespace commtune::api::rest {

class StoreAccess {
 public:
  /// Takes the store over for writing. Throws Error{kBadInput} for ":memory:".
  explicit StoreAccess(Store store);
  ~StoreAccess();
  StoreAccess(const StoreAccess&) = delete;
  StoreAccess& operator=(const StoreAccess&) = delete;

  /// Runs `work(Store&)` on the writing thread and waits: when it returns, what was written is on the disk.
  /// What it throws is thrown here, and nothing of it is kept. Do not call it from within `work`.
  template <class Work>
  auto write(const Work& work) -> std::invoke_result_t<Work, Store&> {
    using Result = std::invoke_result_t<Work, Store&>;
    if constexpr (std::is_void_v<Result>) {
      run([&](Store& store) { work(store); });
    } else {
      std::optional<Result> result;
      run([&](Store& store) { result.emplace(work(store)); });
      return std::move(*result);
    }
  }

  /// A connection for reading; goes back to the pool with the object.
  class Lease {
   public:
    Lease(StoreAccess& owner, std::unique_ptr<Store> store) : owner_(&owner), store_(std::move(store)) {}
    ~Lease();
    Lease(Lease&&) noexcept = default;
    Lease& operator=(Lease&&) = delete;
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    Store& operator*() const { return *store_; }
    Store* operator->() const { return store_.get(); }

   private:
    StoreAccess* owner_;
    std::unique_ptr<Store> store_;
  };
  Lease reader();

  /// A number that grows when anybody, in any process, has committed since the last call.
  std::uint64_t generation();

 private:
  struct Task {
    std::function<void(Store&)> work;
    std::exception_ptr failure;
    bool done = false;
  };
  void run(const std::function<void(Store&)>& work);
  void serve();
  /// All of them in one transaction; each that throws undoes its own part.
  void carry_out(const std::vector<Task*>& tasks);

  std::mutex watch_mutex_;  // guards the three below
  std::unique_ptr<Store> watch_;
  std::int64_t seen_ = 0;
  std::uint64_t generation_ = 1;

  std::mutex pool_mutex_;  // guards the pool
  std::vector<std::unique_ptr<Store>> pool_;

  Store store_;       // the writing thread's
  std::mutex mutex_;  // guards the three below
  std::condition_variable work_here_, work_done_;
  std::deque<Task*> tasks_;
  bool ending_ = false;
  std::thread writer_;  // last: uses all of the above
};

}  // namespace commtune::api::rest
