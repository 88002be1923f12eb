// The corpus of the readers in perfmodel/, and mutations of it.

#include "tests/fuzz/corpus.h"

#include "tests/perfmodel/fuzz/targets.h"

namespace commtune::fuzz {
namespace {

INSTANTIATE_TEST_SUITE_P(All, Corpus,
                         testing::Values(Target{"profile", profile}, Target{"plan", plan},
                                         Target{"cluster", cluster}, Target{"nccl_tuning", nccl_tuning},
                                         Target{"quantity", quantity}),
                         name_of);

}  // namespace
}  // namespace commtune::fuzz
