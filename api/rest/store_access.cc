#include "api/rest/store_access.h"

#include <utility>

#include "perfmodel/base/error.h"

namespace commtune::api::rest {
namespace {

constexpr std::size_t kPooled = 64;
constexpr std::size_t kTogether = 64;

}  // namespace

StoreAccess::StoreAccess(Store store)
    : watch_(std::make_unique<Store>(store.reader())),
      store_(std::move(store)),
      writer_([this] { serve(); }) {}

StoreAccess::~StoreAccess() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  work_here_.notify_all();
  writer_.join();
}

StoreAccess::Lease StoreAccess::reader() {
  {
    const std::lock_guard lock(pool_mutex_);
    if (!pool_.empty()) {
      std::unique_ptr<Store> store = std::move(pool_.back());
      pool_.pop_back();
      return {*this, std::move(store)};
    }
  }
  const std::lock_guard lock(watch_mutex_);
  return {*this, std::make_unique<Store>(watch_->reader())};
}

StoreAccess::Lease::~Lease() {
  if (!store_) return;
  const std::lock_guard lock(owner_->pool_mutex_);
  if (owner_->pool_.size() < kPooled) owner_->pool_.push_back(std::move(store_));
}

std::uint64_t StoreAccess::generation() {
  const std::lock_guard lock(watch_mutex_);
  const std::int64_t now = watch_->data_version();
  if (now != seen_) {
    seen_ = now;
    ++generation_;
  }
  return generation_;
}

void StoreAccess::run(const std::function<void(Store&)>& work) {
  Task task{work, nullptr, false};
  std::unique_lock lock(mutex_);
  if (ending_) throw Error(ErrorCode::kUnavailable, "the service is stopping");
  tasks_.push_back(&task);
  work_here_.notify_one();
  work_done_.wait(lock, [&task] { return task.done; });
  if (task.failure) std::rethrow_exception(task.failure);
}

void StoreAccess::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    work_here_.wait(lock, [this] { return !tasks_.empty() || ending_; });
    if (tasks_.empty()) return;
    std::vector<Task*> now;
    for (; !tasks_.empty() && now.size() < kTogether; tasks_.pop_front()) now.push_back(tasks_.front());
    lock.unlock();
    carry_out(now);
    lock.lock();
    for (Task* task : now) task->done = true;
    work_done_.notify_all();
  }
}

void StoreAccess::carry_out(const std::vector<Task*>& tasks) {
  try {
    store_.atomically([&] {
      for (Task* task : tasks) {
        try {
          store_.atomically([&] { task->work(store_); });
        } catch (...) {
          task->failure = std::current_exception();
        }
      }
    });
  } catch (...) {
    // The transaction itself failed (a full disk, a lock): nothing of any of them is kept.
    for (Task* task : tasks) task->failure = std::current_exception();
  }
}

}  // namespace commtune::api::rest
