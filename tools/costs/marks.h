/* What Valgrind counts between two marks, on a clock that makes it the same every time. */
#ifndef HEADRACE_COSTS_MARKS_H
#define HEADRACE_COSTS_MARKS_H

#ifdef __cplusplus
extern "C" {
#endif

/* Counting begins, in all threads of the process, with the clock moving on by `step_ns` at each look. */
void costs_begin(int step_ns);
/* What was counted since `costs_begin` is written down under a name. */
void costs_end(const char* name);
/* Whether waits with a deadline end (1), which a fork needs, or last until somebody ends them (0, at first). */
void costs_let_waits_end(int on);

#ifdef __cplusplus
}
#endif

#endif
