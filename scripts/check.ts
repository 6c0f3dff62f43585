#!/usr/bin/env bun
/** Runs all checks before a commit: format and lint, types, dead code, ceilings, then all tests; it stops at the first failure. */

import { join } from 'node:path'
import { checkCeilings, lowerCeilings } from './ceilings.ts'
import { main as runTests } from './test.ts'

const root = join(import.meta.dir, '..')
const tool = (name: string): string => join(root, 'node_modules', '.bin', name)

const STEPS = [
  { name: 'lint', command: [tool('biome'), 'ci', '--error-on-warnings', '.'] },
  { name: 'types', command: [tool('tsc'), '--project', '.'] },
  { name: 'types of the page', command: [tool('tsc'), '--project', 'src/dashboard/page'] },
  { name: 'dead code', command: [process.execPath, '--config=/dev/null', '--no-env-file', tool('knip'), '--no-progress'] },
]

if (import.meta.main) process.exit(await main(Bun.argv.slice(2)))

/** `--static` skips the tests; `--lower` only lowers the ceilings to the present numbers. */
async function main(flags: readonly string[]): Promise<number> {
  if (flags.includes('--lower')) return lowerCeilings(root)
  for (const step of STEPS) if (!(await passes(step))) return 1
  if (!checkCeilings(root)) return 1
  if (flags.includes('--static')) return 0
  console.log('tests')
  return await runTests([])
}

/** Prints only name and time of a passing step, and the whole output of a failing one. */
async function passes({ name, command }: (typeof STEPS)[number]): Promise<boolean> {
  const start = performance.now()
  const child = Bun.spawn(command, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] })
  const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  console.log(`${code === 0 ? 'ok  ' : 'FAIL'} ${name}  ${Math.round(performance.now() - start)} ms`)
  if (code !== 0)
    console.log(`${stdout}${stderr}\n"${command.map((word) => word.replace(`${root}/`, '')).join(' ')}" ended with exit code ${code}`)
  return code === 0
}
