/** Every law of the architecture, held over the whole tree, and shown to fail on a small offender. */

import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { noImportCycle } from './shape/cycles.ts'
import { exportsAreNamed, filesAreShort, filesParse, filesSayWhatTheyAreFor, importsLeadSomewhere, pagesAreShort } from './shape/files.ts'
import { crowdedFolders, mutualFolders, pathsAreShort } from './shape/folders.ts'
import { laws } from './shape/laws.ts'
import { isInBrowser, thePageStandsAlone } from './shape/layers.ts'
import { type Law, parseModule, type Violation } from './shape/module.ts'
import { commentsHaveASubject, messagesSayIsNot, typeNamesAreOwn } from './shape/words.ts'

const root = join(import.meta.dir, '..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const scan = (pattern: string) =>
  [...new Bun.Glob(pattern).scanSync({ cwd: root })].filter((path) => !/node_modules|test\/fixtures/.test(path)).sort()
const all = scan('{src,test,scripts,bench}/**/*.{ts,tsx}').map((path) => parseModule(path, read(path)))
const modules = all.filter((module) => !isInBrowser(module))
const pages = scan('{*.md,docs/**/*.md}').filter((path) => path !== 'CHANGELOG.md')

const listed = (violations: readonly Violation[]) => violations.map(({ file, line, message }) => `${file}:${line} ${message}`)
const judged = (check: Law, path: string, source: string) => listed(check([parseModule(path, source)]))

test('the laws see the tree', () => {
  expect(modules.map((module) => module.path)).toContain('src/runtime/event.ts')
  expect(modules.length).toBeGreaterThan(20)
})

describe('the page of the dashboard', () => {
  const page = all.filter(isInBrowser)
  const pageLaws = [
    commentsHaveASubject,
    messagesSayIsNot,
    filesParse,
    filesAreShort,
    pathsAreShort,
    filesSayWhatTheyAreFor,
    exportsAreNamed,
    importsLeadSomewhere,
    noImportCycle,
  ]
  test('is there', () => expect(page.length).toBeGreaterThan(10))
  for (const check of pageLaws)
    test(`keeps ${check.name}`, () => expect(listed(check(all).filter(({ file }) => isInBrowser({ path: file })))).toEqual([]))
  test('stands alone', () => expect(listed(thePageStandsAlone(all))).toEqual([]))
  test('may not import code of the process, nor the process its code', () => {
    expect(judged(thePageStandsAlone, 'src/dashboard/page/a.tsx', `import { a } from '../../host/a.ts'`)).toHaveLength(1)
    expect(judged(thePageStandsAlone, 'src/cli/a.ts', `import { a } from '../dashboard/page/a.ts'`)).toHaveLength(1)
    expect(judged(thePageStandsAlone, 'src/dashboard/page/a.tsx', `import type { A } from '../../host/a.ts'`)).toEqual([])
    expect(judged(thePageStandsAlone, 'src/dashboard/files.ts', `import page from './page/index.html'`)).toEqual([])
  })
})

for (const { name, check, guilty, innocent = [] } of laws) {
  describe(name, () => {
    test('holds over the whole tree', () => expect(listed(check(modules))).toEqual([]))
    for (const [path, source] of guilty) {
      test(`is broken by ${path}: ${source.slice(0, 120)}`, () => expect(judged(check, path, source)).not.toEqual([]))
    }
    for (const [path, source] of innocent) {
      test(`lets ${path} say: ${source.slice(0, 120)}`, () => expect(judged(check, path, source)).toEqual([]))
    }
  })
}

describe('no import cycle', () => {
  const knot = (first: string, second: string) =>
    listed(noImportCycle([parseModule('src/kit/a.ts', first), parseModule('src/kit/b.ts', second)]))
  test('holds over the whole tree', () => expect(listed(noImportCycle(modules))).toEqual([]))
  test.each([
    [`import { b } from './b.ts'`, `import { a } from './a.ts'`],
    [`import type { b } from './b.ts'`, `export type { a } from './a.ts'`],
    [`import { b } from './b.ts'`, `const load = () => import('./a.ts')`],
  ])('is broken by %s and %s', (first, second) => {
    expect(knot(first, second)).toEqual(['src/kit/a.ts:1 import cycle: src/kit/a.ts → src/kit/b.ts → src/kit/a.ts'])
  })
  test('a file may not import itself', () => expect(judged(noImportCycle, 'src/kit/a.ts', `import { a } from './a.ts'`)).toHaveLength(1))
  test('a diamond is no cycle', () => {
    expect(knot(`import { b } from './b.ts'; import { c } from './c.ts'`, `import { c } from './c.ts'`)).toEqual([])
  })
})

describe('pages are short', () => {
  test('holds over the whole tree', () => expect(listed(pagesAreShort(pages.map((path) => ({ path, text: read(path) }))))).toEqual([]))
  test.each([
    ['README.md', 131],
    ['AGENTS.md', 101],
    ['docs/config.md', 151],
  ])('%s of %i lines is too long', (path, count) => expect(pagesAreShort([{ path, text: 'x\n'.repeat(count) }])).toHaveLength(1))
  test('a generated table may be as long as it needs', () => {
    expect(pagesAreShort([{ path: 'docs/events.md', text: `<!-- generated -->${'\n'.repeat(400)}` }])).toEqual([])
  })
})

describe('folders', () => {
  const two = (first: string, second: string) => [parseModule('src/kit/a/x.ts', first), parseModule('src/kit/b/y.ts', second)]

  test('of one folder do not import each other, debts aside', () => expect(mutualFolders(modules)).toEqual([]))
  test('that do are named, and a debt that is paid is named too', () => {
    expect(mutualFolders(two(`import { y } from '../b/y.ts'`, `import { x } from '../a/x.ts'`), [])).toEqual(['src/kit: a ⇄ b'])
    expect(mutualFolders(two(`import { y } from '../b/y.ts'`, ''), [])).toEqual([])
    expect(mutualFolders([], ['src/kit: a ⇄ b'])).toHaveLength(1)
  })

  test('have at most fourteen entries, debts aside', () => expect(crowdedFolders(modules)).toEqual([]))
  test('with more are named', () => {
    const many = Array.from({ length: 15 }, (_, at) => parseModule(`src/kit/a/f${at}.ts`, ''))
    expect(crowdedFolders(many, {})).toEqual(['src/kit/a: 15 entries'])
    expect(crowdedFolders(many.slice(1), {})).toEqual([])
  })
  test('may hold any number of tools that their list imports, and fourteen other files', () => {
    const names = Array.from({ length: 16 }, (_, at) => `f${at}`)
    const tools = names.map((name) => parseModule(`src/tools/builtin/${name}.ts`, ''))
    const list = (...listed: string[]) =>
      parseModule('src/tools/list.ts', listed.map((name) => `import { ${name} } from './builtin/${name}.ts'`).join('\n'))
    expect(crowdedFolders([...tools, list('f0', 'f1')], {})).toEqual([])
    expect(crowdedFolders([...tools, list('f0')], {})).toEqual(['src/tools/builtin: 15 entries'])
  })
})

describe('the name of a type', () => {
  const sources = (count: number, declared = 'type Asked = string') =>
    Array.from({ length: count }, (_, at) => parseModule(`src/kit/a${at}.ts`, declared))
  test('means at most three things', () => expect(listed(typeNamesAreOwn(all))).toEqual([]))
  test('that means four is named in each file', () => {
    expect(typeNamesAreOwn(sources(4))).toHaveLength(4)
    expect(typeNamesAreOwn(sources(4, 'export interface Asked {}'))).toHaveLength(4)
    expect(typeNamesAreOwn(sources(3))).toEqual([])
    expect(typeNamesAreOwn(sources(4).map((module) => ({ ...module, path: module.path.replace('.ts', '.test.ts') })))).toEqual([])
  })
})
