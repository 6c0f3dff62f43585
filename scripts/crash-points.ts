#!/usr/bin/env bun

/**
 * Kills the executable systematically, at every system call that opens, writes, syncs, links or truncates a file in one turn, in a new home
 * and in a used one. Run it by hand, because it needs strace: `bun scripts/crash-points.ts [SYSCALL…]`. It prints what broke, with exit
 * code 1.
 */

import { type Binary, compiledBinary, createHome } from '../test/crash/home.ts'
import { acknowledged } from '../test/crash/oracle.ts'
import { inspect, turnOf } from '../test/crash/siege.ts'

const calls = [
  ...['write', 'pwrite64', 'openat', 'fdatasync', 'fsync', 'ftruncate', 'fallocate', 'mmap'],
  ...['link', 'linkat', 'unlink', 'unlinkat', 'rename', 'renameat', 'renameat2', 'mkdir', 'mkdirat', 'fchmod', 'close'],
]

if (import.meta.main) process.exit(await main(Bun.argv.slice(2)))

async function main(wanted: readonly string[]): Promise<number> {
  using binary = await compiledBinary()
  const found: string[] = []
  for (const past of [0, 2]) {
    for (const call of wanted.length > 0 ? wanted : calls) {
      const points = await everyPoint(binary, call, past)
      for (const each of points.broken) console.log(each)
      console.log(`${past === 0 ? 'new home' : 'old home'}, ${call}: ${points.kills} kills, ${points.broken.length} broken`)
      found.push(...points.broken)
    }
  }
  return found.length === 0 ? 0 : 1
}

/** Kills at the first, the second, … call of this kind in the main thread, until a turn has no more of them. */
async function everyPoint(binary: Binary, call: string, past: number) {
  const broken: string[] = []
  for (let when = 1; ; when += 1) {
    const point = await strikeAt(binary, { call, when, past })
    if (!point) return { kills: when - 1, broken }
    broken.push(...point.map((problem) => `${call} ${when}, after ${past} turns: ${problem}`))
  }
}

type Point = { readonly call: string; readonly when: number; readonly past: number }

/** Undefined when the turn completed. */
async function strikeAt(binary: Binary, { call, when, past }: Point): Promise<string[] | undefined> {
  using home = createHome({ binary: binary.path })
  for (let turn = 0; turn < past; turn += 1)
    await home.run(['agent', '-m', 'before', '--approve-all-medium'], [...turnOf(`past-${turn}`, () => 0).responses])
  const turn = turnOf(`${call}-${when}`, () => 0)
  const through = ['strace', '-qq', '-o', '/dev/null', '-e', `trace=${call}`, '-e', `inject=${call}:signal=SIGKILL:when=${when}`]
  const running = home.start(
    ['agent', '-m', turn.prompt, '--output-format', 'stream-json', '--approve-all-medium'],
    turn.responses,
    through,
  )
  const { code, stdout } = await running.result
  if (code !== null) return undefined
  return (await inspect(home, { said: acknowledged(turn.prompt, stdout), turn, torn: false, hit: true })).problems
}
