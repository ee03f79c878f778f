#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <cstring>
#include <fstream>
#include <string>

#include "core/error.h"
#include "serialization/archive_reader.h"
#include "serialization/archive_writer.h"

namespace wick::archive_test {
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
    EXPECT_THROW(ArchiveReader(bytesOf(damaged), "m.pt").read("a"), LoadError) << field;
  }
  // A deflated entry that claims more than deflate can produce.
  std::string bomb = whole;
  const uint16_t deflated = 8;
  const uint32_t huge = 0xfffffff0;
  std::memcpy(bomb.data() + directory + 10, &deflated, sizeof(deflated));
  std::memcpy(bomb.data() + directory + 24, &huge, sizeof(huge));
  EXPECT_THROW(ArchiveReader(bytesOf(bomb), "m.pt").read("a"), LoadError);
}

std::string messageOf(const std::string& archive) {
  try {
    ArchiveReader(bytesOf(archive), "m.pt");
  } catch (const LoadError& error) {
    return error.what();
  }
  return "no error";
}

// One byte more than the payload has reaches into what follows it, whatever that is.
TEST(ArchiveTest, EntriesMayNotOverlap) {
  const std::string whole = makeArchive({{"a", "hello"}, {"b", "hello"}});
  const size_t first = whole.find("PK\x01\x02");
  const size_t second = whole.find("PK\x01\x02", first + 1);
  for (size_t entry : {first, second}) {
    std::string longer = whole;
    const uint32_t up_to_the_end = static_cast<uint32_t>(whole.size() - 300);
    for (size_t field : {20u, 24u}) {
      std::memcpy(longer.data() + entry + field, &up_to_the_end, sizeof(up_to_the_end));
    }
    EXPECT_NE(messageOf(longer), "no error") << entry;
  }
  // Both entries at one place.
  std::string twice = whole;
  std::memcpy(twice.data() + second + 42, twice.data() + first + 42, 4);
  EXPECT_THAT(messageOf(twice), testing::HasSubstr("another name"));
  for (size_t at = twice.find("model/b"); at != std::string::npos; at = twice.find("model/b", at)) {
    twice[at + 6] = 'a';
  }
  EXPECT_NE(messageOf(twice), "no error");
}

// Entries outside of the root are never read, but a file that repeats bytes is no honest file.
TEST(ArchiveTest, EntriesOutsideOfTheRootMayNotOverlapEither) {
  std::string whole = makeArchive({{"a", "hello"}, {"b", "hello"}});
  for (size_t at = whole.find("model/b"); at != std::string::npos; at = whole.find("model/b", at)) {
    whole.replace(at, 7, "other/b");
  }
  EXPECT_EQ(messageOf(whole), "no error");
  const size_t last = whole.rfind("PK\x01\x02");
  const uint32_t longer = 10000;
  std::memcpy(whole.data() + last + 20, &longer, sizeof(longer));
  EXPECT_NE(messageOf(whole), "no error");
}

// An archive of one deflated record of zeros.
std::string deflatedZeros(size_t size) {
  std::string packed(size / 500 + 1000, '\0');
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 9, Z_DEFAULT_STRATEGY), Z_OK);
  std::string zeros(size, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(zeros.data());
  stream.avail_in = static_cast<uInt>(zeros.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  std::string whole = makeArchive({{"a", packed}});
  const size_t directory = whole.find("PK\x01\x02");
  const uint16_t deflated = 8;
  const auto inflated = static_cast<uint32_t>(size);
  const auto crc = static_cast<uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(zeros.data()), static_cast<uInt>(size)));
  std::memcpy(whole.data() + directory + 10, &deflated, sizeof(deflated));
  std::memcpy(whole.data() + directory + 16, &crc, sizeof(crc));
  std::memcpy(whole.data() + directory + 24, &inflated, sizeof(inflated));
  return whole;
}

TEST(ArchiveTest, InflatedRecordsAreBoundedByTheFile) {
  const std::string small = deflatedZeros(1 << 20);
  EXPECT_EQ(ArchiveReader(bytesOf(small), "m.pt").read("a").size(), size_t{1} << 20);
  EXPECT_THROW(ArchiveReader(bytesOf(deflatedZeros(32 << 20)), "m.pt").read("a"), LoadError);
  // Together, too.
  ArchiveReader archive(bytesOf(deflatedZeros(8 << 20)), "m.pt");
  archive.read("a");
  EXPECT_THROW(
      {
        archive.read("a");
        archive.read("a");
      },
      LoadError);
  ArchiveLimits limits;
  limits.base_memory = 64 << 20;
  EXPECT_EQ(ArchiveReader(bytesOf(deflatedZeros(32 << 20)), "m.pt", limits).read("a").size(),
            size_t{32} << 20);
}

TEST(ArchiveTest, EntriesAreLimited) {
  ArchiveLimits limits;
  limits.max_entries = 1;
  EXPECT_THROW(ArchiveReader(bytesOf(makeArchive({{"a", ""}, {"b", ""}})), "m.pt", limits),
               LoadError);
}

TEST(ArchiveTest, EntriesMustBeUnique) {
  std::string whole = makeArchive({{"a", "1"}, {"b", "2"}});
  for (size_t at = whole.find("model/b"); at != std::string::npos; at = whole.find("model/b", at)) {
    whole[at + 6] = 'a';
  }
  EXPECT_THROW(ArchiveReader(bytesOf(whole), "m.pt"), LoadError);
}

// Sizes that need more than 32 bits stand in a field of their own, which must hold them.
TEST(ArchiveTest, Zip64FieldsMustBeWhole) {
  std::string whole = makeArchive({{"a", "hello"}});
  const size_t entry = whole.find("PK\x01\x02"), end = whole.find("PK\x05\x06");
  uint16_t name = 0, extra = 0;
  uint32_t directory = 0;
  std::memcpy(&name, whole.data() + entry + 28, sizeof name);
  std::memcpy(&extra, whole.data() + entry + 30, sizeof extra);
  std::memcpy(&directory, whole.data() + end + 12, sizeof directory);
  ASSERT_EQ(extra, 0);
  extra = 8;
  directory += extra;
  const uint32_t elsewhere = 0xffffffff;
  std::memcpy(whole.data() + entry + 24, &elsewhere, sizeof elsewhere);
  std::memcpy(whole.data() + entry + 30, &extra, sizeof extra);
  std::memcpy(whole.data() + end + 12, &directory, sizeof directory);
  std::string shorter = whole;
  shorter.insert(entry + 46 + name, std::string("\x01\x00\x04\x00\x05\x00\x00\x00", 8));
  EXPECT_THAT(messageOf(shorter), testing::HasSubstr("the ZIP64 field is too short"));
  whole.insert(entry + 46 + name, std::string("\x01\x00\x08\x00\x05\x00\x00\x00", 8));
  EXPECT_THAT(messageOf(whole), testing::HasSubstr("the extra field is damaged"));
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
}  // namespace wick::archive_test
