#!/bin/sh
# Every script must at least be readable by the shell.
set -eu
for script in src/*.sh; do
  sh -n "$script"
done
if [ -e tests/greet_test.sh ]; then
  sh tests/greet_test.sh
fi
