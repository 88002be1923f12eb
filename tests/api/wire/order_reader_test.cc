#include "api/wire/order_reader.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <string>
#include <string_view>
#include <thread>

#include "perfmodel/base/error.h"

namespace commtune::api {
namespace {

class OrderReaderTest : public ::testing::Test {
 protected:
  OrderReaderTest() {
    if (::pipe(ends_.data()) != 0) std::abort();
  }
  ~OrderReaderTest() override {
    ::close(ends_[0]);
    end();
  }
  OrderReaderTest(const OrderReaderTest&) = delete;
  OrderReaderTest& operator=(const OrderReaderTest&) = delete;

  void write(std::string_view text) const {
    ASSERT_EQ(::write(ends_[1], text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  void end() {
    if (ends_[1] >= 0) ::close(ends_[1]);
    ends_[1] = -1;
  }

  std::array<int, 2> ends_{-1, -1};
};

TEST_F(OrderReaderTest, HandsOutLineByLineWhatComesTogether) {
  OrderReader reader(ends_[0], [] { return false; });
  write("one\n\ntwo\nthr");
  EXPECT_EQ(reader.next(), "one");
  EXPECT_EQ(reader.next(), "");
  EXPECT_EQ(reader.next(), "two");
  write("ee\nfour");
  EXPECT_EQ(reader.next(), "three");
  end();
  EXPECT_EQ(reader.next(), "four");
  EXPECT_EQ(reader.next(), std::nullopt);
}

TEST_F(OrderReaderTest, PutsALongLineTogether) {
  OrderReader reader(ends_[0], [] { return false; });
  const std::string line(1'000'000, 'x');
  std::jthread writer([&] { write(line + "\n"); });
  EXPECT_EQ(reader.next(), line);
}

TEST_F(OrderReaderTest, WaitsNoLongerThanSomebodyAsksItTo) {
  int asked = 0;
  OrderReader reader(ends_[0], [&] { return ++asked == 3; });
  try {
    reader.next();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInterrupted);
  }
}

}  // namespace
}  // namespace commtune::api
