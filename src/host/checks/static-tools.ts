/** Knows the static tools of common projects: how a project shows that it uses one, its command, and the form of its findings. */

import { existsSync } from 'node:fs'
import { join } from 'node:path'

export type StaticTool = {
  readonly name: string
  readonly command: string
  /** A project that has one of these uses the tool; with `#`, a table of a TOML file. */
  readonly shownBy: readonly string[]
  /** Files that decide what it finds. */
  readonly configs: readonly string[]
  /** Matches the line of one finding. */
  readonly finding: RegExp
}

const pyproject = (tool: string) => `pyproject.toml#tool.${tool}`
const eslintConfigs = ['js', 'mjs', 'cjs', 'ts', 'mts', 'cts'].map((end) => `eslint.config.${end}`)
const [ruff, mypy] = [
  ['ruff.toml', '.ruff.toml', pyproject('ruff')],
  ['mypy.ini', '.mypy.ini', pyproject('mypy')],
]

// biome-ignore format: a table to be read
export const staticTools: readonly StaticTool[] = [
  { name: 'tsc', command: 'tsc --noEmit', shownBy: ['tsconfig.json'], configs: ['tsconfig.json'], finding: /^.+\(\d+,\d+\): error TS\d+: .+$|^error TS\d+: .+$/ },
  { name: 'biome', command: 'biome check', shownBy: ['biome.json', 'biome.jsonc'], configs: ['biome.json', 'biome.jsonc', 'package.json#biome'], finding: /^\S+?(?::\d+:\d+)? (?:lint|format|assist|organizeImports|parse|suppressions)\b.* ━+$/ },
  { name: 'eslint', command: 'eslint .', shownBy: eslintConfigs, configs: [...eslintConfigs, '.eslintrc.json', '.eslintrc.js', '.eslintrc.cjs', 'package.json#eslintConfig'], finding: /^ +\d+:\d+ +(?:error|warning) .+$/ },
  { name: 'ruff', command: 'ruff check', shownBy: ruff, configs: ruff, finding: /^(?:\S.*:\d+:\d+: )?[A-Z]{1,4}\d{3,4}\b.+$/ },
  { name: 'mypy', command: 'mypy .', shownBy: mypy, configs: [...mypy, 'setup.cfg'], finding: /^.+:\d+(?::\d+)?: error: .+$/ },
  { name: 'cargo', command: 'cargo check --offline', shownBy: ['Cargo.toml'], configs: ['clippy.toml', 'rust-toolchain.toml', '.cargo/config.toml'], finding: /^(?:error|warning)(?:\[[A-Z]\d+\])?: (?!aborting due|could not compile|.*generated \d+ warning).+$/ },
  { name: 'go', command: 'go vet ./...', shownBy: ['go.mod'], configs: [], finding: /^(?:vet: )?\S+\.go:\d+(?::\d+)?: .+$/ },
]

/** Returns the words of a command between what separates commands, without quotes. */
export function wordsOf(command: string): readonly string[] {
  return [...command.matchAll(/"([^"]*)"|'([^']*)'|([^\s;&|()<>"'`$]+)/g)].map(([, a, b, c]) => a ?? b ?? c ?? '')
}

/** Returns the scripts of package.json that a command runs, with those that run before and after them. */
export function scriptIn(words: readonly string[]): readonly string[] {
  return words.flatMap((word, at) => {
    if (!['npm', 'pnpm', 'yarn', 'bun'].includes(word)) return []
    const [verb = '', name = ''] = words.slice(at + 1).filter((each) => !each.startsWith('-'))
    const script = ['run', 'run-script'].includes(verb) ? name : ['t', 'tst'].includes(verb) ? 'test' : verb
    return script === '' ? [] : [`pre${script}`, script, `post${script}`]
  })
}

/** Returns the static tool that a command is a call of; undefined for a script, a pipe or another program. */
export function staticToolOf(command: string): StaticTool | undefined {
  if (/[;&|<>`$\n]/.test(command)) return undefined
  const [first = '', second = ''] = wordsOf(command)
  const word = ['npx', 'bunx'].includes(first) ? second : first
  const tool = staticTools.find(({ name }) => name === word.split('/').at(-1))
  if (tool?.name === 'cargo') return ['check', 'clippy'].includes(second) ? tool : undefined
  return tool?.name === 'go' && second !== 'vet' ? undefined : tool
}

/** Replaces the name of a tool by the path of the project's own, so that no PATH decides which one runs. */
export function withOwnProgram(command: string, workspace: string): string {
  const own = /^(?:(?:npx|bunx) +)?([\w.-]+)(.*)$/s.exec(command)
  if (own === null || !existsSync(join(workspace, 'node_modules/.bin', own[1] ?? ''))) return command
  return `node_modules/.bin/${own[1]}${own[2]}`
}

/** Puts what the tool found in front of what it printed, because tools print it in many forms and colours. */
export function summarised({ finding, name }: StaticTool, output: string): string {
  const found = output.split('\n').filter((line) => finding.test(line.trimEnd()))
  if (found.length === 0) return output
  const heading = `${name} found ${found.length} ${found.length === 1 ? 'problem' : 'problems'}:`
  if (output.split('\n').length < found.length + 5) return `${heading}\n${output}`
  const lines = found.slice(0, 20).map((line) => line.trim().replace(/ ━+$/, ''))
  const more = found.length > lines.length ? [`… and ${found.length - lines.length} more`] : []
  return [heading, ...lines, ...more, '', output].join('\n')
}
