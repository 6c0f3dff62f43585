import { expect, test } from 'bun:test'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { needs } from '../../../test/support/needs.ts'
import { confined } from '../fixture.ts'

/** Each line ends with a command that hides `rm x` from a reader, or almost does. */
const spellings = readFileSync(new URL('../../security/hidden.fixture.jsonl', import.meta.url), 'utf8')
  .trim()
  .split('\n')
  .map((line): string => JSON.parse(line).at(-1))
  .filter((command) => /\brm\b/.test(command))

const box = async (forbiddenCommands: readonly string[]) => {
  const made = await confined({ forbiddenCommands })
  const canary = join(made.workspace, 'x')
  const deleted = async (command: string) => {
    writeFileSync(canary, '')
    await made.run('', { argv: ['/bin/bash', '--norc', '-c', command], signal: AbortSignal.timeout(10_000) })
    return !existsSync(canary)
  }
  return { deleted, [Symbol.dispose]: () => made[Symbol.dispose]() }
}

test.if(needs('bwrap', 'bash'))(
  'no spelling gets rm to run, even if no gate reads the command; without the refusers most do',
  async () => {
    expect(spellings.length).toBeGreaterThan(42)
    using guarded = await box(['rm'])
    using open = await box([])
    const [through, before]: string[][] = [[], []]
    for (const command of spellings) {
      if (await guarded.deleted(command)) through?.push(command)
      if ((before?.length ?? 0) <= 42 && (await open.deleted(command))) before?.push(command)
    }
    expect(through).toEqual([])
    expect(before?.length).toBeGreaterThan(42)
  },
  120_000,
)
