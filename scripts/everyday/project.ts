/** Makes the project in which the everyday commands run: a git repository with JavaScript, Python and C, and a remote. */

import { spawnSync } from 'node:child_process'

const script = String.raw`set -e
mkdir -p "$1" "$2"; cd "$1"
git init -q -b main .; git config user.name Ann; git config user.email ann@example.org
mkdir -p src empty cm
echo 'export const main = 1 // TODO' > src/main.ts; echo 'export const b = 2' > src/b.ts
printf '# Project\nhello\n' > README.md; printf 'one\ntwo\none\n' > names.txt; printf 'one\ntwo\n' > names2.txt
printf 'a,1\nb,2\n' > data.csv; head -c 200 /bin/ls > a.bin; echo log > app.log; touch x.tmp requirements.txt
echo 'console.log("js")' > x.js; echo 'print("py")' > x.py
printf "const { test } = require('node:test')\ntest('one', () => {})\n" > x.test.js
printf 'import unittest\nclass T(unittest.TestCase):\n    def test_one(self): pass\n' > test_x.py
echo '{"name":"p","version":"1.0.0","scripts":{"test":"node x.js","build":"node x.js > built.txt","lint":"node x.js"},"dependencies":{}}' > package.json
printf 'int main(){return 0;}\n' > hello.c; cp hello.c hi.cpp
printf 'cmake_minimum_required(VERSION 3.10)\nproject(p C)\nadd_executable(p p.c)\n' > cm/CMakeLists.txt; cp hello.c cm/p.c
printf 'all:\n\techo made > made.o\ntest: all\n\techo tested\nclean:\n\ttouch cleaned.o\n' > Makefile
printf 'echo from a script > by-script.txt\n' > script.sh; printf '#!/bin/sh\necho tool > by-tool.txt\n' > tool.sh; chmod +x tool.sh
tar cf old.tar names.txt; zip -q old.zip names.txt 2>/dev/null || true
printf -- '--- a/README.md\n+++ b/README.md\n@@ -1,2 +1,2 @@\n # Project\n-hello\n+patched\n' > fix.patch
mkdir -p node_modules/.bin
for tool in $3; do
  mkdir -p "node_modules/$tool/bin"
  printf '{"name":"%s","version":"1.0.0","bin":"bin/%s"}' "$tool" "$tool" > "node_modules/$tool/package.json"
  printf '#!/usr/bin/env node\nconsole.log("%s", process.argv.slice(2).join(" "))\n' "$tool" > "node_modules/$tool/bin/$tool"
  chmod +x "node_modules/$tool/bin/$tool"; ln -s "../$tool/bin/$tool" "node_modules/.bin/$tool"
done
printf 'old.*\n*.tmp\nnode_modules/\n' > .gitignore
git add -A; git commit -qm first; echo more >> data.csv; git commit -qam second
git checkout -qb side HEAD~1; echo side > side.txt; git add side.txt; git commit -qm side; git checkout -q main
git clone -q --bare . "$2/origin.git"; git remote add origin "$2/origin.git"; git fetch -q origin; git branch -q -u origin/main
`

/** What is installed in its node_modules: stand-ins that only say their name. */
export const installed: readonly string[] = ['tsc', 'vitest']

/** @throws Error with what went wrong */
export function makeProject(folder: string, beside: string): void {
  const made = spawnSync('bash', ['-c', script, 'bash', folder, beside, installed.join(' ')], { encoding: 'utf8' })
  if (made.status !== 0) throw new Error(`the project could not be made: ${made.stderr}`)
}
