/** A small project with a check that fails, and models that try to end a wiggum run in each bad way. */

import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { type Nest, nest, type Result } from '../support/cli.ts'

export const check = 'sh tests/run.sh'

/** The check sources the code, counts what it tries, and fails because `add` subtracts. */
const files: { readonly [path: string]: string } = {
  'src/lib.sh': 'add() { echo $(($1 - $2)); }\n',
  'tests/run.sh':
    '. ./src/lib.sh\nbad=0\n[ "$(add 1 2)" = 3 ] || bad=1\n[ "$(add 0 0)" = 0 ] || bad=1\necho "# tests 2"\n[ "$bad" = 0 ] || { echo "add 1 2 is $(add 1 2)"; exit 1; }\n',
  'README.md': 'a project\n',
}

export const mended = 'add() { echo $(($1 + $2)); }\n'

export const call = (name: string, input: object) => ({ name, arguments: input })
export const shell = (command: string) => call('shell', { command })
export const mend = call('file_write', { path: 'src/lib.sh', content: mended })
export const said = (text = 'done, all tests pass') => ({ text })

export function project(): Nest {
  const made = nest()
  made.config('')
  for (const [path, text] of Object.entries(files)) made.file(path, text)
  return made
}

export type Wiggum = { readonly args?: readonly string[]; readonly iterations?: number; readonly env?: { readonly [name: string]: string } }

export function wiggum(made: Nest, responses: readonly object[], { args = [], iterations = 3, env = {} }: Wiggum = {}): Promise<Result> {
  const all = { BRAIDCLAW_MOCK_FIXTURE: made.fixture(responses), ...env }
  const words = ['agent', '--wiggum', '--check', check, '--max-iterations', String(iterations), ...args, 'make the tests pass']
  return made.run(words, { env: all, timeoutMs: 100_000 })
}

/** Returns every path of the folder with its mode and content. */
export function tree(folder: string): { readonly [path: string]: string } {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort()
  return Object.fromEntries(
    names.map((name) => {
      const path = join(folder, name)
      const stat = statSync(path, { throwIfNoEntry: false })
      if (stat === undefined) return [name, `link ${readlinkSync(path)}`]
      return [name, `${stat.mode} ${stat.isFile() ? readFileSync(path, 'latin1') : ''}`]
    }),
  )
}

export type Report = {
  readonly runs: readonly string[]
  readonly ending: { readonly code: string; readonly message: string; readonly notes: readonly string[] }
  readonly iterations: readonly {
    readonly count: number
    readonly changes: readonly string[]
    readonly refused: readonly string[]
    readonly checks: readonly { readonly name: string; readonly pass: boolean; readonly evidence: string }[]
  }[]
  readonly testsChanged: readonly string[]
  readonly receipts: readonly string[]
  readonly result?: { readonly name: string; readonly state: string; readonly paths: readonly string[] }
}

export async function reportOf(made: Nest, run = lastRun(made)): Promise<Report> {
  const { stdout, stderr } = await made.run(['run', 'report', run, '--json'])
  if (stdout === '') throw new Error(stderr)
  return JSON.parse(stdout)
}

/** Returns the latest run of the latest record. */
export function lastRun(made: Nest): string {
  const folder = join(made.home, '.braidclaw/wiggum')
  const records = readdirSync(folder).map((id) => JSON.parse(readFileSync(join(folder, id, 'run.json'), 'utf8')))
  return records.sort((a, b) => b.started - a.started)[0]?.runs.at(-1) ?? 'none'
}
