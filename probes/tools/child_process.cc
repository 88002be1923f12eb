#include "probes/tools/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "perfmodel/base/error.h"

extern char** environ;

namespace commtune::probes {

namespace {

class FileActions {
 public:
  FileActions() { posix_spawn_file_actions_init(&actions_); }
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  posix_spawn_file_actions_t* get() { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

int milliseconds_until(Deadline until) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000));
}

}  // namespace

ChildProcess::ChildProcess(const std::vector<std::string>& arguments) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw Error(ErrorCode::kUnavailable,
                std::string("no pipe for ") + arguments.front() + ": " + std::strerror(errno));
  }
  output_ = ends[0];
  FileActions actions;
  posix_spawn_file_actions_addopen(actions.get(), STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(actions.get(), ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(actions.get(), STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::vector<char*> pointers;
  pointers.reserve(arguments.size() + 1);
  for (const std::string& argument : arguments) pointers.push_back(const_cast<char*>(argument.c_str()));
  pointers.push_back(nullptr);
  const int error = posix_spawnp(&process_, pointers[0], actions.get(), nullptr, pointers.data(), environ);
  ::close(ends[1]);
  if (error != 0) {
    process_ = -1;
    ::close(output_);
    throw Error(ErrorCode::kUnavailable, arguments.front() + ": " + std::strerror(error));
  }
}

ChildProcess::~ChildProcess() {
  if (process_ > 0) {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  if (output_ >= 0) ::close(output_);
}

std::optional<std::string> ChildProcess::wait(Deadline until) {
  std::string text;
  std::array<char, 4096> buffer{};
  while (true) {
    pollfd ready{output_, POLLIN, 0};
    if (::poll(&ready, 1, milliseconds_until(until)) <= 0) return std::nullopt;
    const ssize_t got = ::read(output_, buffer.data(), buffer.size());
    if (got <= 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  ::waitpid(process_, nullptr, 0);
  process_ = -1;
  return text;
}

}  // namespace commtune::probes
