#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <string>

#include "core/error.h"
#include "serialization/archive_reader.h"
#include "serialization/archive_writer.h"

namespace wick {
namespace {

Bytes bytesOf(const std::string& text) {
  return copyBytes(std::as_bytes(std::span(text.data(), text.size())));
}

std::string makeArchive(const std::vector<std::pair<std::string, std::string>>& records) {
  std::string out;
  ArchiveWriter writer(
      [&](std::span<const std::byte> data) {
        out.append(reinterpret_cast<const char*>(data.data()), data.size());
      },
      "model");
  for (const auto& [name, text] : records) writer.write(name, text);
  writer.finish();
  return out;
}

TEST(ArchiveTest, RecordsRoundTripInOrder) {
  ArchiveReader archive(
      bytesOf(
          makeArchive({{"data.pkl", "abc"}, {"data/0", std::string(1000, 'x')}, {"empty", ""}})),
      "m.pt");
  EXPECT_EQ(archive.root(), "model");
  EXPECT_THAT(archive.records(), testing::ElementsAre("data.pkl", "data/0", "empty"));
  EXPECT_EQ(archive.read("data.pkl").text(), "abc");
  EXPECT_EQ(archive.read("data/0").text(), std::string(1000, 'x'));
  EXPECT_EQ(archive.read("empty").size(), 0u);
  EXPECT_TRUE(archive.has("empty"));
  EXPECT_FALSE(archive.has("nothing"));
}

TEST(ArchiveTest, PayloadsAreAlignedAndUsedInPlace) {
  Bytes file = bytesOf(makeArchive({{"a", "1"}, {"long/name/of/a/record", "22"}, {"c", "333"}}));
  ArchiveReader archive(file, "m.pt");
  for (const std::string& record : archive.records()) {
    Bytes bytes = archive.map(record);
    EXPECT_EQ((bytes.data.data() - file.data.data()) % 64, 0) << record;
  }
}

TEST(ArchiveTest, RecordOutlivesTheReader) {
  Bytes record;
  {
    ArchiveReader archive(bytesOf(makeArchive({{"a", "hello"}})), "m.pt");
    record = archive.read("a");
  }
  EXPECT_EQ(record.text(), "hello");
}

TEST(ArchiveTest, WritesToAMappedFileStayPrivate) {
  const std::string path = testing::TempDir() + "/private.pt";
  std::ofstream(path, std::ios::binary) << makeArchive({{"a", "hello"}});
  ArchiveReader::open(path).map("a").data[0] = std::byte{'J'};
  EXPECT_EQ(ArchiveReader::open(path).read("a").text(), "hello");
  ::unlink(path.c_str());
}

TEST(ArchiveTest, MessagesNameArchiveAndRecord) {
  ArchiveReader archive(bytesOf(makeArchive({{"a", "hello"}})), "m.pt");
  try {
    archive.read("b");
    FAIL();
  } catch (const LoadError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("m.pt: record 'b'"));
  }
}

TEST(ArchiveTest, EveryTruncationIsAnError) {
  const std::string whole = makeArchive({{"data.pkl", "abc"}, {"data/0", "0123456789"}});
  for (size_t n = 0; n < whole.size(); ++n) {
    EXPECT_THROW(ArchiveReader(bytesOf(whole.substr(0, n)), "m.pt"), LoadError) << n;
  }
}

TEST(ArchiveTest, AFlippedByteNeverReadsAsAnotherPayload) {
  const std::string whole = makeArchive({{"data.pkl", "abc"}, {"data/0", "0123456789"}});
  for (size_t i = 0; i < whole.size(); ++i) {
    for (int bit : {0, 3, 7}) {
      std::string damaged = whole;
      damaged[i] ^= static_cast<char>(1 << bit);
      try {
        ArchiveReader archive(bytesOf(damaged), "m.pt");
        for (const std::string& record : archive.records()) {
          std::string text(archive.read(record).text());
          EXPECT_TRUE(text == "abc" || text == "0123456789") << i;
        }
      } catch (const LoadError&) {
      }
    }
  }
}

TEST(ArchiveTest, HostileSizesAreRefusedBeforeAllocating) {
  const std::string whole = makeArchive({{"a", "hello"}});
  const size_t directory = whole.find("PK\x01\x02");
  ASSERT_NE(directory, std::string::npos);
  for (size_t field : {20u, 24u, 42u}) {  // packed size, size, offset
    std::string damaged = whole;
    const uint32_t huge = 0xfffffff0;
    std::memcpy(damaged.data() + directory + field, &huge, sizeof(huge));
    ArchiveReader archive(bytesOf(damaged), "m.pt");
    EXPECT_THROW(archive.read("a"), LoadError) << field;
  }
  // A deflated entry that claims more than deflate can produce.
  std::string bomb = whole;
  const uint16_t deflated = 8;
  const uint32_t huge = 0xfffffff0;
  std::memcpy(bomb.data() + directory + 10, &deflated, sizeof(deflated));
  std::memcpy(bomb.data() + directory + 24, &huge, sizeof(huge));
  EXPECT_THROW(ArchiveReader(bytesOf(bomb), "m.pt").read("a"), LoadError);
}

TEST(ArchiveTest, EntriesMustBeUnique) {
  std::string whole = makeArchive({{"a", "1"}, {"b", "2"}});
  for (size_t at = whole.find("model/b"); at != std::string::npos; at = whole.find("model/b", at)) {
    whole[at + 6] = 'a';
  }
  EXPECT_THROW(ArchiveReader(bytesOf(whole), "m.pt"), LoadError);
}

TEST(ArchiveTest, WriterRefusesDuplicates) {
  ArchiveWriter writer([](std::span<const std::byte>) {}, "model");
  writer.write("a", "1");
  EXPECT_THROW(writer.write("a", "2"), RuntimeError);
}

TEST(ArchiveTest, MissingFileIsALoadError) {
  EXPECT_THROW(ArchiveReader::open("/nonexistent/file.pt"), LoadError);
  EXPECT_THROW(ArchiveReader::open("/"), LoadError);
}

}  // namespace
}  // namespace wick
