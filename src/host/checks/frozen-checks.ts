/** Freezes checks: digests of what decides about the work, so that the work cannot change what it is measured by. */

import { existsSync, readdirSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { join, relative } from 'node:path'
import { readToml } from '../../config/text/toml.ts'
import { isObject, parseJson } from '../../kit/json.ts'
import { digest, sha256 } from '../../kit/sha256.ts'
import type { CheckSpec, FrozenCheck } from './contract.ts'
import { scriptIn, staticTools, wordsOf } from './static-tools.ts'

/** A file, or with `#` a part of one: `package.json#scripts.test`. Paths are relative to the workspace. */
export type NamedFile = { readonly path: string; readonly role: 'program' | 'script' | 'config' }

/** Returns one definition for each check, in their order. @param workspace an absolute path */
export function freezeChecks(specs: readonly CheckSpec[], workspace: string): readonly FrozenCheck[] {
  return specs.map((spec) => {
    const named = filesOf(spec, workspace)
    const files = Object.fromEntries(named.map(({ path, role }) => [path, digestOf(workspace, path, role)]))
    const { name, tier, ...decides } = spec
    return { name, tier, digest: digest([tier, decides, files]), files }
  })
}

/** Returns why a check no longer is the frozen one; undefined while it is. */
export function whyChanged(frozen: FrozenCheck, now: FrozenCheck): string | undefined {
  if (frozen.digest === now.digest) return undefined
  const { files: before } = frozen
  const paths = new Set([before, now.files].flatMap((files) => Object.keys(files ?? {})))
  const changed = before ? [...paths].filter((path) => before[path] !== now.files?.[path]) : []
  const what = changed.length > 0 ? changed.join(', ') : 'its definition, or a file that it names,'
  return `the check ${JSON.stringify(now.name)} is not the one that was frozen: ${what} changed`
}

const testName =
  /(?:^|\/)(?:tests?|__tests__|spec|__snapshots__)\/|\.(?:test|spec|stories|cy|e2e)\.[^/]+$|(?:^|\/)(?:test_[^/]*|[^/]*_test|conftest)\.(?:py|go|rs|rb|exs?)$/

/** Tells by its name whether a file is a test, a story, or a snapshot that tests compare with. */
export function isTestFile(path: string): boolean {
  return testName.test(path)
}

const codes = ['js', 'cjs', 'mjs', 'ts', 'mts']

/** Files that decide what package managers and test runners do: a shell that runs no script, tests that are left out. */
const runners: { readonly [program: string]: readonly string[] } = {
  npm: ['.npmrc'],
  npx: ['.npmrc'],
  pnpm: ['.npmrc', 'pnpm-workspace.yaml'],
  yarn: ['.yarnrc', '.yarnrc.yml'],
  bun: ['bunfig.toml'],
  make: ['GNUmakefile', 'makefile', 'Makefile'],
  jest: ['package.json#jest', 'jest.config.json', ...codes.map((end) => `jest.config.${end}`)],
  vitest: ['vitest', 'vite'].flatMap((name) => codes.map((end) => `${name}.config.${end}`)),
  mocha: ['package.json#mocha', ...['json', 'yml', 'yaml', 'js', 'cjs'].map((end) => `.mocharc.${end}`)],
  pytest: ['pytest.ini', '.pytest.ini', 'tox.ini', 'setup.cfg', 'pyproject.toml#tool.pytest'],
}

/** Returns the files that decide about a check, tests aside. It follows scripts of package.json, which may name further scripts. */
export function filesOf({ command }: CheckSpec, workspace: string): readonly NamedFile[] {
  const found = new Map<string, NamedFile>()
  const add = (path: string, role: NamedFile['role']) => void found.set(path, { path, role })
  const commands = command === undefined ? [] : [command]
  for (let text = commands.pop(); text !== undefined; text = commands.pop()) {
    const words = wordsOf(text)
    const looked = lookedAt(text)
    for (const word of words) {
      const path = relative(workspace, join(workspace, word))
      const bin = `node_modules/.bin/${word}`
      if (!word.includes('/') && existsSync(join(workspace, bin))) add(bin, 'program')
      else if (path.startsWith('node_modules/.bin/')) add(path, 'program')
      else if (path !== '' && !path.startsWith('..') && isFile(join(workspace, path)) && !isTestFile(path) && !looked.has(word))
        add(path, 'script')
      const program = word.split('/').at(-1) ?? ''
      const configs = Object.hasOwn(runners, program) ? runners[program] : staticTools.find(({ name }) => name === program)?.configs
      for (const config of configs ?? []) add(config, 'config')
    }
    for (const name of scriptIn(words)) {
      const part = `package.json#scripts.${name}`
      if (found.has(part)) continue
      add(part, 'script')
      const script = partOf(workspace, part)
      if (typeof script === 'string') commands.push(script)
    }
  }
  return [...found.values()]
}

/** Programs that look at files and run none of them. */
const readers = new Set('cat cmp diff egrep find flake8 grep head jq ls prettier shellcheck stat stylelint tail test wc ['.split(' '))

/** Returns the words that such programs get: what a check looks at is the work, and may change. */
function lookedAt(text: string): ReadonlySet<string> {
  const parts = text.split(/[;&|\n]+/).map((part) => wordsOf(part).filter((word) => !['npx', 'bunx', '!'].includes(word)))
  const isReader = (word = '') => readers.has(word) || staticTools.some(({ name }) => name === word)
  return new Set(parts.flatMap(([program, ...rest]) => (isReader(program) ? rest : [])))
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false
}

function partOf(workspace: string, path: string): unknown {
  const [file = '', part = ''] = path.split('#')
  if (!isFile(join(workspace, file))) return undefined
  const text = readFileSync(join(workspace, file), 'utf8')
  const data: unknown = file.endsWith('.json') ? parseJson(text) : readToml(text).data
  const [section = '', ...rest] = part.split('.')
  const inside = isObject(data) ? data[section] : undefined
  return rest.length === 0 ? inside : isObject(inside) ? inside[rest.join('.')] : undefined
}

function digestOf(workspace: string, path: string, role: NamedFile['role']): string {
  if (path.includes('#')) {
    const part = partOf(workspace, path)
    return part === undefined ? '' : sha256(JSON.stringify(part))
  }
  const full = join(workspace, path)
  if (!isFile(full)) return ''
  return role === 'program' ? programDigest(realpathSync(full)) : sha256(readFileSync(full))
}

/** Covers the whole package of a program, because the file in `.bin` only loads the others, and the packages of its machine code. */
function programDigest(program: string): string {
  const [, modules = '', name = ''] = /^(.*\/node_modules\/)((?:@[^/]+\/)?[^/]+)\//.exec(program) ?? []
  if (name === '' || name === '.bin') return sha256(readFileSync(program))
  const manifest = join(modules, name, 'package.json')
  const about: unknown = isFile(manifest) ? parseJson(readFileSync(manifest, 'utf8')) : undefined
  const natives = isObject(about) && isObject(about.optionalDependencies) ? Object.keys(about.optionalDependencies) : []
  const files = [name, ...natives].flatMap((each) => {
    const folder = join(modules, each)
    return existsSync(folder) ? readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((file) => `${each}/${file}`) : []
  })
  const lines = files
    .sort()
    .flatMap((file) => (isFile(join(modules, file)) ? [`${file} ${sha256(readFileSync(join(modules, file)))}\n`] : []))
  return sha256(lines.join(''))
}
