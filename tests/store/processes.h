#pragma once
// Running a part of a test in a process of its own: to kill it, or to take its rights away.

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <string>
#include <system_error>
#include <utility>

namespace commtune::tests {

/// A child process with a pipe from it to us. Killed and collected at the end, if it still runs.
class ChildProcess {
 public:
  /// work  is given the pipe's writing end; what it throws ends the child with status 1
  explicit ChildProcess(const std::function<void(int)>& work) {
    std::array<int, 2> ends{};
    if (pipe(ends.data()) != 0) {
      throw std::system_error(errno, std::generic_category(), "pipe");
    }
    child_ = fork();
    if (child_ < 0) {
      throw std::system_error(errno, std::generic_category(), "fork");
    }
    if (child_ == 0) {
      close(ends[0]);
      _exit(run(work, ends[1]));
    }
    close(ends[1]);
    pipe_ = ends[0];
  }
  ~ChildProcess() {
    stop(SIGKILL);
    close(pipe_);
  }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// The next number that the child has written; false at the end of what it wrote.
  bool read_number(std::int64_t& number) const {
    return ::read(pipe_, &number, sizeof number) == static_cast<ssize_t>(sizeof number);
  }

  /// All that the child writes until it ends.
  std::string read_text() const {
    std::string text;
    std::array<char, 4096> part{};
    for (ssize_t n = 0; (n = ::read(pipe_, part.data(), part.size())) > 0;) {
      text.append(part.data(), static_cast<std::size_t>(n));
    }
    return text;
  }

  /// Sends the signal and waits until the child has gone.
  void stop(int signal) {
    if (child_ > 0) {
      kill(child_, signal);
      wait();
    }
  }

  /// Waits for the child; its exit status, or -1 when a signal ended it.
  int wait() {
    int status = 0;
    waitpid(std::exchange(child_, 0), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  static int run(const std::function<void(int)>& work, int pipe) {
    try {
      work(pipe);
      return 0;
    } catch (const std::exception& error) {
      const std::string what = error.what();
      return ::write(pipe, what.data(), what.size()) < 0 ? 2 : 1;
    }
  }

  pid_t child_ = 0;
  int pipe_ = -1;
};

/// Tells the parent a number. Writes of this size are never torn.
inline void write_number(int pipe, std::int64_t number) {
  if (::write(pipe, &number, sizeof number) != static_cast<ssize_t>(sizeof number)) {
    throw std::system_error(errno, std::generic_category(), "pipe");
  }
}

/// What `work` throws, or "" when it throws nothing, when done by somebody whom file permissions bind: by a
/// child that has given up being root.
inline std::string error_without_rights(const std::function<void()>& work) {
  constexpr uid_t kNobody = 65534;
  ChildProcess child([&](int) {
    if (geteuid() == 0 && setuid(kNobody) != 0) {
      throw std::system_error(errno, std::generic_category(), "setuid");
    }
    work();
  });
  return child.read_text();
}

/// Opens a folder for everybody to enter and read, not to write.
inline void forbid_writing(const std::filesystem::path& folder) {
  std::filesystem::permissions(folder, std::filesystem::perms(0555));
}

}  // namespace commtune::tests
