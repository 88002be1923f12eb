#include "api/launch/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <utility>

#include "perfmodel/base/error.h"

namespace commtune::api {
namespace {

using SteadyClock = std::chrono::steady_clock;

/// Longest line that is kept together; more without an end of line is handed on in parts.
constexpr std::size_t kLongestLine = 64U << 20U;

/// How long the streams are read on after the child has ended, should something else hold them open.
constexpr std::chrono::milliseconds kDrainTime{2'000};

[[noreturn]] void throw_system(const char* what) {
  throw Error(ErrorCode::kUnavailable, fmt::format("{}: {}", what, std::strerror(errno)));
}

/// A file descriptor and its end.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() { reset(); }
  void reset() noexcept {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }
  int get() const noexcept { return fd_; }
  bool open() const noexcept { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

struct Pipe {
  Descriptor read, write;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw_system("cannot create a pipe");
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

void set_nonblocking(const Descriptor& end) { ::fcntl(end.get(), F_SETFL, O_NONBLOCK); }

/// A stream of the child cut into lines.
class LineReader {
 public:
  LineReader(Descriptor end, const std::function<void(std::string_view)>& sink)
      : end_(std::move(end)), sink_(sink) {
    set_nonblocking(end_);
  }
  int descriptor() const { return end_.get(); }
  bool open() const { return end_.open(); }

  /// Reads what there is; closes at the end of the stream.
  void read_some() {
    std::array<char, 65536> chunk;
    for (;;) {
      const ssize_t got = ::read(end_.get(), chunk.data(), chunk.size());
      if (got > 0) {
        take(std::string_view(chunk.data(), static_cast<std::size_t>(got)));
        continue;
      }
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
      finish();
      return;
    }
  }

  void finish() {
    end_.reset();
    if (!pending_.empty()) hand_on_pending();
  }

 private:
  void take(std::string_view text) {
    for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
      pending_.append(text.substr(0, end));
      text.remove_prefix(end + 1);
      hand_on_pending();
    }
    pending_.append(text);
    if (pending_.size() > kLongestLine) hand_on_pending();
  }
  void hand_on_pending() {
    std::string line;
    line.swap(pending_);
    if (sink_) sink_(line);
  }

  Descriptor end_;
  const std::function<void(std::string_view)>& sink_;
  std::string pending_;
};

/// What is still to be written to the child's standard input.
class InputWriter {
 public:
  InputWriter(Descriptor end, std::string text, bool closes)
      : end_(std::move(end)), text_(std::move(text)), closes_(closes) {
    set_nonblocking(end_);
    close_when_done();
  }
  /// To be waited for; -1 when nothing is left to be written.
  int descriptor() const { return left().empty() ? -1 : end_.get(); }
  void add(std::string_view text) {
    text_.erase(0, written_);
    written_ = 0;
    text_ += text;
  }
  void write_some() {
    const ssize_t put = ::write(end_.get(), left().data(), left().size());
    if (put > 0) written_ += static_cast<std::size_t>(put);
    if (put < 0 && errno != EAGAIN && errno != EINTR) written_ = text_.size();  // it reads no more
    close_when_done();
  }

 private:
  std::string_view left() const { return std::string_view(text_).substr(written_); }
  void close_when_done() {
    if (left().empty() && closes_) end_.reset();
  }

  Descriptor end_;
  std::string text_;
  std::size_t written_ = 0;  // of it
  bool closes_;
};

/// Holds SIGPIPE back while we write to a child that may have gone; only for this thread.
class PipeSignalBlock {
 public:
  PipeSignalBlock() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &set, &old_);
  }
  ~PipeSignalBlock() {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    const timespec none{};
    while (sigtimedwait(&set, nullptr, &none) > 0) {
    }
    pthread_sigmask(SIG_SETMASK, &old_, nullptr);
  }
  PipeSignalBlock(const PipeSignalBlock&) = delete;
  PipeSignalBlock& operator=(const PipeSignalBlock&) = delete;

 private:
  sigset_t old_;
};

/// Between fork and exec: only async-signal-safe calls.
[[noreturn]] void become(char* const* argv, pid_t parent, int in, int out, int err, int report) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(127);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int number : {SIGINT, SIGTERM, SIGPIPE, SIGHUP}) ::signal(number, SIG_DFL);
  ::dup2(in, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  ::execvp(argv[0], argv);
  const int why = errno;
  [[maybe_unused]] const ssize_t put = ::write(report, &why, sizeof why);
  ::_exit(127);
}

struct Child {
  pid_t pid = -1;
  Descriptor input, output, error;
};

Child start(const std::vector<std::string>& argv) {
  std::vector<char*> arguments;
  arguments.reserve(argv.size() + 1);
  for (const std::string& argument : argv) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);

  Pipe input = make_pipe();
  Pipe output = make_pipe();
  Pipe error = make_pipe();
  Pipe report = make_pipe();
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) throw_system("cannot start a process");
  if (pid == 0)
    become(arguments.data(), parent, input.read.get(), output.write.get(), error.write.get(),
           report.write.get());
  ::setpgid(pid, pid);
  report.write.reset();
  int why = 0;
  ssize_t got = 0;
  do {
    got = ::read(report.read.get(), &why, sizeof why);
  } while (got < 0 && errno == EINTR);
  if (got == static_cast<ssize_t>(sizeof why)) {
    ::waitpid(pid, nullptr, 0);
    throw Error(ErrorCode::kUnavailable,
                fmt::format("cannot start {}: {}", argv.front(), std::strerror(why)));
  }
  return {pid, std::move(input.write), std::move(output.read), std::move(error.read)};
}

/// Sees a child to its end: asks, step by step, and at last insists.
class Reaper {
 public:
  Reaper(pid_t pid, const std::vector<EndingStep>& steps) : pid_(pid), steps_(steps) {}
  ~Reaper() {
    if (pid_ > 0) {
      ::kill(-pid_, SIGKILL);
      collect(0);
    }
  }
  Reaper(const Reaper&) = delete;
  Reaper& operator=(const Reaper&) = delete;

  /// Takes as many steps as were asked for, and those that are due.
  void urge(std::size_t steps_asked_for) {
    while (pid_ > 0 && taken_ <= steps_.size() &&
           (taken_ < steps_asked_for || SteadyClock::now() >= next_step_)) {
      const bool last = taken_ == steps_.size();
      ::kill(last ? -pid_ : pid_, last ? SIGKILL : steps_[taken_].signal);
      if (!last) next_step_ = SteadyClock::now() + steps_[taken_].grace;
      ++taken_;
    }
  }
  /// True when it has ended; then `status` is what waitpid said.
  bool collect(int flags) {
    if (pid_ <= 0) return true;
    pid_t got = 0;
    do {
      got = ::waitpid(pid_, &status_, flags);
    } while (got < 0 && errno == EINTR);
    if (got == 0) return false;
    pid_ = -1;
    return true;
  }
  int status() const { return status_; }

 private:
  pid_t pid_;
  const std::vector<EndingStep>& steps_;
  std::size_t taken_ = 0;
  SteadyClock::time_point next_step_ = SteadyClock::time_point::max();
  int status_ = 0;
};

/// The streams and the stop button, waited for together.
class Watch {
 public:
  Watch(Child& child, const ProcessOptions& options, const ProcessHooks& hooks, Cancellation& cancellation)
      : input_(std::move(child.input), options.input, options.ends_input),
        output_(std::move(child.output), hooks.on_output),
        error_(std::move(child.error), hooks.on_error),
        cancellation_(cancellation) {}

  bool streams_open() const { return output_.open() || error_.open(); }
  void write(std::string_view text) { input_.add(text); }

  void wait(std::chrono::milliseconds most) {
    std::array<pollfd, 4> waits{
        pollfd{input_.descriptor(), POLLOUT, 0}, pollfd{output_.descriptor(), POLLIN, 0},
        pollfd{error_.descriptor(), POLLIN, 0}, pollfd{cancellation_.descriptor(), POLLIN, 0}};
    if (::poll(waits.data(), waits.size(), static_cast<int>(most.count())) <= 0) return;
    if (waits[0].revents != 0) input_.write_some();
    if (waits[1].revents != 0) output_.read_some();
    if (waits[2].revents != 0) error_.read_some();
    if (waits[3].revents != 0) cancellation_.acknowledge();
  }

  void finish() {
    if (output_.open()) output_.finish();
    if (error_.open()) error_.finish();
  }

 private:
  InputWriter input_;
  LineReader output_, error_;
  Cancellation& cancellation_;
};

/// The sink, silent after its first exception, which is kept.
std::function<void(std::string_view)> guard(const std::function<void(std::string_view)>& sink,
                                            std::exception_ptr& failure) {
  if (!sink) return {};
  return [&sink, &failure](std::string_view line) {
    if (failure) return;
    try {
      sink(line);
    } catch (...) {
      failure = std::current_exception();
    }
  };
}

}  // namespace

class Process::Impl {
 public:
  Impl(ProcessOptions options, const ProcessHooks& hooks, Cancellation& cancellation)
      : options_(std::move(options)),
        deadline_(hooks.deadline),
        cancellation_(cancellation),
        child_(start(options_.argv)),
        reaper_(child_.pid, options_.ending),
        guarded_{guard(hooks.on_output, failure_), guard(hooks.on_error, failure_), {}},
        watch_(child_, options_, guarded_, cancellation) {}

  void write(std::string_view text) { watch_.write(text); }

  std::optional<ProcessEnd> wait(const std::function<bool()>& enough) {
    const PipeSignalBlock no_pipe_signal;
    while (!is_over()) {
      if (!failure_ && enough && enough()) return std::nullopt;
      turn();
    }
    watch_.finish();
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    return end();
  }

  /// Nobody wants to hear of it any more.
  void dismiss() {
    const PipeSignalBlock no_pipe_signal;
    dismissed_ = true;
    while (!is_over()) turn();
  }

 private:
  bool is_over() const {
    return ended_ && (!watch_.streams_open() || SteadyClock::now() > *ended_ + kDrainTime);
  }

  void turn() {
    // Short naps, since a child that closes its streams early is only noticed by asking.
    watch_.wait(std::chrono::milliseconds(ended_ || !watch_.streams_open() ? 20 : 200));
    if (!ended_ && reaper_.collect(WNOHANG)) ended_ = SteadyClock::now();
    if (!ended_) urge();
  }

  void urge() {
    const auto deadline = deadline_ ? deadline_() : std::nullopt;
    cancelled_ = cancellation_.requested();
    timed_out_ = timed_out_ || (deadline && SteadyClock::now() >= *deadline);
    const auto steps = static_cast<std::size_t>(cancellation_.requests());
    if (cancelled_ || timed_out_ || dismissed_ || failure_) reaper_.urge(std::max<std::size_t>(steps, 1));
  }

  ProcessEnd end() const {
    ProcessEnd end;
    end.cancelled = cancelled_;
    end.timed_out = timed_out_;
    const int status = reaper_.status();
    end.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    end.status = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    return end;
  }

  const ProcessOptions options_;
  const std::function<std::optional<SteadyClock::time_point>()>& deadline_;
  Cancellation& cancellation_;
  Child child_;
  Reaper reaper_;
  std::exception_ptr failure_;  // of a hook
  const ProcessHooks guarded_;
  Watch watch_;
  std::optional<SteadyClock::time_point> ended_;
  bool cancelled_ = false, timed_out_ = false, dismissed_ = false;
};

Process::Process(ProcessOptions options, const ProcessHooks& hooks, Cancellation& cancellation)
    : impl_(std::make_unique<Impl>(std::move(options), hooks, cancellation)) {}

Process::~Process() {
  try {
    impl_->dismiss();
  } catch (const std::exception&) {
    // What a hook has to say nobody hears any more; the child is killed by its reaper.
  }
}

void Process::write(std::string_view text) { impl_->write(text); }

std::optional<ProcessEnd> Process::wait(const std::function<bool()>& enough) { return impl_->wait(enough); }

ProcessEnd run_process(const ProcessOptions& options, const ProcessHooks& hooks, Cancellation& cancellation) {
  return Process(options, hooks, cancellation).wait({}).value();
}

}  // namespace commtune::api
