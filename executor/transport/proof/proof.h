#pragma once
// What a rank shows to a peer so that it is believed to belong to the same run: a digest, keyed with a secret
// that only the run's ranks have (HMAC-SHA-256, RFC 2104). The secret itself travels over the bootstrap
// alone.

#include <array>
#include <cstddef>
#include <span>

namespace commtune::proof {

using Secret = std::array<std::byte, 16>;  ///< of one run
using Challenge = std::array<std::byte, 16>;
using Proof = std::array<std::byte, 32>;

/// Random bits that nobody can foretell. Throw Error{kUnavailable} where the system has none.
Secret make_secret();
Challenge make_challenge();
void fill_randomly(std::span<std::byte> bits);

/// statement  what is proven, with all that it is bound to: what it is for, who proves, to whom
/// throws     Error{kUnavailable} where libcrypto does not offer it
Proof prove(const Secret& secret, std::span<const std::byte> statement);
/// Takes as long whatever they differ in.
bool equal(std::span<const std::byte> shown, const Proof& expected);

}  // namespace commtune::proof
