// The corpus of what the executor reads from sockets, and mutations of it.

#include "tests/fuzz/corpus.h"

#include "tests/executor/fuzz/targets.h"

namespace commtune::fuzz {
namespace {

INSTANTIATE_TEST_SUITE_P(All, Corpus,
                         testing::Values(Target{"handshake", handshake}, Target{"connection", connection}),
                         name_of);

}  // namespace
}  // namespace commtune::fuzz
