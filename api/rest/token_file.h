#pragma once
// Where the token of a start is kept for programs of the same user, such as commtune-slurm and curl.

#include <filesystem>
#include <string>
#include <string_view>

#include "api/settings.h"

namespace commtune::api::rest {

/// $XDG_RUNTIME_DIR/commtune/token, or where that is unset
/// ${XDG_STATE_HOME:-$HOME/.local/state}/commtune/token; empty where none of these is set.
std::filesystem::path start_token_path(const Environment& environment);

/// A file that only its user can read, for as long as the object lives.
class TokenFile {
 public:
  /// Makes the folder, open to nobody else, where there is none. What is at the path is replaced, a link too:
  /// nothing is followed. Of two services of a user the later one's token is there.
  /// Throws Error{kUnavailable}, naming the path, when the folder is a link, another user's, or one that
  /// others may write to, and when it cannot be written.
  TokenFile(std::filesystem::path path, std::string_view secret);
  /// Takes the file away, unless a later start has put its own there.
  ~TokenFile();
  TokenFile(const TokenFile&) = delete;
  TokenFile& operator=(const TokenFile&) = delete;

 private:
  void write() const;
  bool is_ours() const;

  const std::filesystem::path path_;
  const std::string text_;
  int folder_ = -1;  // open, so that nobody puts another one in its place
};

}  // namespace commtune::api::rest
