#include "support/tests_folder.h"

namespace headrace {

const char* const kTestsFolder = HEADRACE_TESTS_DIR;

}  // namespace headrace
