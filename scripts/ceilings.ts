/**
 * Counts what may only fall: the lines, bytes and files of the program, its lazy imports and its long functions. The ceilings stand in
 * package.json. Tests, their fixtures and generated tables do not count.
 */

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isGenerated, lineCount } from '../test/shape/files.ts'
import { lineOf, type Module, type Node, nameOf, parseModule } from '../test/shape/module.ts'

const LONGEST = 70
const COMMAND_TABLES = ['src/cli/commands/list.ts', 'src/cli/commands/turn-commands.ts']
const FUNCTIONS = new Set(['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression'])
const REUSE = 'use what is there already, or delete as much as you add'

export type Counts = { readonly [name in keyof typeof ceilings]: number }

type Ceiling = {
  readonly what: string
  readonly count: (modules: readonly Module[]) => number
  readonly advice: (modules: readonly Module[]) => string
}

const ceilings = {
  lines: { what: 'lines in src', count: (modules) => sum(modules, ({ text }) => lineCount(text)), advice: () => REUSE },
  bytes: { what: 'bytes in src', count: (modules) => sum(modules, ({ text }) => Buffer.byteLength(text)), advice: () => REUSE },
  files: { what: 'files in src', count: (modules) => modules.length, advice: () => 'merge a file into its only importer' },
  lazyImports: {
    what: 'import() expressions outside the command table',
    count: (modules) => sum(modules, (module) => lazyImports(module).length),
    advice: () => 'import at the top of the file; import() is for a command, an optional library or a whole tool set',
  },
  longFunctions: {
    what: `functions of more than ${LONGEST} lines`,
    count: (modules) => modules.flatMap(longFunctions).length,
    advice: (modules) => {
      const [longest] = modules.flatMap(longFunctions).sort((a, b) => b.lines - a.lines)
      return `split a function; the longest is ${longest?.at} with ${longest?.lines} lines`
    },
  },
} satisfies { readonly [name: string]: Ceiling }

const rows = Object.entries(ceilings) as [keyof Counts, Ceiling][]

export function countsOf(modules: readonly Module[]): Counts {
  return Object.fromEntries(rows.map(([name, { count }]) => [name, count(modules)])) as Counts
}

/** Compares the numbers of these modules with the ceilings: a failure is above its ceiling, a remark below. */
export function judge(modules: readonly Module[], limits: Counts): { readonly failures: string[]; readonly remarks: string[] } {
  const counts = countsOf(modules)
  const line = (name: keyof Counts) => `${ceilings[name].what}: ${counts[name]}, the ceiling "${name}" in package.json is ${limits[name]}`
  return {
    failures: rows.filter(([name]) => counts[name] > limits[name]).map(([name, { advice }]) => `${line(name)}; ${advice(modules)}`),
    remarks: rows
      .filter(([name]) => counts[name] < limits[name])
      .map(([name]) => `${line(name)} and may be lowered: npm run check -- --lower`),
  }
}

/** Returns the ceilings for these numbers, none of them higher than before. */
export function lower(counts: Counts, limits: Counts): Counts {
  return Object.fromEntries(rows.map(([name]) => [name, Math.min(counts[name], limits[name])])) as Counts
}

/** Prints failures and remarks, and returns whether all ceilings hold. */
export function checkCeilings(root: string): boolean {
  const start = performance.now()
  const { failures, remarks } = judge(programOf(root), limitsIn(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))))
  console.log(`${failures.length === 0 ? 'ok  ' : 'FAIL'} ceilings  ${Math.round(performance.now() - start)} ms`)
  for (const line of [...failures, ...remarks]) console.log(`     ${line}`)
  return failures.length === 0
}

/** Writes lower ceilings into package.json, and returns the exit code. */
export function lowerCeilings(root: string): number {
  const path = join(root, 'package.json')
  const settings = JSON.parse(readFileSync(path, 'utf8'))
  const lowered = lower(countsOf(programOf(root)), limitsIn(settings))
  writeFileSync(path, `${JSON.stringify({ ...settings, ceilings: lowered }, null, 2)}\n`)
  console.log(`ceilings in package.json: ${JSON.stringify(lowered)}`)
  return 0
}

/** Returns the ceilings of package.json; one that is missing is 0, so that it fails. */
export function limitsIn({ ceilings: given = {} }: { readonly ceilings?: Partial<Counts> }): Counts {
  return Object.fromEntries(rows.map(([name]) => [name, given[name] ?? 0])) as Counts
}

/** Reads the program: `src` without tests, their fixtures and generated tables. */
function programOf(root: string): Module[] {
  const paths = [...new Bun.Glob('src/**/*.{ts,tsx}').scanSync({ cwd: root })].sort()
  return programIn(paths.map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') })))
}

export function programIn(files: readonly { readonly path: string; readonly text: string }[]): Module[] {
  return files
    .filter(({ path }) => !/\.test\.tsx?$|(^|[./])fixture\.tsx?$/.test(path))
    .map(({ path, text }) => parseModule(path, text))
    .filter((module) => !isGenerated(module))
}

/** Leaves out the import() in the member `load` of a row of the command table. */
function lazyImports(module: Module): Node[] {
  const isLoad = (node: Node) => node.type === 'Property' && nameOf(node.key) === 'load'
  const loads = COMMAND_TABLES.includes(module.path) ? module.tree.filter(isLoad) : []
  return module.tree.filter(
    ({ type, start, end }) => type === 'ImportExpression' && !loads.some((load) => load.start <= start && end <= load.end),
  )
}

function longFunctions(module: Module): { readonly at: string; readonly lines: number }[] {
  return module.tree
    .filter(({ type }) => FUNCTIONS.has(type))
    .map((node) => ({ node, lines: lineCount(module.text.slice(node.start, node.end)) }))
    .filter(({ lines }) => lines > LONGEST)
    .map(({ node, lines }) => ({ at: `${module.path}:${lineOf(module, node)}`, lines }))
}

function sum(modules: readonly Module[], count: (module: Module) => number): number {
  return modules.reduce((total, module) => total + count(module), 0)
}
