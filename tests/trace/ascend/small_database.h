// The run of small_run.h as the profiler's database.
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <filesystem>
#include <string>

namespace headrace::trace::ascend {

/// The schema's tables that the reader uses, and the rows of the run.
inline const char* const kSmallDatabase = R"sql(
CREATE TABLE STRING_IDS (id INTEGER PRIMARY KEY, value TEXT);
INSERT INTO STRING_IDS VALUES (1,'ProfilerStep#7'),(2,'enumerate(DataLoader)#_Iter.__next__'),(3,'aten::mm'),
  (4,'Enqueue'),(5,'aten::add'),(6,'Dequeue@mm'),(7,'Dequeue@add'),(8,'aclrtMemcpyAsync'),(9,'launch'),
  (10,'MEMCPY_ASYNC'),(11,'MatMul1'),(12,'MemSet'),(13,'KERNEL_AICORE'),(14,'KERNEL_AIVEC'),(15,'EVENT_WAIT'),
  (16,'SDMA'),(17,'hcom_allReduce__271_0_1'),(18,'Memcpy'),(19,'group'),(20,'AI_CORE'),(536870912,'8,8;
8,8');
CREATE TABLE PYTORCH_API (startNs TEXT, endNs TEXT, globalTid INTEGER, connectionId INTEGER, name INTEGER,
  sequenceNumber INTEGER, fwdThreadId INTEGER, inputDtypes INTEGER, inputShapes INTEGER, callchainId INTEGER, type INTEGER);
INSERT INTO PYTORCH_API VALUES
  ('1000000000','1001000000',429496729701,NULL,1,NULL,NULL,NULL,NULL,NULL,50001),
  ('1000010000','1000060000',429496729701,NULL,2,NULL,NULL,NULL,NULL,NULL,50001),
  ('1000100000','1000150000',429496729701,3,3,NULL,NULL,NULL,536870912,NULL,50001),
  ('1000120000','1000125000',429496729701,0,4,NULL,NULL,NULL,NULL,NULL,50002),
  ('1000160000','1000190000',429496729701,NULL,5,NULL,NULL,NULL,NULL,NULL,50001),
  ('1000170000','1000175000',429496729701,1,4,NULL,NULL,NULL,NULL,NULL,50002),
  ('1000160000','1000200000',429496729702,0,6,NULL,NULL,NULL,NULL,NULL,50002),
  ('1000210000','1000240000',429496729702,1,7,NULL,NULL,NULL,NULL,NULL,50002);
CREATE TABLE CONNECTION_IDS (id INTEGER, connectionId INTEGER);
INSERT INTO CONNECTION_IDS VALUES (0,900),(1,901),(3,51);
CREATE TABLE CANN_API (startNs INTEGER, endNs INTEGER, type INTEGER, globalTid INTEGER, connectionId INTEGER PRIMARY KEY, name INTEGER);
INSERT INTO CANN_API VALUES (1000200000,1000203000,20000,429496729701,50,8),(1000170000,1000190000,10000,429496729702,51,9),
  (1000220000,1000230000,10000,429496729702,52,9),(1000232000,1000237000,10000,429496729702,53,9);
CREATE TABLE TASK (startNs INTEGER, endNs INTEGER, deviceId INTEGER, connectionId INTEGER, globalTaskId INTEGER,
  globalPid INTEGER, taskType INTEGER, contextId INTEGER, streamId INTEGER, taskId INTEGER, modelId INTEGER);
INSERT INTO TASK VALUES (1000205000,1000215000,3,50,1,100,10,0,2,1,0),(1000300000,1000340000,3,51,2,100,13,0,2,2,0),
  (1000350000,1000380000,3,52,3,100,14,0,2,3,0),(1000380000,1000381000,3,-1,4,100,15,0,2,4,0),
  (1000331000,1000361000,3,53,5,100,16,0,4,5,0),(1000330000,1000370000,3,53,6,100,20,0,4,6,0);
CREATE TABLE COMPUTE_TASK_INFO (name INTEGER, globalTaskId INTEGER PRIMARY KEY, taskType INTEGER);
INSERT INTO COMPUTE_TASK_INFO VALUES (11,2,13),(12,3,14);
CREATE TABLE COMMUNICATION_OP (opName INTEGER, startNs INTEGER, endNs INTEGER, connectionId INTEGER, groupName INTEGER);
INSERT INTO COMMUNICATION_OP VALUES (17,1000330000,1000370000,53,19);
CREATE TABLE COMMUNICATION_TASK_INFO (name INTEGER, globalTaskId INTEGER, taskType INTEGER, planeId INTEGER, size INTEGER,
  transportType INTEGER, linkType INTEGER);
INSERT INTO COMMUNICATION_TASK_INFO VALUES (17,5,18,0,1000,0,1);
CREATE TABLE ENUM_HCCL_TRANSPORT_TYPE (id INTEGER PRIMARY KEY, name TEXT);
INSERT INTO ENUM_HCCL_TRANSPORT_TYPE VALUES (0,'SDMA');
CREATE TABLE MEMCPY_INFO (globalTaskId INTEGER, size INTEGER, memcpyOperation INTEGER);
INSERT INTO MEMCPY_INFO VALUES (1,40000,1);
CREATE TABLE ENUM_MEMCPY_OPERATION (id INTEGER PRIMARY KEY, name TEXT);
INSERT INTO ENUM_MEMCPY_OPERATION VALUES (1,'host to device');
CREATE TABLE STEP_TIME (id INTEGER, startNs INTEGER, endNs INTEGER);
INSERT INTO STEP_TIME VALUES (7,1000000000,1001000000);
CREATE TABLE RANK_DEVICE_MAP (rankId INTEGER, deviceId INTEGER);
INSERT INTO RANK_DEVICE_MAP VALUES (5,3);
CREATE TABLE META_DATA (name TEXT, value TEXT);
INSERT INTO META_DATA VALUES ('SCHEMA_VERSION','1.0.0'),('ENV_VARIABLES','{"HCCL_ALGO": ""}');
)sql";

/// A database made by `sql`, removed at the end of the scope.
class DatabaseFile {
 public:
  explicit DatabaseFile(const std::string& sql, const std::string& name = "ascend_pytorch_profiler_5.db")
      // Tests of other processes make files of the same name.
      : folder_(std::filesystem::path(testing::TempDir()) /
                ("headrace_database_" + std::to_string(getpid()))),
        path_(folder_ / name) {
    std::filesystem::create_directories(folder_);
    std::filesystem::remove(path_);
    sqlite3* handle = nullptr;
    EXPECT_EQ(sqlite3_open(path_.c_str(), &handle), SQLITE_OK);
    char* error = nullptr;
    EXPECT_EQ(sqlite3_exec(handle, sql.c_str(), nullptr, nullptr, &error), SQLITE_OK) << error;
    sqlite3_free(error);
    sqlite3_close(handle);
  }
  ~DatabaseFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
    std::filesystem::remove(folder_, ignored);  // stays while it has other files
  }
  DatabaseFile(const DatabaseFile&) = delete;
  DatabaseFile& operator=(const DatabaseFile&) = delete;

  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path folder_;
  std::filesystem::path path_;
};

}  // namespace headrace::trace::ascend
