/** Writes down which functions a turn uses, in the order of their first use: how the executable's bytecode is laid out (scripts/compile.ts). */

import { rmSync } from 'node:fs'
import type { Program } from './measure.ts'

/** What an earlier program uses comes first. The runtime writes more than functions; the rest is twenty times as long and gains nothing. */
export async function record(programs: readonly Program[], file: string): Promise<void> {
  const used = new Set<string>()
  for (const program of programs) for (const line of await usedBy(program, `${file}.draft`)) used.add(line)
  await Bun.write(file, ['v2', ...used, ''].join('\n'))
}

async function usedBy({ name, command, env, cwd }: Program, file: string): Promise<string[]> {
  const child = Bun.spawn([...command], { env: { ...env, BUN_BYTECODE_ORDER_OUT: file }, cwd, stdio: ['ignore', 'ignore', 'ignore'] })
  const code = await child.exited
  if (code !== 0) throw new Error(`${name} ended with exit code ${code}`)
  const lines = (await Bun.file(file).text()).split('\n')
  rmSync(file)
  if (lines[0] !== 'v2') throw new Error(`the profile has format "${lines[0]}", which this does not know; look into bench/record.ts`)
  return lines.filter((line) => line.startsWith('F '))
}
