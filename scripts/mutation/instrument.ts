/** Makes a copy of the tree in which switches control the mutants of Stryker's instrumenter; the tree itself stays unchanged. */

import { cpSync, mkdirSync, symlinkSync } from 'node:fs'
import { join, relative } from 'node:path'

const INSTRUMENTER = '@stryker-mutator/instrumenter@10.1.1'

/** `line` and `column` count from one. */
export type Mutant = {
  readonly id: string
  readonly file: string
  readonly line: number
  readonly column: number
  readonly mutator: string
  readonly original: string
  readonly replacement: string
}

type Position = { readonly line: number; readonly column: number }
type StrykerMutant = {
  readonly id: string
  readonly fileName: string
  readonly mutatorName: string
  readonly replacement: string
  readonly location: { readonly start: Position; readonly end: Position }
}
type Instrumenter = {
  instrument(
    files: readonly { name: string; mutate: boolean; content: string }[],
    options: object,
  ): Promise<{ files: readonly { name: string; content: string }[]; mutants: readonly StrykerMutant[] }>
}

export type Copy = {
  readonly mutants: readonly Mutant[]
  /** The form of a file in the copy: with reach counters, with mutants only (three times as fast), or plain. */
  put(file: string, form: 'counting' | 'mutants' | 'plain'): Promise<void>
}

/** Copies `root` to `copy`; `files` are relative to it, and start in the counting form. Throws when npm cannot install the instrumenter. */
export async function instrumentCopy(job: { root: string; copy: string; tools: string; files: readonly string[] }): Promise<Copy> {
  const { root, copy } = job
  const left = new Set(['node_modules', 'dist', '.git'].map((name) => join(root, name)))
  cpSync(root, copy, { recursive: true, filter: (path) => !left.has(path) })
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
  await prepareTests(copy)
  const plain = new Map<string, string>()
  for (const file of job.files) plain.set(file, await Bun.file(join(copy, file)).text())
  const instrumenter = await bring(job.tools)
  const sources = [...plain].map(([file, content]) => ({ name: join(copy, file), mutate: true, content }))
  const result = await instrumenter.instrument(sources, { plugins: null, excludedMutations: [], ignorers: [], noHeader: true })
  const made = new Map(result.files.map(({ name, content }) => [relative(copy, name), content]))
  const put: Copy['put'] = async (file, form) => {
    const counting = `import { stryMutAct_9fa48, stryCov_9fa48, stryNS_9fa48 } from '${join(copy, SWITCH)}'; ${made.get(file)}`
    const text = form === 'plain' ? plain.get(file) : form === 'counting' ? counting : counting.replace(COUNT, '0')
    await Bun.write(join(copy, file), text ?? '')
  }
  for (const file of plain.keys()) await put(file, 'counting')
  return { mutants: result.mutants.map((mutant) => described(mutant, copy, plain)), put }
}

const SWITCH = '.mutation/switch.js'
const COUNT = /stryCov_9fa48\((?:"\d+"(?:, )?)+\)/g

async function bring(folder: string): Promise<Instrumenter> {
  mkdirSync(folder, { recursive: true })
  await Bun.write(join(folder, 'package.json'), '{ "private": true }')
  const command = ['npm', 'install', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error', INSTRUMENTER]
  const { exitCode, stderr } = Bun.spawnSync(command, { cwd: folder, stdout: 'ignore', stderr: 'pipe' })
  if (exitCode !== 0) throw new Error(`npm could not install ${INSTRUMENTER}; is the registry reachable?\n${stderr}`)
  const { Instrumenter } = await import(join(folder, 'node_modules/@stryker-mutator/instrumenter/dist/src/index.js'))
  const quiet = () => false
  return new Instrumenter({ debug: quiet, info: quiet, warn: console.error, error: console.error, isDebugEnabled: quiet })
}

/** Makes the copy's tests import `.mutation` instead of Bun's module. */
async function prepareTests(copy: string): Promise<void> {
  for (const [name, text] of Object.entries(glue(join(copy, 'scripts/mutation')))) await Bun.write(join(copy, '.mutation', name), text)
  for (const file of new Bun.Glob('src/**/*.ts').scanSync({ cwd: copy, absolute: true })) {
    const text = await Bun.file(file).text()
    if (text.includes(ASKS)) await Bun.write(file, text.replace(ASKS, `from '${join(copy, '.mutation/bun-test.js')}'`))
  }
}

const ASKS = "from 'bun:test'"

const glue = (inside: string) => ({
  'switch.js': `import { createSwitch } from '${inside}/switch.ts'
export const at = createSwitch((process.env.MUTATION_ACTIVE || '').split(',').filter(Boolean), process.exit)
export const { stryMutAct_9fa48, stryCov_9fa48, stryNS_9fa48 } = at
`,
  'bun-test.js': `import { createCases } from '${inside}/cases.ts'
export { expect, mock, spyOn } from 'bun:test'
export const shelf = createCases()
export const { test, describe, beforeAll, afterAll, beforeEach, afterEach } = shelf
`,
  'drive.test.js': `import { test } from 'bun:test'
import { drive } from '${inside}/drive.ts'
import { shelf } from './bun-test.js'
import { at } from './switch.js'
const wire = { send: (answer) => process.send(answer), listen: (to) => process.on('message', to) }
process.on('disconnect', () => process.exit(1))
test('drive', () => drive({ load: () => import(process.env.MUTATION_FILE), at, shelf }, wire), 2 ** 30)
`,
})

function described(mutant: StrykerMutant, copy: string, texts: ReadonlyMap<string, string>): Mutant {
  const { id, mutatorName: mutator, replacement, location } = mutant
  const { start, end } = location
  const file = relative(copy, mutant.fileName)
  const original = between((texts.get(file) ?? '').split('\n'), start, end)
  return { id, file, line: start.line + 1, column: start.column + 1, mutator, original, replacement }
}

function between(lines: readonly string[], start: Position, end: Position): string {
  const part = lines.slice(start.line, end.line + 1)
  const last = part.length - 1
  return part.map((line, index) => line.slice(index === 0 ? start.column : 0, index === last ? end.column : undefined)).join('\n')
}
