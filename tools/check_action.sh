#!/usr/bin/env bash
# What action.yml runs: `headrace check` with the action's inputs, and the report in the job's summary.
set -euo pipefail

if [ "${INPUT_INSTALL:-true}" = true ]; then
  python -m pip install --quiet --disable-pip-version-check "$GITHUB_ACTION_PATH"
fi

which=()
[ -z "${INPUT_LOADER:-}" ] || which+=(--loader "$INPUT_LOADER")
[ -z "${INPUT_RANK:-}" ] || which+=(--rank "$INPUT_RANK")
limits=()
[ -z "${INPUT_MAX_WAIT_SHARE:-}" ] || limits+=(--max-wait-share "$INPUT_MAX_WAIT_SHARE")
[ -z "${INPUT_BASELINE:-}" ] || limits+=(--baseline "$INPUT_BASELINE")
[ -z "${INPUT_MAX_SLOWDOWN:-}" ] || limits+=(--max-slowdown "$INPUT_MAX_SLOWDOWN")

status=0
said=$(python -m headrace check "${limits[@]}" "${which[@]}" -- "$INPUT_RUN" 2>&1) || status=$?
# Names of the user's are in it: nothing of it is a command of the workflow.
quiet="headrace-$RANDOM$RANDOM$RANDOM"
printf '::stop-commands::%s\n%s\n::%s::\n' "$quiet" "$said" "$quiet"
if [ "$status" -eq 3 ]; then
  # One line: an annotation of the job.
  printf '::error title=headrace check::%s\n' "$(grep '^FAILED' <<<"$said" | tr '\n' ' ' | sed 's/%/%25/g')"
fi
if [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then
  {
    printf '### headrace check\n\n'
    # Indented: no line of it ends the block.
    {
      printf '%s\n\n' "$said"
      python -m headrace report "${which[@]}" -- "$INPUT_RUN" 2>/dev/null || true
    } | sed 's/^/    /'
  } >>"$GITHUB_STEP_SUMMARY"
fi
exit "$status"
