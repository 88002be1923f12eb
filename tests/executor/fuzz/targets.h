#pragma once
// What is fuzzed here: all that the executor reads from sockets of its own. Each target takes any bytes, and
// ends the process if they are taken for more than they are. tests/fuzz/run builds and runs them with
// libFuzzer; the corpus, and mutations of it, also run in the normal suite.

#include <string_view>

namespace commtune::fuzz {

void handshake(std::string_view text);   ///< what a stranger says to either side of a connection
void connection(std::string_view text);  ///< what a peer sends on a connection that stands

}  // namespace commtune::fuzz
