#include "api/launch/cancellation.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <string>

#include "perfmodel/base/error.h"

namespace commtune::api {
namespace {

/// The button that the signal handler presses; a handler has no other way to learn of it.
std::atomic<Cancellation*> g_pressed_by_signal{nullptr};
static_assert(std::atomic<Cancellation*>::is_always_lock_free, "read in a signal handler");

struct sigaction g_old_interrupt;
struct sigaction g_old_terminate;

void on_signal(int /*number*/) {
  const int saved = errno;
  if (Cancellation* const button = g_pressed_by_signal.load()) button->cancel();
  errno = saved;
}

}  // namespace

Cancellation::Cancellation() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (descriptor_ < 0)
    throw Error(ErrorCode::kUnavailable,
                std::string("cannot create an event descriptor: ") + std::strerror(errno));
}

Cancellation::~Cancellation() { ::close(descriptor_); }

void Cancellation::cancel() noexcept {
  requests_.fetch_add(1, std::memory_order_relaxed);
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(descriptor_, &one, sizeof one);
}

void Cancellation::acknowledge() noexcept {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = ::read(descriptor_, &count, sizeof count);
}

InterruptGuard::InterruptGuard(Cancellation& cancellation) {
  assert(g_pressed_by_signal.load() == nullptr);
  g_pressed_by_signal.store(&cancellation);
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, &g_old_interrupt);
  ::sigaction(SIGTERM, &action, &g_old_terminate);
}

InterruptGuard::~InterruptGuard() {
  ::sigaction(SIGINT, &g_old_interrupt, nullptr);
  ::sigaction(SIGTERM, &g_old_terminate, nullptr);
  g_pressed_by_signal.store(nullptr);
}

}  // namespace commtune::api
