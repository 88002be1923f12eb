// The corpus of the readers in api/ and of the whole service, and mutations of it.

#include "tests/fuzz/corpus.h"

#include "tests/api/fuzz/targets.h"

namespace commtune::fuzz {
namespace {

INSTANTIATE_TEST_SUITE_P(All, Corpus,
                         testing::Values(Target{"head", head}, Target{"hosts", hosts},
                                         Target{"question", question}, Target{"target", target},
                                         Target{"trace", trace}, Target{"wire", wire},
                                         Target{"service", service, 40}),
                         name_of);

}  // namespace
}  // namespace commtune::fuzz
