#include "executor/transport/proof/proof.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "perfmodel/base/error.h"

namespace commtune::proof {

void fill_randomly(std::span<std::byte> bits) {
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bits.data()), static_cast<int>(bits.size())) != 1) {
    throw Error(ErrorCode::kUnavailable, "random bits: the system has none for the run's secret");
  }
}

Secret make_secret() {
  Secret secret{};
  fill_randomly(secret);
  return secret;
}

Challenge make_challenge() {
  Challenge challenge{};
  fill_randomly(challenge);
  return challenge;
}

Proof prove(const Secret& secret, std::span<const std::byte> statement) {
  Proof proof{};
  const unsigned char* made = HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
                                   reinterpret_cast<const unsigned char*>(statement.data()), statement.size(),
                                   reinterpret_cast<unsigned char*>(proof.data()), nullptr);
  if (made == nullptr) throw Error(ErrorCode::kUnavailable, "HMAC-SHA-256: libcrypto does not offer it");
  return proof;
}

bool equal(std::span<const std::byte> shown, const Proof& expected) {
  return shown.size() == expected.size() &&
         CRYPTO_memcmp(shown.data(), expected.data(), expected.size()) == 0;
}

}  // namespace commtune::proof
